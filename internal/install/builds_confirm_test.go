package install

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dsh/e2e/gittest"
	"dsh/e2e/npmtest"
	"dsh/internal/fault"
)

// settled runs an install where pnpm's settings let the scripts of a package run.
func (w *workshop) settled(profile, name string, how InstallOptions) (*Result, error) {
	w.t.Helper()
	return w.try(profile, func(j *Job) (*Result, error) {
		j.Approved = func(s Scripted) (string, error) {
			if s.Name == name && s.Origin.Kind != Folder {
				return ByPnpm, nil
			}
			return "", nil
		}
		return j.Install(w.t.Context(), how)
	})
}

// swap gives a package of the lockfile the content of another one.
func (w *workshop) swap(profile, at, with string) {
	w.t.Helper()
	lock, file := w.lock(profile), filepath.Join(w.ground(profile).place.Dir, LockName)
	text, err := os.ReadFile(file)
	w.must(err)
	from, to := lock.Nodes["node_modules/"+at].Integrity, lock.Nodes["node_modules/"+with].Integrity
	if from == to || from.IsZero() || to.IsZero() {
		w.t.Fatalf("%s is %s, %s is %s", at, from, with, to)
	}
	w.must(os.WriteFile(file, []byte(strings.Replace(string(text), from.String(), to.String(), 1)), 0o644))
	if w.lock(profile).Nodes["node_modules/"+at].Integrity != to {
		w.t.Fatalf("%s still has its content:\n%s", at, text)
	}
}

// What settings let run by a name, a version or a source is not what a lockfile
// puts in the place of it, even if that is called the same.
func TestNothingRunsInAnothersName(t *testing.T) {
	evil := map[string]string{"package.json": `{"name": "@acme/makes", "version": "1.0.0", "scripts": {"install": "echo evil > made.txt"}}`}
	for name, spec := range map[string]string{
		"registry":   "@acme/makes@1.0.0",
		"address":    "REGISTRY/files/@acme+makes_1.0.0.tgz",
		"archive":    "./good.tgz",
		"repository": "git+file://REPOSITORY",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorkshop(t)
			w.newProfile("x")
			good := `{"name": "@acme/makes", "version": "1.0.0", "scripts": {"postinstall": "echo made by 1.0.0 > made.txt"}}`
			w.must(os.WriteFile(filepath.Join(w.home, "good.tgz"), tarball(t, map[string]string{"package.json": good}), 0o644))
			w.must(os.WriteFile(filepath.Join(w.home, "evil.tgz"), tarball(t, evil), 0o644))
			repositories := gittest.NewRepositories(filepath.Join(w.home, "git"))
			w.must(repositories.Make("makes", "sha1"))
			w.write("source/package.json", good)
			_, err := repositories.Commit("makes", "main", filepath.Join(w.home, "source"))
			w.must(err)
			w.add("x", strings.NewReplacer("REGISTRY", w.registry.URL(), "REPOSITORY", repositories.Dir("makes")).Replace(spec), "other@./evil.tgz")
			honest, err := os.ReadFile(filepath.Join(w.ground("x").place.Dir, LockName))
			w.must(err)

			w.swap("x", "@acme/makes", "other")
			_, err = w.settled("x", "@acme/makes", InstallOptions{})
			if fault.ClassOf(err) != fault.Package || !strings.Contains(err.Error(), "@acme/makes@1.0.0 is something else in dsh-lock.yaml") {
				t.Errorf("the error is %v", err)
			}
			if got := w.built("x", "@acme/makes/made.txt"); got != "" {
				t.Errorf("it ran: %q", got)
			}

			w.must(os.WriteFile(filepath.Join(w.ground("x").place.Dir, LockName), honest, 0o644))
			result, err := w.settled("x", "@acme/makes", InstallOptions{})
			w.must(err)
			if got := w.built("x", "@acme/makes/made.txt"); got != "made by 1.0.0" || len(result.Pending) != 0 {
				t.Errorf("the honest one made %q, pending are %+v, warnings %q", got, result.Pending, result.Warnings)
			}
		})
	}
}

// Where nobody can be asked, scripts wait for the word of the user, and the rest
// goes on.
func TestUnconfirmedScriptsWait(t *testing.T) {
	w := newWorkshop(t)
	w.newProfile("x")
	w.add("x", "@acme/makes@1.0.0")
	w.offline = true
	result, err := w.settled("x", "@acme/makes", InstallOptions{Force: true})
	w.must(err)
	if got := w.built("x", "@acme/makes/made.txt"); got != "" || len(result.Pending) != 1 ||
		!slices.ContainsFunc(result.Warnings, func(text string) bool { return strings.Contains(text, "dsh plugin --profile x approve @acme/makes") }) {
		t.Errorf("it made %q, pending are %+v, warnings %q", got, result.Pending, result.Warnings)
	}
	// The user's word is about the content.
	_, err = w.approving("x", "@acme/makes")
	w.must(err)
	if got := w.built("x", "@acme/makes/made.txt"); got != "made by 1.0.0" {
		t.Errorf("it made %q", got)
	}
}

// What one registry's packages made of a repository is not what another one's do.
func TestPreparedOfARegistry(t *testing.T) {
	w := newWorkshop(t)
	repositories := gittest.NewRepositories(filepath.Join(w.home, "git"))
	w.must(repositories.Make("made", "sha1"))
	w.write("source/package.json", `{"name": "made", "version": "1.0.0", "main": "lib.txt", "devDependencies": {"left": "1.0.0"}, "scripts": {"prepare": "cp node_modules/left/who.txt lib.txt"}}`)
	_, err := repositories.Commit("made", "main", filepath.Join(w.home, "source"))
	w.must(err)
	for _, who := range []string{"theirs", "mine"} {
		w.write("registry-"+who+"/left_1.0.0.txtar", "-- package.json --\n{\"name\": \"left\", \"version\": \"1.0.0\"}\n-- who.txt --\n"+who+"\n")
		w.registry, err = npmtest.New(filepath.Join(w.home, "registry-"+who))
		w.must(err)
		t.Cleanup(w.registry.Close)
		for _, profile := range []string{who, who + "-2"} {
			w.newProfile(profile)
			spec, err := ParseSpec("git+file://"+repositories.Dir("made"), w.home)
			w.must(err)
			result, err := w.try(profile, func(j *Job) (*Result, error) {
				j.Approved = allowed("made")
				return j.Add(t.Context(), []Spec{spec}, AddOptions{})
			})
			w.must(err)
			if got := w.built(profile, "made/lib.txt"); got != who {
				t.Errorf("%s has what %q made", profile, got)
			}
			if reused := profile != who; len(result.Built) != 1 || result.Built[0].Reused != reused {
				t.Errorf("%s built %+v", profile, result.Built)
			}
		}
	}
}
