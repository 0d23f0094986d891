package inspect

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dsh/internal/check"
	"dsh/internal/compose"
	"dsh/internal/installation"
	"dsh/internal/profile"
	"dsh/internal/stack"
)

// world is a home with the profile "demo", and beside it an installation. Its
// files are "path: text" and its links "path -> target", below one directory.
type world struct {
	dir  string
	home profile.Home
}

func newWorld(t *testing.T, lines ...string) world {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home, err := profile.ResolveHome(filepath.Join(dir, "home"), os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	w := world{dir, home}
	for _, line := range lines {
		w.write(t, line)
	}
	return w
}

func (w world) write(t *testing.T, line string) {
	t.Helper()
	path, target, link := strings.Cut(line, " -> ")
	path, text, _ := strings.Cut(path, ": ")
	path = w.place(path)
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil && link {
		err = os.Symlink(filepath.FromSlash(target), path)
	} else if err == nil {
		err = os.WriteFile(path, []byte(text), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// place is a path below the world: P/ is the profile, I/ the installation.
func (w world) place(path string) string {
	path = strings.Replace(path, "P/", "home/profiles/demo/", 1)
	path = strings.Replace(path, "I/", "inst/node_modules/", 1)
	return filepath.Join(w.dir, filepath.FromSlash(path))
}

// inspect composes the profile as it is on disk and looks at it.
func (w world) inspect(t *testing.T) []check.Finding {
	t.Helper()
	return w.inspectFor(t.Context(), t)
}

func (w world) inspectFor(ctx context.Context, t *testing.T) []check.Finding {
	t.Helper()
	name, err := profile.ParseName("demo")
	if err != nil {
		t.Fatal(err)
	}
	p, err := profile.Read(w.home, name)
	if err != nil {
		t.Fatal(err)
	}
	opts := Options{Profile: p, Installation: installation.Embedded(), Rules: func(plugin string) *compose.PathRule {
		rule, err := compose.NewPathRule([]byte(`{"properties": {"file": {"format": "path"}, "more": {"items": {"format": "path"}}}}`))
		if err != nil {
			t.Fatal(err)
		}
		if plugin == "with-paths" {
			return rule
		}
		return nil
	}}
	if _, err := os.Stat(w.place("I/@deepseek-ai/dsh/package.json")); err == nil {
		if opts.Installation, err = installation.OpenDir(w.place("inst")); err != nil {
			t.Fatal(err)
		}
	} else {
		opts.BuiltIn = func(plugin string) bool {
			return strings.HasPrefix(plugin, "@deepseek-ai/dsh-known") || plugin == "with-paths"
		}
	}
	opts.Stack, err = stack.Open(stack.Options{Home: w.home, Profile: p, Installation: opts.Installation})
	if err != nil {
		t.Fatal(err)
	}
	opts.Tree = compose.Apply(opts.Stack.Layers, opts.Rules)
	return Profile(ctx, opts)
}

// told is findings in one line each, with the directories by their short names.
func (w world) told(findings []check.Finding) []string {
	lines := []string{}
	for _, f := range findings {
		line := fmt.Sprintf("%s %s %s: %s | %s", f.Severity, f.Code, f.Place(), f.Message, f.Remedy)
		line = strings.ReplaceAll(line, w.place("P")+string(filepath.Separator)+"node_modules", "P/node_modules")
		line = strings.ReplaceAll(line, w.place("P/"), "P")
		line = strings.ReplaceAll(line, w.place("I/"), "I")
		lines = append(lines, filepath.ToSlash(strings.ReplaceAll(line, w.dir, "")))
	}
	return lines
}

const (
	launcher = `I/@deepseek-ai/dsh/package.json: {"name": "@deepseek-ai/dsh", "version": "0.1.7"}`
	tools    = `I/@deepseek-ai/dsh-tools/package.json: {"name": "@deepseek-ai/dsh-tools", "version": "0.1.7"}`
)

// manifestOf is the profile's, with dependencies and bundles as JSON.
func manifestOf(dependencies, bundles string) string {
	return fmt.Sprintf(`P/package.json: {"dependencies": {%s}, "dsh": {"profile": {"bundles": [%s]}}}`, dependencies, bundles)
}

func pkg(path, version, more string) string {
	name := path[strings.LastIndex(path, "node_modules/")+len("node_modules/"):]
	if more != "" {
		more = ", " + more
	}
	return fmt.Sprintf(`%s/package.json: {"name": %q, "version": %q%s}`, path, name, version, more)
}

func TestProfile(t *testing.T) {
	tests := []struct {
		name  string
		files []string
		want  []string
	}{
		{"nothing wrong", []string{
			manifestOf(`"b": "1.0.0"`, `"b"`),
			pkg("P/node_modules/b", "1.0.0", `"main": "main", "dsh": {"bundle": {"patch": "p.yml"}}`), "P/node_modules/b/main.js: ",
			"P/node_modules/b/p.yml: [{insert: [{name: b}, {name: \"cordis:group\"}, {name: \"node:fs\"}, {name: below}, {name: ./main.js}, {name: '@deepseek-ai/dsh-known'}]}]",
			"P/node_modules/b/node_modules/below/index.js: ", pkg("P/node_modules/b/node_modules/below", "1.0.0", ""),
		}, nil},
		{"a package that is nowhere", []string{
			manifestOf(`"b": "1.0.0"`, `"b"`), pkg("P/node_modules/b", "1.0.0", `"dsh": {"bundle": {"patch": "p.yml"}}`),
			"P/node_modules/b/p.yml: - insert:\n  - id: theirs\n    name: '@s/gone/sub'\n",
			"P/cordis.patch.yml: - insert:\n  - id: g\n    name: cordis:group\n    group: true\n    config:\n    - name: gone\n  - {id: off, name: gone, disabled: true}\n",
			"home/cordis.patch.yml: - id: g\n  config:\n  - id: home\n    name: gone\n",
		}, []string{
			`warning row-unresolved P/node_modules/b/p.yml:3:5: row "theirs" has the plugin @s/gone/sub, and there is no such package in the installation or the profile | dsh plugin --profile demo add @s/gone; the bundle should depend on it`,
			`error row-unresolved /home/cordis.patch.yml:4:5: row "home" has the plugin gone, and there is no such package in the installation or the profile | dsh plugin --profile demo add gone, or take the row out`,
			`warning row-unresolved P/cordis.patch.yml:7:15: row "off" has the plugin gone, and there is no such package in the installation or the profile | dsh plugin --profile demo add gone, or take the row out`,
		}},
		{"a plugin that is not built in", []string{
			manifestOf("", ""), "P/cordis.patch.yml: [{insert: [{id: x, name: '@deepseek-ai/dsh-other'}]}]",
		}, []string{
			`warning row-unresolved P/cordis.patch.yml:1:20: row "x" has the plugin @deepseek-ai/dsh-other, which this dsh does not have built in | start the profile with an installation of the harness that has it: dsh --installation DIR`,
		}},
		{"files", []string{
			manifestOf("", ""), "P/there.js: ",
			"P/cordis.patch.yml: - insert:\n  - name: ./there.js\n  - name: ./not-there.js\n  - name: 'file:///not/there'\n",
		}, []string{
			`error row-unresolved P/cordis.patch.yml:3:5: a row without an id has the plugin P/not-there.js, and there is no such file | put the file there, or write where it is`,
			`error row-unresolved P/cordis.patch.yml:4:5: a row without an id has the plugin /not/there, and there is no such file | put the file there, or write where it is`,
		}},
		{"packages of the installation", []string{
			// The layout of pnpm: the launcher does not see what its bundle sees.
			manifestOf("", `"@deepseek-ai/dsh-base"`),
			`I/.pnpm/app/node_modules/@deepseek-ai/dsh/package.json: {"name": "@deepseek-ai/dsh", "version": "0.1.7", "dependencies": {"@deepseek-ai/dsh-base": "*"}}`,
			`I/.pnpm/base/node_modules/@deepseek-ai/dsh-base/package.json: {"name": "@deepseek-ai/dsh-base", "version": "0.1.7", "dependencies": {"mid": "*"}, "dsh": {"bundle": {"patch": "p.yml"}}}`,
			"I/.pnpm/base/node_modules/@deepseek-ai/dsh-base/p.yml: [{insert: [{name: mid}]}]",
			`I/.pnpm/mid/node_modules/mid/package.json: {"name": "mid", "main": "index.js", "peerDependencies": {"deep": "*"}}`, "I/.pnpm/mid/node_modules/mid/index.js: ",
			`I/.pnpm/deep/node_modules/deep/package.json: {"name": "deep"}`, "I/.pnpm/deep/node_modules/deep/index.js: ",
			"I/@deepseek-ai/dsh -> ../.pnpm/app/node_modules/@deepseek-ai/dsh",
			"I/.pnpm/app/node_modules/@deepseek-ai/dsh-base -> ../../../base/node_modules/@deepseek-ai/dsh-base",
			"I/.pnpm/base/node_modules/mid -> ../../mid/node_modules/mid",
			"I/.pnpm/mid/node_modules/deep -> ../../deep/node_modules/deep",
			"P/cordis.patch.yml: [{insert: [{name: mid}, {name: deep}, {name: '@deepseek-ai/dsh-gone'}]}]",
		}, []string{
			`error row-unresolved P/cordis.patch.yml:1:40: a row without an id has the plugin @deepseek-ai/dsh-gone, and there is no such package in the installation or the profile | take the row out, or use an installation that has it`,
		}},
		{"copies of host packages", []string{
			launcher, tools,
			manifestOf(`"a": "1.0.0", "cordis": "^4.0.0", "listed": "*"`, `"@deepseek-ai/dsh-tui"`),
			pkg("P/node_modules/a", "1.0.0", `"dependencies": {"b": "*"}`), pkg("P/node_modules/b", "1.0.0", `"dependencies": {"@deepseek-ai/dsh-tools": "*", "@deepseek-ai/schemastery": "*"}`),
			pkg("P/node_modules/cordis", "4.0.1", `"dependencies": {"@deepseek-ai/cordis-util": "*"}`), pkg("P/node_modules/@deepseek-ai/cordis-util", "4.0.1", ""), pkg("P/node_modules/b/node_modules/@deepseek-ai/dsh-tools", "0.1.0-rc.6", ""),
			pkg("P/node_modules/@deepseek-ai/schemastery", "3.0.0", ""), pkg("P/node_modules/@deepseek-ai/dsh-tui", "1.0.0", `"dsh": {"bundle": {"patch": "p.yml"}}`),
			"P/node_modules/@deepseek-ai/dsh-tui/p.yml: []",
			pkg("P/node_modules/@deepseek-ai/dsh-left", "0.1.7", ""),
			"P/node_modules/@deepseek-ai/dsh-linked -> ../../../../../inst/node_modules/@deepseek-ai/dsh-linked", pkg("I/@deepseek-ai/dsh-linked", "0.1.7", ""),
		}, []string{
			`warning host-dependency P/package.json: the profile depends on cordis (^4.0.0), which belongs to the installation | dsh plugin --profile demo remove cordis`,
			`warning host-copy P/node_modules/@deepseek-ai/dsh-left: @deepseek-ai/dsh-left 0.1.7 is a second copy of a package of the harness; nothing that the profile depends on asks for it | dsh plugin --profile demo install --force lays node_modules out anew`,
			`warning host-copy P/node_modules/b/node_modules/@deepseek-ai/dsh-tools: @deepseek-ai/dsh-tools 0.1.0-rc.6 is a second copy of a package of the harness (the installation has 0.1.7); a brings it (a → b → @deepseek-ai/dsh-tools) | b should have it under peerDependencies; dsh plugin --profile demo remove a takes both out`,
		}},
		{"what is declared and not there is no copy", []string{
			manifestOf(`"a": "1.0.0"`, ""), pkg("P/node_modules/a", "1.0.0", `"dependencies": {"@deepseek-ai/dsh-tools": "*"}`),
		}, nil},
		{"a linked folder with a copy", []string{
			launcher, tools,
			manifestOf(`"a": "link:../../../work/a"`, ""), `work/a/package.json: {"name": "a", "devDependencies": {"other": "*"}, "dependencies": {"@deepseek-ai/dsh-tools": "*"}}`,
			"P/node_modules/a -> ../../../../work/a",
			`work/a/node_modules/@deepseek-ai/dsh-tools/package.json: {"name": "@deepseek-ai/dsh-tools", "version": "0.1.7"}`,
			`work/a/node_modules/other/node_modules/@deepseek-ai/dsh-tools/package.json: {}`,
		}, []string{
			`warning host-copy /work/a/node_modules/@deepseek-ai/dsh-tools: @deepseek-ai/dsh-tools 0.1.7 is a second copy of a package of the harness (the installation has 0.1.7 as well); a brings it (a → @deepseek-ai/dsh-tools) | a should have it under peerDependencies; dsh plugin --profile demo remove a takes both out`,
		}},
		{"peers", []string{
			strings.Replace(launcher, "0.1.7", "0.1.1-rc.2", 1), strings.Replace(tools, "0.1.7", "0.2.0-rc.1", 1),
			manifestOf(`"a": "1.0.0", "b": "1.0.0"`, ""),
			pkg("P/node_modules/a", "1.0.0", `"peerDependencies": {"@deepseek-ai/dsh-tools": "^0.1.0-rc.6", "@deepseek-ai/dsh-llm": ">=0.1.0", "@deepseek-ai/dsh-x": "^0.1.0-rc.6", "other": "9", "@deepseek-ai/schemastery": "9", "@deepseek-ai/dsh-may": "9"}, "peerDependenciesMeta": {"@deepseek-ai/dsh-may": {"optional": true}}`),
			pkg("P/node_modules/b", "1.0.0", `"peerDependencies": {"@deepseek-ai/dsh": "^0.2.0"}`),
			`P/compatibility.json: {"b@1.0.0": ["0.1.1-rc.2"]}`,
		}, []string{
			`warning peer-unmet P/package.json: a 1.0.0 wants @deepseek-ai/dsh-tools ^0.1.0-rc.6 beside it, and the installation has 0.2.0-rc.1 | a version of a whose peerDependencies hold "@deepseek-ai/dsh-tools": "^0.1.0-rc.6 || ^0.2.0-rc.1" works with both`,
		}},
		{"paths", []string{
			manifestOf("", ""), "P/there: ",
			"P/cordis.patch.yml: - insert:\n  - id: x\n    name: with-paths\n    config: {file: there}\n  - id: y\n    name: with-paths\n    config: {file: gone, more: [there, '', also/gone]}\n  - {id: z, name: with-paths, disabled: true, config: {file: gone}}\n",
			"home/cordis.patch.yml: - id: x\n  config:\n    more:\n    - gone\n",
		}, []string{
			`warning path-missing /home/cordis.patch.yml:4:7: more.0 of row "x" is /home/gone, and there is nothing | make it, or write where it is; a relative path starts at the directory of the file that it is written in`,
			`warning path-missing P/cordis.patch.yml:7:14: file of row "y" is P/gone, and there is nothing | make it, or write where it is; a relative path starts at the directory of the file that it is written in`,
			`warning path-missing P/cordis.patch.yml:7:44: more.2 of row "y" is P/also/gone, and there is nothing | make it, or write where it is; a relative path starts at the directory of the file that it is written in`,
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, test.files...)
			want := append([]string{}, test.want...)
			if diff := cmp.Diff(want, w.told(w.inspect(t))); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestEntryMissing(t *testing.T) {
	tests := []struct {
		manifest, subpath, files, want string
	}{
		{`{}`, "", "index.js", ""},
		{`{}`, "", "", "has no file index.js"},
		{`{"main": "lib"}`, "", "lib/index.js", ""},
		{`{"main": "./lib/main"}`, "", "lib/main.js", ""},
		{`{"main": "lib/main.js"}`, "", "", "has no file lib/main.js"},
		{`{"main": "lib/main.js"}`, "", "index.js", ""},
		{`{"main": "lib/main.js"}`, "sub", "sub.js", ""},
		{`{"main": "lib/main.js"}`, "sub", "lib/main.js", "has no file sub"},
		{`{"exports": "./a.js"}`, "", "a.js", ""},
		{`{"exports": "./a.js", "main": "index.js"}`, "", "index.js", "has no file a.js"},
		{`{"exports": "./a.js"}`, "sub", "a.js sub.js", `does not export "./sub"`},
		{`{"exports": {"import": "./a.mjs", "require": "./a.cjs", "types": "./a.d.ts"}}`, "", "a.cjs", ""},
		{`{"exports": {"import": "./a.mjs", "types": "./a.d.ts"}}`, "", "a.d.ts", "has no file a.mjs"},
		{`{"exports": {".": {"node": {"import": ["./a.mjs"]}}, "./sub": "./b.js"}}`, "", "a.mjs", ""},
		{`{"exports": {".": "./a.js", "./sub": "./b.js"}}`, "sub", "a.js", "has no file b.js"},
		{`{"exports": {".": "./a.js", "./sub": null}}`, "sub", "", `does not export "./sub"`},
		{`{"exports": {".": "./a.js", "./*": "./lib/*.js"}}`, "sub", "", ""},
		{`{"exports": {"./sub": "./b.js"}}`, "", "b.js", `does not export "."`},
		{`{"exports": null, "main": "a.js"}`, "", "a.js", ""},
		{`[]`, "", "", ""},
	}
	for _, test := range tests {
		w := newWorld(t, "x/package.json: {}")
		for file := range strings.FieldsSeq(test.files) {
			w.write(t, "x/"+file+": ")
		}
		pkg, err := installation.OpenPackage(w.place("x"))
		if err != nil {
			t.Fatal(err)
		}
		pkg.Manifest = []byte(test.manifest)
		if got := entryMissing(pkg, test.subpath); got != test.want {
			t.Errorf("%s %q with %s: got %q, want %q", test.manifest, test.subpath, test.files, got, test.want)
		}
	}
}

func TestSplitName(t *testing.T) {
	for name, want := range map[string][2]string{
		"a": {"a", ""}, "a/b/c": {"a", "b/c"}, "@s/a": {"@s/a", ""}, "@s/a/b": {"@s/a", "b"}, "@s": {"@s", ""}, "a/": {"a", ""},
	} {
		pkg, sub := splitName(name)
		if got := [2]string{pkg, sub}; got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

// TestLargeInput finds what it should where it would take minutes if each
// finding cost a look at all of a text or at all patches.
func TestLargeInput(t *testing.T) {
	const rows = 4_000
	var inserts, overrides strings.Builder
	for i := range rows {
		fmt.Fprintf(&inserts, "    - {id: r%d, name: gone%d}\n    - {id: f%d, name: with-paths}\n", i, i, i)
		fmt.Fprintf(&overrides, "- {id: f%d, config: {file: ./gone}}\n", i)
	}
	w := newWorld(t,
		`P/package.json: {"dsh": {"profile": {"bundles": []}}}`,
		"P/cordis.patch.yml: - insert:\n"+inserts.String()+overrides.String())
	found, last := map[check.Code]int{}, 0
	for _, f := range w.inspect(t) {
		found[f.Code]++
		last = max(last, f.Line)
	}
	if diff := cmp.Diff(map[check.Code]int{RowUnresolved: rows, PathMissing: rows}, found); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if want := 1 + 3*rows; last != want {
		t.Errorf("the last finding is in line %d, want %d", last, want)
	}
}

// Rows are mounted below cordis:group also where nothing marks its row as a
// group.
func TestRowsOfPluginGroup(t *testing.T) {
	w := newWorld(t,
		`P/package.json: {"dsh": {"profile": {"bundles": []}}}`,
		"P/cordis.patch.yml: - insert: [{id: g, name: cordis:group, config: [{id: inner, name: missing-plugin}, {id: paths, name: with-paths, config: {file: /no/such}}]}]")
	var rows []string
	for _, f := range w.inspect(t) {
		rows = append(rows, fmt.Sprint(f.Code, " ", f.Row))
	}
	if diff := cmp.Diff([]string{"row-unresolved inner", "path-missing paths"}, rows); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// Who does not wait any longer gets what was found so far.
func TestStopsEarly(t *testing.T) {
	w := newWorld(t, `P/package.json: {"dsh": {"profile": {"bundles": []}}}`, "P/cordis.patch.yml: - insert: [{id: a, name: gone}]")
	if found := w.inspect(t); len(found) != 1 {
		t.Fatalf("found %v", found)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if found := w.inspectFor(ctx, t); len(found) != 0 {
		t.Errorf("found %v", found)
	}
}
