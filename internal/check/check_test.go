package check

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dsh/internal/compose"
	"dsh/internal/fault"
)

// stackOf composes layers from a text: each begins with a line "= KIND LABEL".
func stackOf(t *testing.T, text string) []compose.Layer {
	t.Helper()
	var layers []compose.Layer
	for part := range strings.SplitSeq(text, "= ") {
		head, body, ok := strings.Cut(part, "\n")
		if !ok {
			continue
		}
		kind, label, _ := strings.Cut(head, " ")
		layer := compose.Layer{Label: label, Kind: kinds[kind]}
		src := compose.Source{File: label, Dir: "/w/" + label, Kind: layer.Kind, UserHome: "/u"}
		if layer.Kind == compose.BundleLayer {
			src.File, src.Root = "/b/"+label+".yml", src.Dir
		}
		patches, err := compose.ParsePatches(src, []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		layer.Patches = patches
		layers = append(layers, layer)
	}
	return layers
}

var kinds = map[string]compose.Kind{
	"bundle": compose.BundleLayer, "profile": compose.ProfileLayer, "home": compose.HomeLayer,
	"project": compose.ProjectLayer, "patch": compose.PatchLayer, "set": compose.SetLayer,
}

// schemas are of two plugins.
func schemas(plugin string) ([]byte, bool) {
	switch plugin {
	case "server":
		return []byte(`{"type":"object","properties":{"port":{"type":"integer"},"host":{"type":"string"},"dir":{"type":"string","format":"path"}},"required":["port"],"additionalProperties":false}`), true
	case "broken":
		return []byte(`{"$ref":"elsewhere"}`), true
	case "open":
		return nil, true
	}
	return nil, false
}

func rules(plugin string) *compose.PathRule {
	schema, _ := schemas(plugin)
	if plugin != "server" {
		return nil
	}
	rule, err := compose.NewPathRule(schema)
	if err != nil {
		panic(err)
	}
	return rule
}

// lines is findings as a text: place, layer, severity, code, row, ! where one
// blocks, and below them the message and remedy.
func lines(findings []Finding) string {
	var b strings.Builder
	for _, f := range findings {
		blocks := ""
		if f.Blocks {
			blocks = " !"
		}
		fmt.Fprintf(&b, "%s %s %s %s %q%s\n  %s\n", f.Place(), f.Layer, f.Severity, f.Code, f.Row, blocks, f.Message)
		if f.Remedy != "" {
			fmt.Fprintf(&b, "  %s\n", f.Remedy)
		}
	}
	return b.String()
}

func TestTree(t *testing.T) {
	for _, c := range []struct{ name, layers, want string }{
		{"nothing wrong", `= bundle b
- insert: [{id: a, name: x}, {name: x}, {id: 1, name: server, config: {port: 1}}]
= profile p
- id: a
  disabled: true
- id: 1
  config: {port: 2}
`, ""},
		{"a row inserted again", `= bundle b
- insert:
    - {id: a, name: x}
= profile p
- insert:
    - {id: a, name: y, disabled: true}
    - {id: a, name: y}
`, `p:2:7 p error duplicate-id "a" !
  row "a" is inserted here and by b (/b/b.yml:2), and a profile with both does not start
  give it an id of its own, as y/a, or override the row instead of inserting it again: - id: a, with the keys to change
p:3:7 p error duplicate-id "a" !
  row "a" is inserted here and by b (/b/b.yml:2), and a profile with both does not start
  give it an id of its own, as y/a, or override the row instead of inserting it again: - id: a, with the keys to change
`},
		{"ids that are proposed", `= bundle @scope/fu
- insert: [{id: a, name: ./a.js}, {id: tools, name: x}, {id: c, name: x}]
= bundle other-tools
- insert: [{id: a, name: ./b.js}]
= profile p
- insert: [{id: tools, name: ./c.js}, {id: c, name: '@scope/plug'}]
`, `/b/other-tools.yml:1:12 other-tools error duplicate-id "a" !
  row "a" is inserted here and by @scope/fu (/b/@scope/fu.yml:1), and a profile with both does not start
  take one of the two out: dsh config disable other-tools --profile web; its author could give it an id of its own, as other-tools/a
p:1:12 p error duplicate-id "tools" !
  row "tools" is inserted here and by @scope/fu (/b/@scope/fu.yml:1), and a profile with both does not start
  give it an id of its own, as my-tools, or override the row instead of inserting it again: - id: tools, with the keys to change
p:1:39 p error duplicate-id "c" !
  row "c" is inserted here and by @scope/fu (/b/@scope/fu.yml:1), and a profile with both does not start
  give it an id of its own, as plug/c, or override the row instead of inserting it again: - id: c, with the keys to change
`},
		{"what disabled may be", `= bundle b
- insert: [{id: a, name: x, disabled: true}, {id: c, name: x, disabled: null}, {id: d, name: x, disabled: !!js 1}, {id: e, name: x, disabled: 0}]
= profile p
- {id: a, disabled: false}
- {id: a, disabled: no}
- {id: a, disabled: ''}
- {id: a, disabled: [false]}
- {id: a, disabled: '!!js x'}
- {id: a, disabled: '!!jsx'}
`, `/b/b.yml:1:133 b warning disabled-value "e"
  disabled is a number, which is read as false, so that the row is on
  write true, false, or an expression behind !!js
p:2:11 p warning disabled-value "a"
  disabled is a text, which is read as true, so that the row is off
  write true, false, or an expression behind !!js
p:3:11 p warning disabled-value "a"
  disabled is a text, which is read as false, so that the row is on
  write true, false, or an expression behind !!js
p:4:11 p warning disabled-value "a"
  disabled is a list, which is read as true, so that the row is off
  write true, false, or an expression behind !!js
p:5:11 p warning expression-untagged "a"
  !!js stands inside the quotes, so that it is part of a text and nothing is evaluated
  write !!js in front of the quotes: !!js 'x'
p:6:11 p warning disabled-value "a"
  disabled is a text, which is read as true, so that the row is off
  write true, false, or an expression behind !!js
`},
		{"a number and a text are two ids", `= bundle b
- insert: [{id: 1, name: x}, {id: '1', name: x}]
`, ""},
		{"rows in groups", `= bundle b
- insert:
    - id: g
      name: cordis:group
      group: true
      config:
        - {id: a, name: x}
    - {id: h, name: cordis:group, config: [{id: a, name: x}, {id: b, name: x}]}
- insert:
    - {id: b, name: x}
`, `/b/b.yml:7:44 b warning repeated-id "a"
  the id "a" is also that of a row in another group, by b (/b/b.yml:6); patches find only the other one
  give one of them another id
/b/b.yml:7:62 b warning repeated-id "b"
  the id "b" is also that of a row in another group, by b (/b/b.yml:9); patches find only the other one
  give one of them another id
`},
		{"a bundle of the harness stays", `= bundle mine
- insert: [{id: a, name: x}]
= bundle @deepseek-ai/app
- insert: [{id: a, name: x}]
`, `/b/@deepseek-ai/app.yml:1:12 @deepseek-ai/app error duplicate-id "a" !
  row "a" is inserted here and by mine (/b/mine.yml:1), and a profile with both does not start
  take one of the two out: dsh config disable mine --profile web
`},
		{"a bundle listed twice", `= bundle mine
- insert: [{id: a, name: x}, {id: b, name: y}, {id: c, name: z}]
= bundle mine
- insert: [{id: a, name: x}, {id: b, name: y}, {id: c, name: z}]
`, ` mine error bundle-twice "" !
  mine is listed twice, so that its layer applies twice
  take one mention out of dsh.profile.bundles in the profile's package.json
`},
		{"a bundle without rows listed twice", `= bundle mine
[]
= bundle mine
[]
`, ` mine error bundle-twice ""
  mine is listed twice, so that its layer applies twice
  take one mention out of dsh.profile.bundles in the profile's package.json
`},
		{"a plugin in several rows of one bundle", `= bundle one
- insert: [{id: a, name: x}, {id: b, name: x}, {id: c, name: y}, {id: d, name: z, disabled: true}]
= bundle two
- insert: [{id: e, name: x}, {id: f, name: y, disabled: !!js false}, {id: g, name: z}]
= profile p
- insert: [{id: h, name: y}]
`, `/b/two.yml:1:30 two warning plugin-twice "f"
  the plugin y is also inserted by one (/b/one.yml:1), as row "c", and would run twice
  take one of the two bundles out: dsh config disable two --profile web; or switch one row off: dsh config disable f --profile web
`},
		{"targets", `= bundle one
- {id: late, disabled: true}
- {id: '1', disabled: true}
- {id: webserve, disabled: true}
= bundle two
- insert: [{id: late, name: x}, {id: 1, name: x}, {id: webserver, name: x}]
= profile p
- {id: nothing-like-it, disabled: true}
- {id: webserver, name: y, disabled: true}
- {id: webserver, insert: [{id: q, name: x}]}
- {disabled: true}
= home h
- insert:
`, `/b/one.yml:1:3 one warning target-missing "late"
  row "late" is inserted later, by two (/b/two.yml:1), so the patch is skipped
  list one behind two in dsh.profile.bundles of the profile's package.json
/b/one.yml:2:3 one warning target-missing "1"
  the id "1" is of another type than that of the row, so the patch is skipped
  write the id as the row has it: - id: 1
/b/one.yml:3:3 one warning target-missing "webserve"
  no layer inserts row "webserve", so the patch is skipped
  did you mean webserver?
p:1:3 p error target-missing "nothing-like-it"
  no layer inserts row "nothing-like-it", so the patch is skipped
  dsh config unset nothing-like-it --profile web takes the patch out; or add the plugin that brings the row
p:2:3 p error name-mismatch "webserver"
  row "webserver" is of plugin x and the patch is for y, so it is skipped
  leave out the name, which renames nothing
p:3:3 p error not-a-group "webserver"
  nothing can be inserted into row "webserver", which is no group
  leave out the id to insert the rows at the top, or give the row ` + "`group: true`" + ` where it is inserted
p:4:3 p error patch-without-id ""
  the patch has neither insert nor id, so it does nothing
  write ` + "`- id: ROW`" + ` with the keys to change, or ` + "`- insert:`" + ` with a list of rows
h:1:3 h error patch-without-id ""
  the patch has neither insert nor id, so it does nothing
  write ` + "`- id: ROW`" + ` with the keys to change, or ` + "`- insert:`" + ` with a list of rows
`},
		{"rows that no patch finds", `= bundle b
- insert:
    - {id: g, name: cordis:group, config: [{id: hidden, name: x}]}
    - {id: h, name: cordis:group, group: true}
= profile p
- id: h
  config: [{id: new, name: x}]
- {id: hidden, disabled: true}
- {id: new, disabled: true}
- {id: h, insert: [{id: in, name: x}]}
- {id: in, disabled: true}
`, `p:3:3 p error target-missing "hidden"
  patches do not find row "hidden", because its group "g" has no ` + "`group: true`" + `, so the patch is skipped
  change the row where it is written: b (/b/b.yml:2)
p:4:3 p error target-missing "new"
  patches do not find row "new", because an override wrote it into the config of a group, so the patch is skipped
  change the row where it is written: p:2
`},
		{"rows that are no longer in the tree", `= bundle b
- insert:
    - id: g
      name: cordis:group
      group: true
      config:
        - {id: in, name: x}
        - {id: deep, name: cordis:group, group: true, config: [{id: deeper, name: x}]}
- {id: deeper, disabled: true}
= profile p
- id: g
  config: []
= home h
- {id: deeper, disabled: false}
- {id: deep, insert: [{id: lost, name: x}]}
`, `p:2:3 p info keys-dropped "g"
  this replaces the rows of group "g" whole, and these of b (/b/b.yml:2) are gone: "in" and "deep"
  restate them, or add rows with ` + "`- id: g`" + ` and insert
h:1:3 h warning detached-row "deeper"
  row "deeper" was in group "g", whose config p:1 replaced, so that this change shows nowhere
  restate the row in the new config of the group, or delete the patch
h:2:3 h warning detached-row "deep"
  row "deep" was in group "g", whose config p:1 replaced, so that this change shows nowhere
  restate the row in the new config of the group, or delete the patch
`},
		{"shapes of other tools", `= bundle b
- insert: [{id: a, name: server, config: {port: 1}}]
- Update: {id: a}
= profile p
- delete: {id: a}
- id: a
  patch: {disabled: true, config: {token: hidden}}
- prepend: [{id: z, name: x}]
- move: a
- id: a
  configs: {}
  x-note: fine
  port: 2
`, `/b/b.yml:2:3 b warning unknown-shape "a"
  patches know no key "Update", so nothing is changed
  write the keys beside the id: - {id: a}
p:1:3 p error unknown-shape "a"
  patches know no key "delete", and rows cannot be taken out
  switch the row off: - {id: a, disabled: true}
p:3:3 p error unknown-shape "a"
  patches know no key "patch", so nothing is changed
  write the keys beside the id: - id: a
p:4:3 p error unknown-shape ""
  patches know no key "prepend", so nothing is inserted
  did you mean insert? write ` + "`- insert:`" + ` with a list of rows below it
p:5:3 p error unknown-shape ""
  patches know no key "move", and rows cannot be moved
  delete the key: the order of rows means nothing, rows wait for the services they need
p:7:3 p warning unknown-key "a"
  rows know no key "configs", so it does nothing
  did you mean config?
p:9:3 p warning unknown-key "a"
  port is a key of the config of server, and does nothing beside it
  write it below config:, with everything there that should stay; or use dsh config set a.port VALUE --profile web
`},
		{"rows", `= bundle b
- insert:
    - text
    - [list]
    - {id: a}
    - {id: b, name: [x]}
    - {id: '', name: x}
    - {id: 0, name: x}
    - {id: true, name: x}
    - {id: !!js x, name: x}
    - {id: , name: x}
    - {id: c, name: x, enabled: true, colour: red, insert: []}
- insert: abc
`, `/b/b.yml:2:7 b error row-not-a-mapping "" !
  a row must be a mapping with the name of a plugin, and this is a text
  write - id: … with name: … below it
/b/b.yml:3:7 b error row-not-a-mapping "" !
  a row must be a mapping with the name of a plugin, and this is a list
  write - id: … with name: … below it
/b/b.yml:4:7 b error row-without-name "a" !
  row "a" names no plugin, and a profile with it does not start
  add name: with the plugin's package
/b/b.yml:5:15 b error row-without-name "b" !
  the name of row "b" is a list, and must be the text that names a plugin
  add name: with the plugin's package
/b/b.yml:6:8 b warning unusable-id "x"
  the id of a row is empty, so that patches cannot name the row
  give the row an id that is a text, or none
/b/b.yml:7:8 b warning unusable-id "x"
  the id of a row is 0, which counts as none, so that patches cannot name the row
  give the row an id that is a text, or none
/b/b.yml:8:8 b warning unusable-id "x"
  the id of a row is true or false, so that patches cannot name the row
  give the row an id that is a text, or none
/b/b.yml:9:8 b warning unusable-id "x"
  the id of a row is an expression, so that patches cannot name the row
  give the row an id that is a text, or none
/b/b.yml:10:8 b warning unusable-id "x"
  the id of a row is empty, so that patches cannot name the row
  give the row an id that is a text, or none
/b/b.yml:11:24 b warning unknown-key "c"
  rows know no key "enabled", so it does nothing
  write disabled: true to switch the row off, and disabled: false to switch it on
/b/b.yml:11:39 b info unknown-key "c"
  rows know no key "colour"; the loader keeps it and does nothing with it
/b/b.yml:11:52 b warning unknown-key "c"
  insert does nothing inside a row
  rows inside a group are its config; insert is a key of patches
/b/b.yml:12:3 b error row-not-a-mapping "" !
  a row must be a mapping with the name of a plugin, and this is a text
  write - id: … with name: … below it
`},
		{"configs", `= bundle b
- insert:
    - {id: none, name: server}
    - {id: off, name: server, disabled: true}
    - {id: bad, name: server, config: {port: x, extra: 1}}
    - {id: js, name: server, config: {port: !!js x}}
    - {id: whole, name: server, config: !!js x}
    - {id: base, name: server, config: {port: 1, host: h}}
    - {id: unknown, name: other, config: {port: x}}
    - {id: open, name: open, config: {port: x}}
    - {id: broken, name: broken, config: {port: x}}
= profile p
- id: base
  config: {host: i}
= set --set
- {id: bad, config: {port: 3}}
`, `/b/b.yml:2:7 b warning config-invalid "none"
  config of row "none": "port" is missing
  add port
/b/b.yml:3:7 b info config-invalid "off"
  config of row "off": "port" is missing
  add port
p:2:3 p error config-invalid "base"
  config of row "base": "port" is missing; b (/b/b.yml:7) has it, and this config replaces that one whole
  restate port, for an override does not merge
p:2:3 p info keys-dropped "base"
  this replaces the config of row "base" whole, and these keys of b (/b/b.yml:7) are gone: port
  restate them, or write single keys with dsh config set base.KEY VALUE --profile web
`},
		{"keys that overrides leave out", `= bundle one
- insert: [{id: a, name: x, config: {env: {KEY: 1, DIR: 2}, other: 3}}]
= bundle two
- {id: a, config: {env: {KEY: 1}, other: 3, more: 1}}
= home h
- {id: a, config: {env: {CLI: x}, other: {}}}
- {id: a, config: {}}
`, `h:1:11 h info keys-dropped "a"
  this replaces the config of row "a" whole, and these keys of two (/b/two.yml:1) are gone: env.KEY and more
  restate them, or write single keys with dsh config set a.KEY VALUE --home --profile web
h:2:11 h warning keys-dropped "a"
  this replaces the config of row "a" whole, and these keys of h:1 are gone: env and other
  write one patch for the row, with all keys
`},
		{"items that overrides leave out", `= bundle b
- insert: [{id: a, name: x, config: {allow: [m], deny: [m, n, {k: 1}], same: [1], more: [1]}}]
= project p
- {id: a, config: {allow: [o], deny: [n], same: [1], more: [2, 3]}}
= home h
- {id: a, config: {allow: [], deny: [n], same: [1], more: [2, 3]}}
`, `p:1:11 p info keys-dropped "a"
  this replaces the config of row "a" whole, and these keys of b (/b/b.yml:1) are gone: deny.0 and deny.2
  restate them, or write single keys with dsh config set a.KEY VALUE --project --profile web
h:1:11 h info keys-dropped "a"
  this replaces the config of row "a" whole, and these keys of p:1 are gone: allow.0
  restate them, or write single keys with dsh config set a.KEY VALUE --home --profile web
`},
		{"overrides of one layer", `= bundle b
- insert: [{id: a, name: x, config: {one: 1, two: 2}}]
- {id: a, config: {one: 3}}
= patch f
- {id: a, config: {one: 1}}
- {id: a, config: {two: 2}}
= set --set
- {id: a, config: {three: 1}}
- {id: a, config: {four: 1}}
`, `/b/b.yml:2:11 b warning keys-dropped "a"
  this replaces the config of row "a" whole, and these keys of b (/b/b.yml:1) are gone: two
  write one patch for the row, with all keys
f:2:11 f warning keys-dropped "a"
  this replaces the config of row "a" whole, and these keys of f:1 are gone: one
  write one patch for the row, with all keys
`},
		{"keys that were copied", `= bundle b
- insert: [{id: a, name: x, config: {same: 1, changed: 2, deep: {one: 1, two: 9, four: 4}, own: 0, secretKey: s}}]
= home h
- id: a
  config:
    # copied from the layers below: same, changed, deep, gone, secretKey, taken
    same: 1
    changed: 1
    deep: {one: 1, two: 2, three: 3}
    gone: 1
    secretKey: t
    own: 5
`, `h:5:5 h warning copied-key-changed "a"
  a.changed is 1, copied from the layers below, which have 2 there now
  to take what is there: dsh config unset a.changed --home --profile web
h:6:5 h warning copied-key-changed "a"
  a.deep was copied from the layers below, and they have deep.four there by now
  to take what is there: dsh config unset a.deep --home --profile web
h:6:20 h warning copied-key-changed "a"
  a.deep.two is 2, copied from the layers below, which have 9 there now
  to take what is there: dsh config unset a.deep.two --home --profile web
h:6:28 h warning copied-key-changed "a"
  a.deep.three was copied from the layers below, and they no longer have it
  to take what is there: dsh config unset a.deep.three --home --profile web
h:7:5 h warning copied-key-changed "a"
  a.gone was copied from the layers below, and they no longer have it
  to take what is there: dsh config unset a.gone --home --profile web
h:8:5 h warning copied-key-changed "a"
  a.secretKey is "***", copied from the layers below, which have "***" there now
  to take what is there: dsh config unset a.secretKey --home --profile web
`},
		{"the folder of a project's layer", `= bundle b
- insert: [{id: a, name: server, config: {port: 1, dir: .}}]
= project /p
- {id: a, config: {port: 1, dir: .}}
- insert: [{id: b, name: server, config: {port: 1, dir: ./}}, {id: c, name: server, config: {port: 1, dir: ..}}]
`, `/p:1:29 /p info path-is-dsh-folder "a"
  the path means /w//p, the folder of this file
  write .. for the project's own directory
/p:2:52 /p info path-is-dsh-folder "b"
  the path means /w//p, the folder of this file
  write .. for the project's own directory
`},
		{"rows that aliases repeat", `= bundle b
- insert: [&r {id: a, name: x}, *r]
`, `/b/b.yml:1:12 b error duplicate-id "a" !
  row "a" is inserted here and by b (/b/b.yml:1), and a profile with both does not start
  delete one of the two; to change a row that is there, write - id: a with the keys to change
`},
	} {
		t.Run(c.name, func(t *testing.T) {
			tree := compose.Apply(stackOf(t, c.layers), rules)
			got := lines(Tree(tree, Options{Profile: "web", Schema: schemas, Rules: rules}))
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFile(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"what stands below is not known", `- {id: a, disabled: true}
- {id: g, insert: [{id: b, name: x}]}
- {id: a, name: x, disabled: true}
`, ""},
		{"overrides of one row", `- {id: a, config: {one: 1, list: [1, 2]}}
- {id: a, disabled: true}
- {id: b, config: {one: 1}}
- {id: a, config: {two: 1, list: [2]}}
- {id: a, config: {two: 2, list: [2]}}
- {id: '1', config: {two: 2}}
- {id: 1, config: {one: 1}}
`, `f.yml:4:11  warning keys-dropped "a"
  this replaces the config of row "a" whole, and these keys of line 1 are gone: one and list.0
  write one patch for the row, with all keys
`},
		{"rows of groups that are elsewhere", `- {id: g, insert: [{id: b, name: x}, {id: c}]}
- {id: h, insert: [{id: b, name: x}]}
- {id: g, insert: [{id: b, name: x}]}
`, `f.yml:1:38  error row-without-name "c"
  row "c" names no plugin, and a profile with it does not start
  add name: with the plugin's package
f.yml:2:20  warning repeated-id "b"
  the id "b" is also that of a row in another group, by line 1; patches find neither of them
  give one of them another id
f.yml:3:20  error duplicate-id "b" !
  row "b" is inserted here and in line 1, and a profile with both does not start
  delete one of the two; to change a row that is there, write - id: b with the keys to change
`},
		{"configs of plugins that are named", `- {id: a, name: server, config: {port: x}}
- {id: b, config: {port: x}}
- insert: [{id: c, name: server, config: {prot: 1}}]
- {id: c, config: {port: x}}
- {id: d, name: server, port: 1}
`, `f.yml:1:34  error config-invalid "a"
  config of row "a": port must be a whole number, and is a text
  write what server takes
f.yml:4:11  warning keys-dropped "c"
  this replaces the config of row "c" whole, and these keys of line 3 are gone: prot
  write one patch for the row, with all keys
f.yml:4:20  error config-invalid "c"
  config of row "c": port must be a whole number, and is a text
  write what server takes
f.yml:5:25  warning unknown-key "d"
  port is a key of the config of server, and does nothing beside it
  write it below config:
`},
		{"no list", "a: b\n", `f.yml:1:1  error not-patches "" !
  the file is no list of patches
  begin every patch with ` + "`- `" + ` at the start of a line; an empty layer is written []
`},
		{"nothing", "# nothing\n", `f.yml:1:1  error not-patches "" !
  the file holds no patches: it is empty, or has comments only
  an empty layer is written []
`},
		{"no patch", "- a\n", `f.yml:1:3  error not-patches "" !
  entry 1 is no mapping, and so no patch
  write ` + "`- id: …` with the keys to override, or `- insert:`" + ` with rows
`},
		{"no rows", "- insert: {id: a}\n", `f.yml:1:3  error not-patches "" !
  entry 1 inserts what is no list of rows
  write each row as an entry of its own: - insert: [{id: …, name: …}]
`},
		{"no YAML", "- id: @x/y\n", `f.yml:1:7  error syntax "" !
  the text cannot be read: nothing may begin with @ without quotes
  quote it: '@x/y'
`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := lines(File(compose.Source{File: "f.yml", Dir: "/w", Kind: compose.PatchLayer}, []byte(c.text), Options{Schema: schemas, Rules: rules}))
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestLayerError(t *testing.T) {
	for _, c := range []struct {
		kind compose.Kind
		err  error
		want string
	}{
		{compose.HomeLayer, fault.WithHint(errors.New("failed to read overlay l: permission denied"), "chmod u+r l"), `l l error unreadable "" !
  the file cannot be read: permission denied
  chmod u+r l
`},
		{compose.BundleLayer, fmt.Errorf("reading: %w", &compose.EscapeError{File: "b.yml", Line: 2, Column: 3, Path: "../x.js"}), `b.yml:2:3 l error path-escapes "" !
  the path "../x.js" leaves the package
  name a file inside the package
`},
		{compose.BundleLayer, errors.New("no such thing"), ` l error unreadable "" !
  no such thing
`},
	} {
		if diff := cmp.Diff(c.want, lines([]Finding{LayerError(c.kind, "l", c.err)})); diff != "" {
			t.Error(diff)
		}
	}
}

// What a change adds is told by identities: they are the same when lines move
// or a file lies elsewhere, and differ between mistakes.
func TestIdentity(t *testing.T) {
	identities := func(layers string) []string {
		var ids []string
		for _, f := range Tree(compose.Apply(stackOf(t, layers), rules), Options{Schema: schemas, Rules: rules}) {
			id := f.Identity()
			if f.File += "-moved"; f.Identity() != id {
				t.Errorf("%q changes with the file's place", id)
			}
			ids = append(ids, id)
		}
		return ids
	}
	const base = "= bundle b\n- insert: [{id: a, name: x}, {id: g, name: cordis:group, group: true, config: [{id: in, name: x}]}]\n= profile p\n"
	const wrong = "- insert: [{id: a, name: x}]\n- {id: g, config: []}\n- {id: in, disabled: true}\n- {id: none, disabled: true}\n- set: {id: a}\n- {id: a, colour: red, shape: round, config: {k: process.env.A, l: process.env.B}}\n"
	want := identities(base + wrong)
	seen := map[string]bool{}
	for _, id := range want {
		if seen[id] {
			t.Errorf("two findings have the identity %q", id)
		}
		seen[id] = true
	}
	if len(want) < 8 {
		t.Fatalf("only %d findings", len(want))
	}
	if diff := cmp.Diff(want, identities("= bundle b\n\n# a comment"+base[len("= bundle b"):]+"# moved\n\n"+wrong)); diff != "" {
		t.Errorf("the identities changed with the lines:\n%s", diff)
	}
}

// Values may hold themselves, and be huge once their aliases are written out.
func TestEndlessValues(t *testing.T) {
	bomb := "[&a [x, x, x, x, x, x, x, x], &b [*a, *a, *a, *a, *a, *a, *a, *a], &c [*b, *b, *b, *b, *b, *b, *b, *b], &d [*c, *c, *c, *c, *c, *c, *c, *c], &e [*d, *d, *d, *d, *d, *d, *d, *d], [*e, *e, *e, *e, *e, *e, *e, *e]]"
	layers := "= bundle b\n- insert: [{id: a, name: server, config: {port: 1, dir: x}}, {id: g, name: cordis:group, group: true, config: []}]\n" +
		"= project p\n- {id: a, config: " + bomb + "}\n- {id: a, config: {port: 1}}\n- set: " + bomb + "\n" +
		"- insert: [&r {id: r, name: cordis:group, group: true, config: []}]\n- {id: r, insert: [*r, {id: i, name: server, config: {dir: " + bomb + "}}]}\n- {id: r, config: []}\n- {id: i, config: {}}\n"
	findings := Tree(compose.Apply(stackOf(t, layers), rules), Options{Schema: schemas, Rules: rules})
	var codes []Code
	for _, f := range findings {
		codes = append(codes, f.Code)
	}
	if !slices.Contains(codes, UnknownShape) || !slices.Contains(codes, DetachedRow) {
		t.Errorf("found %v", codes)
	}
}

func TestRowsThatAreLeftOut(t *testing.T) {
	layers := stackOf(t, `= bundle b
- {id: gone, disabled: true}
= profile p
- insert: [{id: a, name: x}, &r {id: r, name: cordis:group, group: true, config: []}]
- {id: r, insert: [*r]}
`)
	want := `/b/b.yml:1:3 b warning target-missing "gone"
  no layer inserts row "gone", so the patch is skipped
  delete the patch, or add the plugin that brings the row
p:1:30 p error row-too-large "r"
  row "r" is left out: written out with all of its aliases it is too large
  write the row without aliases that repeat large values, and no group inside itself
`
	if diff := cmp.Diff(want, lines(Tree(compose.Apply(layers, nil), Options{}))); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestManyFindings(t *testing.T) {
	var b strings.Builder
	b.WriteString("= profile p\n- {inesrt: []}\n")
	const many = 20_000
	for i := range many {
		fmt.Fprintf(&b, "- {id: row%d, config: {a: process.env.X}, colour: red}\n", i)
	}
	b.WriteString("- {inesrt: []}\n")
	findings := Tree(compose.Apply(stackOf(t, b.String()), nil), Options{})
	if len(findings) != 3*many+2 {
		t.Errorf("%d findings", len(findings))
	}
	if first, last := findings[0].Code, findings[len(findings)-1].Code; first != UnknownShape || last != first {
		t.Errorf("one mistake is %s in the first patch and %s in the last", first, last)
	}
	for _, f := range findings {
		if f.Line == 0 {
			t.Fatalf("a finding without a line: %+v", f)
		}
	}
}

func FuzzFile(f *testing.F) {
	for _, text := range []string{
		"- insert: [{id: a, name: x, config: {port: 1}}, &r {id: a}, *r]\n- id: a\n  config: {dir: ., port: x}\n",
		"- set: {id: a}\n- {id: g, insert: [{id: g, name: cordis:group, group: true, config: [{id: q}]}]}\n",
		"- id: a\n  config:\n    # copied from the layers below: a, b.c\n    a: 1\n- {id: a, config: !!js 'x;'}\n",
		"- &x {insert: [*x], id: *x}\n",
		"- insert: &l [{id: g, name: cordis:group, group: 1, config: *l}]\n- {id: g, config: *l}\n",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		opts := Options{Schema: schemas, Rules: rules}
		for _, kind := range kinds {
			src := compose.Source{File: "f", Dir: "/w", Kind: kind, Root: "/w", UserHome: "/u"}
			for _, found := range File(src, []byte(text), opts) {
				if found.Code == "" || found.Message == "" {
					t.Errorf("an empty finding: %+v", found)
				}
			}
			patches, err := compose.ParsePatches(src, []byte(text))
			if err != nil {
				return
			}
			layers := []compose.Layer{{Label: "b", Kind: compose.BundleLayer, Patches: patches}, {Label: "f", Kind: kind, Patches: patches}}
			Tree(compose.Apply(layers, rules), opts)
		}
	})
}

// What a message says of another place is there for programs, too.
func TestRelatedPlaces(t *testing.T) {
	layers := stackOf(t, `= bundle b
- insert:
    - {id: a, name: x, config: {one: 1}}
    - {id: g, name: g, group: true, config: [{id: c, name: z}]}
= bundle d
- insert: [{id: a, name: y}]
- insert: [{id: e, name: x}]
- {id: late, disabled: true}
- insert: [{id: late, name: l}]
= profile p
- {id: e, config: {}}
- {id: a, config: {two: 1}}
- {id: a, config: {three: 1}}
- {id: g, config: []}
- {id: c, disabled: true}
- insert: [{id: a, name: g, group: true, config: [{id: e, name: w}]}]
`)
	got := map[Code][]string{}
	for _, f := range Tree(compose.Apply(layers, nil), Options{Profile: "web"}) {
		for _, r := range f.Related {
			got[f.Code] = append(got[f.Code], fmt.Sprintf("%s is about %s %s:%d:%d", f.Place(), r.Layer, r.File, r.Line, r.Column))
		}
	}
	want := map[Code][]string{
		DetachedRow:   {"p:5:3 is about p p:4:3"},
		DuplicateID:   {"/b/d.yml:1:12 is about b /b/b.yml:2:7", "p:6:12 is about b /b/b.yml:2:7"},
		KeysDropped:   {"p:3:11 is about p p:2:3", "p:4:11 is about b /b/b.yml:3:7"},
		PluginTwice:   {"/b/d.yml:2:12 is about b /b/b.yml:2:7"},
		RepeatedID:    {"p:6:51 is about d /b/d.yml:2:12"},
		TargetMissing: {"/b/d.yml:3:3 is about d /b/d.yml:4:12"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
