package action

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dsh/internal/fault"
	"dsh/internal/install"
	"dsh/internal/install/store"
	"dsh/internal/profile"
	"dsh/internal/staging"
)

// stocked is a home whose store holds packages, by name.
type stocked struct {
	t   *testing.T
	env Env
	ids map[string]store.Integrity
}

func newStocked(t *testing.T, names ...string) *stocked {
	t.Helper()
	env, _ := world(t)
	s := &stocked{t, env, map[string]store.Integrity{}}
	packages := store.Open(env.Home.StoreDir())
	for _, name := range names {
		dir := filepath.Join(t.TempDir(), "package")
		s.write(filepath.Join(dir, "package.json"), `{"name": "`+name+`", "version": "1.0.0"}`)
		entry, err := packages.AddFolder(t.Context(), dir)
		s.must(err)
		s.ids[name] = entry.Integrity
	}
	s.must(packages.Close())
	return s
}

func (s *stocked) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *stocked) write(file, text string) {
	s.t.Helper()
	s.must(os.MkdirAll(filepath.Dir(file), 0o755))
	s.must(os.WriteFile(file, []byte(text), 0o644))
}

// lock is the text of a lockfile that names packages.
func (s *stocked) lock(names ...string) string {
	lock := &install.Lock{Wanted: map[string]string{}, Nodes: map[string]install.Located{}}
	for _, name := range names {
		lock.Nodes["node_modules/"+name] = install.Located{Package: &install.Package{
			Name: name, Version: "1.0.0", Origin: install.Origin{Kind: install.Folder, Place: "../x"}, Integrity: s.ids[name],
		}}
	}
	return string(lock.Bytes())
}

// change commits a lockfile in a profile.
func (s *stocked) change(name string, names ...string) staging.Place {
	s.t.Helper()
	parsed, err := profile.ParseName(name)
	s.must(err)
	tx, _, err := s.env.begin(s.t.Context(), parsed, fresh(parsed))
	s.must(err)
	s.must(tx.WriteFile(install.LockName, []byte(s.lock(names...)), 0o644))
	s.must(tx.Commit())
	return s.env.Home.Place(parsed)
}

// held is the names of the packages that the store holds.
func (s *stocked) held() string {
	s.t.Helper()
	packages := store.Open(s.env.Home.StoreDir())
	list, err := packages.Entries()
	s.must(errors.Join(err, packages.Close()))
	var names []string
	for name, id := range s.ids {
		for _, entry := range list {
			if entry.Integrity == id {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// unmount moves a directory away to which a link then leads in vain.
func (s *stocked) unmount(dir string) string {
	s.t.Helper()
	s.must(os.RemoveAll(dir))
	if err := os.Symlink(filepath.Join(s.t.TempDir(), "disk"), dir); err != nil {
		s.t.Skip("no links here")
	}
	return dir
}

// generations is how many files the history of a profile has.
func (s *stocked) generations(name string) int {
	s.t.Helper()
	parsed, err := profile.ParseName(name)
	s.must(err)
	files, err := filepath.Glob(filepath.Join(s.env.Home.StateDir(parsed), "generations", "*.tar.gz"))
	s.must(err)
	return len(files)
}

// later is a time at which nothing in the store is young.
func later() time.Time { return time.Now().Add(2 * youngest) }

func TestPruneStore(t *testing.T) {
	s := newStocked(t, "now", "before", "marked", "replaced", "staged", "removed", "pinned", "nobody")
	s.change("x", "before")
	place := s.change("x", "now")
	marker := "# node_modules for " + install.ThisPlatform().String() + "\n" + s.lock("marked")
	s.write(filepath.Join(place.Dir, "node_modules", ".dsh-tree"), marker)
	s.write(filepath.Join(place.State, "replaced-1", install.LockName), s.lock("replaced"))
	s.write(filepath.Join(s.env.Home.ProfilesDir(), ".x.backup-abc", install.LockName), s.lock("staged"))
	s.change("gone", "pinned")
	gone := s.change("gone", "removed")
	list, err := gone.History().List()
	s.must(err)
	for _, g := range list {
		if text, ok := g.File(install.LockName); ok && string(text) == s.lock("pinned") {
			s.must(gone.History().Pin(t.Context(), g.ID, true))
		}
	}
	s.must(os.RemoveAll(gone.Dir))

	prune := func(opts PruneOptions) *Pruned {
		t.Helper()
		pruned, err := PruneStore(context.Background(), s.env, opts)
		s.must(err)
		return pruned
	}
	names := func(p *Pruned) (list []string) {
		for _, e := range p.Removed {
			list = append(list, e.Name)
		}
		return list
	}
	const all = "before marked nobody now pinned removed replaced staged"

	status, err := Store(s.env)
	s.must(err)
	if status.Packages != 8 || status.Unneeded == nil || status.Unneeded.Packages != 1 || status.Bytes <= status.Unneeded.Bytes {
		t.Errorf("status: %+v, unneeded %+v", status, status.Unneeded)
	}

	// What has just come stays.
	if p := prune(PruneOptions{Now: time.Now()}); len(p.Removed) > 0 || p.Young != 1 || s.held() != all {
		t.Errorf("young packages: %+v, and the store holds %s", p, s.held())
	}
	p := prune(PruneOptions{Now: later(), DryRun: true})
	if diff := cmp.Diff([]string{"nobody@1.0.0"}, names(p)); diff != "" || s.held() != all {
		t.Errorf("a dry run: %s, and the store holds %s", diff, s.held())
	}
	p = prune(PruneOptions{Now: later()})
	if diff := cmp.Diff([]string{"nobody@1.0.0"}, names(p)); diff != "" || p.Bytes != status.Unneeded.Bytes || p.Left.Packages != 7 {
		t.Errorf("%s, %+v", diff, p)
	}
	if got := s.held(); got != "before marked now pinned removed replaced staged" {
		t.Errorf("the store holds %s", got)
	}

	removed, err := Forgettable(s.env)
	if diff := cmp.Diff([]string{"gone"}, removed); diff != "" || err != nil {
		t.Errorf("%s, %v", diff, err)
	}
	// What is back, or was never removed, stays.
	if p := prune(PruneOptions{Now: later(), Forget: []string{"x", "other"}}); len(p.Removed)+len(p.Forgotten) > 0 {
		t.Errorf("profiles that are there: %+v", p)
	}
	p = prune(PruneOptions{Now: later(), DryRun: true, Forget: removed})
	if diff := cmp.Diff([]string{"removed@1.0.0"}, names(p)); diff != "" || len(p.Forgotten) != 1 {
		t.Errorf("a dry run that forgets: %s, %v", diff, p.Forgotten)
	}
	if list, err := gone.History().List(); err != nil || len(list) < 2 {
		t.Errorf("a dry run forgot: %d generations, %v", len(list), err)
	}
	p = prune(PruneOptions{Now: later(), Forget: removed})
	if diff := cmp.Diff([]string{"gone"}, p.Forgotten); diff != "" {
		t.Error(diff)
	}
	if got := s.held(); got != "before marked now pinned replaced staged" {
		t.Errorf("the store holds %s", got)
	}
	if list, err := gone.History().List(); err != nil || len(list) != 1 || !list[0].Pinned {
		t.Errorf("after forgetting: %v, %v", list, err)
	}
	if p := prune(PruneOptions{Now: later(), Forget: removed}); len(p.Forgotten)+len(p.Removed) > 0 {
		t.Errorf("once more: %+v", p)
	}
	if removed, err := Forgettable(s.env); err != nil || len(removed) > 0 {
		t.Errorf("forgotten already: %v, %v", removed, err)
	}
}

// A lockfile or a generation that cannot be read may need anything.
func TestPruneStopsWhereNothingCanBeTold(t *testing.T) {
	for name, c := range map[string]struct {
		damage func(s *stocked, place staging.Place) string // and what the error names
		hint   string
	}{
		"a lockfile": {func(s *stocked, place staging.Place) string {
			file := filepath.Join(place.Dir, install.LockName)
			s.write(file, "\t")
			return file
		}, "dsh profile repair x"},
		"a kept lockfile": {func(s *stocked, place staging.Place) string {
			file := filepath.Join(place.State, "replaced-1", install.LockName)
			s.write(file, "\t")
			return file
		}, ""},
		"a generation": {func(s *stocked, place staging.Place) string {
			files, err := filepath.Glob(filepath.Join(place.State, "generations", "*.tar.gz"))
			s.must(err)
			s.write(files[0], "no archive")
			return files[0]
		}, "moved away"},
		"a profile on a disk that is not there": {func(s *stocked, place staging.Place) string {
			return s.unmount(place.Dir)
		}, "mount the disk"},
		"all profiles on a disk that is not there": {func(s *stocked, place staging.Place) string {
			return s.unmount(filepath.Dir(place.Dir))
		}, "mount the disk"},
		"a kept directory on a disk that is not there": {func(s *stocked, place staging.Place) string {
			s.must(os.Mkdir(filepath.Join(place.State, "replaced-1"), 0o755))
			return s.unmount(filepath.Join(place.State, "replaced-1"))
		}, "mount the disk"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStocked(t, "now", "nobody")
			file := c.damage(s, s.change("x", "now"))
			_, err := PruneStore(context.Background(), s.env, PruneOptions{Now: later(), Forget: []string{"x"}})
			if err == nil || !strings.Contains(err.Error(), file) || !strings.Contains(fault.Hint(err), c.hint) {
				t.Errorf("%v, hint %q", err, fault.Hint(err))
			}
			if got := s.held(); got != "nobody now" {
				t.Errorf("the store holds %s", got)
			}
			if got := s.generations("x"); got != 1 {
				t.Errorf("%d generations", got)
			}
			status, err := Store(s.env)
			if err != nil || status.Unneeded != nil || len(status.Warnings) != 1 || status.Packages != 2 {
				t.Errorf("status: %+v, %v", status, err)
			}
		})
	}
}

// Nothing is pruned while a command changes a profile.
func TestPruneWaitsForProfiles(t *testing.T) {
	s := newStocked(t, "now")
	s.change("x", "now")
	parsed, err := profile.ParseName("x")
	s.must(err)
	tx, _, err := s.env.begin(t.Context(), parsed, nil)
	s.must(err)
	s.env.Wait = 20 * time.Millisecond
	_, err = PruneStore(context.Background(), s.env, PruneOptions{Now: later()})
	if _, held := errors.AsType[*staging.HeldError](err); !held {
		t.Errorf("a profile is being changed: %v", err)
	}
	s.must(tx.Rollback())
	_, err = PruneStore(context.Background(), s.env, PruneOptions{Now: later()})
	s.must(err)
}

// endsWith is a context that is done as soon as a file is gone.
type endsWith struct {
	context.Context
	file string
}

func (c endsWith) Err() error {
	if _, err := os.Lstat(c.file); err != nil {
		return context.Canceled
	}
	return nil
}

// What was given up is told of, also when the packages then stay.
func TestPruneTellsWhatIsGoneWhenItFails(t *testing.T) {
	s := newStocked(t, "removed", "nobody")
	gone := s.change("gone", "removed")
	s.must(os.RemoveAll(gone.Dir))
	files, err := filepath.Glob(filepath.Join(gone.State, "generations", "*.tar.gz"))
	s.must(err)
	ctx := endsWith{context.Background(), files[0]}
	pruned, err := PruneStore(ctx, s.env, PruneOptions{Now: later(), Forget: []string{"gone"}})
	if !errors.Is(err, context.Canceled) || pruned == nil {
		t.Fatalf("%+v, %v", pruned, err)
	}
	if diff := cmp.Diff([]string{"gone"}, pruned.Forgotten); diff != "" || s.held() != "nobody removed" {
		t.Errorf("%s, and the store holds %s", diff, s.held())
	}
}

// A home without a store has nothing to prune, and gets none.
func TestPruneNothing(t *testing.T) {
	env, _ := world(t)
	pruned, err := PruneStore(context.Background(), env, PruneOptions{Now: later(), Forget: []string{"x"}})
	if err != nil || len(pruned.Removed) > 0 {
		t.Errorf("%+v, %v", pruned, err)
	}
	if entries, err := os.ReadDir(env.Home.Dir()); err != nil || len(entries) > 0 {
		t.Errorf("it made %v, %v", entries, err)
	}
}
