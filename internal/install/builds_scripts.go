package install

import (
	"bytes"
	"encoding/json"
	"path"
	"slices"
	"strings"

	"dsh/internal/install/manifest"
)

// Script is one lifecycle script of a package.
type Script struct {
	Event string `json:"event"` // preinstall, install, postinstall, prepublish, prepare or prepack
	Text  string `json:"text"`  // what the shell gets
	// Implied says that package.json does not name it: a binding.gyp is there.
	Implied bool `json:"implied,omitempty"`
}

// scripts are what an installer would run of a package, in order.
type scripts struct {
	// prepare makes what is published from what is in a repository. Only packages
	// of git repositories have it, for all others come as they were published.
	prepare []Script
	// install is what runs where a package has been laid out.
	install []Script
}

func (s scripts) all() []Script { return slices.Concat(s.prepare, s.install) }

func (s scripts) none() bool { return len(s.prepare)+len(s.install) == 0 }

// scriptsIn reads the scripts of a package.json. has tells of files of the
// package, and git says that it comes from a repository.
//
// The rules are pnpm's: a package with a binding.gyp and no script that builds
// it is built by node-gyp, and one from a repository without prepare runs
// prepublish and prepack where its main file is not there. "gypfile": false says,
// as in npm, that the binding.gyp is for nobody who installs the package.
func scriptsIn(text []byte, git bool, has func(file string) bool) scripts {
	var m struct {
		Main    json.RawMessage            `json:"main"`
		Scripts map[string]json.RawMessage `json:"scripts"`
	}
	// What is no object has no scripts, and nobody would run any of them.
	_ = json.Unmarshal(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")), &m)
	named := func(events ...string) (list []Script) {
		for _, event := range events {
			if text := textOf(m.Scripts[event]); strings.TrimSpace(text) != "" {
				list = append(list, Script{Event: event, Text: text})
			}
		}
		return list
	}
	var s scripts
	s.install = named("preinstall", "install")
	if len(s.install) == 0 && has("binding.gyp") && BuildsNative(text) {
		s.install = []Script{{Event: "install", Text: "node-gyp rebuild", Implied: true}}
	}
	s.install = append(s.install, named("postinstall")...)
	if !git {
		return s
	}
	main := path.Clean(textOf(m.Main))
	if main == "." {
		main = "index.js"
	}
	switch prepare := named("prepare"); {
	case len(prepare) > 0:
		s.prepare = named("prepublish", "prepare", "prepack")
	case !has(main):
		s.prepare = named("prepublish", "prepack")
	}
	return s
}

// BuildsNative reports whether a package.json leaves it to who installs the
// package to build what a binding.gyp beside it describes.
func BuildsNative(text []byte) bool {
	var m struct {
		GypFile json.RawMessage `json:"gypfile"`
	}
	_ = json.Unmarshal(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")), &m)
	return string(m.GypFile) != "false"
}

// textOf is a JSON value if that is a string, else "".
func textOf(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return ""
	}
	return text
}

// declaredMissing is the files and folders that a package.json declares and the
// package does not have, sorted. Every condition of an export counts: one of them may
// lead to what is there as source, and another to what is made of it.
func declaredMissing(text []byte, has func(file string) bool) []string {
	var missing []string
	for _, d := range manifest.Declares(text) {
		for _, file := range d.Files {
			if !d.There(file, has) {
				missing = append(missing, manifest.LookedFor(file))
			}
		}
	}
	slices.Sort(missing)
	return slices.Compact(missing)
}
