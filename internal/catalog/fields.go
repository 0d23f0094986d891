package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// fields is one entry as it is written.
type fields map[string]any

// text is the first of the keys that has a text, as it is.
func (f fields) text(keys ...string) string {
	for _, key := range keys {
		switch v := f[key].(type) {
		case string:
			if strings.TrimSpace(v) != "" {
				return strings.TrimSpace(v)
			}
		case int, float64:
			return fmt.Sprint(v)
		}
	}
	return ""
}

// object is the value of a key, if it is one.
func (f fields) object(key string) fields {
	m, _ := f[key].(map[string]any)
	return m
}

// has reports whether one of the keys is there, be it null.
func (f fields) has(keys ...string) bool {
	return slices.ContainsFunc(keys, func(key string) bool { _, ok := f[key]; return ok })
}

// languages is a text that may be there in several, the one to show first.
func (f fields) languages(keys ...string) []string {
	var list []string
	add := func(text string) {
		if text = strings.TrimSpace(text); text != "" && !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	for _, key := range keys {
		add(f.text(key))
		object := f.object(key)
		for _, language := range append([]string{"en", "zh"}, slices.Sorted(maps.Keys(object))...) {
			add(object.text(language))
		}
	}
	return list
}

// list is the texts of keys that hold one or several.
func (f fields) list(keys ...string) []string {
	var all []string
	for _, key := range keys {
		switch v := f[key].(type) {
		case string:
			all = append(all, v)
		case []any:
			for _, element := range v {
				switch e := element.(type) {
				case string:
					all = append(all, e)
				case map[string]any:
					all = append(all, fields(e).text("id", "name", "spec"))
				}
			}
		}
	}
	var out []string
	for _, text := range all {
		if text = Line(text, maxName); text != "" && !slices.Contains(out, text) && len(out) < maxList {
			out = append(out, text)
		}
	}
	return out
}

// The keys by which catalogues name things.
var (
	idKeys          = []string{"id", "slug"}
	nameKeys        = []string{"name", "title", "n", "nameEn"}
	descriptionKeys = []string{"description", "description_en", "descriptionEn", "desc", "d", "summary", "description_zh", "descriptionZh"}
	packageKeys     = []string{"npm", "npmPackage", "npm_package", "packageName"}
	repositoryKeys  = []string{"repository", "repo", "repoUrl", "repo_url", "repositoryUrl", "github"}
	refKeys         = []string{"ref", "branch", "tag", "commit"}
)

// isEntry reports whether an object can be an entry.
func isEntry(f fields) bool {
	return f.has(append(append([]string{"r", "url", "source", "install"}, repositoryKeys...), packageKeys...)...) &&
		(f.has(idKeys...) || f.has(nameKeys...) || f.has("url", "r"))
}
