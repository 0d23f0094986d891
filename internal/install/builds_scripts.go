package install

import (
	"bytes"
	"encoding/json"
	"path"
	"slices"
	"strings"
)

// Script is one lifecycle script of a package.
type Script struct {
	Event string `json:"event"` // preinstall, install, postinstall, prepublish, prepare or prepack
	Text  string `json:"text"`  // what the shell gets
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
// prepublish and prepack where its main file is not there.
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
				list = append(list, Script{event, text})
			}
		}
		return list
	}
	var s scripts
	s.install = named("preinstall", "install")
	if len(s.install) == 0 && has("binding.gyp") {
		s.install = []Script{{"install", "node-gyp rebuild"}}
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

// textOf is a JSON value if that is a string, else "".
func textOf(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return ""
	}
	return text
}

// declaredMissing is the files that a package.json declares and the package does
// not have, sorted: what it is loaded from, its programs, its layers, and the
// topmost folders that it says are published. What has a * in its name may be
// anything and is looked for as the folder before that.
func declaredMissing(text []byte, has func(file string) bool) []string {
	var m struct {
		Main, Exports, Bin json.RawMessage
		Files              []json.RawMessage
		Dsh                struct {
			Bundle struct{ Patch json.RawMessage }
		}
	}
	_ = json.Unmarshal(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")), &m)
	var missing []string
	want := func(names ...string) {
		for _, name := range names {
			if before, _, pattern := strings.Cut(name, "*"); pattern {
				name, _ = path.Split(before)
			}
			name = strings.Trim(path.Clean(strings.TrimPrefix(name, "./")), "/")
			// npm and Node.js take these endings from whoever leaves them out.
			found := name == "." || strings.HasPrefix(name, "../") || slices.ContainsFunc([]string{"", ".js", ".json", ".node", "/index.js"}, func(end string) bool { return has(name + end) })
			if !found {
				missing = append(missing, name)
			}
		}
	}
	want(textsIn(m.Main)...)
	want(textsIn(m.Exports)...)
	want(textsIn(m.Bin)...)
	want(textsIn(m.Dsh.Bundle.Patch)...)
	for _, raw := range m.Files {
		name := strings.TrimPrefix(textOf(raw), "./")
		if name == "" || strings.HasPrefix(name, "!") {
			continue
		}
		top, _, _ := strings.Cut(strings.Trim(name, "/"), "/")
		if !strings.Contains(top, "*") {
			want(top)
		}
	}
	slices.Sort(missing)
	return slices.Compact(missing)
}

// textsIn is all strings that are values in a JSON text, but for those that
// speak of types, which nobody loads.
func textsIn(raw json.RawMessage) (texts []string) {
	var value any
	if json.Unmarshal(raw, &value) != nil {
		return nil
	}
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			texts = append(texts, v)
		case []any:
			for _, each := range v {
				walk(each)
			}
		case map[string]any:
			for _, key := range sortedKeys(v) {
				if key != "types" && key != "typings" && !strings.HasPrefix(key, "types@") {
					walk(v[key])
				}
			}
		}
	}
	walk(value)
	return texts
}
