package settings

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dsh/internal/boot/host"
	"dsh/internal/boot/slot"
	"dsh/internal/compose"
)

// write makes a file as editors do: beside it, then renamed.
func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+"~", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+"~", path); err != nil {
		t.Fatal(err)
	}
}

func shown(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestRead(t *testing.T) {
	for _, c := range []struct{ name, text, want, problem string }{
		{"a.yaml", "", `{}`, ""},
		{"a.yaml", "# nothing\n\n  # here\n", `{}`, ""},
		{"a.yaml", "\ufeffa: 1\n", `{"a":1}`, ""},
		{"a.yaml", "null\n", `{}`, ""},
		{"a.yaml", "b: {c: [x, true, null]}\na: 0.5\n", `{"b":{"c":["x",true,null]},"a":0.5}`, ""},
		{"a.yaml", "- 1\n", "", "settings are a mapping"},
		{"a.yaml", "word\n", "", "settings are a mapping"},
		{"a.yaml", "a: 1\na: 2\n", "", "a.yaml:2"},
		{"a.yaml", "a: [\n", "", "a.yaml:"},
		{"a.yaml", "a: 1\n---\nb: 2\n", "", "a.yaml:"},
		{"a.yaml", "a:\n  - {b: !!js process.env.X}\n", "", "a.0.b is an expression"},
		{"a.yaml", "a: &a\n  b: *a\n", "", "a.yaml"},
		{"a.json", "", `{}`, ""},
		{"a.JSON", "{\n\t\"b\": {\"c\": [\"x\", true, null, []]},\n\t\"a\": 0.5\n}\n", `{"b":{"c":["x",true,null,[]]},"a":0.5}`, ""},
		{"a.json", "{\"a\": 1}\n{}", "", "a.json:2"},
		{"a.json", "{\n\"a\": }", "", "a.json:2"},
		{"a.json", "[]", "", "settings are an object"},
		{"a.json", "a: 1", "", "a.json:1"},
	} {
		path := filepath.Join(t.TempDir(), c.name)
		write(t, path, c.text)
		got, err := read(path)
		if c.problem != "" {
			if err == nil || !strings.Contains(err.Error(), c.problem) {
				t.Errorf("%s %q: %v", c.name, c.text, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s %q: %v", c.name, c.text, err)
		} else if shown(t, got) != c.want {
			t.Errorf("%s %q: %s", c.name, c.text, shown(t, got))
		}
	}
	dir := t.TempDir()
	if got, err := read(filepath.Join(dir, "nothing.yaml")); err != nil || got.Len() != 0 {
		t.Errorf("a file that is not there: %v, %v", got, err)
	}
	if _, err := read(dir); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Errorf("a folder: %v", err)
	}
	large := filepath.Join(dir, "large.yaml")
	write(t, large, strings.Repeat("#", maxSize+1))
	if _, err := read(large); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("a large file: %v", err)
	}
}

// started runs a settings row with that config.
func started(t *testing.T, home, config string) (*host.Host, *Settings) {
	t.Helper()
	var got *Settings
	h := host.New(host.Options{
		Registry: func(name string) (host.Plugin, bool) {
			if name == Name {
				return Plugin, true
			}
			return host.Plugin{Inject: []host.Need{{Service: Service}}, Start: func(_ context.Context, r *host.Row) error {
				got, _ = host.Service[*Settings](r, Service)
				return nil
			}}, name == "reader"
		},
		Slots: map[string]any{slot.HomePath: slot.HomePathFunc(func(parts ...string) string { return filepath.Join(append([]string{home}, parts...)...) })},
	})
	patches, err := compose.ParsePatches(compose.Source{File: "test", Dir: home}, []byte("- insert:\n  - {id: settings, name: '"+Name+"', config: "+config+"}\n  - {id: reader, name: reader}\n"))
	if err != nil {
		t.Fatal(err)
	}
	tree := compose.Apply([]compose.Layer{{Label: "test", Patches: patches}}, func(string) *compose.PathRule { return nil })
	if err := h.Apply(t.Context(), tree.Rows); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if err := h.Settled(t.Context()); err != nil {
		t.Fatal(err)
	}
	return h, got
}

func TestWhichFile(t *testing.T) {
	home, other := t.TempDir(), t.TempDir()
	write(t, filepath.Join(home, "settings.yaml"), "from: home\n")
	write(t, filepath.Join(other, "settings.yaml"), "from: other\n")
	write(t, filepath.Join(other, "mine.json"), `{"from": "path"}`)
	for config, want := range map[string]string{
		"{}":                         "home",
		"{dshHome: '" + other + "'}": "other",
		"{path: '" + other + "/mine.json', dshHome: /nowhere}": "path",
	} {
		if _, s := started(t, home, config); s == nil {
			t.Errorf("%s: no settings", config)
		} else if got, _ := s.Get("from"); got != want {
			t.Errorf("%s: from %v", config, got)
		}
	}
}

func TestBadFileAtTheStartFailsTheRow(t *testing.T) {
	home := t.TempDir()
	write(t, filepath.Join(home, "settings.yaml"), "a: [\n")
	h, s := started(t, home, "{}")
	if rows := h.Rows(); s != nil || rows[0].State != host.Failed || rows[0].Err == nil || !strings.Contains(rows[0].Err.Error(), "settings.yaml:") {
		t.Errorf("got %+v", rows[0])
	}
}

func TestConfigIsChecked(t *testing.T) {
	h, _ := started(t, t.TempDir(), "{watches: true}")
	if rows := h.Rows(); rows[0].State != host.Failed || !strings.Contains(rows[0].Err.Error(), "watches") {
		t.Errorf("got %+v", rows[0])
	}
}

func TestFollowing(t *testing.T) {
	home := t.TempDir()
	path := filepath.Join(home, "settings.yaml")
	write(t, path, "theme: {name: dark}\n")
	_, s := started(t, home, "{debounceMs: 1}")
	heard := make(chan string, 10)
	cancel := s.Watch(func(values *compose.Map) { heard <- shown(t, values) })
	expect := func(want string) {
		t.Helper()
		select {
		case got := <-heard:
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatal(diff)
			}
		case <-time.After(time.Minute):
			t.Fatal("nothing was heard of the change")
		}
	}
	write(t, path, "theme: {name: light}\n")
	expect(`{"theme":{"name":"light"}}`)
	if name, ok := s.Get("theme", "name"); !ok || name != "light" {
		t.Errorf("got %v", name)
	}
	for _, keys := range [][]string{{"theme", "x"}, {"theme", "name", "x"}, {"x"}} {
		if v, ok := s.Get(keys...); ok {
			t.Errorf("%v is %v", keys, v)
		}
	}
	// The good values stay while the file is wrong.
	write(t, path, "theme: [\n")
	eventually(t, func() bool { return s.Problem() != nil })
	if got := shown(t, s.All()); got != `{"theme":{"name":"light"}}` || len(heard) != 0 {
		t.Errorf("got %s", got)
	}
	write(t, path, "theme: {name: blue}\n")
	expect(`{"theme":{"name":"blue"}}`)
	if err := s.Problem(); err != nil {
		t.Errorf("the problem stays: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	expect(`{}`)
	if s.Path() != path || shown(t, s.Expression()) != `{}` {
		t.Errorf("got %s", shown(t, s.Expression()))
	}
	cancel()
	write(t, path, "theme: last\n")
	eventually(t, func() bool { return s.All().Len() != 0 })
	if len(heard) != 0 {
		t.Errorf("heard %s after cancel", <-heard)
	}
}

// eventually waits for what another goroutine does.
func eventually(t *testing.T, done func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it does not happen")
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, text := range []string{"", "a: 1", "a: [1, {b: c}]", "a: &a [*a]", "{\"a\": [1]}", "!!js x", "a: !path ./x"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, parse := range []func(string, []byte) (*compose.Map, error){parseYAML, parseJSON} {
			if m, err := parse("/home/settings", []byte(text)); err == nil {
				if _, err := json.Marshal(m); err != nil {
					t.Errorf("%q: %v", text, err)
				}
			}
		}
	})
}
