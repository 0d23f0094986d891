package advisory

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// bulkAdvisory is one entry of a registry's answer.
type bulkAdvisory struct {
	ID       json.RawMessage `json:"id"`
	URL      string          `json:"url"`
	Title    string          `json:"title"`
	Severity string          `json:"severity"`
	Range    string          `json:"vulnerable_versions"`
}

// ParseBulk reads what a registry answers to a list of versions. What it says of
// packages that are not among names is left out. source is who answered.
func ParseBulk(text []byte, names []string, source string) ([]Advisory, error) {
	var answer map[string][]bulkAdvisory
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, fmt.Errorf("read the advisories: %w", err)
	}
	var list []Advisory
	for _, name := range names {
		for _, b := range answer[name] {
			a := Advisory{
				Package: name, Summary: oneLine(b.Title), Severity: severityOf(b.Severity), Sources: []string{source},
				affected: []affected{{Npm: b.Range}},
			}
			if strings.HasPrefix(b.URL, "https://") && !strings.ContainsAny(b.URL, " \t\r\n") {
				a.Address = b.URL
			}
			number := string(bytes.Trim(b.ID, `"`))
			ids := []string{b.URL[strings.LastIndexByte(b.URL, '/')+1:]}
			if !strings.HasPrefix(ids[0], "GHSA-") && !strings.HasPrefix(ids[0], "MAL-") || !validID(ids[0]) {
				ids = []string{"npm:" + number}
			}
			if !validID(ids[0]) {
				return nil, fmt.Errorf("read the advisories: one about %s has no id", name)
			}
			a.setIDs(ids)
			list = append(list, a)
		}
	}
	return list, nil
}

// bulkQuestion is what a registry is asked: the versions of each package.
func bulkQuestion(versions []Version) ([]byte, []string, error) {
	of := map[string][]string{}
	var names []string
	for _, v := range versions {
		if of[v.Name] == nil {
			names = append(names, v.Name)
		}
		if !slices.Contains(of[v.Name], v.Version) {
			of[v.Name] = append(of[v.Name], v.Version)
		}
	}
	text, err := json.Marshal(of)
	return text, names, err
}
