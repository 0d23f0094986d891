package install

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dsh/internal/fault"
)

// allowed approves packages by their names.
func allowed(names ...string) func(Scripted) (string, error) {
	return func(s Scripted) (string, error) {
		if slices.Contains(names, s.Name) {
			return "dsh", nil
		}
		return "", nil
	}
}

// approving runs an install with approvals of packages.
func (w *workshop) approving(profile string, names ...string) (*Result, error) {
	w.t.Helper()
	return w.try(profile, func(j *Job) (*Result, error) {
		j.Approved, j.Logs = allowed(names...), filepath.Join(w.home, "logs")
		j.MustBuild = func(s Scripted) bool { return slices.Contains(names, s.Name) }
		return j.Install(w.t.Context(), InstallOptions{})
	})
}

// folder makes a package with scripts.
func (w *workshop) folder(name, manifest string) {
	w.t.Helper()
	w.write(name+"/package.json", strings.Replace(manifest, "{", `{"name": "`+name+`", "version": "1.0.0", `, 1))
}

// built is a file that a package's script made, "" where it is not there.
func (w *workshop) built(profile, file string) string {
	text, err := os.ReadFile(filepath.Join(w.ground(profile).place.Dir, "node_modules", filepath.FromSlash(file)))
	if errors.Is(err, os.ErrNotExist) {
		return ""
	}
	w.must(err)
	return strings.TrimSpace(string(text))
}

func builtNames(list []Built) (names []string) {
	for _, b := range list {
		names = append(names, fmt.Sprint(b.Name, " ", b.Reused))
	}
	return names
}

func TestApprovedScriptsRun(t *testing.T) {
	w := newWorkshop(t)
	w.newProfile("x")
	w.folder("a", `{"scripts": {"preinstall": "echo 1 > out", "install": "echo 2 >> out", "postinstall": "echo 3 >> out"}}`)
	w.add("x", "file:./a", "left@1.0.0")
	if got := w.built("x", "a/out"); got != "" {
		t.Fatalf("the scripts ran: %q", got)
	}
	before := w.identities("x")
	result, err := w.approving("x", "a", "left")
	w.must(err)
	if got := w.built("x", "a/out"); got != "1\n2\n3" {
		t.Errorf("the scripts gave %q", got)
	}
	if diff := cmp.Diff([]string{"a false"}, builtNames(result.Built)); diff != "" {
		t.Error(diff)
	}
	if log, err := os.ReadFile(result.Built[0].Log); err != nil {
		t.Error(err, log)
	}
	after := w.identities("x")
	if at := "node_modules/left/package.json"; before[at] != after[at] {
		t.Errorf("%s was laid out again", at)
	}
	// The lockfile is that of everybody.
	if at := LockName; before[at] != after[at] {
		t.Errorf("%s was written", at)
	}

	result, err = w.approving("x", "a", "left")
	w.must(err)
	if diff := cmp.Diff(after, w.identities("x")); diff != "" || !result.Unchanged {
		t.Errorf("the second time something was laid out:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a true"}, builtNames(result.Built)); diff != "" {
		t.Error(diff)
	}

	// The same content in another profile is not built again, with whatever is
	// beside it that it does not load.
	w.newProfile("y")
	w.add("y", "file:./a")
	result, err = w.approving("y", "a")
	w.must(err)
	if diff := cmp.Diff([]string{"a true"}, builtNames(result.Built)); diff != "" || w.built("y", "a/out") == "" {
		t.Error(diff)
	}

	// Without the word of anybody what was published stands there again.
	result, err = w.approving("x")
	w.must(err)
	if got := w.built("x", "a/out"); got != "" || result.Tree.Changed != 1 {
		t.Errorf("it still stands built: %q %v", got, result.Tree)
	}
	if diff := cmp.Diff(before["node_modules/"+builtName], w.identities("x")["node_modules/"+builtName]); diff != "" {
		t.Error(diff)
	}
	if len(result.Pending) != 1 || result.Pending[0].Name != "a" || result.Pending[0].Scripts[2] != (Script{Event: "postinstall", Text: "echo 3 >> out"}) {
		t.Errorf("pending: %+v", result.Pending)
	}
}

// What a package loads is there when its scripts run, and built before.
func TestBuiltInOrder(t *testing.T) {
	w := newWorkshop(t)
	w.newProfile("x")
	w.folder("lib", `{"bin": "tool.sh", "scripts": {"postinstall": "printf '#!/bin/sh\necho made by lib' > tool.sh; chmod +x tool.sh"}}`)
	w.folder("app", `{"peerDependencies": {"lib": "*"}, "scripts": {"postinstall": "lib > out; test -f ../lib/package.json; touch ../lib/broken || true"}}`)
	w.add("x", "file:./lib", "file:./app")
	_, err := w.approving("x", "app", "lib")
	w.must(err)
	if got := w.built("x", "app/out"); got != "made by lib" {
		t.Errorf("app found %q", got)
	}
	if got := w.built("x", "lib/broken"); got != "" {
		t.Errorf("app wrote into lib")
	}
	first := BuiltIn(w.ground("x").place.Dir)["node_modules/app"]

	// Where lib is not built, app is another thing.
	_, err = w.approving("x", "app")
	if err == nil {
		if again := BuiltIn(w.ground("x").place.Dir)["node_modules/app"]; again == first {
			t.Error("app has the same name with another lib")
		}
	}
}

func TestBuildThatFails(t *testing.T) {
	w := newWorkshop(t)
	w.newProfile("x")
	w.folder("bad", `{"scripts": {"install": "echo it went wrong; exit 3"}}`)
	w.add("x", "file:./bad")
	before := w.ground("x").listing(t)
	_, err := w.approving("x", "bad")
	if err == nil || !strings.Contains(err.Error(), "bad@1.0.0") {
		t.Fatalf("the error is %v", err)
	}
	if diff := cmp.Diff(before, w.ground("x").listing(t)); diff != "" {
		t.Errorf("the profile has changed:\n%s", diff)
	}
	logs, err := filepath.Glob(filepath.Join(w.home, "logs", "bad-*.log"))
	w.must(err)
	if len(logs) != 1 {
		t.Fatalf("logs: %q", logs)
	}
	if text, _ := os.ReadFile(logs[0]); !strings.Contains(string(text), "it went wrong") {
		t.Errorf("the log holds %q", text)
	}
}

// A package that stands without what its scripts make stays so when they fail in
// a change that is not about it.
func TestBuildThatFailsAgain(t *testing.T) {
	w := newWorkshop(t)
	w.newProfile("x")
	w.folder("bad", `{"scripts": {"install": "exit 3"}}`)
	w.folder("other", `{"main": "index.js"}`)
	w.add("x", "file:./bad")
	result, err := w.try("x", func(j *Job) (*Result, error) {
		j.Approved = allowed("bad")
		spec, err := ParseSpec("file:./other", w.home)
		w.must(err)
		return j.Add(t.Context(), []Spec{spec}, AddOptions{})
	})
	w.must(err)
	if len(result.Warnings) != 1 || !strings.Contains(result.Warnings[0], "bad@1.0.0 stays without what its scripts make") {
		t.Errorf("warnings: %q", result.Warnings)
	}
	if w.built("x", "bad/package.json") == "" || w.built("x", "other/package.json") == "" {
		t.Error("one of the packages is not there")
	}
	w.newProfile("y")
	if _, err := w.try("y", func(j *Job) (*Result, error) {
		j.Approved = allowed("bad")
		spec, err := ParseSpec("file:./bad", w.home)
		w.must(err)
		return j.Add(t.Context(), []Spec{spec}, AddOptions{})
	}); err == nil {
		t.Error("a newcomer came in without what its scripts make")
	}
}

// An optional package whose scripts fail is left out, and nothing else is.
func TestOptionalBuildThatFails(t *testing.T) {
	w := newWorkshop(t)
	w.write("profiles/x/package.json", `{"name": "x", "dependencies": {"left": "1.0.0"}, "optionalDependencies": {"bad": "file:`+filepath.ToSlash(filepath.Join(w.home, "bad"))+`"}}`)
	w.folder("bad", `{"scripts": {"install": "exit 3"}}`)
	for range 2 {
		result, err := w.approving("x", "bad")
		w.must(err)
		if len(result.Warnings) != 1 || !strings.Contains(result.Warnings[0], "the optional package bad@1.0.0 was left out") {
			t.Errorf("warnings: %q", result.Warnings)
		}
		if w.built("x", "bad/package.json") != "" || w.built("x", "left/package.json") == "" {
			t.Error("the wrong one was left out")
		}
	}
}

// What is built is found damaged, and laid out again without being built again.
func TestDamagedBuild(t *testing.T) {
	w := newWorkshop(t)
	w.newProfile("x")
	w.folder("a", `{"scripts": {"install": "echo $$ > out"}}`)
	w.add("x", "file:./a")
	_, err := w.approving("x", "a")
	w.must(err)
	want, lock := w.built("x", "a/out"), w.lock("x")
	packages := w.openStore()
	defer packages.Close()
	dir := w.ground("x").place.Dir
	if got, err := Damaged(dir, "", lock, packages); err != nil || len(got) > 0 {
		t.Fatalf("%v %v", got, err)
	}
	w.must(rewrite(w.inModules("a/out"), "edited"))
	got, err := Damaged(dir, "", lock, packages)
	if err != nil || !slices.Equal(got, []string{"node_modules/a"}) {
		t.Fatalf("%v %v", got, err)
	}
	_, err = w.try("x", func(j *Job) (*Result, error) {
		j.Approved, j.Anew = allowed("a"), got
		return j.Restore(t.Context(), w.manifest("x"), lock)
	})
	w.must(err)
	if now := w.built("x", "a/out"); now != want {
		t.Errorf("out is %q, and was %q", now, want)
	}

	// Where the store has lost it, it is built anew.
	entry, ok := packages.Get(BuiltIn(dir)["node_modules/a"])
	if !ok {
		t.Fatal("the store does not have it")
	}
	w.must(os.Remove(filepath.Join(entry.Dir(), "out")))
	_, err = w.try("x", func(j *Job) (*Result, error) {
		j.Approved = allowed("a")
		return j.Install(t.Context(), InstallOptions{Force: true})
	})
	w.must(err)
	if now := w.built("x", "a/out"); now == "" || now == want {
		t.Errorf("it was not built again: %q", now)
	}
}

// Whatever a job does, without approvals no script runs.
func TestNothingRunsUnapproved(t *testing.T) {
	for _, approve := range []func(Scripted) (string, error){nil, allowed()} {
		w := newWorkshop(t)
		w.newProfile("x")
		w.folder("a", `{"scripts": {"preinstall": "touch `+filepath.Join(w.home, "ran")+`", "prepare": "touch `+filepath.Join(w.home, "ran")+`"}}`)
		w.add("x", "file:./a", "@acme/scripts")
		lock, m := w.lock("x"), w.manifest("x")
		for name, work := range map[string]func(*Job) (*Result, error){
			"install": func(j *Job) (*Result, error) { return j.Install(t.Context(), InstallOptions{Force: true}) },
			"update":  func(j *Job) (*Result, error) { return j.Update(t.Context(), nil, true) },
			"restore": func(j *Job) (*Result, error) { return j.Restore(t.Context(), m, lock) },
			"dedupe":  func(j *Job) (*Result, error) { return j.Dedupe(t.Context()) },
			"remove":  func(j *Job) (*Result, error) { return j.Remove(t.Context(), []string{"@acme/scripts"}) },
		} {
			_, err := w.try("x", func(j *Job) (*Result, error) {
				j.Approved = approve
				return work(j)
			})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if _, err := os.Stat(filepath.Join(w.home, "ran")); err == nil {
				t.Fatalf("%s ran a script", name)
			}
		}
	}
}

func TestNeedPrepare(t *testing.T) {
	j := &Job{Profile: "x"}
	p := Pending{Name: "a", Version: "1.0.0", Spec: "github:o/r#abc", Scripts: []Script{{Event: "prepare", Text: "tsc\n"}}, Chain: []string{"a@1.0.0"}, Missing: []string{"lib/a.js"}, Prepare: true}
	err := j.needPrepare([]Pending{{Name: "native", Missing: []string{"x"}}, p})
	if fault.ClassOf(err) != fault.Policy {
		t.Fatalf("the error is %v", err)
	}
	for _, part := range []string{"a@1.0.0", "lib/a.js", `prepare: "tsc\n"`, "source"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not name %s", err, part)
		}
	}
	if want := "dsh plugin --profile x approve 'github:o/r#abc'"; !strings.Contains(fault.Hint(err), want) {
		t.Errorf("the hint is %s", fault.Hint(err))
	}
	p.Missing = nil
	if err := j.needPrepare([]Pending{p}); err != nil {
		t.Error(err)
	}
}

// Packages that need each other are built one after the other, and are the same
// the next time.
func TestBuiltInACircle(t *testing.T) {
	w := newWorkshop(t)
	w.newProfile("x")
	w.folder("a", `{"peerDependencies": {"b": "*"}, "scripts": {"install": "ls .. > out"}}`)
	w.folder("b", `{"peerDependencies": {"a": "*"}, "scripts": {"install": "ls .. > out"}}`)
	w.add("x", "file:./a", "file:./b")
	_, err := w.approving("x", "a", "b")
	w.must(err)
	for _, name := range []string{"a", "b"} {
		if got := w.built("x", name+"/out"); got != "a\nb" {
			t.Errorf("%s found %q", name, got)
		}
	}
	result, err := w.approving("x", "a", "b")
	w.must(err)
	if diff := cmp.Diff([]string{"a true", "b true"}, builtNames(result.Built)); diff != "" || !result.Unchanged {
		t.Error(diff)
	}
}

func TestOldLogsGo(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "logs")
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range keptLogs + 3 {
		// The name must not count.
		log, err := newLog(dir, fmt.Sprintf("@x/p-%d", 100-i), start.Add(time.Duration(i)*time.Second))
		if err == nil {
			err = log.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != keptLogs {
		t.Fatalf("%d are left, %v", len(left), err)
	}
	for _, e := range left {
		for _, old := range []string{"@x+p-100-", "@x+p-99-", "@x+p-98-"} {
			if strings.HasPrefix(e.Name(), old) {
				t.Errorf("%s is left", e.Name())
			}
		}
	}
}
