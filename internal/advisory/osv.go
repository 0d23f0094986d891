package advisory

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"dsh/internal/npmrange"
)

// event is one point on the line of versions: from there on they are affected, or
// not any more. Exactly one field is set. "0" comes before all versions.
// The format and its meaning: https://ossf.github.io/osv-schema/#affectedrangesevents-fields
type event struct {
	Introduced   string `json:"introduced,omitempty"`
	Fixed        string `json:"fixed,omitempty"`
	LastAffected string `json:"last_affected,omitempty"`
	Limit        string `json:"limit,omitempty"`
}

func (e event) text() string { return e.Introduced + e.Fixed + e.LastAffected + e.Limit }

// isStart reports whether e is before all versions.
func (e event) isStart() bool { return e.Introduced == "0" }

// events are those of one range, in the order of versions.
type events []event

var errVersion = errors.New("is no version")

// shortVersion is a version that lacks numbers at its end.
var shortVersion = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?$`)

// parseVersion reads a version of an advisory, where numbers may be missing.
func parseVersion(text string) (npmrange.Version, error) {
	v, err := npmrange.ParseVersionLoose(text)
	if err != nil && shortVersion.MatchString(text) {
		return npmrange.ParseVersionLoose(text + strings.Repeat(".0", 2-strings.Count(text, ".")))
	}
	return v, err
}

// sorted is the events in order, each checked to be one.
func (list events) sorted() (events, error) {
	versions := map[string]npmrange.Version{}
	for _, e := range list {
		set := 0
		for _, text := range []string{e.Introduced, e.Fixed, e.LastAffected, e.Limit} {
			if text != "" {
				set++
			}
		}
		if set != 1 {
			return nil, errors.New("an event of a range is not one of introduced, fixed, last_affected and limit")
		}
		if e.isStart() || e.Limit == "*" {
			continue
		}
		v, err := parseVersion(e.text())
		if err != nil {
			return nil, fmt.Errorf("%.80q %w", e.text(), errVersion)
		}
		versions[e.text()] = v
	}
	out := slices.Clone(list)
	slices.SortStableFunc(out, func(a, b event) int {
		switch {
		case a.isStart() && b.isStart():
			return 0
		case a.isStart():
			return -1
		case b.isStart():
			return 1
		}
		if by := versions[a.text()].Compare(versions[b.text()]); by != 0 {
			return by
		}
		// A range that is mended where it begins is empty.
		rank := func(e event) int {
			if e.Introduced != "" {
				return 0
			}
			return 1
		}
		return rank(a) - rank(b)
	})
	return out, nil
}

// hold reports whether a version is in the range: by plain SemVer order, with
// prereleases where they stand in it, which is not how npm reads its own ranges.
func (list events) hold(v npmrange.Version) bool {
	affected, limited, within := false, false, false
	for _, e := range list {
		if e.isStart() {
			affected = true
			continue
		}
		if e.Limit == "*" {
			limited, within = true, true
			continue
		}
		at, err := parseVersion(e.text())
		if err != nil {
			return false
		}
		switch order := v.Compare(at); {
		case e.Introduced != "" && order >= 0:
			affected = true
		case e.Fixed != "" && order >= 0, e.LastAffected != "" && order > 0:
			affected = false
		case e.Limit != "":
			limited = true
			within = within || order < 0
		}
	}
	return affected && (within || !limited)
}

// document is the part of an OSV document that we read.
type document struct {
	ID        string             `json:"id"`
	Aliases   []string           `json:"aliases"`
	Withdrawn string             `json:"withdrawn"`
	Summary   string             `json:"summary"`
	Details   string             `json:"details"`
	Severity  []score            `json:"severity"`
	Database  json.RawMessage    `json:"database_specific"`
	Affected  []documentAffected `json:"affected"`
	Links     []struct {
		Type string `json:"type"`
		URL  string `json:"url"`
	} `json:"references"`
}

type documentAffected struct {
	Package struct {
		Ecosystem string `json:"ecosystem"`
		Name      string `json:"name"`
	} `json:"package"`
	Severity []score `json:"severity"`
	Ranges   []struct {
		Type   string `json:"type"`
		Events events `json:"events"`
	} `json:"ranges"`
	Versions  []string        `json:"versions"`
	Database  json.RawMessage `json:"database_specific"`
	Ecosystem json.RawMessage `json:"ecosystem_specific"`
}

// score is a severity as OSV has it: a vector and which scale it is of.
type score struct {
	Type  string `json:"type"`
	Score string `json:"score"`
}

// maxSummary bounds a summary, in bytes.
const maxSummary = 200

// ParseOSV reads one document of OSV: one advisory for each npm package that it
// speaks of, none where it was withdrawn or is about other things. source is who
// it comes from.
func ParseOSV(text []byte, source string) ([]Advisory, error) {
	var d document
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, fmt.Errorf("read an advisory: %w", err)
	}
	if !validID(d.ID) {
		return nil, fmt.Errorf("read an advisory: %.80q is no id", d.ID)
	}
	if d.Withdrawn != "" {
		return nil, nil
	}
	var list []Advisory
	for _, part := range d.Affected {
		if part.Package.Ecosystem != "npm" || part.Package.Name == "" {
			continue
		}
		if strings.ContainsAny(part.Package.Name, "\t\r\n") {
			return nil, fmt.Errorf("%s: %.80q is no package name", d.ID, part.Package.Name)
		}
		a := affected{Versions: part.Versions}
		for _, r := range part.Ranges {
			if r.Type != "SEMVER" && r.Type != "ECOSYSTEM" || len(r.Events) == 0 {
				continue // commits of a repository
			}
			sorted, err := r.Events.sorted()
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", d.ID, part.Package.Name, err)
			}
			a.Ranges = append(a.Ranges, sorted)
		}
		if len(a.Ranges)+len(a.Versions) == 0 {
			continue
		}
		i := slices.IndexFunc(list, func(have Advisory) bool { return have.Package == part.Package.Name })
		if i < 0 {
			one := Advisory{Package: part.Package.Name, Summary: oneLine(d.Summary, d.Details), Address: d.address(), Sources: []string{source}}
			one.setIDs(append([]string{d.ID}, slices.DeleteFunc(slices.Clone(d.Aliases), func(id string) bool { return !validID(id) })...))
			one.Severity = d.severity(nil)
			i = len(list)
			list = append(list, one)
		}
		list[i].Severity = max(list[i].Severity, d.severity(&part))
		list[i].affected = append(list[i].affected, a)
	}
	return list, nil
}

// validID keeps out what is no id, for ids become parts of addresses and lines.
func validID(id string) bool {
	if id == "" || len(id) > 100 {
		return false
	}
	for i := range len(id) {
		if c := id[i]; c != '-' && c != '_' && c != '.' && c != ':' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return id[0] != '.'
}

// oneLine is the first of the texts that says anything, on one line and not long.
func oneLine(texts ...string) string {
	for _, text := range texts {
		text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f || 0x80 <= r && r < 0xa0 }), " ")
		if len(text) > maxSummary {
			text = strings.ToValidUTF8(text[:maxSummary], "") + "…"
		}
		if text != "" {
			return text
		}
	}
	return ""
}

// address is where to read on.
func (d *document) address() string {
	for _, link := range d.Links {
		if link.Type == "ADVISORY" && strings.HasPrefix(link.URL, "https://") && len(link.URL) < 500 && !strings.ContainsAny(link.URL, " \t\r\n") {
			return link.URL
		}
	}
	return "https://osv.dev/vulnerability/" + d.ID
}

// severity is what the document says of how bad it is, of one package or of all.
func (d *document) severity(part *documentAffected) Severity {
	if strings.HasPrefix(d.ID, "MAL-") {
		return Critical
	}
	words, scores := []json.RawMessage{d.Database}, d.Severity
	if part != nil {
		words, scores = []json.RawMessage{part.Database, part.Ecosystem}, part.Severity
	}
	worst := Unrated
	for _, raw := range words {
		var said struct {
			Severity string `json:"severity"`
		}
		if json.Unmarshal(raw, &said) == nil { // the fields are each source's own
			worst = max(worst, severityOf(said.Severity))
		}
	}
	if worst != Unrated {
		return worst
	}
	for _, s := range scores {
		worst = max(worst, s.severity())
	}
	return worst
}
