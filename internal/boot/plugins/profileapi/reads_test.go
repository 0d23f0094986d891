package profileapi

import (
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the answers of now into testdata")

// varying is what differs from run to run in answers.
var varying = regexp.MustCompile(`"(saved|changed|published|started|ended)": "20[^"]*"|"(files|nodeModules|state|bytes)": [0-9]+`)

// golden holds an answer against a file in testdata.
func (w *world) golden(file string, answer any) {
	w.Helper()
	text := varying.ReplaceAllStringFunc(w.normal(answer), func(found string) string {
		key, value, _ := strings.Cut(found, ": ")
		if value[0] == '"' {
			return key + `: "2026-12-01T12:00:00Z"`
		}
		return key + ": 1000"
	})
	file = filepath.Join("testdata", file+".json")
	if *update {
		must(w.T, os.WriteFile(file, []byte(text), 0o644))
	}
	want, err := os.ReadFile(file)
	must(w.T, err)
	if diff := cmp.Diff(string(want), text); diff != "" {
		w.Errorf("%s: %s", file, diff)
	}
}

// TestAnswers holds answers against those in testdata, from which the examples of
// docs/web-api.md are.
func TestAnswers(t *testing.T) {
	w := newWorld(t, true)
	for path, file := range map[string]string{
		"state": "state", "tree": "tree", "layers": "layers", "changes?layer=2": "changes", "findings": "findings", "plugins": "plugins",
		"plugins/outdated": "outdated", "generations": "generations", "patch": "patch", "profiles": "profiles", "profiles/demo": "profile",
		"rows/hello/log": "log", "skills": "skills", "servers": "servers",
	} {
		w.golden(file, w.get(path))
	}
	text := "- insert:\n    - {id: hello, name: x}\n"
	w.golden("check", w.post("patch/check", map[string]any{"text": text}, http.StatusOK))
	w.golden("refused", w.post("patch", map[string]any{"text": text, "revision": w.revision()}, http.StatusUnprocessableEntity))
	w.golden("conflict", w.post("patch", map[string]any{"text": text, "revision": "sha256-0"}, http.StatusConflict))
	w.golden("saved", w.post("patch", map[string]any{"text": "[]\n", "revision": w.revision()}, http.StatusOK))
	w.golden("operation", w.run("plugins/add", map[string]any{"specs": []string{"is-number@7"}}))
}

func TestSecretsAreMasked(t *testing.T) {
	w := newWorld(t, true)
	for _, path := range []string{"tree", "changes?layer=2", "layers", "findings", "rows/hello/log", "state"} {
		w.get(path) // looks for the secret
	}
	if got := at(w.get("rows/hello/log"), "lines.0.text"); got != "fetched http://127.0.0.1/x" {
		t.Errorf("got %v", got)
	}
}

// TestHostile sends what no page sends.
func TestHostile(t *testing.T) {
	w := newWorld(t, true)
	for _, c := range []struct {
		method, path, body string
		header             []string
		want               int
		class              string
	}{
		{"GET", "", "", nil, 404, "not-found"},
		{"GET", "nope", "", nil, 404, "not-found"},
		{"GET", "state/", "", nil, 404, "not-found"},
		{"GET", "rows/../state", "", nil, 404, "not-found"},
		{"GET", "rows/nope/log", "", nil, 404, "not-found"},
		{"GET", "rows/a%2Fb/log", "", nil, 404, "not-found"},
		{"GET", "profiles/%2e%2e%2fx", "", nil, 404, "not-found"},
		{"GET", "profiles/other", "", nil, 404, "not-found"},
		{"GET", "changes", "", nil, 400, "error"},
		{"GET", "changes?layer=99", "", nil, 404, "not-found"},
		{"GET", "operations/op-9", "", nil, 404, "not-found"},
		{"DELETE", "patch", "", nil, 405, "error"},
		{"POST", "state", "{}", nil, 405, "error"},
		{"GET", "plugins/add", "", nil, 405, "error"},
		{"POST", "plugins/install", "{}", []string{"X-Dsh", ""}, 403, "policy"},
		{"POST", "plugins/install", "{}", []string{"Content-Type", "text/plain"}, 415, "error"},
		{"POST", "plugins/install", "{}", []string{"Content-Type", "application/x-www-form-urlencoded"}, 415, "error"},
		{"POST", "plugins/install", "[]", nil, 400, "error"},
		{"POST", "plugins/install", `{"force":"yes"}`, nil, 400, "error"},
		{"POST", "plugins/install", `{"forse":true}`, nil, 400, "error"},
		{"POST", "plugins/install", `{} {}`, nil, 400, "error"},
		{"POST", "plugins/install", `{`, nil, 400, "error"},
		{"POST", "plugins/add", `{}`, nil, 400, "error"},
		{"POST", "plugins/add", `{"specs":[""]}`, nil, 400, "error"},
		{"POST", "plugins/add", `{"specs":["--global"]}`, nil, 400, "error"},
		{"POST", "plugins/add", `{"specs":["x@not a range@@"]}`, nil, 422, "error"},
		{"POST", "plugins/add", `{"specs":[` + strings.Repeat(`"x",`, maxNamed) + `"x"]}`, nil, 400, "error"},
		{"POST", "plugins/remove", `{"names":[]}`, nil, 400, "error"},
		{"POST", "plugins/approve", `{"packages":[{"spec":"x"}]}`, nil, 400, "error"},
		{"POST", "generations/rollback", `{"id":-1}`, nil, 400, "error"},
		{"POST", "patch", `{"text":"x"}`, nil, 400, "error"},
		{"POST", "patch", `{"revision":"none"}`, nil, 400, "error"},
		{"POST", "patch/check", `{"text":"` + strings.Repeat("x", 1<<20+1) + `"}`, nil, 422, "composition"},
		{"POST", "patch/check", strings.Repeat(" ", maxBody+1), nil, 413, "error"},
		{"POST", "rows/nope/restart", "{}", nil, 404, "not-found"},
		{"POST", "operations/op-9/cancel", "{}", nil, 404, "not-found"},
	} {
		code, answer := w.ask(c.method, c.path, c.body, c.header...)
		if code != c.want || at(answer, "error.class") != c.class || at(answer, "error.message") == "" {
			t.Errorf("%s %s %.40s: %d %v, want %d %s", c.method, c.path, c.body, code, answer, c.want, c.class)
		}
	}
	if w.read("cordis.patch.yml") != patchText || w.api.operations.last() != nil {
		t.Error("something happened")
	}
}

func TestReadOnly(t *testing.T) {
	w := newWorld(t, false)
	w.api.id = "profile.api"
	answer := w.post("patch", map[string]any{}, http.StatusForbidden)
	if hint := "dsh config set '\"profile.api\".writable' true --profile demo allows changes"; at(answer, "error.hint") != hint {
		t.Errorf("hint %v", answer)
	}
	for _, path := range []string{
		"patch", "plugins/add", "plugins/update", "plugins/remove", "plugins/install", "plugins/approve", "generations/rollback", "rows/hello/restart", "servers/x/call", "operations/op-1/cancel",
	} {
		if answer := w.post(path, map[string]any{}, http.StatusForbidden); at(answer, "error.class") != "read-only" {
			t.Errorf("%s: %v", path, answer)
		}
	}
	w.post("patch/check", map[string]any{"text": "[]"}, http.StatusOK)
	if at(w.get("patch"), "writable") != false || at(w.get("state"), "profile.writable") != false {
		t.Error("it is not told")
	}
}

// TestNoProfile is a host that runs without a profile.
func TestNoProfile(t *testing.T) {
	w := newWorld(t, true)
	w.api.profile, w.api.live = nil, nil
	if got := w.get("state"); got["profile"] != nil || got["reload"] != nil || got["live"] != false {
		t.Errorf("got %v", got)
	}
	for _, path := range []string{"tree", "layers", "patch", "plugins", "profiles", "profiles/demo", "generations", "findings", "changes?layer=1"} {
		if code, answer := w.ask("GET", path, ""); code != http.StatusNotFound {
			t.Errorf("%s: %d %v", path, code, answer)
		}
	}
	w.post("plugins/install", map[string]any{}, http.StatusNotFound)
	w.post("patch/check", map[string]any{"text": ""}, http.StatusNotFound)
}

func TestRestart(t *testing.T) {
	w := newWorld(t, true)
	w.post("rows/hello/restart", struct{}{}, http.StatusAccepted)
	if got := <-w.rows.restarted; got != "hello" {
		t.Errorf("restarted %q", got)
	}
}
