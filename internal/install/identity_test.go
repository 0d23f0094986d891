package install

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dsh/e2e/npmtest"
	"dsh/internal/fault"
	"dsh/internal/install/store"
)

// relock edits the profile's lockfile.
func (w *workshop) relock(name string, edit func(*Lock)) {
	w.t.Helper()
	lock := w.lock(name)
	edit(lock)
	w.write("profiles/"+name+"/"+LockName, string(lock.Bytes()))
}

// contentOf gives the package at a place of a lockfile another content.
func contentOf(at string, id store.Integrity) func(*Lock) {
	return func(l *Lock) {
		n := l.Nodes[at]
		pkg := *n.Package
		pkg.Integrity = id
		n.Package = &pkg
		l.Nodes[at] = n
	}
}

// bring puts an archive into the store, as a set of packages does.
func (w *workshop) bring(archive []byte) store.Integrity {
	w.t.Helper()
	packages := w.openStore()
	entry, err := packages.AddTarball(w.t.Context(), bytes.NewReader(archive), store.Integrity{})
	w.must(err)
	w.must(packages.Close())
	return entry.Integrity
}

// A content that is another package than the lockfile says is not laid out,
// whatever it is called there, and no script of it runs.
func TestContentOfAnotherPackage(t *testing.T) {
	const makes, left = "node_modules/@acme/makes", "node_modules/left"
	for name, c := range map[string]struct {
		edit func(w *workshop, l *Lock)
		want string
	}{
		"another name": {func(w *workshop, l *Lock) { contentOf(makes, l.Nodes[left].Integrity)(l) }, "@acme/makes@1.0.0: its content is left@1.0.0"},
		"another version": {func(w *workshop, l *Lock) {
			w.newProfile("other")
			w.add("other", "@acme/makes@1.1.0")
			contentOf(makes, w.lock("other").Nodes[makes].Integrity)(l)
		}, "@acme/makes@1.0.0: its content is @acme/makes@1.1.0"},
		"no name": {func(w *workshop, l *Lock) {
			contentOf(makes, w.bring(tarball(w.t, map[string]string{"package.json": `{"version": "1.0.0", "scripts": {"install": "echo x > made.txt"}}`})))(l)
		}, "its content is a package without a name"},
		"an optional package": {func(w *workshop, l *Lock) {
			contentOf(makes, l.Nodes[left].Integrity)(l)
			n := l.Nodes[makes]
			n.Optional = true
			l.Nodes[makes] = n
		}, "its content is left@1.0.0"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorkshop(t)
			w.newProfile("x")
			w.add("x", "@acme/makes@1.0.0", "left@1.0.0")
			before := w.identities("x")
			w.relock("x", func(l *Lock) { c.edit(w, l) })
			for _, opts := range []InstallOptions{{}, {Frozen: true}, {Force: true}} {
				_, err := w.try("x", func(j *Job) (*Result, error) {
					j.Approved = allowed("@acme/makes")
					return j.Install(t.Context(), opts)
				})
				if opts.Frozen && name == "an optional package" {
					continue // package.json does not call it so
				}
				if err == nil || fault.ClassOf(err) != fault.Package || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%+v: %v", opts, err)
				}
				if got := w.built("x", "@acme/makes/made.txt"); got != "" {
					t.Errorf("%+v: a script ran: %s", opts, got)
				}
			}
			if now := w.identities("x"); now[left+"/package.json"] != before[left+"/package.json"] {
				t.Error("it was laid out")
			}
		})
	}
}

// What a set of packages, or a lockfile that travelled, brings under a name is not
// what the profile's registry has under it, and its scripts do not run by that name.
func TestNamesAreOfTheRegistry(t *testing.T) {
	w := newWorkshop(t)
	for _, who := range []string{"theirs", "mine"} {
		w.write("registry-"+who+"/good_1.0.0.txtar", `-- package.json --
{"name": "good", "version": "1.0.0", "scripts": {"postinstall": "echo `+who+` > made.txt"}}
`)
	}
	var err error
	w.registry, err = npmtest.New(filepath.Join(w.home, "registry-theirs"))
	w.must(err)
	t.Cleanup(w.registry.Close)
	w.newProfile("theirs")
	w.add("theirs", "good@1.0.0")
	for _, file := range []string{"package.json", LockName} {
		text, err := os.ReadFile(filepath.Join(w.ground("theirs").place.Dir, file))
		w.must(err)
		w.write("profiles/mine/"+file, string(text))
	}
	w.registry, err = npmtest.New(filepath.Join(w.home, "registry-mine"))
	w.must(err)
	t.Cleanup(w.registry.Close)
	for _, offline := range []bool{true, false} {
		w.offline = offline
		result, err := w.settled("mine", "good", InstallOptions{})
		if offline && (err != nil || len(result.Pending) != 1) {
			t.Errorf("offline: %v, pending are %+v", err, result)
		}
		if !offline && (fault.ClassOf(err) != fault.Package || !strings.Contains(err.Error(), "good@1.0.0 is something else")) {
			t.Errorf("the error is %v", err)
		}
		if got := w.built("mine", "good/made.txt"); got != "" {
			t.Errorf("it ran: %q", got)
		}
	}
	// What was looked at and approved is this content, whoever has it.
	w.offline = true
	_, err = w.approving("mine", "good")
	w.must(err)
	if got := w.built("mine", "good/made.txt"); got != "theirs" {
		t.Errorf("it made %q", got)
	}
}
