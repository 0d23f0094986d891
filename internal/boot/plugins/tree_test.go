package plugins

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"dsh/internal/boot/environ"
	"dsh/internal/boot/eval"
	"dsh/internal/boot/host"
	"dsh/internal/boot/plugins/agent"
	"dsh/internal/boot/plugins/hmr"
	"dsh/internal/boot/plugins/webruntime"
	"dsh/internal/boot/plugins/webserver"
	"dsh/internal/boot/slot"
	"dsh/internal/compose"
	"dsh/internal/fault"
)

// running is a tree whose rows run with the plugins of this program.
type running struct {
	*host.Host
	home   string
	ready  chan struct{}
	said   chan string
	opened chan string
	exits  chan int
	probes map[string]any // by the row's id: the service that row found
}

// probe is a plugin that finds the service named by its row's id.
const probe = "probe"

// run mounts rows, written as the rows of an insert. environment are
// "NAME=value".
func run(t *testing.T, rows string, args []string, environment ...string) *running {
	t.Helper()
	patches, err := compose.ParsePatches(compose.Source{File: "test", Dir: "/somewhere", Kind: compose.ProfileLayer}, []byte("- insert:\n"+rows))
	if err != nil {
		t.Fatal(err)
	}
	tree := compose.Apply([]compose.Layer{{Label: "test", Patches: patches}}, func(string) *compose.PathRule { return nil })
	return mount(t, tree, args, environment...)
}

// mount mounts a tree.
func mount(t *testing.T, tree *compose.Tree, args []string, environment ...string) *running {
	t.Helper()
	r := &running{home: t.TempDir(), ready: make(chan struct{}), said: make(chan string, 10), opened: make(chan string, 10), exits: make(chan int, 10), probes: map[string]any{}}
	evaluator := eval.New(eval.Options{Environ: environment, Home: r.home, Dir: "/started/here"})
	t.Cleanup(func() {
		if err := evaluator.Close(); err != nil {
			t.Error(err)
		}
	})
	snapshot, _, err := environ.Load(environment, t.TempDir(), t.TempDir(), os.ReadFile)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = host.New(host.Options{
		Registry: func(name string) (host.Plugin, bool) {
			switch name {
			case webruntime.Name:
				return webruntime.New(func(address, dir string) error {
					r.opened <- dir + " " + address
					return nil
				}), true
			case hmr.Name:
				return host.Plugin{Start: func(context.Context, *host.Row) error { return nil }}, true
			case probe:
				return host.Plugin{Start: func(_ context.Context, row *host.Row) error {
					r.probes[row.ID()], _ = host.Service[any](row, row.ID())
					return nil
				}}, true
			}
			return Lookup(name)
		},
		Evaluator: evaluator,
		Slots: map[string]any{
			slot.CommandLine: slot.NewArgs(args),
			slot.Exit:        slot.ExitFunc(func(code int) { r.exits <- code }),
			slot.Environment: snapshot,
			slot.Ready:       slot.NewReadiness(r.ready),
			slot.HomePath:    slot.HomePathFunc(func(parts ...string) string { return filepath.Join(append([]string{r.home}, parts...)...) }),
			slot.Profile:     &slot.ProfileContext{Name: "mine", Dir: r.home, HomeDir: r.home, Cwd: "/started/here"},
			slot.Host:        slot.Rows(rowsOf{r}),
			slot.Say:         slot.SayFunc(func(line string) { r.said <- line }),
			slot.Keeping:     slot.NewKept(),
		},
	})
	if err := r.Apply(t.Context(), tree.Rows); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if err := r.Settled(t.Context()); err != nil {
		t.Fatal(err)
	}
	return r
}

// rowsOf is the host for rows, which are there before it.
type rowsOf struct{ *running }

func (r rowsOf) Rows() []host.Status                            { return r.Host.Rows() }
func (r rowsOf) Log(path string) []host.Line                    { return r.Host.Log(path) }
func (r rowsOf) Restart(ctx context.Context, path string) error { return r.Host.Restart(ctx, path) }
func (r rowsOf) Subscribe(func(host.Event)) (cancel func())     { return func() {} }

func (r *running) status(t *testing.T, id string) host.Status {
	t.Helper()
	rows := r.Rows()
	at := slices.IndexFunc(rows, func(s host.Status) bool { return s.ID == id })
	if at < 0 {
		t.Fatalf("no row %s in %+v", id, rows)
	}
	return rows[at]
}

func (r *running) log(path string) string {
	var lines []string
	for _, line := range r.Log(path) {
		lines = append(lines, line.Text)
	}
	return strings.Join(lines, "\n")
}

func receive[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(time.Minute):
		t.Fatal("nothing comes")
		panic("unreachable")
	}
}

const webRows = `
  - {id: web-startup, name: '@deepseek-ai/dsh-web-app/startup'}
  - {id: frontend-static, name: '@deepseek-ai/dsh-host-frontend-static'}
  - {id: plugin-inventory, name: '@deepseek-ai/dsh-host-plugin-inventory'}
  - {id: web-runtime, name: '@deepseek-ai/dsh-web-app', inject: [webStartup], config: {trustedHosts: [named.example]}}
  - {id: webserver, name: '@deepseek-ai/dsh-host-webserver', inject: [webStartup], config: {host: 127.0.0.1, port: 0}}
`

// TestWebTree starts all rows of the web page but the API, and looks at it as
// a browser does.
func TestWebTree(t *testing.T) {
	r := run(t, webRows, []string{"--port", "0"}, "DISPLAY=:0")
	for _, s := range r.Rows() {
		if s.State != host.Active {
			t.Errorf("%s is %s: %v", s.Path, s.State, s.Err)
		}
	}
	if len(r.said) != 0 || len(r.opened) != 0 {
		t.Error("the address is told before the tree has settled")
	}
	close(r.ready)
	address := receive(t, r.said)
	dir, once, _ := strings.Cut(receive(t, r.opened), " ")
	if !strings.HasPrefix(address, "http://127.0.0.1:") || !strings.Contains(address, "/?token=") || dir != "/started/here" || once == address {
		t.Errorf("said %s, opened %s in %s", address, once, dir)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	defer browser.CloseIdleConnections()
	key, opened := "", ""
	get := func(address string, want int) string {
		t.Helper()
		req, _ := http.NewRequestWithContext(t.Context(), "GET", address, nil)
		if key != "" {
			req.Header.Set("Authorization", "Bearer "+key)
		}
		if strings.HasSuffix(req.URL.Host, ".example") {
			req.Host = req.URL.Host
			req.URL.Host, _, _ = strings.Cut(strings.TrimPrefix(once, "http://"), "/")
		}
		resp, err := browser.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if found, ok := strings.CutPrefix(resp.Request.URL.Fragment, "key="); ok {
			opened = found
		}
		text, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != want {
			t.Errorf("%s: %d %v", address, resp.StatusCode, err)
		}
		return string(text)
	}
	base, _, _ := strings.Cut(address, "/?")
	get(base+"/", 401)
	if page := get(once, 200); !strings.Contains(page, "<html") {
		t.Errorf("the page is %s", page)
	}
	key = opened
	if page := get(base+"/", 200); !strings.Contains(page, "<html") {
		t.Errorf("the page is %s", page)
	}
	get(base+"/api/plugin-inventory", 200)
	key = ""
	get(base+"/", 200) // by the cookie, which does not open data
	get(base+"/api/plugin-inventory", 401)
	get(once, 401)
	// A trusted name is let in as far as to be asked for the token, which the
	// browser does not have for it. Others are not.
	get("http://named.example/", 401)
	get("http://unnamed.example/", 403)
	get(base+"/none.js", 404)
	get(base+"/%2e%2e/%2e%2e/etc/passwd", 403)
	key = opened
	var inventory struct {
		Plugins []struct{ ID, Plugin, State string }
	}
	if err := json.Unmarshal([]byte(get(base+"/api/plugin-inventory", 200)), &inventory); err != nil || len(inventory.Plugins) != 5 || inventory.Plugins[4].State != "active" {
		t.Errorf("got %+v, %v", inventory, err)
	}
}

// TestShippedWebTree starts the tree of the shipped web profile with its
// expressions.
func TestShippedWebTree(t *testing.T) {
	tree := treeOf(t, "", "@deepseek-ai/dsh-base", "@deepseek-ai/dsh-web-app")
	r := mount(t, tree, strings.Fields("--port 0 --no-open --trusted-host named.example"), "DISPLAY=:0", "PATH=/bin")
	for _, s := range r.Rows() {
		if s.State != host.Active {
			t.Errorf("%s is %s: %v %s", s.Path, s.State, s.Err, s.Why)
		}
	}
	close(r.ready)
	address := receive(t, r.said)
	base, token, _ := strings.Cut(address, "/?token=")
	for hostname, want := range map[string]int{"named.example": 200, "unnamed.example": 403} {
		req, _ := http.NewRequestWithContext(t.Context(), "GET", base+"/", nil)
		req.Host = hostname
		req.Header.Set("Authorization", "Bearer "+token)
		req.Close = true
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: %s", hostname, resp.Status)
		}
	}
	if strings.Contains(base, ":3080") || len(r.opened) != 0 {
		t.Errorf("the flags do not count: %s, opened %d", base, len(r.opened))
	}
}

func TestBrowserIsNotOpened(t *testing.T) {
	for name, c := range map[string]struct {
		config      string
		environment []string
		why         string
	}{
		"over SSH":  {"{}", []string{"DISPLAY=:0", "SSH_TTY=/dev/pts/1"}, "no browser is opened: dsh was started over SSH (SSH_TTY is set)"},
		"forwarded": {"{}", []string{"DISPLAY=:0", "SSH_CONNECTION=1 2 3 4"}, "SSH_CONNECTION"},
		"told so":   {"{openBrowser: false}", []string{"DISPLAY=:0"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := run(t, strings.ReplaceAll(webRows, "{trustedHosts: [named.example]}", c.config), nil, c.environment...)
			close(r.ready)
			receive(t, r.said)
			if err := r.Stop(t.Context()); err != nil {
				t.Error(err)
			}
			if len(r.opened) != 0 || !strings.Contains(r.log("web-runtime"), c.why) {
				t.Errorf("opened %d, log %s", len(r.opened), r.log("web-runtime"))
			}
		})
	}
}

func TestAddressIsNotPrinted(t *testing.T) {
	r := run(t, strings.ReplaceAll(webRows, "{trustedHosts: [named.example]}", "{printUrl: false}"), nil, "WAYLAND_DISPLAY=x")
	close(r.ready)
	receive(t, r.opened)
	if len(r.said) != 0 {
		t.Errorf("said %s", <-r.said)
	}
}

func TestPortInUse(t *testing.T) {
	const probed = "  - {id: webserver, name: probe, inject: [webserver]}\n"
	r := run(t, probed+"  - {id: one, name: '@deepseek-ai/dsh-host-webserver', config: {host: 127.0.0.1, port: 0}}\n", nil)
	server, ok := r.probes["webserver"].(webserver.Server)
	if !ok {
		t.Fatalf("got %+v", r.Rows())
	}
	port := server.Address()[strings.LastIndex(server.Address(), ":")+1:]
	second := run(t, "  - {id: two, name: '@deepseek-ai/dsh-host-webserver', config: {host: 127.0.0.1, port: "+port+"}}\n", nil)
	err := second.status(t, "two").Err
	if err == nil || !strings.Contains(err.Error(), "listen on 127.0.0.1:"+port+": another program has this port") ||
		fault.Hint(err) != "dsh --set two.port=0 --profile mine lets the system choose a free port" || fault.ClassOf(err) != fault.Environment {
		t.Errorf("got %v (%s)", err, fault.Hint(err))
	}
}

func TestStartupRowThatCannotGoOn(t *testing.T) {
	r := run(t, "  - {id: s, name: '@deepseek-ai/dsh-web-app/startup'}\n", []string{"--port", "x"})
	if s := r.status(t, "s"); receive(t, r.exits) != 1 || s.State != host.Failed || !strings.Contains(s.Err.Error(), "error: option '--port <n>'") {
		t.Errorf("got %+v", s)
	}
	r = run(t, "  - {id: s, name: '@deepseek-ai/dsh-web-app/startup', config: {port: 1}}\n", nil)
	if s := r.status(t, "s"); s.State != host.Failed || !strings.Contains(s.Err.Error(), "port") {
		t.Errorf("got %+v", s)
	}
}

// TestAgentRows has the rows of an agent find their keys, refuse what is wrong
// and show no key.
func TestAgentRows(t *testing.T) {
	const secret = "sk-shown-nowhere"
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const llm, persistence, compaction = "@deepseek-ai/dsh-llm", "@deepseek-ai/dsh-session-persistence-jsonl", "@deepseek-ai/dsh-compaction-basic"
	for name, c := range map[string]struct{ plugin, config, problem, log string }{
		"environment":      {llm, "{provider: p, model: m, api_key_env: MY_KEY}", "", "the API key is from the environment"},
		"file":             {llm, "{provider: p, model: m, api_key_env: OTHER, api_key_file: " + key + "}", "", "the API key is from " + key},
		"no key":           {llm, "{provider: p, model: m, api_key_env: OTHER}", "", "OTHER is neither in the environment nor a credential"},
		"no way to a key":  {llm, "{provider: p, model: m}", "", "neither api_key_env nor api_key_file is set"},
		"no file":          {llm, "{provider: p, model: m, api_key_file: " + key + "-none}", "find the API key: read " + key + "-none", ""},
		"no provider":      {llm, "{model: m}", "provider is missing", ""},
		"no model":         {llm, "{provider: p}", "model is missing", ""},
		"key as name":      {llm, "{provider: p, model: m, api_key_env: " + secret + "}", "api_key_env is no name of a variable", ""},
		"password":         {llm, "{provider: p, model: m, base_url: 'https://user:" + secret + "@host'}", "base_url has a user or password in it", ""},
		"no address":       {llm, "{provider: p, model: m, base_url: 'file:///x'}", "base_url is no address", ""},
		"hot":              {llm, "{provider: p, model: m, temperature: 3}", "temperature is from 0 to 2", ""},
		"unknown key":      {llm, "{provider: p, model: m, temprature: 1}", "temprature", ""},
		"session":          {"@deepseek-ai/dsh-session", "{}", "", "this host runs no agent"},
		"persistence":      {persistence, "{root: /somewhere}", "", "this host runs no agent"},
		"no root":          {persistence, "{}", "root is missing", ""},
		"compression":      {persistence, "{root: /somewhere, compression: gzip}", `compression "gzip" is neither none nor zstd`, ""},
		"compaction":       {compaction, "{auto: true, thresholdRatio: 0.8, retainRatio: 0.16}", "", "this host runs no agent"},
		"both":             {compaction, "{retainRatio: 0.1, retainTokens: 5}", "do not go together", ""},
		"nothing left":     {compaction, "{thresholdRatio: 0.5, retainRatio: 0.5}", "retainRatio is less than thresholdRatio", ""},
		"own model":        {compaction, "{provider: {model: m, api_key_file: " + key + "}}", "", "the API key is from " + key},
		"own model, wrong": {compaction, "{provider: {model: m, api_key_file: " + key + "-none}}", "provider: find the API key", ""},
		"policy":           {compaction, "{modelPolicies: [{provider: p, model: m}, {model: m}]}", "modelPolicies[1]: provider and model", ""},
		"policy, wrong":    {compaction, "{modelPolicies: [{provider: p, model: m, thresholdRatio: 2}]}", "modelPolicies[0]: thresholdRatio", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := run(t, "  - {id: row, name: '"+c.plugin+"', config: "+c.config+"}\n", nil, "MY_KEY="+secret)
			s := r.status(t, "row")
			if c.problem == "" && (s.State != host.Active || !strings.Contains(r.log("row"), c.log)) {
				t.Errorf("%s: %v, log %s", s.State, s.Err, r.log("row"))
			}
			if c.problem != "" && (s.State != host.Failed || !strings.Contains(s.Err.Error(), c.problem)) {
				t.Errorf("%s: %v", s.State, s.Err)
			}
			if shown := fmt.Sprintf("%v %s", s.Err, r.log("row")); strings.Contains(shown, secret) {
				t.Errorf("shows the key: %s", shown)
			}
		})
	}
}

func TestModelTakesKeysOfCredentials(t *testing.T) {
	file := filepath.Join(t.TempDir(), "credentials.yaml")
	if err := os.WriteFile(file, []byte("MY_KEY: sk-1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := run(t, `
  - {id: llm, name: probe, inject: [llm]}
  - {id: model, name: '@deepseek-ai/dsh-llm', config: {provider: p, model: m, api_key_env: MY_KEY, base_url: 'https://host/v1'}}
  - {id: credentials, name: '@deepseek-ai/dsh-credentials-local', config: {path: `+file+`, watch: false}}
`, nil)
	m, ok := r.probes["llm"].(*agent.Model)
	if !ok {
		t.Fatalf("got %v: %+v", r.probes, r.Rows())
	}
	key, ok, err := m.Key()
	if err != nil || !ok || key.Key.Reveal() != "sk-1" || key.From != file {
		t.Errorf("got %v %v %v", key, ok, err)
	}
	if got := fmt.Sprint(m.Expression()); got != "map[baseUrl:https://host/v1 model:m provider:p]" {
		t.Errorf("got %s", got)
	}
	if m.Timeout() != 2*time.Minute {
		t.Errorf("got %s", m.Timeout())
	}
}
