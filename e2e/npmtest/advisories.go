package npmtest

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// serveAdvisories answers what is asked about many versions at once. It reports
// false where that is not what is asked.
func (s *Server) serveAdvisories(w http.ResponseWriter, r *http.Request) bool {
	switch r.URL.Path {
	case "/-/npm/v1/security/advisories/bulk":
		s.serveBulk(w, r)
	case "/osv/v1/querybatch":
		s.serveBatch(w, r)
	default:
		return false
	}
	return true
}

func (s *Server) serveBulk(w http.ResponseWriter, r *http.Request) {
	all, answer := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	data, err := os.ReadFile(filepath.Join(s.dir, "advisories", "bulk.json"))
	if errors.Is(err, fs.ErrNotExist) {
		http.NotFound(w, r)
		return
	}
	var asked map[string][]string
	if err := errors.Join(err, json.Unmarshal(data, &all), json.NewDecoder(r.Body).Decode(&asked)); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	for name := range asked {
		if known, ok := all[name]; ok {
			answer[name] = known
		}
	}
	s.writeJSON(w, r, "application/json", answer)
}

// serveBatch answers with one id of each package a page, so that clients have to
// ask for the rest.
func (s *Server) serveBatch(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Queries []struct {
			Package struct{ Name, Ecosystem string }
			Page    string `json:"page_token"`
		}
	}
	files, err := filepath.Glob(filepath.Join(s.dir, "advisories", "osv", "*.json"))
	if err := errors.Join(err, json.NewDecoder(r.Body).Decode(&asked)); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	results := []map[string]any{}
	for _, q := range asked.Queries {
		var ids []string
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			if strings.Contains(string(data), strconv.Quote(q.Package.Name)) && q.Package.Ecosystem == "npm" {
				ids = append(ids, strings.TrimSuffix(filepath.Base(file), ".json"))
			}
		}
		slices.Sort(ids)
		result, page := map[string]any{}, 0
		if q.Page != "" {
			page, _ = strconv.Atoi(q.Page)
		}
		if page < len(ids) {
			result["vulns"] = []map[string]string{{"id": ids[page]}}
		}
		if page+1 < len(ids) {
			result["next_page_token"] = strconv.Itoa(page + 1)
		}
		results = append(results, result)
	}
	s.writeJSON(w, r, "application/json", map[string]any{"results": results})
}

func (s *Server) serveVulnerability(w http.ResponseWriter, r *http.Request, id string) {
	data, err := os.ReadFile(filepath.Join(s.dir, "advisories", "osv", filepath.Base(id)+".json"))
	if err != nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(data) // the client may have gone away
}
