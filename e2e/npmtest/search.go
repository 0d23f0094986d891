package npmtest

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// serveSearch finds packages as npm's search does, which takes any of the words
// for enough. Packages that need a token are not found.
func (s *Server) serveSearch(w http.ResponseWriter, r *http.Request, content *catalogue) {
	words := strings.Fields(strings.ToLower(r.URL.Query().Get("text")))
	type hit struct {
		fits  int
		name  string
		about map[string]any
	}
	var hits []hit
	for _, name := range slices.Sorted(maps.Keys(content.packages)) {
		releases := content.packages[name]
		latest := distTags(releases)["latest"]
		i := slices.IndexFunc(releases, func(r *release) bool { return r.version == latest })
		if i < 0 || releaseToken(releases) != "" {
			continue
		}
		var m struct {
			Description string
			Keywords    []string
			Repository  any
		}
		text, err := json.Marshal(releases[i].manifest)
		if err != nil || json.Unmarshal(text, &m) != nil {
			continue
		}
		found := hit{name: name, about: map[string]any{"name": name, "version": latest, "description": m.Description, "keywords": append([]string{}, m.Keywords...)}}
		if repository, ok := m.Repository.(map[string]any); ok {
			found.about["links"] = map[string]any{"repository": repository["url"]}
		}
		all := strings.ToLower(name + " " + m.Description + " " + strings.Join(m.Keywords, " "))
		for _, word := range words {
			if strings.Contains(all, word) {
				found.fits++
			}
		}
		if found.fits > 0 {
			hits = append(hits, found)
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Compare(b.fits, a.fits) })
	size, err := strconv.Atoi(r.URL.Query().Get("size"))
	if err != nil {
		size = 20
	}
	objects := []map[string]any{}
	for _, h := range hits[:min(len(hits), size)] {
		objects = append(objects, map[string]any{"package": h.about, "score": map[string]any{"final": 1}})
	}
	s.writeJSON(w, r, "application/json", map[string]any{"objects": objects, "total": len(hits)})
}
