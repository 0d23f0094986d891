package install

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"dsh/e2e/npmtest"
	"dsh/internal/install/registry"
	"dsh/internal/install/store"
	"dsh/internal/profile"
	"dsh/internal/staging"
)

// workshop is a home with a registry, in which jobs are run.
type workshop struct {
	t        *testing.T
	home     string
	registry *npmtest.Server
	offline  bool
}

func newWorkshop(t *testing.T) *workshop {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	server, err := npmtest.New(filepath.Join("..", "..", "e2e", "testdata", "registry"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return &workshop{t: t, home: home, registry: server}
}

// must ends the test when something that is no part of it failed.
func (w *workshop) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// ground is a profile of the workshop.
func (w *workshop) ground(name string) ground {
	return ground{place: staging.Place{
		Dir: filepath.Join(w.home, "profiles", name), State: filepath.Join(w.home, "state", name), Derived: []string{"node_modules"},
	}}
}

// write makes a file with its directories, below the home.
func (w *workshop) write(file, content string) string {
	w.t.Helper()
	file = filepath.Join(w.home, filepath.FromSlash(file))
	w.must(os.MkdirAll(filepath.Dir(file), 0o755))
	w.must(os.WriteFile(file, []byte(content), 0o644))
	return file
}

func (w *workshop) remove(file string) {
	w.t.Helper()
	w.must(staging.RemoveAll(filepath.Join(w.home, filepath.FromSlash(file))))
}

// openStore is the store as one process has it.
func (w *workshop) openStore() *store.Store { return store.Open(filepath.Join(w.home, "store")) }

// manifest is the profile's as it is.
func (w *workshop) manifest(name string) *profile.Manifest {
	w.t.Helper()
	file := filepath.Join(w.ground(name).place.Dir, "package.json")
	text, err := os.ReadFile(file)
	w.must(err)
	m, err := profile.ParseManifest(file, text)
	w.must(err)
	return m
}

// lock is the profile's lockfile, nil where there is none.
func (w *workshop) lock(name string) *Lock {
	w.t.Helper()
	file := filepath.Join(w.ground(name).place.Dir, LockName)
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	w.must(err)
	lock, err := ParseLock(file, text)
	w.must(err)
	return lock
}

// try runs one job in a transaction of its own.
func (w *workshop) try(name string, work func(*Job) (*Result, error)) (*Result, error) {
	w.t.Helper()
	return w.making(name, nil, work)
}

// making is try in a transaction that makes the profile with init, if that is
// given.
func (w *workshop) making(name string, init func(dir string) error, work func(*Job) (*Result, error)) (result *Result, err error) {
	w.t.Helper()
	tx, err := staging.Begin(w.t.Context(), w.ground(name).place, staging.Options{Init: init})
	w.must(err)
	defer func() { w.must(tx.Rollback()) }()
	config, err := registry.LoadConfig(os.ReadFile, func(key string) string {
		return map[string]string{"npm_config_registry": w.registry.URL()}[key]
	})
	w.must(err)
	mode := registry.UseCache
	if w.offline {
		mode = registry.Offline
	}
	client, err := registry.New(config, registry.Options{Mode: mode})
	w.must(err)
	defer client.Close()
	packages := w.openStore()
	defer func() { w.must(packages.Close()) }()
	result, err = work(&Job{
		Profile: name, Dir: w.ground(name).place.Dir, Files: tx.Dir(), Tx: tx, Store: packages, Registry: client, Offline: w.offline,
		Closure: filepath.Join(w.ground(name).place.State, "closure"),
		InBox:   func(string) bool { return false }, CheckLayer: func(name, dir string) error { return nil },
	})
	if err == nil {
		if err = tx.Commit(); err == nil {
			result.Remember()
		}
	}
	return result, err
}

// run is try of what has to go well.
func (w *workshop) run(name string, work func(*Job) (*Result, error)) *Result {
	w.t.Helper()
	result, err := w.try(name, work)
	w.must(err)
	return result
}

// add runs `dsh plugin add`.
func (w *workshop) add(name string, args ...string) {
	w.t.Helper()
	w.run(name, func(j *Job) (*Result, error) {
		var specs []Spec
		for _, arg := range args {
			spec, err := ParseSpec(arg, w.home)
			w.must(err)
			specs = append(specs, spec)
		}
		return j.Add(w.t.Context(), specs, AddOptions{})
	})
}

// newProfile makes a profile without dependencies.
func (w *workshop) newProfile(name string) {
	w.t.Helper()
	w.write("profiles/"+name+"/package.json", `{"name": "`+name+`", "dsh": {"profile": {"bundles": []}}}`+"\n")
}
