package staging

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// smallProfile has one of everything.
func smallProfile(t testing.TB, home string) {
	p := filepath.Join(home, "profiles", "web")
	put(t, p+"/package.json", `{"old":1}`, 0o600)
	put(t, p+"/node_modules/a/package.json", "a1", 0o644)
	link(t, "only", p+"/node_modules/@s/only")
	link(t, "../../src/linked", p+"/node_modules/linked")
}

// fullProfile is a profile as installs leave it, with neighbours whose names
// look like its staging.
func fullProfile(t testing.TB, home string) {
	smallProfile(t, home)
	p := filepath.Join(home, "profiles", "web")
	put(t, p+"/dsh-lock.yaml", "old: 1\n", 0o644)
	put(t, p+"/cordis.patch.yml", "[]\n", 0o644)
	put(t, p+"/node_modules/b/package.json", "b1", 0o644)
	mkdir(t, filepath.Join(home, "profiles", "web.staging-0123456789ab"))
	mkdir(t, filepath.Join(home, "profiles", ".web.staging-not-ours"))
}

// inTx makes a run of a function that fills a transaction.
func inTx(fill func(t testing.TB, tx *Tx) error) func(testing.TB, FS, string) ([]string, error) {
	return func(t testing.TB, fsys FS, home string) ([]string, error) {
		tx, err := Begin(t.Context(), placeIn(home), Options{FS: fsys, Command: "test"})
		if err != nil {
			return nil, err
		}
		// Not deferred to look at its error; a death skips it in any case.
		if err := fill(t, tx); err != nil {
			return tx.Warnings(), errors.Join(err, tx.Rollback())
		}
		err = tx.Commit()
		return tx.Warnings(), errors.Join(err, tx.Rollback())
	}
}

// stagePackage builds a package below the stage, with plain calls as an
// installer does.
func stagePackage(t testing.TB, tx *Tx, name, version string) string {
	dir := filepath.Join(tx.Stage(), name)
	put(t, dir+"/package.json", version, 0o644)
	put(t, dir+"/dist/main.js", version, 0o755)
	return dir
}

func stageLink(t testing.TB, tx *Tx, name, target string) string {
	path := filepath.Join(tx.Stage(), name)
	link(t, target, path)
	return path
}

func stageFile(t testing.TB, tx *Tx, name, content string) string {
	path := filepath.Join(tx.Stage(), name)
	put(t, path, content, 0o644)
	return path
}

var scenarios = []scenario{
	{"replace a file", false, smallProfile, inTx(func(t testing.TB, tx *Tx) error {
		return tx.WriteFile("package.json", []byte(`{"new":2}`), 0o644)
	})},
	{"create a derived file", false, smallProfile, inTx(func(t testing.TB, tx *Tx) error {
		return tx.WriteFile("cordis.yml", []byte("new"), 0o644)
	})},
	{"create a file", false, smallProfile, inTx(func(t testing.TB, tx *Tx) error {
		return tx.WriteFile("extra.yml", []byte("new"), 0o644)
	})},
	{"create a file in a new directory", false, smallProfile, inTx(func(t testing.TB, tx *Tx) error {
		return tx.WriteFile("agent-plugins/x/package.json", []byte("new"), 0o644)
	})},
	{"replace a directory", false, smallProfile, inTx(func(t testing.TB, tx *Tx) error {
		return tx.Replace("node_modules/a", stagePackage(t, tx, "a", "a2"))
	})},
	{"create a directory in a new scope", false, smallProfile, inTx(func(t testing.TB, tx *Tx) error {
		return tx.Replace("node_modules/@new/a", stagePackage(t, tx, "a", "a2"))
	})},
	{"replace all packages", false, smallProfile, inTx(func(t testing.TB, tx *Tx) error {
		stagePackage(t, tx, "node_modules/c", "c2")
		return tx.Replace("node_modules", filepath.Join(tx.Stage(), "node_modules"))
	})},
	{"replace a link", false, smallProfile, inTx(func(t testing.TB, tx *Tx) error {
		return tx.Replace("node_modules/linked", stageLink(t, tx, "l", "../elsewhere"))
	})},
	{"create a link", false, smallProfile, inTx(func(t testing.TB, tx *Tx) error {
		return tx.Replace("node_modules/more", stageLink(t, tx, "l", "../elsewhere"))
	})},
	{"a directory becomes a link", false, smallProfile, inTx(func(t testing.TB, tx *Tx) error {
		return tx.Replace("node_modules/a", stageLink(t, tx, "l", "../elsewhere"))
	})},
	{"a link becomes a directory", false, smallProfile, inTx(func(t testing.TB, tx *Tx) error {
		return tx.Replace("node_modules/linked", stagePackage(t, tx, "a", "a2"))
	})},
	{"a directory becomes a file", false, smallProfile, inTx(func(t testing.TB, tx *Tx) error {
		return tx.Replace("node_modules/a", stageFile(t, tx, "f", "new"))
	})},
	{"a file becomes a directory", false, smallProfile, inTx(func(t testing.TB, tx *Tx) error {
		return tx.Replace("package.json", stagePackage(t, tx, "a", "a2"))
	})},
	{"a link becomes a file", false, smallProfile, inTx(func(t testing.TB, tx *Tx) error {
		return tx.Replace("node_modules/linked", stageFile(t, tx, "f", "new"))
	})},
	{"remove a file", false, smallProfile, inTx(func(t testing.TB, tx *Tx) error {
		return tx.Remove("package.json")
	})},
	{"remove a directory", false, smallProfile, inTx(func(t testing.TB, tx *Tx) error {
		return tx.Remove("node_modules/a")
	})},
	{"remove a link", false, smallProfile, inTx(func(t testing.TB, tx *Tx) error {
		return tx.Remove("node_modules/linked")
	})},
	{"remove the last of a scope", false, smallProfile, inTx(func(t testing.TB, tx *Tx) error {
		return tx.Remove("node_modules/@s/only")
	})},
	{"empty a scope of two", false, func(t testing.TB, home string) {
		put(t, home+"/profiles/web/node_modules/@t/one/package.json", "t1", 0o644)
		put(t, home+"/profiles/web/node_modules/@t/two/package.json", "t2", 0o644)
	}, inTx(func(t testing.TB, tx *Tx) error {
		return errors.Join(tx.Remove("node_modules/@t/one"), tx.Remove("node_modules/@t/two"))
	})},
	{"remove the last nested package", false, func(t testing.TB, home string) {
		smallProfile(t, home)
		put(t, home+"/profiles/web/node_modules/a/node_modules/@n/b/package.json", "b1", 0o644)
	}, inTx(func(t testing.TB, tx *Tx) error {
		return tx.Remove("node_modules/a/node_modules/@n/b")
	})},
	{"exchange the package of a scope", false, smallProfile, inTx(func(t testing.TB, tx *Tx) error {
		return errors.Join(tx.Remove("node_modules/@s/only"), tx.Replace("node_modules/@s/other", stagePackage(t, tx, "o", "o2")))
	})},
	{"mixed", true, fullProfile, inTx(mixed)},
	{"a file that a link leads to", true, func(t testing.TB, home string) {
		fullProfile(t, home)
		moveAndLink(t, home+"/profiles/web/package.json", home+"/dotfiles/web.json")
		link(t, "../../dotfiles/not-yet.yml", home+"/profiles/web/cordis.yml")
	}, inTx(func(t testing.TB, tx *Tx) error {
		return errors.Join(mixed(t, tx), tx.WriteFile("cordis.yml", []byte("made"), 0o644))
	})},
	{"a profile that is a link", false, func(t testing.TB, home string) {
		fullProfile(t, home)
		moveAndLink(t, home+"/profiles/web", home+"/dotfiles/web")
	}, inTx(mixed)},
	{"replace the profile", true, fullProfile, replaceProfile},
	{"replace a profile that is a link", false, func(t testing.TB, home string) {
		fullProfile(t, home)
		moveAndLink(t, home+"/profiles/web", home+"/dotfiles/web")
	}, replaceProfile},
	{"replace a profile not worth keeping", false, smallProfile, func(t testing.TB, fsys FS, home string) ([]string, error) {
		r, err := ReplaceDir(t.Context(), placeIn(home), func(stage string) error {
			return disk{fsys}.writeFile(filepath.Join(stage, "package.json"), []byte(`{"fresh":1}`), 0o644)
		}, Options{FS: fsys, Command: "test", Decide: func() (bool, error) { return true, nil }})
		return r.Warnings, err
	}},
	{"replace the profile, without exchange", true, fullProfile, func(t testing.TB, fsys FS, home string) ([]string, error) {
		return replaceProfile(t, poor{fsys}, home)
	}},
	{"mixed, without exchange and links", true, fullProfile, func(t testing.TB, fsys FS, home string) ([]string, error) {
		return inTx(mixed)(t, poor{fsys}, home)
	}},
	{"change what was edited by hand", false, func(t testing.TB, home string) {
		fullProfile(t, home)
		saveState(t, home, "dsh before")
		put(t, home+"/profiles/web/package.json", `{"by":"hand"}`, 0o600)
	}, inTx(func(t testing.TB, tx *Tx) error {
		return tx.WriteFile("package.json", []byte(`{"new":2}`), 0o644)
	})},
	{"restore a generation", true, restorable, inTx(restore)},
	{"restore a generation, without exchange and links", false, restorable, func(t testing.TB, fsys FS, home string) ([]string, error) {
		return inTx(restore)(t, poor{fsys}, home)
	}},
	{"make the profile in a transaction", true, func(t testing.TB, home string) {}, makeInTx},
	{"make it again, and restore it", false, func(t testing.TB, home string) {
		fullProfile(t, home)
		saveState(t, home, "dsh before")
		if err := os.RemoveAll(home + "/profiles/web"); err != nil {
			t.Fatal(err)
		}
	}, func(t testing.TB, fsys FS, home string) ([]string, error) {
		return inNewTx(func(t testing.TB, tx *Tx) error {
			g, err := placeIn(home).History().Load(1)
			must(t, err)
			return tx.Restore(g)
		})(t, fsys, home)
	}},
	{"remove the profile", true, fullProfile, removeProfile},
	{"remove a profile whose state is saved", false, func(t testing.TB, home string) {
		fullProfile(t, home)
		saveState(t, home, "dsh before")
	}, removeProfile},
	{"remove a profile that is a link", false, func(t testing.TB, home string) {
		fullProfile(t, home)
		moveAndLink(t, home+"/profiles/web", home+"/dotfiles/web")
		put(t, home+"/dotfiles/web/.git/HEAD", "main", 0o644)
	}, removeProfile},
	{"move the profile", true, movable, moveProfile},
	{"move a profile that is a link", false, func(t testing.TB, home string) {
		movable(t, home)
		moveAndLink(t, home+"/profiles/web", home+"/dotfiles/web")
	}, moveProfile},
	{"make the profile", false, func(t testing.TB, home string) {}, replaceProfile},
	{"make the first profile", true, func(t testing.TB, home string) {
		if err := os.Remove(home + "/profiles"); err != nil {
			t.Fatal(err)
		}
	}, replaceProfile},
}

// saveState saves the profile as it is.
func saveState(t testing.TB, home, command string) {
	t.Helper()
	g, err := Snapshot(placeIn(home))
	must(t, err)
	_, _, err = placeIn(home).History().Save(t.Context(), g.Files, command, noon)
	must(t, err)
	// The next change is the one that is looked at.
	must(t, os.Remove(filepath.Join(placeIn(home).State, "generations", "lock")))
}

// restorable is a profile that differs from the generation of restore in all ways.
func restorable(t testing.TB, home string) {
	fullProfile(t, home)
	p := home + "/profiles/web"
	put(t, p+"/agent-plugins/new/deep/main.js", "goes", 0o644)
	put(t, p+"/was-file/inside", "goes", 0o644)
	put(t, p+"/was-folder", "goes", 0o644)
	link(t, "package.json", p+"/was-link")
	put(t, p+"/run.sh", "same", 0o644)
}

func restore(t testing.TB, tx *Tx) error {
	return tx.Restore(&Generation{ID: 7, Files: []SavedFile{
		{"agent-plugins/old/main.js", 0o755, []byte("back")},
		{"cordis.patch.yml", 0o644, []byte("[]\n")},
		{"link", fs.ModeSymlink, []byte("../elsewhere")},
		{"package.json", 0o600, []byte(`{"older":0}`)},
		{"run.sh", 0o755, []byte("same")},
		{"was-file", 0o644, []byte("back")},
		{"was-folder/a/b", 0o644, []byte("back")},
		{"was-folder/c", fs.ModeSymlink, []byte("a/b")},
		{"was-link", 0o644, []byte("back")},
	}})
}

// inNewTx is inTx of a profile that the transaction makes where it is missing.
func inNewTx(fill func(t testing.TB, tx *Tx) error) func(testing.TB, FS, string) ([]string, error) {
	return func(t testing.TB, fsys FS, home string) ([]string, error) {
		tx, err := Begin(t.Context(), placeIn(home), Options{FS: fsys, Command: "test", Init: func(dir string) error {
			return errors.Join(
				disk{fsys}.writeFile(filepath.Join(dir, "package.json"), []byte(`{"fresh":1}`), 0o644),
				disk{fsys}.writeFile(filepath.Join(dir, "cordis.patch.yml"), []byte("[]\n"), 0o644))
		}})
		if err != nil {
			return nil, err
		}
		if err := fill(t, tx); err != nil {
			return tx.Warnings(), errors.Join(err, tx.Rollback())
		}
		err = tx.Commit()
		return tx.Warnings(), errors.Join(err, tx.Rollback())
	}
}

var makeInTx = inNewTx(func(t testing.TB, tx *Tx) error {
	return errors.Join(
		tx.Expect("package.json", []byte(`{"fresh":1}`)),
		tx.WriteFile("package.json", []byte(`{"new":2}`), 0o644),
		tx.WriteFile("dsh-lock.yaml", []byte("new: 2\n"), 0o644),
		tx.Replace("node_modules/@new/c", stagePackage(t, tx, "c", "c2")),
		tx.Replace("agent-plugins/x", stagePackage(t, tx, "x", "x2")),
		tx.Remove("node_modules/not-there"))
})

func removeProfile(t testing.TB, fsys FS, home string) ([]string, error) {
	r, err := RemoveDir(t.Context(), placeIn(home), Options{FS: fsys, Command: "test"})
	return r.Warnings, err
}

// movable is a profile with all that belongs to one, and older generations at
// its new name.
func movable(t testing.TB, home string) {
	fullProfile(t, home)
	saveState(t, home, "dsh before")
	place := placeIn(home)
	put(t, filepath.Join(place.State, "generations", "1.pin"), "", 0o600)
	put(t, filepath.Join(place.State, replacedMark+"2", "package.json"), "replaced", 0o644)
	put(t, filepath.Join(movedIn(home).State, replacedMark+"1", "package.json"), "of another", 0o644)
	_, _, err := movedIn(home).History().Save(t.Context(), []SavedFile{saved("package.json", "of another")}, "dsh another", noon)
	must(t, err, os.Remove(filepath.Join(movedIn(home).State, "generations", "lock")))
}

func moveProfile(t testing.TB, fsys FS, home string) ([]string, error) {
	return nil, MoveDir(t.Context(), placeIn(home), movedIn(home), Options{FS: fsys, Command: "test"})
}

func mixed(t testing.TB, tx *Tx) error {
	return errors.Join(
		tx.Expect("package.json", []byte(`{"old":1}`)),
		tx.Expect("absent.yml", nil),
		tx.WriteFile("package.json", []byte(`{"new":2}`), 0o644),
		tx.WriteFile("dsh-lock.yaml", []byte("new: 2\n"), 0o644),
		tx.WriteFile("cordis.patch.yml", []byte("[]\n"), 0o644), // as it is
		tx.Replace("node_modules/a", stagePackage(t, tx, "a", "a2")),
		tx.Replace("node_modules/@new/c", stagePackage(t, tx, "c", "c2")),
		tx.Replace("node_modules/linked", stageLink(t, tx, "l", "../elsewhere")),
		tx.Remove("node_modules/@s/only"),
		tx.Remove("node_modules/b"),
		tx.Remove("node_modules/not-there"),
		tx.Remove("node_modules/@none/not-there"),
	)
}

func replaceProfile(t testing.TB, fsys FS, home string) ([]string, error) {
	r, err := ReplaceDir(t.Context(), placeIn(home), func(stage string) error {
		return errors.Join(
			disk{fsys}.writeFile(filepath.Join(stage, "package.json"), []byte(`{"fresh":1}`), 0o644),
			disk{fsys}.writeFile(filepath.Join(stage, "cordis.patch.yml"), []byte("[]\n"), 0o644))
	}, Options{FS: fsys, Command: "test"})
	return r.Warnings, err
}

// moveAndLink moves a file or directory and leaves a link to it.
func moveAndLink(t testing.TB, from, to string) {
	mkdir(t, filepath.Dir(to))
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
	rel, err := filepath.Rel(filepath.Dir(from), to) // the same in every home
	if err != nil {
		t.Fatal(err)
	}
	link(t, rel, from)
}
