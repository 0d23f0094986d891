package profile

import (
	"encoding/json"
	"io/fs"
	"slices"
	"strings"

	"dsh/internal/fault"
	"dsh/profiles"
)

// BaseBundle is the bundle that every profile without a template starts with.
const BaseBundle = "@deepseek-ai/dsh-base"

// Template is what a new profile starts from: a bundle list and a patch-reload
// policy. It has no dependencies and no patch.
type Template struct {
	bundles []string
	reload  PatchReload
}

// Templates is the names of the shipped templates, sorted.
func Templates() []string {
	entries, err := fs.ReadDir(profiles.FS, ".")
	if err != nil {
		panic("profile: embedded templates: " + err.Error()) // cannot happen: embedded
	}
	names := make([]string, len(entries))
	for i, entry := range entries {
		names[i] = entry.Name()
	}
	return names
}

// LookupTemplate finds a shipped template by its exact name.
func LookupTemplate(name string) (Template, error) {
	path := name + "/package.json"
	text, err := fs.ReadFile(profiles.FS, path)
	if err != nil {
		return Template{}, unknownTemplate(name)
	}
	m, err := ParseManifest(path, text)
	if err != nil {
		return Template{}, err
	}
	return Template{bundles: m.Bundles(), reload: m.PatchReload()}, nil
}

// BaseTemplate is what a custom profile starts from where no template is
// named: the base bundle alone.
func BaseTemplate() Template { return Template{bundles: []string{BaseBundle}} }

// TemplateOf is a template with a bundle list of the user's.
func TemplateOf(bundles []string) Template { return Template{bundles: slices.Clone(bundles)} }

// Bundles is the bundle list in order.
func (t Template) Bundles() []string { return append([]string(nil), t.bundles...) }

func unknownTemplate(name string) error {
	known := Templates()
	for i := range known {
		known[i] = quoteJSON(known[i])
	}
	return fault.Errorf(fault.Other, "unknown default profile %s; expected one of %s", quoteJSON(name), strings.Join(known, ", "))
}

func quoteJSON(s string) string { return strings.TrimSuffix(string(encodeJSON(s, "")), "\n") }

// manifest is the package.json of a fresh profile: two spaces, keys in the
// order in which the reference launcher writes them.
func (t Template) manifest(name Name) []byte {
	type profileSection struct {
		Bundles     []string `json:"bundles"`
		PatchReload string   `json:"patchReload,omitempty"`
	}
	type dshSection struct {
		Profile profileSection `json:"profile"`
	}
	return encodeJSON(struct {
		Name         string     `json:"name"`
		Private      bool       `json:"private"`
		Dependencies struct{}   `json:"dependencies"`
		Dsh          dshSection `json:"dsh"`
	}{
		Name:    packageName(name),
		Private: true,
		Dsh:     dshSection{profileSection{Bundles: t.Bundles(), PatchReload: t.reload.String()}},
	}, "  ")
}

// encodeJSON is JSON.stringify with a final newline: <, > and & stay as they
// are.
func encodeJSON(v any, indent string) []byte {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", indent)
	if err := encoder.Encode(v); err != nil {
		panic("profile: encoding JSON: " + err.Error()) // cannot happen: strings and structs of them
	}
	return []byte(b.String())
}
