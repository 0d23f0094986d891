package credentials

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"dsh/internal/boot/environ"
	"dsh/internal/boot/host"
	"dsh/internal/boot/slot"
	"dsh/internal/compose"
	"dsh/internal/fault"
)

func write(t *testing.T, path, text string, mode os.FileMode) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func environment(t *testing.T, variables ...string) environ.Snapshot {
	t.Helper()
	snapshot, _, err := environ.Load(variables, t.TempDir(), t.TempDir(), os.ReadFile)
	if err != nil {
		t.Fatal(err)
	}
	return snapshot
}

func of(t *testing.T, text string, variables ...string) *Credentials {
	t.Helper()
	return &Credentials{path: write(t, filepath.Join(t.TempDir(), ".credentials.yaml"), text, 0o600), environment: environment(t, variables...)}
}

// TestSecretsAreNotShown prints a secret in all ways there are.
func TestSecretsAreNotShown(t *testing.T) {
	secret := NewSecret("sk-12345")
	inside := Credential{Key: secret, From: "the environment"}
	var log strings.Builder
	logger := slog.New(slog.NewTextHandler(&log, nil))
	logger.Info("x", "secret", secret, "inside", inside)
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "secret", secret, "inside", inside)
	asJSON, err := json.Marshal(map[string]any{"s": secret, "c": inside, "p": &secret, "l": []Secret{secret}})
	if err != nil {
		t.Fatal(err)
	}
	asYAML, err := yaml.Marshal(map[string]any{"s": secret})
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{log.String(), string(asJSON), string(asYAML), secret.String(), fmt.Errorf("x: %w", fmt.Errorf("%v", secret)).Error()}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%T %v"} {
		texts = append(texts, fmt.Sprintf(verb, secret), fmt.Sprintf(verb, inside), fmt.Sprintf(verb, &inside), fmt.Sprintf(verb, []Secret{secret}), fmt.Sprintf(verb, map[Secret]int{secret: 1}))
	}
	for _, text := range texts {
		for _, shown := range []string{"12345", fmt.Sprintf("%x", "12345"), "73 6b"} {
			if strings.Contains(text, shown) {
				t.Errorf("%s", text)
			}
		}
	}
	if secret.Reveal() != "sk-12345" {
		t.Error("the secret is lost")
	}
}

func TestLookup(t *testing.T) {
	c := of(t, "FROM_FILE: in-file\nFROM_BOTH: in-file\nBY_PATH: {file: keys/one}\nBY_HOME: {file: ~/none-such-key}\nNUMBER: 123\nEMPTY: ''\nODD: {path: x}\nNOTHING:\n", "FROM_BOTH=in-env", "FROM_ENV= in-env ", "BLANK= ")
	dir := filepath.Dir(c.path)
	if err := os.Mkdir(filepath.Join(dir, "keys"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "keys", "one"), "in-key-file\n", 0o600)
	problems := c.reload()
	if len(problems) != 4 || c.Problem() == nil {
		t.Errorf("got %v", problems)
	}
	for _, problem := range problems {
		if strings.Contains(problem.Error(), "123") {
			t.Errorf("shows the key: %v", problem)
		}
	}
	if got := c.Names(); !slices.Equal(got, []string{"BY_HOME", "BY_PATH", "FROM_BOTH", "FROM_FILE"}) {
		t.Errorf("got %v", got)
	}
	for name, want := range map[string][2]string{
		"FROM_FILE": {"in-file", c.path},
		"FROM_BOTH": {"in-env", "the environment"},
		"FROM_ENV":  {"in-env", "the environment"},
		"BY_PATH":   {"in-key-file", filepath.Join(dir, "keys", "one")},
	} {
		got, ok, err := c.Lookup(name)
		if err != nil || !ok || strings.TrimSpace(got.Key.Reveal()) != want[0] || got.From != want[1] || got.Exposed {
			t.Errorf("%s: %q %v %v", name, got.Key.Reveal(), got, err)
		}
	}
	for _, name := range []string{"NUMBER", "EMPTY", "ODD", "BLANK", "UNKNOWN", "NOTHING"} {
		if _, ok, err := c.Lookup(name); ok || err != nil {
			t.Errorf("%s: %v %v", name, ok, err)
		}
	}
	if _, ok, err := c.Lookup("BY_HOME"); ok || err == nil || !strings.Contains(err.Error(), "credential BY_HOME: read ") || !strings.Contains(err.Error(), "none-such-key") || strings.Contains(err.Error(), "~") {
		t.Errorf("got %v", err)
	}
}

func TestWrongFilesKeepTheKeysAndShowNone(t *testing.T) {
	c := of(t, "KEY: sk-good\n")
	if problems := c.reload(); problems != nil {
		t.Fatal(problems)
	}
	for _, text := range []string{"KEY: [sk-secret\n", "sk-secret\n", "- sk-secret\n", "KEY: sk-secret: x\n", "KEY: sk-secret\nKEY: sk-secret\n", "KEY: 'sk-secret\n"} {
		write(t, c.path, text, 0o600)
		problems := c.reload()
		if len(problems) != 1 || !strings.Contains(problems[0].Error(), c.path) || strings.Contains(problems[0].Error(), "sk-") {
			t.Errorf("%q: %v", text, problems)
		}
		if got, ok, err := c.Lookup("KEY"); !ok || err != nil || got.Key.Reveal() != "sk-good" {
			t.Errorf("%q: %v %v", text, ok, err)
		}
	}
	for _, text := range []string{"", "# none\n", "{}\n", "null\n"} {
		write(t, c.path, text, 0o600)
		if problems := c.reload(); problems != nil || len(c.Names()) != 0 {
			t.Errorf("%q: %v, %v", text, problems, c.Names())
		}
	}
	if err := os.Remove(c.path); err != nil {
		t.Fatal(err)
	}
	if problems := c.reload(); problems != nil || c.Problem() != nil {
		t.Errorf("a file that is not there: %v", problems)
	}
}

func TestFilesThatOthersMayRead(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // the modes of files say nothing there
	}
	for _, mode := range []os.FileMode{0o644, 0o640, 0o604, 0o620, 0o601} {
		c := of(t, "KEY: sk-secret\n", "OTHER=in-env")
		if err := os.Chmod(c.path, mode); err != nil {
			t.Fatal(err)
		}
		problems := c.reload()
		if len(problems) != 1 || fault.ClassOf(problems[0]) != fault.Policy || fault.Hint(problems[0]) != "chmod 600 "+c.path {
			t.Errorf("%o: %v", mode, problems)
		}
		if _, ok, _ := c.Lookup("KEY"); ok {
			t.Errorf("%o: the key is used", mode)
		}
		if _, ok, _ := c.Lookup("OTHER"); !ok {
			t.Errorf("%o: the environment is not used", mode)
		}
		// No change of the content tells that it is mended.
		if err := os.Chmod(c.path, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, ok, err := c.Lookup("KEY"); !ok || err != nil || c.Problem() != nil {
			t.Errorf("%o: mended, but %v", mode, c.Problem())
		}
	}
}

func TestReadKeyFile(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		text    string
		mode    os.FileMode
		want    string
		problem string
	}{
		"plain":    {"sk-1", 0o600, "sk-1", ""},
		"line end": {"\ufeffsk-1\r\n", 0o600, "sk-1", ""},
		"exposed":  {"sk-1\n", 0o644, "sk-1", ""},
		"empty":    {" \n", 0o600, "", "no key in it"},
		"two":      {"sk-1\nsk-2\n", 0o600, "", "more than one key"},
		"binary":   {"sk\x001", 0o600, "", "more than one key"},
		"large":    {strings.Repeat("x", maxKey+1), 0o600, "", "larger than"},
	} {
		got, err := ReadKeyFile(write(t, filepath.Join(dir, name), c.text, c.mode))
		switch {
		case c.problem != "":
			if err == nil || !strings.Contains(err.Error(), c.problem) || strings.Contains(err.Error(), "sk-") {
				t.Errorf("%s: %v", name, err)
			}
		case err != nil || got.Key.Reveal() != c.want || got.Exposed != (c.mode == 0o644 && runtime.GOOS != "windows"):
			t.Errorf("%s: %v %v", name, got, err)
		}
	}
	for _, path := range []string{dir, filepath.Join(dir, "none")} {
		if _, err := ReadKeyFile(path); err == nil || !strings.Contains(err.Error(), "read "+path) {
			t.Errorf("got %v", err)
		}
	}
}

func TestRow(t *testing.T) {
	home := t.TempDir()
	path := write(t, filepath.Join(home, ".credentials.yaml"), "KEY: sk-row\n", 0o600)
	var got *Credentials
	h := host.New(host.Options{
		Registry: func(name string) (host.Plugin, bool) {
			if name == Name {
				return Plugin, true
			}
			return host.Plugin{Inject: []host.Need{{Service: Service}}, Start: func(_ context.Context, r *host.Row) error {
				got, _ = host.Service[*Credentials](r, Service)
				return nil
			}}, true
		},
		Slots: map[string]any{
			slot.HomePath:    slot.HomePathFunc(func(parts ...string) string { return filepath.Join(append([]string{home}, parts...)...) }),
			slot.Environment: environment(t),
		},
	})
	patches, err := compose.ParsePatches(compose.Source{File: "test", Dir: home}, []byte("- insert:\n  - {id: c, name: '"+Name+"', config: {debounceMs: 1}}\n  - {id: reader, name: reader}\n"))
	if err != nil {
		t.Fatal(err)
	}
	tree := compose.Apply([]compose.Layer{{Label: "test", Patches: patches}}, func(string) *compose.PathRule { return nil })
	if err := h.Apply(t.Context(), tree.Rows); err != nil {
		t.Fatal(err)
	}
	defer h.Stop(context.Background())
	if err := h.Settled(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got == nil || got.path != path || !slices.Equal(got.Names(), []string{"KEY"}) {
		t.Fatalf("got %+v", got)
	}
	if _, shows := any(got).(host.Expressible); shows {
		t.Error("expressions see credentials")
	}
}

func FuzzRead(f *testing.F) {
	for _, text := range []string{"", "A: b", "A: {file: x}", "A: {file: ~/x}", "A: &a [*a]", "A: !!js x", "- 1"} {
		f.Add(text)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		c := &Credentials{path: filepath.Join(dir, fmt.Sprint(os.Getpid(), ".yaml"))}
		write(t, c.path, text, 0o600)
		c.reload()
		for _, name := range c.Names() {
			if e := c.entries[name]; (e.file == "") == (e.key.Reveal() == "") || e.file != "" && !filepath.IsAbs(e.file) {
				t.Errorf("%q: %s is %+v", text, name, e)
			}
		}
	})
}
