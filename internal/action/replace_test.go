package action

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dsh/internal/fault"
	"dsh/internal/installation"
	"dsh/internal/profile"
	"dsh/internal/staging"
)

// world is an empty home and the profile that a test is about.
func world(t *testing.T) (Env, profile.Name) {
	t.Helper()
	home, err := profile.ResolveHome(t.TempDir(), os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	name, err := profile.ParseName("demo")
	if err != nil {
		t.Fatal(err)
	}
	return Env{Home: home, Dir: home.Dir(), Getenv: func(string) string { return "" }, Installation: installation.Embedded()}, name
}

const patch = "- id: hmr\n  disabled: true\n"

func replace(env Env, name profile.Name, implied bool) (Replaced, error) {
	return Replace(context.Background(), env, ReplaceOptions{Name: name, Template: "web", Implied: implied})
}

func TestReplaceKeepsOnlyWhatSomebodyMayMiss(t *testing.T) {
	env, name := world(t)
	for range 2 {
		done, err := replace(env, name, false)
		if err != nil || done.Kept != "" {
			t.Fatalf("a fresh profile: %+v, %v", done, err)
		}
	}
	file := filepath.Join(env.Home.ProfileDir(name), "cordis.patch.yml")
	if err := os.WriteFile(file, []byte(patch), 0o644); err != nil {
		t.Fatal(err)
	}
	done, err := replace(env, name, false)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(done.Kept, "cordis.patch.yml")); err != nil || string(text) != patch {
		t.Errorf("kept in %q: %q, %v", done.Kept, text, err)
	}
}

// TestReplaceSeesWhatIsCommittedWhileItWaits lets another command change the
// profile while the replacement waits for its lock.
func TestReplaceSeesWhatIsCommittedWhileItWaits(t *testing.T) {
	for _, implied := range []bool{false, true} {
		env, name := world(t)
		if _, err := replace(env, name, false); err != nil {
			t.Fatal(err)
		}
		tx, err := staging.Begin(context.Background(), env.Home.Place(name), staging.Options{})
		if err != nil {
			t.Fatal(err)
		}
		waits := make(chan struct{})
		env.Waiting = func(staging.Holder) { close(waits) }
		type result struct {
			done Replaced
			err  error
		}
		results := make(chan result, 1)
		go func() {
			done, err := replace(env, name, implied)
			results <- result{done, err}
		}()
		<-waits
		if err := errors.Join(tx.WriteFile("cordis.patch.yml", []byte(patch), 0o644), tx.Commit()); err != nil {
			t.Fatal(err)
		}
		r := <-results
		if implied {
			if r.err == nil || !strings.Contains(fault.Hint(r.err), "--profile demo --from-default-profile web") {
				t.Errorf("a profile that nobody named was replaced: %+v, %v", r.done, r.err)
			}
			continue
		}
		if r.err != nil || r.done.Kept == "" {
			t.Fatalf("what was committed is lost: %+v, %v", r.done, r.err)
		}
		if text, err := os.ReadFile(filepath.Join(r.done.Kept, "cordis.patch.yml")); err != nil || string(text) != patch {
			t.Errorf("kept: %q, %v", text, err)
		}
	}
}

func TestReplaceRefusesBeforeItTouches(t *testing.T) {
	for template, wantName := range map[string]string{"nope": "demo", "web": "Web", "headless": "HEADLEß", "sdk": "desktop"} {
		env, _ := world(t)
		name, err := profile.ParseName(wantName)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Replace(context.Background(), env, ReplaceOptions{Name: name, Template: template}); err == nil {
			t.Errorf("%s from %s was made", wantName, template)
		}
		if entries, err := os.ReadDir(env.Home.Dir()); err != nil || len(entries) > 0 {
			t.Errorf("%s from %s left %v, %v", wantName, template, entries, err)
		}
	}
}

// TestCommandWithoutSecrets: what is kept of a command with the lock and in the history
// is what was typed, and works when it is run again, but for what may be secret.
func TestCommandWithoutSecrets(t *testing.T) {
	env, _ := world(t)
	for arg, want := range map[string]string{
		"https://token@h.test/x.tgz?sig=secret":       "https://h.test/x.tgz",
		"https://h.test/x.tgz#secret":                 "https://h.test/x.tgz",
		"https://github.com/o/r#v1":                   "https://github.com/o/r#v1",
		"x@https://u:secret@h.test/x.tgz":             "x@https://h.test/x.tgz",
		"https://u:s/secret@h.test/x.tgz":             "https://h.test/x.tgz",
		"git+file:///w/hb":                            "git+file:///w/hb",
		"hb@git+file:///w/hb#main":                    "hb@git+file:///w/hb#main",
		"file:///w/hb":                                "file:///w/hb",
		"git+https://h.test/o/r.git#v1&path:/x":       "git+https://h.test/o/r.git#v1&path:/x",
		"git+https://u:secret@h.test/o/r.git#v1":      "git+https://h.test/o/r.git#v1",
		"git+ssh://git@h.test/o/r.git#semver:^1":      "git+ssh://git@h.test/o/r.git#semver:^1",
		"git+ssh://git:secret@h.test/o/r.git":         "git+ssh://h.test/o/r.git",
		"s3::https://b.test/k.tgz?aws_secret=x":       "s3::https://b.test/k.tgz",
		"--registry=http://u:secret@h.test:4873/npm/": "--registry=http://h.test:4873/npm/",
		"--registry=u:secret@h.test":                  "…",
		"github:o/r#main":                             "github:o/r#main",
		"@acme/x@^1":                                  "@acme/x@^1",
	} {
		env.Args = []string{"plugin", "--profile", "my demo", "add", arg}
		if got, ok := strings.CutPrefix(env.options().Command, "dsh plugin --profile 'my demo' add "); !ok || got != fault.ShellWord(want) {
			t.Errorf("%s is kept as %s, not %s", arg, got, want)
		}
	}
}
