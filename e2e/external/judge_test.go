//go:build external

package external

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// verdict is what e2e/judge says of a tree.
type verdict struct {
	Packages, Edges int
	Findings        []struct{ Kind, Text string }
}

// judge lets e2e/judge look at a directory with a package.json and node_modules.
func (m *machine) judge(t *testing.T, dir string, flags ...string) verdict {
	t.Helper()
	script, err := filepath.Abs(filepath.Join("..", "judge", "judge.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	m.env = append(m.env, "DSH_E2E_SEMVER="+programs.semver)
	r := m.run(t, m.cwd, filepath.Join(programs.node, "node"), append(append([]string{script, "--json"}, flags...), dir)...)
	var v verdict
	if err := json.Unmarshal([]byte(r.stdout), &v); err != nil || r.code > 1 || (r.code == 1) != (len(v.Findings) > 0) {
		t.Fatalf("%v\n%s", err, r)
	}
	return v
}

// rightTree is one in which everything is where it should be, in every way that a judge could get wrong.
var rightTree = map[string]string{
	"package.json":                                `{"dependencies": {"a": "^1.0.0", "alias": "npm:@s/real@2", "tagged": "latest", "linked": "file:../linked", "events": "^3.0.0", "pre": "*"}, "optionalDependencies": {"gone": "1"}}`,
	"node_modules/a/package.json":                 `{"name": "a", "version": "1.5.0", "dependencies": {"b": "1", "in": "1", "gone": "1"}, "optionalDependencies": {"gone": "1"}, "bundleDependencies": ["in"], "peerDependencies": {"c": ">=2", "maybe": "1", "@host/x": "9"}, "peerDependenciesMeta": {"maybe": {"optional": true}}}`,
	"node_modules/a/node_modules/b/package.json":  `{"name": "b", "version": "1.0.0", "exports": {".": "./index.js"}}`,
	"node_modules/a/node_modules/in/package.json": `{"name": "in", "version": "1.0.0"}`,
	"node_modules/b/package.json":                 `{"name": "b", "version": "2.0.0"}`,
	"node_modules/c/package.json":                 `{"name": "c", "version": "2.1.0", "peerDependencies": {"b": "^2.0.0-0"}, "exports": {"./*": "./dist/*"}}`,
	"node_modules/c/dist/package.json":            `{"type": "module"}`,
	"node_modules/alias/package.json":             `{"name": "@s/real", "version": "2.3.4"}`,
	"node_modules/tagged/package.json":            `{"name": "tagged", "version": "0.0.1-beta"}`,
	"node_modules/events/package.json":            `{"name": "events", "version": "3.3.0"}`,
	"node_modules/pre/package.json":               `{"name": "pre", "version": "1.0.0-rc.1"}`,
	"node_modules/.bin/package.json":              `this is no package`,
	"../linked/package.json":                      `{"name": "linked", "version": "1.0.0", "dependencies": {"not-ours": "1"}}`,
}

// TestJudge changes one thing of a right tree at a time; the judge must find it, and nothing else.
func TestJudge(t *testing.T) {
	const atA = "a@1.5.0 (node_modules/a) asks for "
	for name, test := range map[string]struct {
		write  map[string]string
		remove string
		flags  []string
		want   []string
	}{
		"right":              {},
		"missing":            {remove: "node_modules/alias", want: []string{"the project asks for alias npm:@s/real@2, which is not there"}},
		"nested is missing":  {remove: "node_modules/a/node_modules/b", want: []string{atA + "b 1, which is 2.0.0 at node_modules/b"}},
		"bundled is missing": {remove: "node_modules/a/node_modules/in", want: []string{atA + "in 1, which is not there"}},
		"too old":            {write: map[string]string{"node_modules/a/node_modules/b/package.json": `{"name": "b", "version": "0.9.0"}`}, want: []string{atA + "b 1, which is 0.9.0 at node_modules/a/node_modules/b"}},
		"a prerelease":       {write: map[string]string{"node_modules/a/node_modules/b/package.json": `{"name": "b", "version": "1.1.0-rc.1"}`}, want: []string{atA + "b 1, which is 1.1.0-rc.1 at node_modules/a/node_modules/b"}},
		"another package":    {write: map[string]string{"node_modules/alias/package.json": `{"name": "@s/fake", "version": "2.3.4"}`}, want: []string{"the project asks for alias npm:@s/real@2, which is @s/fake@2.3.4"}},
		"optional is wrong":  {write: map[string]string{"node_modules/gone/package.json": `{"name": "gone", "version": "2.0.0"}`}, want: []string{atA + "optional gone 1, which is 2.0.0 at node_modules/gone", "the project asks for optional gone 1, which is 2.0.0 at node_modules/gone"}},
		"peer is missing":    {remove: "node_modules/c", want: []string{atA + "peer c >=2, which is not there"}},
		"peer is wrong":      {write: map[string]string{"node_modules/c/package.json": `{"name": "c", "version": "1.0.0"}`}, want: []string{atA + "peer c >=2, which is 1.0.0 at node_modules/c"}},
		"host is asked for":  {flags: []string{"--host", "@other/*"}, want: []string{atA + "peer @host/x 9, which is not there"}},
		"is a file":          {remove: "node_modules/events/package.json", want: []string{"node_modules/events is no package", "the project asks for events ^3.0.0, which is not there"}},
		"is no JSON":         {write: map[string]string{"node_modules/.cache/x": "", "node_modules/@s/broken/package.json": "{"}, want: []string{"node_modules/@s/broken is no package"}},
		"is outside":         {remove: "node_modules/c", write: map[string]string{"../node_modules/c/package.json": `{"name": "c", "version": "2.0.0"}`}, want: []string{atA + "peer c >=2, which is found outside"}},
		"is overridden":      {flags: []string{"--override", "c=2.1.0", "--override", "b=2.0.0"}, want: []string{atA + "b 1, which is 1.0.0 at node_modules/a/node_modules/b"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			dir := filepath.Join(m.cwd, "project")
			for path, text := range rightTree {
				writeFile(t, filepath.Join(dir, filepath.FromSlash(path)), text)
			}
			if err := os.Symlink(filepath.Join("..", "..", "linked"), filepath.Join(dir, "node_modules", "linked")); err != nil {
				t.Fatal(err)
			}
			for path, text := range test.write {
				writeFile(t, filepath.Join(dir, filepath.FromSlash(path)), text)
			}
			if test.remove != "" {
				if err := os.RemoveAll(filepath.Join(dir, filepath.FromSlash(test.remove))); err != nil {
					t.Fatal(err)
				}
			}
			flags := test.flags
			if name != "host is asked for" {
				flags = append(flags, "--host", "@host/*")
			}
			v := m.judge(t, dir, flags...)
			var got []string
			for i, f := range v.Findings {
				text := f.Text
				if i < len(test.want) && strings.HasPrefix(text, test.want[i]) {
					text = test.want[i] // the rest has a path of this machine, or words of Node.js
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("findings (-want +got)\n%s", diff)
			}
			if v.Packages < 8 || v.Edges < 9 {
				t.Errorf("only %d packages and %d dependencies were looked at", v.Packages, v.Edges)
			}
		})
	}
}
