//go:build unix

package action

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"dsh/internal/agentplugin"
	"dsh/internal/mcp"
)

// TestMain lets this test binary be the `node` of the fixtures.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "node" {
		conformanceProbe()
		return
	}
	os.Exit(m.Run())
}

// evidence is what the probe of the fixtures says of how it was started.
type evidence struct {
	Root  string            `json:"root"` // of the package, from the probe's own file
	Cwd   string            `json:"cwd"`
	Args  []string          `json:"args"` // behind the probe's file
	Env   map[string]string `json:"env"`
	Write string            `json:"write"` // why PLUGIN_DATA cannot be written, "" if it can
}

func conformanceProbe() {
	server := sdk.NewServer(&sdk.Implementation{Name: "probe", Version: "1"}, nil)
	sdk.AddTool(server, &sdk.Tool{Name: "observe"}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, evidence, error) {
		e := evidence{Args: os.Args[2:], Env: map[string]string{}, Root: filepath.Dir(filepath.Dir(os.Args[1]))}
		e.Cwd, _ = os.Getwd()
		for _, entry := range os.Environ() {
			name, value, _ := strings.Cut(entry, "=")
			e.Env[name] = value
		}
		file := filepath.Join(e.Env["PLUGIN_DATA"], "written")
		if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
			e.Write = err.Error()
		}
		_ = os.Remove(file)
		return nil, e, nil
	})
	_ = server.Run(context.Background(), &sdk.StdioTransport{})
}

// conformance is the fixtures installed, and what came of them.
type conformance struct {
	t          *testing.T
	root       string
	core       *agentplugin.Plugin
	recovery   *agentplugin.Plugin
	invalid    *agentplugin.Plugin
	near, away *httptest.Server // the origins of the ports 43187 and 43189
	mu         sync.Mutex
	requests   []seen
}

// seen is a request to one of the two origins.
type seen struct {
	away   bool
	method string
	path   string
	query  string
	header http.Header
}

func (c *conformance) anchors(plugin string) agentplugin.Anchors {
	return agentplugin.Anchors{Root: filepath.Join(c.root, "plugins", plugin), Data: filepath.Join(c.root, "data", plugin)}
}

const (
	corePlugin     = "agent-plugins-conformance-core"
	recoveryPlugin = "agent-plugins-conformance-recovery"
	invalidPlugin  = "agent-plugins-conformance-invalid-mcp"
)

func installedFixtures(t *testing.T) *conformance {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c := &conformance{t: t, root: root}
	c.near = httptest.NewServer(c.handler(false))
	t.Cleanup(c.near.Close)
	c.away = httptest.NewServer(c.handler(true))
	t.Cleanup(c.away.Close)
	// httptest waits for open streams.
	t.Cleanup(func() { c.near.CloseClientConnections(); c.away.CloseClientConnections() })

	official := filepath.Join("..", "agentplugin", "testdata", "official")
	if err := os.CopyFS(filepath.Join(root, "plugins"), os.DirFS(official)); err != nil {
		t.Fatal(err)
	}
	for _, plugin := range []string{corePlugin, recoveryPlugin} {
		file := filepath.Join(c.anchors(plugin).Root, "mcp.json")
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		near := strings.TrimPrefix(c.near.URL, "http://127.0.0.1:")
		changed := strings.NewReplacer(":43187/", ":"+near+"/").Replace(string(text))
		c.write(file, changed, 0o644)
		c.write(filepath.Join(c.anchors(plugin).Root, "dist", "probe.mjs"), "", 0o644)
		c.mkdir(c.anchors(plugin).Data)
	}
	c.mkdir(filepath.Join(c.anchors(corePlugin).Root, "probe-workdir"))
	bin := filepath.Join(c.anchors(corePlugin).Root, "bin", "posix")
	c.write(filepath.Join(bin, "probe token.sh"), "#!/bin/sh\nexec node \"$(dirname \"$0\")/../../dist/probe.mjs\" command-token \"$@\"\n", 0o755)
	c.write(filepath.Join(bin, "probe"), "#!/bin/sh\nexec node \"$(dirname \"$0\")/../../dist/probe.mjs\" decoy \"$@\"\n", 0o755)
	for at, target := range map[string]string{
		"escape-command-posix": "escape-command-intermediate-posix", "escape-command-intermediate-posix": "/usr/bin/env", "escape-link": "..",
	} {
		if err := os.Symlink(target, filepath.Join(c.anchors(recoveryPlugin).Root, at)); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c.mkdir(filepath.Join(root, "bin"))
	if err := os.Symlink(self, filepath.Join(root, "bin", "node")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", filepath.Join(root, "bin")+":"+os.Getenv("PATH"))
	c.core, c.recovery, c.invalid = c.load(corePlugin), c.load(recoveryPlugin), c.load(invalidPlugin)
	return c
}

func (c *conformance) mkdir(dir string) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		c.t.Fatal(err)
	}
}

func (c *conformance) write(file, text string, mode fs.FileMode) {
	c.mkdir(filepath.Dir(file))
	if err := os.WriteFile(file, []byte(text), mode); err != nil {
		c.t.Fatal(err)
	}
}

func (c *conformance) load(plugin string) *agentplugin.Plugin {
	source, err := agentplugin.OpenDirectory(c.anchors(plugin).Root)
	if err != nil {
		c.t.Fatal(err)
	}
	defer source.Close()
	p, _, err := agentplugin.Load(source, agentplugin.Options{})
	if err != nil {
		c.t.Fatal(err)
	}
	return p
}

// handler is one of the two origins.
func (c *conformance) handler(away bool) http.Handler {
	newServer := func(*http.Request) *sdk.Server {
		server := sdk.NewServer(&sdk.Implementation{Name: "fixture", Version: "1"}, nil)
		sdk.AddTool(server, &sdk.Tool{Name: "observe"}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "observed"}}}, nil, nil
		})
		return server
	}
	stateless := sdk.NewStreamableHTTPHandler(newServer, &sdk.StreamableHTTPOptions{Stateless: true})
	sse := sdk.NewSSEHandler(newServer, nil)
	mux := http.NewServeMux()
	mux.Handle("/conformance/mcp", stateless)
	mux.HandleFunc("/conformance/redirect", func(w http.ResponseWriter, r *http.Request) {
		// The handshake is answered here, and only the call is sent on.
		text, err := io.ReadAll(r.Body)
		if err != nil || strings.Contains(string(text), "tools/call") {
			http.Redirect(w, r, c.away.URL+"/conformance/mcp", http.StatusTemporaryRedirect)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(text))
		stateless.ServeHTTP(w, r)
	})
	mux.Handle("/conformance/sse", sse)
	mux.Handle("/conformance/sse-header-precedence", sse)
	mux.HandleFunc("/conformance/sse-redirect", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, c.away.URL+"/conformance/sse", http.StatusTemporaryRedirect)
	})
	mux.HandleFunc("/conformance/sse-endpoint-origin", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "event: endpoint\ndata: %s/conformance/posted\n\n", c.away.URL)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	mux.HandleFunc("/conformance/posted", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		c.requests = append(c.requests, seen{away, r.Method, r.URL.Path, r.URL.RawQuery, r.Header.Clone()})
		c.mu.Unlock()
		mux.ServeHTTP(w, r)
	})
}

// during is what both origins saw while f ran.
func (c *conformance) during(f func()) []seen {
	c.mu.Lock()
	from := len(c.requests)
	c.mu.Unlock()
	f()
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.requests[from:])
}

// observe starts a server, calls observe, and stops it.
func (c *conformance) observe(plugin, name string) (e evidence, err error) {
	loaded := map[string]*agentplugin.Plugin{corePlugin: c.core, recoveryPlugin: c.recovery}[plugin]
	at := slices.IndexFunc(loaded.Servers, func(s agentplugin.Server) bool { return s.Name() == name })
	if at < 0 {
		return e, fmt.Errorf("server %s is not advertised", name)
	}
	server, err := PluginServer(loaded.Servers[at], c.anchors(plugin), os.Environ())
	if err != nil {
		return e, err
	}
	ctx, cancel := context.WithTimeout(c.t.Context(), 5*time.Second)
	defer cancel()
	session, err := mcp.Connect(ctx, server, mcp.Options{Environ: os.Environ(), Grace: 200 * time.Millisecond})
	if err != nil {
		return e, err
	}
	defer func() { _ = session.Stop(context.Background()) }()
	result, err := session.Call(ctx, "observe", nil)
	if err != nil || result.Structured == nil {
		return e, err
	}
	return e, json.Unmarshal(result.Structured, &e)
}

// TestConformance is the cases of the official suite, driven by a program: skills
// are those that the loader lists, and evidence is what the probes answer.
func TestConformance(t *testing.T) {
	c := installedFixtures(t)
	root, data := c.anchors(corePlugin).Root, c.anchors(corePlugin).Data
	started := map[string]evidence{}
	answered := map[string]error{}
	for _, name := range []string{"default", "relative", "root", "data", "command-token-posix"} {
		started[name], answered[name] = c.observe(corePlugin, name)
	}
	var recovered evidence
	recovered, answered["recovery-valid"] = c.observe(recoveryPlugin, "recovery-valid")
	remote := map[string][]seen{}
	for _, name := range []string{"http", "http-redirect", "sse", "sse-header-precedence", "sse-redirect", "sse-endpoint-origin"} {
		remote[name] = c.during(func() { _, answered[name] = c.observe(corePlugin, name) })
	}

	check := func(ok bool, format string, args ...any) error {
		if ok {
			return nil
		}
		return fmt.Errorf(format, args...)
	}
	answers := func(name string) func() error { return func() error { return answered[name] } }
	cwd := func(name, want string) func() error {
		return func() error { return check(started[name].Cwd == want, "cwd is %q, not %q", started[name].Cwd, want) }
	}
	// absent holds when the server is not advertised, and those beside it answer.
	absent := func(name string, beside ...string) func() error {
		return func() error {
			for _, s := range c.recovery.Servers {
				if s.Name() == name {
					return fmt.Errorf("it is advertised")
				}
			}
			for _, other := range append([]string{"recovery-valid"}, beside...) {
				if err := answered[other]; err != nil {
					return fmt.Errorf("%s: %w", other, err)
				}
			}
			return nil
		}
	}
	link := func(name string, next func() error) func() error {
		return func() error {
			info, err := os.Lstat(filepath.Join(c.anchors(recoveryPlugin).Root, name))
			if err != nil || info.Mode()&fs.ModeSymlink == 0 {
				return fmt.Errorf("the link is none: %v", err)
			}
			return next()
		}
	}
	skill := func(p *agentplugin.Plugin, name, marker string) error {
		for _, s := range p.Skills {
			if s.Name == name {
				return check(strings.Contains(s.Body, marker), "%s is without its marker", name)
			}
		}
		return fmt.Errorf("%s is not advertised", name)
	}
	env := func(name, variable, want string) func() error {
		return func() error {
			return check(started[name].Env[variable] == want, "%s is %q", variable, started[name].Env[variable])
		}
	}
	literal := "${PLUGIN_ROOT}|${PLUGIN_DATA}|fixture value with spaces"
	// every says of all requests of a server that some header is so.
	every := func(name, method, header, want string) func() error {
		return func() error {
			count := 0
			for _, r := range remote[name] {
				if r.away || method != "" && r.method != method {
					continue
				}
				count++
				if got := r.header.Get(header); got != want {
					return fmt.Errorf("%s %s has %s: %q, not %q", r.method, r.path, header, got, want)
				}
			}
			return check(count > 0, "there was no request")
		}
	}
	notAway := func(name string) func() error {
		return func() error {
			reached := false
			for _, r := range remote[name] {
				if r.away {
					reached = true
					if got := r.header.Get("x-apc-fixture"); got != "" {
						return fmt.Errorf("the other origin got %q", got)
					}
				}
			}
			return check(reached, "the other origin was not asked, so that nothing is known")
		}
	}
	query := func(name, path, want string) func() error {
		return func() error {
			for _, r := range remote[name] {
				if r.path == path && r.query == want {
					return nil
				}
			}
			return fmt.Errorf("no request had path %s and query %s: %v", path, want, remote[name])
		}
	}
	wantArgs := []string{"default", "arg with spaces", "", root, data, "${APC_UNKNOWN}", "$APC_VALUE", "${PLUGIN_ROOT_SUFFIX}"}

	cases := []struct {
		id    string
		holds func() error
	}{
		{"skills.discovery.immediate-children", func() error {
			if err := skill(c.core, "conformance-nested", ""); err == nil {
				return fmt.Errorf("the nested one is advertised")
			}
			if err := skill(c.core, "conformance-alpha", "APC_ALPHA_V1"); err != nil {
				return err
			}
			return skill(c.core, "conformance-beta", "APC_BETA_V1")
		}},
		{"mcp.stdio.tool-availability.cwd-omitted", answers("default")},
		{"mcp.stdio.cwd.omitted", cwd("default", root)},
		{"mcp.stdio.tool-availability.cwd-plugin-relative", answers("relative")},
		{"mcp.stdio.cwd.plugin-relative", cwd("relative", filepath.Join(root, "probe-workdir"))},
		{"mcp.stdio.tool-availability.cwd-plugin-root", answers("root")},
		{"mcp.stdio.cwd.plugin-root", cwd("root", filepath.Join(root, "probe-workdir"))},
		{"mcp.stdio.tool-availability.cwd-plugin-data", answers("data")},
		{"mcp.stdio.cwd.plugin-data", cwd("data", data)},
		{"mcp.stdio.cwd.invalid-form", absent("recovery-cwd-invalid-form")},
		{"mcp.stdio.cwd.plugin-relative-escape", absent("recovery-cwd-escape")},
		{"mcp.stdio.cwd.plugin-data-escape", absent("recovery-cwd-data-escape")},
		{"filesystem.containment.command-symlink-escape", link("escape-command-posix", absent("recovery-command-symlink-posix"))},
		{"filesystem.containment.cwd-symlink-escape", link("escape-link", absent("recovery-cwd-symlink-escape"))},
		{"mcp.stdio.config.unknown-field", absent("recovery-unknown-field")},
		{"mcp.config.missing-type", absent("recovery-missing-type")},
		{"mcp.config.legacy-http-type", absent("recovery-http-type", "http")},
		{"mcp.stdio.env.reserved-plugin-root", absent("recovery-env-plugin-root")},
		{"mcp.stdio.env.reserved-plugin-data", absent("recovery-env-plugin-data")},
		{"mcp.stdio.env.plugin-root", env("default", "PLUGIN_ROOT", root)},
		{"mcp.stdio.env.plugin-data-absolute", env("default", "PLUGIN_DATA", data)},
		{"filesystem.data.writable", func() error { return check(started["default"].Write == "", "%s", started["default"].Write) }},
		{"filesystem.data.distinct-across-plugins", func() error {
			return check(recovered.Env["PLUGIN_DATA"] != "" && recovered.Env["PLUGIN_DATA"] != started["default"].Env["PLUGIN_DATA"], "both have %q", data)
		}},
		{"filesystem.data.consistent-within-plugin", env("data", "PLUGIN_DATA", started["default"].Env["PLUGIN_DATA"])},
		{"mcp.stdio.env.configured-value", env("default", "APC_VALUE", "fixture value with spaces")},
		{"mcp.stdio.command.single-token", func() error {
			want := []string{"command-token", "arg with spaces", "", "literal-value"}
			return check(slices.Equal(started["command-token-posix"].Args, want), "%q, %v", started["command-token-posix"].Args, answered["command-token-posix"])
		}},
		{"mcp.stdio.args.preservation-and-expansion", func() error {
			return check(slices.Equal(started["default"].Args, wantArgs), "%q", started["default"].Args)
		}},
		{"mcp.stdio.env.expansion", func() error {
			if err := env("default", "APC_EXPANSION", root+"|"+data+"|"+root)(); err != nil {
				return err
			}
			return env("default", "APC_LITERAL", "${APC_UNKNOWN}|$APC_VALUE|${PLUGIN_ROOT_SUFFIX}")()
		}},
		{"mcp.streamable-http.tool-availability", answers("http")},
		{"mcp.streamable-http.url.non-loopback-http", absent("recovery-http-non-loopback", "http")},
		{"mcp.streamable-http.url.relative", absent("recovery-http-relative-url", "http")},
		{"mcp.streamable-http.url.fragment", absent("recovery-http-fragment", "http")},
		{"mcp.streamable-http.url.userinfo", absent("recovery-http-userinfo", "http")},
		{"mcp.streamable-http.headers.duplicate-names", absent("recovery-http-duplicate-headers", "http")},
		{"mcp.streamable-http.headers.invalid-name", absent("recovery-http-header-name", "http")},
		{"mcp.streamable-http.headers.invalid-value", absent("recovery-http-header-value", "http")},
		{"mcp.streamable-http.url.literal-route-and-query", query("http", "/conformance/mcp", "value=$APC_HTTP_VALUE")},
		{"mcp.streamable-http.headers.cross-origin-redirect", notAway("http-redirect")},
		{"mcp.streamable-http.headers.literal-value", func() error {
			if err := every("http", "POST", "x-apc-fixture", literal)(); err != nil {
				return err
			}
			for _, r := range remote["http"] {
				if r.header.Get("Accept") == "text/plain" {
					return fmt.Errorf("the configured Accept was sent")
				}
			}
			return nil
		}},
		{"mcp.sse.tool-availability", answers("sse")},
		{"mcp.sse.url.literal-route-and-query", query("sse", "/conformance/sse", "value=$APC_SSE_VALUE")},
		{"mcp.sse.headers.literal-value", every("sse", "GET", "x-apc-fixture", literal)},
		{"mcp.sse.headers.literal-post-value", every("sse", "POST", "x-apc-fixture", literal)},
		{"mcp.sse.headers.generated-precedence", every("sse-header-precedence", "GET", "Accept", accept(remote["sse"]))},
		{"mcp.sse.headers.cross-origin-redirect", notAway("sse-redirect")},
		{"mcp.sse.headers.cross-origin-endpoint", notAway("sse-endpoint-origin")},
		{"mcp.sse.url.non-loopback-http", absent("recovery-sse-non-loopback", "sse")},
		{"mcp.sse.url.relative", absent("recovery-sse-relative-url", "sse")},
		{"mcp.sse.url.fragment", absent("recovery-sse-fragment", "sse")},
		{"mcp.sse.url.userinfo", absent("recovery-sse-userinfo", "sse")},
		{"mcp.sse.headers.duplicate-names", absent("recovery-sse-duplicate-headers", "sse")},
		{"mcp.sse.headers.invalid-name", absent("recovery-sse-header-name", "sse")},
		{"mcp.sse.headers.invalid-value", absent("recovery-sse-header-value", "sse")},
		{"skills.recovery.valid-skill-available", func() error { return skill(c.recovery, "conformance-recovery-valid", "APC_RECOVERY_VALID_V1") }},
		{"mcp.stdio.recovery.valid-server-available", answers("recovery-valid")},
		{"skills.recovery.invalid-mcp-document", func() error { return skill(c.invalid, "conformance-invalid-mcp-valid", "APC_INVALID_MCP_VALID_V1") }},
	}
	if len(cases) != 56 {
		t.Errorf("%d cases, and the suite has 56", len(cases))
	}
	for i, test := range cases {
		t.Run(fmt.Sprintf("%02d %s", i+1, test.id), func(t *testing.T) {
			if err := test.holds(); err != nil {
				t.Fatal(err)
			}
			t.Log("pass")
		})
	}
}

// accept is the Accept of the first GET, which is there.
func accept(requests []seen) string {
	for _, r := range requests {
		if r.method == http.MethodGet {
			return r.header.Get("Accept")
		}
	}
	return "none was seen"
}
