package e2e

import (
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"dsh/e2e/npmtest"
)

// leak stands wherever a password or token can stand in what the commands of
// TestSecretsAreNotShown read.
const leak = "s3same"

// secretFiles are what is there when the first of them runs. HOST is the
// registry; nothing listens on port 1.
const secretFiles = `
-- user/.npmrc --
//HOST/:_authToken=s3same-token
@closed:registry=http://user:s3same@127.0.0.1:1/
//127.0.0.1:1/:_password=s3same
https-proxy=http://user:s3same@127.0.0.1:1/
-- home/profiles/loose/package.json --
{
  "dependencies": {
    "odd": "http://user:s3same@127.0.0.1:1/x.tgz?token=s3same",
    "gitty": "git+https://user:s3same@127.0.0.1:1/o/r.git#main",
    "sshy": "git+ssh://user:s3same@127.0.0.1:1/o/r.git",
    "@closed/x": "^1.0.0"
  },
  "pnpm": {"overrides": {"left": "http://user:s3same@127.0.0.1:1/left.tgz"}},
  "dsh": {"profile": {"bundles": ["@deepseek-ai/dsh-base"]}}
}
-- home/profiles/pnpms/package.json --
{"dependencies": {"left": "http://user:s3same@HOST/files/left_1.2.0.tgz?token=s3same"}, "dsh": {"profile": {"bundles": ["@deepseek-ai/dsh-base"]}}}
-- home/profiles/pnpms/pnpm-lock.yaml --
lockfileVersion: '9.0'
importers: {.: {dependencies: {left: {specifier: 'http://user:s3same@HOST/files/left_1.2.0.tgz?token=s3same', version: 'http://user:s3same@HOST/files/left_1.2.0.tgz?token=s3same'}}}}
packages:
  'left@http://user:s3same@HOST/files/left_1.2.0.tgz?token=s3same':
    resolution: {tarball: 'http://user:s3same@HOST/files/left_1.2.0.tgz?token=s3same'}
    version: 1.2.0
snapshots:
  'left@http://user:s3same@HOST/files/left_1.2.0.tgz?token=s3same': {}
-- home/profiles/doomed/package.json --
{"dependencies": {"left": "http://user:s3same@127.0.0.1:1/left.tgz"}, "dsh": {"profile": {"bundles": ["@deepseek-ai/dsh-base"]}}}
-- work/list.json --
[{"name": "secretive", "repository": "https://user:s3same@127.0.0.1/o/r", "install": {"spec": "https://user:s3same@127.0.0.1:1/x.tgz?token=s3same"}},
 {"name": "kept", "description": "secretive", "tarball": "http://127.0.0.1:1/x.tgz?token=s3same"}]
-- work/agent/plugin.json --
{"$schema": "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json", "name": "agent", "homepage": "https://user:s3same@h/", "https://user:s3same@h/": 1}
-- work/agent/skills/a/SKILL.md --
---
name: a
description: d
https://user:s3same@h/?token=s3same: x
---
-- work/agent/mcp.json --
{"$schema": "https://agent-plugins.org/schemas/1.0.0/mcp.schema.json", "mcpServers": {
  "a": {"type": "stdio", "command": "node", "args": ["--url=https://user:s3same@h/x?token=s3same"], "env": {"K": "s3same"}},
  "b": {"type": "sse", "url": "https://h/?token=s3same", "headers": {"Authorization": "Bearer s3same"}},
  "c": {"type": "sse", "url": "https://user:s3same@h/#s3same", "headers": {"Authorization": "Bearer s3same\n", "a": "s3same", "A": "s3same"}},
  "d": {"type": "stdio", "command": "https://user:s3same@h/", "cwd": "https://user:s3same@h/?s3same", "env": {"K": "s3same\u0000", "L": ["s3same"]}}}}
-- work/servers.yml --
- insert:
    - {id: gone, name: '@deepseek-ai/dsh-mcp-client', config: {serverName: gone, transport: stdio, command: node-is-not-here, args: ['--token=s3same', '--api-key', s3same, 'https://user:s3same@h/?s3same'], env: {API_TOKEN: s3same}}}
    - {id: probe, name: '@deepseek-ai/dsh-mcp-client', config: {serverName: probe, transport: stdio, command: sh, args: ['-c', 'echo $API_TOKEN >&2; exit 3'], env: {API_TOKEN: s3same}}}
    - {id: far, name: '@deepseek-ai/dsh-mcp-client', config: {serverName: far, transport: streamable-http, url: 'http://user:s3same@127.0.0.1:1/mcp?key=s3same', headers: {Authorization: Bearer s3same}}}
    - {id: old, name: '@deepseek-ai/dsh-mcp-client', config: {serverName: old, transport: sse, url: 'http://127.0.0.1:1/sse?key=s3same', headers: {Authorization: Bearer s3same}}}
    - {id: odd, name: '@deepseek-ai/dsh-mcp-client', config: {serverName: odd, transport: sse, url: 's3same://user:s3same@h/', headers: {A: s3same, a: s3same}}}
-- work/bundle/package.json --
{"name": "bundle", "version": "1.0.0", "dependencies": {"left": "http://user:s3same@HOST/files/left_1.2.0.tgz?token=s3same"}, "dsh": {"bundle": {"patch": "p.yml"}}}
-- work/bundle/p.yml --
[]
`

// secretCommands are run in order, each in words and with --json. What they do
// does not matter, nor whether they fail: it is what they print.
const secretCommands = `
agent-plugin check agent
agent-plugin inspect agent
agent-plugin inspect agent/skills
agent-plugin new begun
mcp list --patch servers.yml
mcp check --patch servers.yml --timeout 2s
mcp check --dir agent --timeout 2s
mcp call gone x --patch servers.yml --timeout 2s
mcp call far x --patch servers.yml --timeout 2s
mcp call probe echo --patch servers.yml --timeout 5s
skills list
skills show x
plugin --profile full add URL
plugin --profile full add ZIP
plugin --profile full add alias@URL --dry-run
plugin --profile full add ./bundle
plugin --profile full add https://user:s3same@127.0.0.1:1/x.tgz?token=s3same
plugin --profile full add http://user:s3same@127.0.0.1:1/x.tgz?token=s3same#s3same
plugin --profile full add http://user:s3same@HOST/files/gone.tgz?token=s3same
plugin --profile full add http://user:s3same@HOST/files/left_1.2.0.zip?token=s3same
plugin --profile full add git+https://user:s3same@127.0.0.1:1/o/r.git#main
plugin --profile full add git+ssh://user:s3same@127.0.0.1:1/o/r.git
plugin --profile full add ssh://user:s3same@127.0.0.1:1/o/r.git
plugin --profile full add git+http://user:s3same@host.example/o/r.git
plugin --profile full add git://user:s3same@host.example/o/r.git
plugin --profile full add git+ftp://user:s3same@host.example/o/r.git
plugin --profile full add ftp://user:s3same@host.example/x.tgz
plugin --profile full add https://user:s3same@/x.tgz
plugin --profile full add https://user:s3same@host.example:port/x.tgz
plugin --profile full add s3::https://user:s3same@host.example/b/x.tgz?aws_access_key_secret=s3same
plugin --profile full add gcs::https://user:s3same@host.example/b/x.tgz
plugin --profile full add x@https://user:s3same@host.example/%zz
plugin --profile full add @closed/x
plugin --profile full add left --registry http://user:s3same@127.0.0.1:1/
plugin --profile full add left --registry https://user:s3same@127.0.0.1:1/
plugin --profile full add left --registry user:s3same@host
plugin --profile full add @acme/private
plugin --profile full list
plugin --profile full list --tree
plugin --profile full why left
plugin --profile full outdated
plugin --profile full audit --registry http://user:s3same@127.0.0.1:1/
plugin --profile full audit
catalog add https://user:s3same@127.0.0.1:1/list.json
catalog add http://127.0.0.1:1/list.json?token=s3same
catalog add list.json
catalog list
catalog update
plugin --profile full search secretive
plugin --profile full search secretive --registry http://user:s3same@127.0.0.1:1/
plugin --profile full add secretive --catalog list
plugin --profile full add kept --catalog list
catalog remove list
plugin --profile full scripts
plugin --profile full approve URL --yes
plugin --profile full approve https://user:s3same@127.0.0.1:1/x.tgz
plugin --profile full dedupe
plugin --profile full update
plugin --profile full install --force
plugin --profile full policy
plugin --profile full info URL
plugin --profile full info ZIP
plugin --profile full info left
plugin --profile full info https://user:s3same@127.0.0.1:1/x.tgz?token=s3same
plugin --profile full info git+https://user:s3same@127.0.0.1:1/o/r.git
plugin --profile full info left --expect-repo https://user:s3same@host.example/o/r
catalog add https://user:s3same@127.0.0.1:1/c.json?token=s3same --name gone
catalog add http://user:s3same@HOST/public/catalogue.json?token=s3same --name near
catalog list
catalog update
plugin --profile full search left
plugin --profile full search kept
plugin --profile full add left --catalog near --dry-run
catalog remove near
plugin --profile full pack -o full-set.tgz
plugin --profile loose pack -o loose-set.tgz
plugin --profile fourth add ./full-set.tgz --offline
plugin --profile other copy --from full --dry-run
plugin --profile other copy --from full
plugin --profile other remove left
plugin --profile loose list
plugin --profile loose list --tree
plugin --profile loose outdated
plugin --profile loose install
plugin --profile loose update
plugin --profile loose policy
plugin --profile loose remove sshy
plugin --profile third copy --from loose --dry-run
plugin --profile third copy --from loose
plugin --profile full version-exemptions
plugin --profile full allow-version https://user:s3same@host/x --dsh-version 1.0.0 --accept-risk
plugin --profile full revoke-version https://user:s3same@host/x --dsh-version 1.0.0
plugin --profile full remove https://user:s3same@host/x
plugin --profile full update https://user:s3same@host/x
plugin --profile full why https://user:s3same@host/x
plugin --profile full outdated https://user:s3same@host/x
plugin --profile full publish https://user:s3same@host/x
profile list
profile show full
profile show loose
profile path full
profile which full
profile use full
profile create made --bundles URL
profile create made2 --bundles https://user:s3same@127.0.0.1:1/x.tgz
profile copy full copied
profile rename copied renamed
profile diff full loose
profile diff full renamed
profile history full
profile history loose
profile history other
profile pin 1 --profile full
profile export full -o full.tgz
profile export full --with-packages -o whole.tgz
profile export loose -o loose.tgz
profile import full.tgz --name got --dry-run
profile import full.tgz --name got
profile import loose.tgz --name got2 --dry-run
profile import loose.tgz --name got2
profile import https://user:s3same@127.0.0.1:1/x.tgz --name got3
profile rollback full --dry-run
profile rollback full
profile rollback loose
profile adopt pnpms --dry-run
profile adopt pnpms
profile repair full --dry-run
profile repair loose --dry-run
profile repair full --yes
profile safe full --dump-config
profile remove doomed --yes
profile undelete doomed
config explain --profile full
config layers --profile full
config dump --profile full
config diff full loose
config check --profile full
config check --profile loose
config lint
config set web.port 1 --profile full
config unset web.port --profile full
config disable bundle --profile full
config enable bundle --profile full
config schema --profile full
config compat 1.0.0 --profile full
store status
store verify
store prune --dry-run
store path
store size
trust
trust --list
`

// TestSecretsAreNotShown runs commands over profiles and settings that are full of
// passwords and tokens: none is shown, in words or JSON, or kept with a lock.
func TestSecretsAreNotShown(t *testing.T) {
	registry, err := npmtest.New(filepath.Join(sourceDir(), "testdata", "registry"))
	if err != nil {
		t.Fatal(err)
	}
	defer registry.Close()
	dir := t.TempDir()
	public := filepath.Join(dir, "public")
	writeZip(t, filepath.Join(public, "kept.zip"))
	registry.Publish(public)
	catalogue := `[{"name": "kept", "npm": "kept", "source": "http://user:s3same@127.0.0.1:1/kept.zip?token=s3same"}]`
	if err := os.WriteFile(filepath.Join(public, "catalogue.json"), []byte(catalogue), 0o644); err != nil {
		t.Fatal(err)
	}
	host := strings.TrimPrefix(registry.URL(), "http://")
	filled := strings.NewReplacer("HOST", host, "URL", "http://user:s3same@"+host+"/files/left_1.2.0.tgz?token=s3same", "ZIP", "http://user:s3same@"+host+"/public/kept.zip?token=s3same")
	for _, f := range txtar.Parse([]byte(filled.Replace(secretFiles))).Files {
		file := filepath.Join(dir, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tmp := filepath.Join(dir, "tmp")
	if err := os.MkdirAll(tmp, 0o755); err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(),
		"DSH_HOME="+filepath.Join(dir, "home"), "HOME="+filepath.Join(dir, "user"), "USERPROFILE="+filepath.Join(dir, "user"), "TMPDIR="+tmp,
		"npm_config_registry="+registry.URL(), "npm_config_fetch_retries=0", "DSH_OSV_URL=http://user:s3same@127.0.0.1:1/", "DSH_PROFILE=",
	)
	ran := map[string]bool{}
	for line := range strings.Lines(strings.TrimSpace(secretCommands)) {
		line = filled.Replace(strings.TrimSpace(line))
		words := strings.Fields(line)
		for _, word := range words {
			ran[words[0]+" "+word] = true
		}
		for _, args := range [][]string{words, append(slices.Clone(words), "--json")} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			cmd := exec.CommandContext(ctx, program, args...)
			cmd.Env, cmd.Dir = env, filepath.Join(dir, "work")
			out, err := cmd.CombinedOutput()
			if ctx.Err() != nil {
				t.Errorf("dsh %s: it does not end", strings.Join(args, " "))
			}
			cancel()
			if strings.Contains(string(out), leak) {
				t.Errorf("dsh %s: %v\n%s", strings.Join(args, " "), err, out)
			}
			if line == "plugin --profile full list" && !(bytes.Contains(out, []byte("left")) && bytes.Contains(out, []byte("kept")) && bytes.Contains(out, []byte("bundle"))) {
				t.Errorf("what has secrets in it is not installed:\n%s", out)
			}
			if strings.Contains(string(out), "goroutine ") {
				t.Errorf("dsh %s: a stack trace\n%s", strings.Join(args, " "), out)
			}
			keptWithout(t, filepath.Join(dir, "home", "state"), args)
		}
	}
	// A verb that is new has to be among them.
	for _, command := range []string{"plugin", "profile", "config", "store", "catalog", "agent-plugin", "mcp", "skills"} {
		out, err := exec.Command(program, command, "--help").Output()
		if err != nil {
			continue // there is no such command
		}
		_, verbs, _ := strings.Cut(string(out), "COMMANDS:\n")
		verbs, _, _ = strings.Cut(verbs, "OPTIONS:\n")
		for _, verb := range regexp.MustCompile(`(?m)^   ([a-z-]+)`).FindAllStringSubmatch(verbs, -1) {
			if name := command + " " + verb[1]; !ran[name] {
				t.Errorf("dsh %s is not run with secrets around it", name)
			}
		}
	}
}

// keptWithout looks into the locks and logs that a command left.
func keptWithout(t *testing.T, state string, args []string) {
	t.Helper()
	err := filepath.WalkDir(state, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if name := d.Name(); name != "lock" && name != "journal" && filepath.Ext(name) != ".log" {
			return nil // states of profiles, which hold what the user wrote
		}
		text, err := os.ReadFile(path)
		if bytes.Contains(text, []byte(leak)) {
			return fmt.Errorf("%s: %s", path, text)
		}
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		t.Errorf("dsh %s: it leaves %v", strings.Join(args, " "), err)
	}
}

func writeZip(t *testing.T, file string) {
	t.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	w, err := z.Create("kept/package.json")
	if err == nil {
		_, err = w.Write([]byte(`{"name": "kept", "version": "1.0.0"}`))
	}
	if err == nil {
		err = z.Close()
	}
	if err == nil {
		err = os.MkdirAll(filepath.Dir(file), 0o755)
	}
	if err == nil {
		err = os.WriteFile(file, out.Bytes(), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}
