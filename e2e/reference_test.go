package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	source "go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"dsh/e2e/gittest"
	"dsh/e2e/npmtest"
)

// reference is the text of docs/reference.md.
func reference(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(), "docs", "reference.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestReferenceFindings compares the table of findings with the codes that the
// program has.
func TestReferenceFindings(t *testing.T) {
	_, table, ok := strings.Cut(reference(t), "\n## Findings\n")
	table, _, closed := strings.Cut(table, "\n## ")
	if !ok || !closed {
		t.Fatal("the reference has no findings")
	}
	var named []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(table, -1) {
		named = append(named, row[1])
	}
	slices.Sort(named)
	if diff := cmp.Diff(findingCodes(t), named); diff != "" {
		t.Errorf("the codes of the program and the table differ (-program +table)\n%s", diff)
	}
}

// TestReferenceAgentPluginRules compares the table of what can be wrong with an
// Agent Plugin with what the program has.
func TestReferenceAgentPluginRules(t *testing.T) {
	_, section, ok := strings.Cut(reference(t), "\n## `dsh agent-plugin`\n")
	section, _, closed := strings.Cut(section, "\n## ")
	source, err := os.ReadFile(filepath.Join(root(), "internal", "agentplugin", "diagnostic.go"))
	if !ok || !closed || err != nil {
		t.Fatal("the reference has no rules of Agent Plugins", err)
	}
	codes := map[string]string{}
	for _, m := range regexp.MustCompile(`(\w+) +Rule = "([^"]+)"`).FindAllStringSubmatch(string(source), -1) {
		codes[m[1]] = m[2]
	}
	var want, named []string
	for _, m := range regexp.MustCompile(`(\w+): +\{"([0-9.]+)", (\w+)\}`).FindAllStringSubmatch(string(source), -1) {
		want = append(want, codes[m[1]]+" "+m[2]+" "+strings.ToLower(m[3]))
	}
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| ([0-9.]+) \\| (\\w+) \\|").FindAllStringSubmatch(section, -1) {
		named = append(named, strings.Join(m[1:], " "))
	}
	if diff := cmp.Diff(want, named); diff != "" || len(want) != len(codes) || len(want) == 0 {
		t.Errorf("the rules of the program and the table differ (-program +table)\n%s", diff)
	}
}

// findingCodes are the constants of type check.Code, sorted.
func findingCodes(t *testing.T) []string {
	t.Helper()
	var codes []string
	collect := func(spec *ast.ValueSpec) {
		typ := ""
		switch kind := spec.Type.(type) {
		case *ast.Ident:
			typ = kind.Name
		case *ast.SelectorExpr:
			typ = kind.Sel.Name
		}
		for _, v := range spec.Values {
			if lit, ok := v.(*ast.BasicLit); ok && typ == "Code" {
				text, err := strconv.Unquote(lit.Value)
				if err != nil {
					t.Fatal(err)
				}
				codes = append(codes, text)
			}
		}
	}
	err := filepath.WalkDir(filepath.Join(root(), "internal"), func(file string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return err
		}
		parsed, err := parser.ParseFile(source.NewFileSet(), file, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok {
				collect(spec)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(codes)
	return codes
}

// TestReferenceCommands looks for every verb and flag of our commands.
func TestReferenceCommands(t *testing.T) {
	page := reference(t)
	help := func(words ...string) (verbs, flags []string) {
		out, err := exec.Command(program, append(words, "--help")...).Output()
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(out), "COMMANDS:\n")
		commands, options, _ := strings.Cut(rest, "OPTIONS:\n")
		if rest == "" {
			_, options, _ = strings.Cut(string(out), "OPTIONS:\n")
		}
		for _, m := range regexp.MustCompile(`(?m)^   ([a-z-]+)`).FindAllStringSubmatch(commands, -1) {
			verbs = append(verbs, m[1])
		}
		for _, m := range regexp.MustCompile(`(?m)^   (--[a-z-]+)`).FindAllStringSubmatch(options, -1) {
			flags = append(flags, m[1])
		}
		return verbs, flags
	}
	for _, command := range []string{"plugin", "config", "profile", "store", "trust", "agent-plugin", "mcp", "skills", "catalog", "installation"} {
		_, section, ok := strings.Cut(page, "\n## `dsh "+command+"`\n")
		section, _, _ = strings.Cut(section, "\n## ")
		if !ok {
			t.Errorf("the reference has no section on %s", command)
		}
		verbs, flags := help(command)
		for _, verb := range verbs {
			if !regexp.MustCompile("(?m)^\\|.*`" + verb + "\\b").MatchString(section) {
				t.Errorf("the reference does not know %s %s", command, verb)
			}
			_, more := help(command, verb)
			flags = append(flags, more...)
		}
		if len(flags) == 0 {
			t.Errorf("%s has no flags", command)
		}
		for _, flag := range flags {
			if flag != "--help" && !regexp.MustCompile("`[^`\n]*"+flag+"\\b").MatchString(section) {
				t.Errorf("the reference does not know %s of %s", flag, command)
			}
		}
	}
}

// TestReferenceDocuments runs commands with --json and holds what they print
// against the shapes on the page.
func TestReferenceDocuments(t *testing.T) {
	_, after, ok := strings.Cut(reference(t), "\n## JSON documents\n")
	_, after, ok2 := strings.Cut(after, "```\n")
	fence, _, ok3 := strings.Cut(after, "```")
	if !ok || !ok2 || !ok3 {
		t.Fatal("the reference shows no documents")
	}
	commands, names, ok := strings.Cut(fence, "\n\n")
	if !ok {
		t.Fatal("the documents have no names")
	}
	page := shapes{t: t, names: definitions(names), seen: map[string]bool{}}
	documented := definitions(commands)
	registry, err := npmtest.New(filepath.Join(sourceDir(), "testdata", "registry"))
	if err != nil {
		t.Fatal(err)
	}
	defer registry.Close()
	repositories := gittest.NewRepositories(t.TempDir())
	pushed := 0
	push := func() {
		dir := t.TempDir()
		pushed++
		err := gittest.Write(dir, fmt.Sprintf("-- package.json --\n{\"name\": \"pushed\", \"version\": \"1.0.%d\", \"dsh\": {\"bundle\": {\"patch\": \"p.yml\"}}}\n-- p.yml --\n[]\n", pushed))
		if err == nil {
			_, err = repositories.Commit("o/r", "main", dir)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	push()
	repository := "git+file://" + filepath.ToSlash(repositories.Dir("o/r")) + "#main"
	source := t.TempDir()
	err = gittest.Write(source, "-- package.json --\n{\"name\": \"source\", \"version\": \"1.0.0\", \"main\": \"lib.js\", \"scripts\": {\"prepare\": \"echo > lib.js\"}}\n")
	if err == nil {
		_, err = repositories.Commit("o/source", "main", source)
	}
	if err != nil {
		t.Fatal(err)
	}
	ofSource := "git+file://" + filepath.ToSlash(repositories.Dir("o/source")) + "#main"
	run := map[string][][]string{
		"config explain":             {{"config", "explain"}},
		"config explain ROW.KEY":     {{"config", "explain", "web"}, {"config", "explain", "web.hst"}, {"config", "explain", "box"}, {"config", "explain", "late"}, {"config", "explain", "expressions"}},
		"config layers":              {{"config", "layers"}},
		"config dump":                {{"config", "dump", "web"}, {"config", "dump", "web.host"}},
		"config dump --format yaml":  {{"config", "dump", "--format", "yaml"}},
		"config diff":                {{"config", "diff"}, {"config", "diff", "x", "headless"}},
		"config check":               {{"config", "check"}},
		"config lint":                {{"config", "lint", "bad.yml"}},
		"config set":                 {{"config", "set", "web.port", "2"}},
		"config unset":               {{"config", "unset", "web.port"}},
		"config disable":             {{"config", "disable", "web"}},
		"config enable":              {{"config", "enable", "web"}},
		"config schema --install":    {{"config", "schema", "--install"}},
		"config compat":              {{"--installation", "old", "config", "compat", "new"}, {"--installation", "new", "config", "compat", "old"}},
		"profile list":               {{"profile", "list"}},
		"profile show":               {{"profile", "show"}, {"profile", "show", "bad"}},
		"profile path":               {{"profile", "path"}},
		"profile which":              {{"profile", "which"}},
		"profile use":                {{"profile", "use", "x"}},
		"profile create":             {{"profile", "create", "made", "--bundles", "./bundle"}, {"profile", "create", "building", "--bundles", "@acme/makes@1.1.0,@acme/gyp"}},
		"profile copy":               {{"profile", "copy", "made", "copied"}, {"first", "plugin", "--profile", "building", "approve", "@acme/makes", "--yes"}, {"profile", "copy", "building", "built"}},
		"profile rename":             {{"profile", "rename", "named", "renamed"}},
		"profile remove":             {{"profile", "remove", "bad", "--yes"}},
		"profile export":             {{"profile", "export", "shared"}, {"profile", "export", "building"}},
		"profile import --dry-run":   {{"profile", "import", "shared.dsh-profile.tar.gz", "--name", "got", "--dry-run"}},
		"profile import":             {{"profile", "import", "shared.dsh-profile.tar.gz", "--name", "got"}, {"profile", "import", "building.dsh-profile.tar.gz", "--name", "gotten"}},
		"profile diff":               {{"profile", "diff", "made", "x"}, {"profile", "diff", "x", "headless"}},
		"profile history":            {{"profile", "history"}},
		"profile rollback":           {{"profile", "rollback"}, {"first", "plugin", "--profile", "building", "remove", "@acme/makes", "@acme/gyp"}, {"profile", "rollback", "building"}},
		"profile pin":                {{"profile", "pin", "1"}},
		"profile undelete":           {{"profile", "undelete", "bad"}},
		"profile safe --dump-config": {{"profile", "safe", "x", "--dump-config"}},
		"profile repair":             {{"profile", "repair", "x", "--dry-run"}, {"lose", "profiles/built/node_modules/@acme/gyp"}, {"profile", "repair", "built", "--yes"}, {"first", "plugin", "--profile", "building", "approve", "--revoke", "@acme/makes"}},
		"profile adopt":              {{"profile", "adopt", "pnpms"}},
		"trust":                      {{"trust"}},
		"trust --list":               {{"trust", "--list"}},
		"trust --revoke":             {{"trust", "--revoke"}},
		"agent-plugin check":         {{"agent-plugin", "check", "agent"}},
		"agent-plugin inspect":       {{"agent-plugin", "inspect", "agent"}, {"agent-plugin", "inspect", "bundle"}},
		"agent-plugin new":           {{"agent-plugin", "new", "begun"}},
		"mcp list":                   {{"mcp", "list", "--patch", "servers.yml"}},
		"mcp check":                  {{"mcp", "check", "--patch", "servers.yml", "--timeout", "20s"}, {"mcp", "check", "--dir", "left"}},
		"mcp call":                   {{"mcp", "call", "probe", "observe", "--patch", "servers.yml"}},
		"skills list":                {{"skills", "list", "--patch", "skills.yml"}},
		"skills show":                {{"skills", "show", "one", "--patch", "skills.yml"}},
		"store status":               {{"store", "status"}},
		"store prune":                {{"store", "prune"}},
		"plugin copy":                {{"plugin", "copy", "--profile", "made", "--from", "shared", "--update", "bundle", "@deepseek-ai/dsh-base"}},
		"plugin add":                 {{"plugin", "--profile", "made", "add", "left@1.0.0"}, {"plugin", "--profile", "made", "add", "left"}, {"plugin", "--profile", "scripted", "add", "@acme/makes-more"}, {"plugin", "--profile", "git", "add", repository}, {"push"}, {"plugin", "--profile", "kept", "add", registry.URL() + "/files/left_1.0.0.tgz//package"}, {"plugin", "--profile", "tooled", "add", "./begun"}},
		"plugin add --dry-run":       {{"plugin", "--profile", "made", "add", "left@2", "is-odd", "--dry-run"}, {"plugin", "--profile", "headless", "add", "left", "--dry-run"}, {"plugin", "--profile", "newer", "add", "left@1.0.0", "--dry-run"}, {"plugin", "--profile", "git", "add", repository, "--dry-run"}},
		"plugin pack":                {{"plugin", "--profile", "packed", "pack"}},
		"plugin add SET":             {{"plugin", "--profile", "unpacked", "add", "./packed.dsh-set.tgz", "--dry-run"}, {"plugin", "--profile", "unpacked", "add", "./packed.dsh-set.tgz"}},
		"plugin dedupe":              {{"plugin", "--profile", "doubles", "add", "@acme/wants-left-1", "@acme/takes-left@1.0.0"}, {"plugin", "--profile", "doubles", "dedupe"}},
		"plugin update":              {{"plugin", "--profile", "doubles", "add", "zero@0.1.3"}, {"plugin", "--profile", "doubles", "update", "--latest", "zero"}, {"plugin", "--profile", "git", "update"}},
		"plugin remove":              {{"plugin", "--profile", "tooled", "add", "./agent"}, {"plugin", "--profile", "tooled", "remove", "agent", "--purge"}, {"plugin", "--profile", "tooled", "remove", "agent"}},
		"plugin outdated":            {{"plugin", "--profile", "made", "outdated"}, {"plugin", "--profile", "git", "outdated"}},
		"plugin info":                {{"plugin", "--profile", "made", "info", "@acme/rich"}, {"plugin", "--profile", "made", "info", "@acme/drags-host"}, {"plugin", "--profile", "made", "info", "@acme/unbuilt"}, {"plugin", "--profile", "made", "info", "@acme/collides"}},
		"installation add":           {{"installation", "add", "./installed", "--node", program}},
		"installation list":          {{"installation", "list"}},
		"installation use":           {{"installation", "use", "0.1.7", "--profile", "made"}},
		"installation check":         {{"installation", "check"}},
		"installation remove":        {{"installation", "remove", "0.1.7", "--force"}},
		"catalog add":                {{"catalog", "add", "list.json"}},
		"catalog list":               {{"catalog", "list"}},
		"catalog update":             {{"catalog", "update"}},
		"catalog remove":             {{"catalog", "remove", "list"}},
		"plugin search":              {{"plugin", "--profile", "made", "search", "hello"}},
		"plugin audit":               {{"plugin", "--profile", "made", "audit", "--save"}, {"plugin", "--profile", "made", "audit", "--offline"}, {"plugin", "--profile", "made", "audit", "--registry", registry.URL() + "/nowhere"}},
		"plugin why":                 {{"plugin", "--profile", "made", "why", "left"}, {"plugin", "--profile", "git", "why", "pushed"}},
		"plugin policy":              {{"plugin", "--profile", "team", "policy"}},
		"plugin scripts":             {{"plugin", "--profile", "scripted", "scripts"}},
		"plugin approve":             {{"plugin", "--profile", "scripted", "approve", "@acme/makes", "--yes"}, {"plugin", "--profile", "scripted", "approve", "@acme/native@1.0.0", "--yes"}},
		"plugin approve --revoke":    {{"plugin", "--profile", "scripted", "approve", "--revoke", "@acme/makes"}, {"first", "plugin", "--profile", "git", "approve", ofSource, "--yes"}, {"first", "plugin", "--profile", "git", "add", ofSource}, {"plugin", "--profile", "git", "approve", "--revoke", "source"}},
		"plugin list":                {{"plugin", "--profile", "made", "list"}, {"plugin", "--profile", "git", "list"}, {"plugin", "--profile", "kept", "list"}, {"plugin", "--profile", "tooled", "list"}},
		"plugin list --tree":         {{"plugin", "--profile", "made", "list", "--tree"}},
		"store path":                 {{"store", "path"}},
		"store size":                 {{"store", "size"}},
		"store verify":               {{"store", "verify"}},
		"plugin allow-version":       {{"plugin", "allow-version", "a@1.0.0", "--dsh-version", "0.1.7", "--accept-risk"}},
		"plugin revoke-version":      {{"plugin", "revoke-version", "a@1.0.0", "--dsh-version", "0.1.7"}},
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(run)), slices.Sorted(maps.Keys(documented))); diff != "" {
		t.Fatalf("this test and the page know other commands (-test +page)\n%s", diff)
	}
	dir := documentsHome(t)
	for _, name := range order(commands) {
		for _, args := range run[name] {
			switch args[0] {
			case "push":
				push()
				continue
			case "lose":
				if err := os.RemoveAll(filepath.Join(dir, "user/.dsh", args[1])); err != nil {
					t.Fatal(err)
				}
				continue
			case "first": // something for the next one to tell of
				resultOf(t, dir, registry.URL(), args[1:])
				continue
			}
			page.where = strings.Join(args, " ")
			page.match(name, parseShape(t, documented[name]), resultOf(t, dir, registry.URL(), args))
		}
	}
	for name, text := range page.names {
		page.unseen(name, parseShape(t, text))
	}
	for name, text := range documented {
		page.unseen(name, parseShape(t, text))
	}
}

// documentsHome is a project in which the commands have much to say.
func documentsHome(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, f := range txtar.Parse([]byte(documentsFiles)).Files {
		file := filepath.Join(dir, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(f.Name, "user/.dsh/store/") { // what is new there is not pruned
			if err := os.Chtimes(file, time.Unix(0, 0), time.Unix(0, 0)); err != nil {
				t.Fatal(err)
			}
		}
	}
	// What is as large as this no generation keeps.
	if err := os.WriteFile(filepath.Join(dir, "user/.dsh/profiles/x/large"), make([]byte, 2<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

const documentsFiles = `
-- user/.dsh/profiles/x/package.json --
{"dependencies": {"loose": "^1.0.0"}, "dsh": {"profile": {"bundles": ["b", "@deepseek-ai/dsh-base", "gone"], "disabledBundles": {"off": "b"}}}}
-- user/.dsh/profiles/x/node_modules/loose/package.json --
{"name": "loose", "version": "1.0.0", "main": "index.js", "peerDependencies": {"@deepseek-ai/cordis": "^4.0.0"}}
-- user/.dsh/profiles/x/node_modules/loose/index.js --
-- user/.dsh/profiles/x/node_modules/b/package.json --
{"name": "b", "version": "1.0.0", "main": "index.js", "dsh": {"bundle": {"patch": "p.yml"}}}
-- user/.dsh/profiles/x/node_modules/b/index.js --
-- user/.dsh/profiles/x/node_modules/b/p.yml --
- insert:
    - id: web
      name: b
      config: {port: 1, host: a}
    - {id: expressions, name: b, config: {right: !!js process.env.PORT, wrong: !!js 1 +}}
    - {id: box, name: cordis:group, group: true, config: [{id: kid, name: b}]}
    - {id: other, name: cordis:group, group: true, config: [{id: lone, name: b}]}
-- user/.dsh/profiles/x/cordis.patch.yml --
- id: late
  disabled: true
- id: web
  config: {port: 2}
- id: box
  insert: [{id: late, name: b}]
- id: web
  config: {host: c}
- id: other
  config: [{id: kid, name: b}]
-- user/.dsh/profiles/headless/package.json --
{"dsh": {"profile": {"bundles": ["b"]}}}
-- user/.dsh/profiles/headless/node_modules/b/package.json --
{"name": "b", "version": "1.0.0", "dsh": {"bundle": {"patch": "p.yml"}}}
-- user/.dsh/profiles/headless/node_modules/b/p.yml --
- insert: [{id: web, name: b, config: {port: 3, more: 4}}, {id: new, name: b}]
-- user/.dsh/profiles/bad/package.json --
{
-- user/.dsh/profiles/bad/cordis.patch.yml --
- insert: [
-- user/.dsh/profiles/named/package.json --
{"dsh": {"profile": {"bundles": []}}}
-- user/.dsh/profiles/namer/cordis.patch.yml --
- {id: web, config: {file: ../named/file}}
-- user/.dsh/profiles/shared/package.json --
{"dependencies": {"bundle": "link:../../../../project/bundle"}, "dsh": {"profile": {"bundles": ["@deepseek-ai/dsh-base", "bundle"]}}}
-- user/.dsh/profiles/shared/.npmrc --
@scope:registry=https://registry.example.com/
-- user/.dsh/profiles/shared/dsh-lock.yaml --
lockfileVersion: "1"
dependencies:
  bundle: "link:../../../../project/bundle"
packages:
  node_modules/bundle:
    version: 1.0.0
    link: "../../../../project/bundle"
-- user/.dsh/profiles/packed/package.json --
{"dependencies": {"bundle": "link:../../../../project/bundle"}, "optionalDependencies": {"gone": "1.0.0"}, "dsh": {"profile": {"bundles": ["bundle"]}}}
-- user/.dsh/profiles/packed/dsh-lock.yaml --
lockfileVersion: "1"
dependencies:
  bundle: "link:../../../../project/bundle"
  gone: 1.0.0
packages:
  node_modules/bundle:
    version: 1.0.0
    link: "../../../../project/bundle"
-- user/.dsh/profiles/shared/cordis.patch.yml --
- id: row
  config: {a: 1}
- insert: [{id: mine, name: b, config: !!js process.env.PORT}]
-- user/.dsh/catalogs.yaml --
catalogs: [{name: gone, from: gone.json}]
-- project/installed/node_modules/@deepseek-ai/dsh/package.json --
{"name": "@deepseek-ai/dsh", "version": "0.1.7", "bin": "bin.js", "engines": {"node": ">=0.0.0-0 || >=0.1.0-0"}}
-- project/list.json --
{"count": 9, "plugins": [{"name": "hello", "npm": "hello", "repository": "acme/hello"}, "text"]}
-- user/.dsh/policy.yaml --
minimumAge: 1m
-- user/.dsh/profiles/team/package.json --
{"dependencies": {"gone": "1.0.0"}, "dsh": {"profile": {"bundles": []}}}
-- user/.dsh/profiles/team/dsh-lock.yaml --
lockfileVersion: "1"
dependencies:
  gone: 1.0.0
packages:
  node_modules/gone:
    version: 1.0.0
    integrity: sha512-BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBA==
    dependencies:
      lost: 1.0.0
  node_modules/lost:
    version: 1.0.0
    integrity: sha512-BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBA==
-- user/.dsh/profiles/pnpms/package.json --
{"dependencies": {"bundle": "link:../../../../project/bundle"}, "dsh": {"profile": {"bundles": []}}}
-- user/.dsh/profiles/pnpms/pnpm-workspace.yaml --
allowBuilds: {mine: true, other: set this to true or false}
-- user/.dsh/profiles/pnpms/pnpm-lock.yaml --
lockfileVersion: '9.0'
importers: {.: {dependencies: {bundle: {specifier: link:../../../../project/bundle, version: link:../../../../project/bundle}}}}
-- user/.dsh/profiles/shared/node_modules/bundle/package.json --
{"name": "bundle", "version": "1.0.0", "dsh": {"bundle": {"patch": "p.yml"}}}
-- user/.dsh/profiles/shared/node_modules/bundle/p.yml --
- insert: [{id: row, name: b}]
-- user/.dsh/store/v1/ab/ababababababababababababababababababababababababababababababababababababababababababababababababababababababababababababababab/index --
dsh-index 1
- 35 package.json
-- user/.dsh/store/v1/ab/ababababababababababababababababababababababababababababababababababababababababababababababababababababababababababababababab/files/package.json --
{"name": "old", "version": "1.0.0"}
-- project/bundle/.env --
-- project/bundle/package.json --
{"name": "bundle", "version": "1.0.0", "dsh": {"bundle": {"patch": "p.yml"}}}
-- project/bundle/p.yml --
- insert: [{id: row, name: b}]
-- project/.git/HEAD --
-- project/agent/plugin.json --
{"$schema": "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json", "name": "agent", "x": 1}
-- project/agent/skills/s/SKILL.md --
---
name: s
description: d
---
-- project/agent/mcp.json --
{"$schema": "https://agent-plugins.org/schemas/1.0.0/mcp.schema.json", "mcpServers": {
  "a": {"type": "stdio", "command": "node", "args": ["x"], "env": {"K": "v"}, "cwd": "./skills"},
  "b": {"type": "sse", "url": "https://example.com/", "headers": {"K": "v"}}, "c": {}}}
-- project/left/plugin.json --
{"$schema": "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json", "name": "left"}
-- project/left/mcp.json --
{"$schema": "https://agent-plugins.org/schemas/1.0.0/mcp.schema.json", "mcpServers": {"c": {}}}
-- project/servers.yml --
- insert:
    - {id: probe, name: '@deepseek-ai/dsh-mcp-client', config: {serverName: probe, transport: stdio, command: mcpprobe, args: [x], env: {A: b}, cwd: .}}
    - {id: crash, name: '@deepseek-ai/dsh-mcp-client', config: {serverName: crash, transport: stdio, command: mcpprobe, args: [crash]}}
    - {id: far, name: '@deepseek-ai/dsh-mcp-client', config: {serverName: far, transport: streamable-http, url: 'http://127.0.0.1:1/mcp', headers: {A: b}}}
-- project/skills.yml --
- insert:
    - {id: found, name: '@deepseek-ai/dsh-skill-filesystem', config: {customSkillDirs: [./some]}}
-- project/some/one/SKILL.md --
---
name: one
description: The first.
metadata: {a: b}
---
Do it.
-- project/some/one.md --
---
name: one
description: Another one.
---
-- project/some/broken.md --
no frontmatter
-- project/bad.yml --
- set: {id: a, disabled: true}
-- project/.dsh/cordis.patch.yml --
- id: box
  insert: [{id: mine, name: ./mine.js}]
- id: kid
  disabled: !!js process.env.OFF
-- project/old/node_modules/@deepseek-ai/dsh/package.json --
{"name": "@deepseek-ai/dsh", "version": "0.1.7"}
-- project/old/node_modules/@deepseek-ai/cordis/package.json --
{"name": "@deepseek-ai/cordis", "version": "4.1.0"}
-- project/old/node_modules/@deepseek-ai/dsh-base/package.json --
{"name": "@deepseek-ai/dsh-base", "version": "0.1.7", "dsh": {"bundle": {"patch": "p.yml"}}}
-- project/old/node_modules/@deepseek-ai/dsh-base/p.yml --
- insert: [{id: before, name: b}]
-- project/new/node_modules/@deepseek-ai/dsh/package.json --
{"name": "@deepseek-ai/dsh", "version": "0.2.0"}
-- project/new/node_modules/@deepseek-ai/cordis/package.json --
{"name": "@deepseek-ai/cordis", "version": "5.0.0"}
-- project/new/node_modules/@deepseek-ai/dsh-base/package.json --
{"name": "@deepseek-ai/dsh-base", "version": "0.2.0", "dsh": {"bundle": {"patch": "p.yml"}}}
-- project/new/node_modules/@deepseek-ai/dsh-base/p.yml --
- insert: [{id: web, name: b}]
`

// resultOf is the result in the document that a command prints which asks a
// registry.
func resultOf(t *testing.T, dir, registry string, args []string) any {
	t.Helper()
	cmd := exec.Command(program, append([]string{"--json"}, args...)...)
	cmd.Dir = filepath.Join(dir, "project")
	user := filepath.Join(dir, "user")
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(program)+string(os.PathListSeparator)+os.Getenv("PATH"), "HOME="+user, "USERPROFILE="+user, "DSH_HOME=", "DSH_PROFILE=x", "DSH_INSTALLATION=", "npm_config_registry="+registry, "DSH_OSV_URL="+registry+"/osv")
	out, err := cmd.Output()
	if _, failed := err.(*exec.ExitError); err != nil && !failed {
		t.Fatal(err)
	}
	var document struct{ Result any }
	if err := json.NewDecoder(bytes.NewReader(out)).Decode(&document); err != nil || document.Result == nil {
		t.Fatalf("dsh %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return document.Result
}

// definitions are the shapes of a part of the fence, by what they are of. A
// line that begins with a space goes on with the one above.
func definitions(text string) map[string]string {
	found := map[string]string{}
	for _, m := range definition.FindAllStringSubmatch(text, -1) {
		found[m[1]] = m[2]
	}
	return found
}

// order is the names of definitions as they come.
func order(text string) []string {
	var names []string
	for _, m := range definition.FindAllStringSubmatch(text, -1) {
		names = append(names, m[1])
	}
	return names
}

var definition = regexp.MustCompile(`(?m)^(\S+(?: \S+)*?) +((?:[{[]|EDIT$).*(?:\n +.*)*)`)

// shape is what the page says of a value: an object with keys, a list of items,
// something that has a name, or nothing.
type shape struct {
	keys  []key
	items *shape
	name  string
}

type key struct {
	name     string
	optional bool
	value    shape
}

// parseShape reads {a, b?: [{c}], d: NAME}.
func parseShape(t *testing.T, text string) shape {
	t.Helper()
	p := shapeParser{words: regexp.MustCompile(`[A-Za-z]+|[{}\[\],:?]`).FindAllString(text, -1)}
	s := p.shape()
	if len(p.words) > 0 {
		t.Fatalf("this is no shape: %s", text)
	}
	return s
}

type shapeParser struct{ words []string }

// next takes a word if it is the given one.
func (p *shapeParser) next(word string) bool {
	ok := len(p.words) > 0 && p.words[0] == word
	if ok {
		p.words = p.words[1:]
	}
	return ok
}

func (p *shapeParser) word() string {
	if len(p.words) == 0 {
		return ""
	}
	w := p.words[0]
	p.words = p.words[1:]
	return w
}

func (p *shapeParser) shape() shape {
	switch {
	case p.next("["):
		items := p.shape()
		p.next("]")
		return shape{items: &items}
	case !p.next("{"):
		return shape{name: p.word()}
	}
	var s shape
	for len(p.words) > 0 && !p.next("}") {
		k := key{name: p.word(), optional: p.next("?")}
		if p.next(":") {
			k.value = p.shape()
		}
		s.keys = append(s.keys, k)
		p.next(",")
	}
	return s
}

// shapes holds values against the page.
type shapes struct {
	t     *testing.T
	names map[string]string
	seen  map[string]bool // keys of objects, as NAME.key
	where string          // the command under way
}

// match holds a value against a shape; at is what errors call its place.
func (p shapes) match(at string, s shape, v any) {
	p.t.Helper()
	switch {
	case v == nil:
	case s.name != "":
		p.match(s.name, parseShape(p.t, p.names[s.name]), v)
	case s.items != nil:
		list, ok := v.([]any)
		if !ok {
			p.t.Errorf("%s: %s is no list", p.where, at)
		}
		for _, item := range list {
			p.match(at+"[]", *s.items, item)
		}
	case s.keys != nil:
		object, ok := v.(map[string]any)
		if !ok {
			p.t.Errorf("%s: %s is no object", p.where, at)
			return
		}
		p.object(at, s, object)
		for name := range p.rest(at, s, object) {
			p.t.Errorf("%s: the page does not know %s.%s", p.where, at, name)
		}
	}
}

// object holds the keys of an object against a shape.
func (p shapes) object(at string, s shape, object map[string]any) {
	p.t.Helper()
	for _, k := range s.keys {
		if text, ok := p.names[k.name]; ok {
			p.object(k.name, parseShape(p.t, text), object)
			continue
		}
		v, there := object[k.name]
		if !there {
			if !k.optional {
				p.t.Errorf("%s: there is no %s.%s", p.where, at, k.name)
			}
			continue
		}
		p.seen[at+"."+k.name] = true
		p.match(at+"."+k.name, k.value, v)
	}
}

// rest is what an object has and a shape has not.
func (p shapes) rest(at string, s shape, object map[string]any) map[string]any {
	left := maps.Clone(object)
	for _, k := range s.keys {
		if text, ok := p.names[k.name]; ok {
			left = p.rest(k.name, parseShape(p.t, text), left)
		}
		delete(left, k.name)
	}
	return left
}

// unseen tells of keys that no command printed.
func (p shapes) unseen(at string, s shape) {
	if s.items != nil {
		p.unseen(at+"[]", *s.items)
	}
	for _, k := range s.keys {
		if _, ok := p.names[k.name]; ok {
			continue
		}
		place := fmt.Sprintf("%s.%s", at, k.name)
		if !p.seen[place] {
			p.t.Errorf("no command printed %s", place)
		}
		p.unseen(place, k.value)
	}
}
