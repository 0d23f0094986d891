package install

import (
	"path/filepath"
	"slices"
	"testing"

	"dsh/internal/install/store"
)

// planned is the plan of adding packages to a profile.
func (w *workshop) planned(name string, args ...string) *Plan {
	w.t.Helper()
	over := store.OpenOver(filepath.Join(w.t.TempDir(), "over"), filepath.Join(w.home, "store"))
	defer func() { w.must(over.Close()) }()
	return w.run(name, func(j *Job) (*Result, error) {
		j.DryRun, j.Store = true, over
		var specs []Spec
		for _, arg := range args {
			spec, err := ParseSpec(arg, w.home)
			w.must(err)
			specs = append(specs, spec)
		}
		return j.Add(w.t.Context(), specs, AddOptions{})
	}).Plan
}

// Contents of the store are looked up beside those that registries are asked
// for, which the race detector watches.
func TestPlanOfStoredAndOtherPackages(t *testing.T) {
	w := newWorkshop(t)
	w.newProfile("other")
	w.add("other", "@acme/stack", "is-odd@3.0.0", "left@1.0.0")
	w.newProfile("p")
	plan := w.planned("p", "@acme/stack", "is-odd", "left@1.0.0", "@acme/hello", "@acme/scripts", "zero")
	if plan.Stored.Packages < 4 || plan.Stored.Bytes == 0 || plan.Stored.Unknown != 0 {
		t.Errorf("of the store it says %+v", plan.Stored)
	}
	if plan.Fetch.Packages < 3 || plan.Fetch.Unknown != plan.Fetch.Packages {
		t.Errorf("of what is fetched it says %+v, and the registry says no sizes", plan.Fetch)
	}
	for _, p := range plan.Packages {
		if p.Name == "@acme/scripts" && !slices.Equal(p.Scripts, []string{"preinstall", "install", "postinstall"}) {
			t.Errorf("scripts that would not run: %q", p.Scripts)
		}
	}
}

func TestPlanTellsWhereContentsAre(t *testing.T) {
	w := newWorkshop(t)
	w.newProfile("p")
	w.write("local/package.json", `{"name": "local", "version": "1.0.0", "scripts": {"prepare": "x"}}`)
	plan := w.planned("p", "file:./local", w.registry.URL()+"/files/is-odd_3.0.0.tgz")
	sources := map[string]string{}
	for _, p := range plan.Packages {
		sources[p.Place] = p.Source
	}
	if sources["node_modules/is-odd"] != "fetch" || plan.Stored.Packages != 0 {
		t.Errorf("an address is from %q, and the store, which is empty, has %+v", sources["node_modules/is-odd"], plan.Stored)
	}
	if plan.Fetch.Bytes == 0 {
		t.Error("the size of what was looked at is not told")
	}
}

func TestMovesOfUpdateAndDedupe(t *testing.T) {
	w := newWorkshop(t)
	w.newProfile("p")
	w.add("p", "@acme/wants-left-1", "@acme/takes-left@1.0.0")
	result := w.run("p", func(j *Job) (*Result, error) { return j.Dedupe(t.Context()) })
	var got []string
	for _, m := range result.Moves() {
		got = append(got, string(m.Action)+" "+m.Place+" "+m.Before+" "+m.Version)
	}
	want := []string{"removed node_modules/@acme/wants-left-1/node_modules/left 1.0.0 ", "updated node_modules/left 1.2.0 1.0.0"}
	if !slices.Equal(got, want) {
		t.Errorf("it moved %q and not %q", got, want)
	}
	if again := w.run("p", func(j *Job) (*Result, error) { return j.Dedupe(t.Context()) }).Moves(); len(again) > 0 {
		t.Errorf("a second time it moved %v", again)
	}
}

// A linked folder has its new version at once, and what it had is in the lockfile.
func TestUpdateOfALinkIsTold(t *testing.T) {
	w := newWorkshop(t)
	w.newProfile("p")
	w.write("local/package.json", `{"name": "local", "version": "1.0.0"}`)
	w.add("p", "link:./local")
	w.write("local/package.json", `{"name": "local", "version": "2.0.0"}`)
	result := w.run("p", func(j *Job) (*Result, error) { return j.Install(t.Context(), InstallOptions{}) })
	if len(result.Changes) != 1 || result.Changes[0].Action != Updated || result.Changes[0].Before != "1.0.0" || result.Changes[0].Version != "2.0.0" {
		t.Errorf("of a linked folder that changed it says %+v", result.Changes)
	}
	result = w.run("p", func(j *Job) (*Result, error) { return j.Install(t.Context(), InstallOptions{}) })
	if len(result.Changes) != 0 {
		t.Errorf("and a second time %+v", result.Changes)
	}
}
