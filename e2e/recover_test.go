package e2e

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"dsh/internal/staging"
)

// dying is the real filesystem until so many renames were made; then every
// change fails, as after the death of the process.
type dying struct {
	staging.FS
	renames int
}

var errDead = errors.New("the process is dead")

func (d *dying) rename(do func() error) error {
	if d.renames == 0 {
		return errDead
	}
	d.renames--
	return do()
}

func (d *dying) change(do func() error) error {
	if d.renames == 0 {
		return errDead
	}
	return do()
}

func (d *dying) Rename(from, to string) error {
	return d.rename(func() error { return d.FS.Rename(from, to) })
}

func (d *dying) RenameNew(from, to string) error {
	return d.rename(func() error { return d.FS.RenameNew(from, to) })
}

func (d *dying) Mkdir(path string, perm fs.FileMode) error {
	return d.change(func() error { return d.FS.Mkdir(path, perm) })
}

func (d *dying) Remove(path string) error {
	return d.change(func() error { return d.FS.Remove(path) })
}

func (d *dying) RemoveAll(path string) error {
	return d.change(func() error { return d.FS.RemoveAll(path) })
}

func (d *dying) Create(path string, perm fs.FileMode) (staging.File, error) {
	if d.renames == 0 {
		return nil, errDead
	}
	return d.FS.Create(path, perm)
}

// TestReadersSeeNoHalfChange lets the process that adds a bundle die after
// each rename of its commit. Whoever reads the profile next sees all of the
// bundle or nothing of it.
func TestReadersSeeNoHalfChange(t *testing.T) {
	seen := map[bool]bool{}
	for renames := range 9 {
		home := t.TempDir()
		dsh := func(args ...string) (string, error) {
			cmd := exec.Command(program, args...)
			cmd.Env = append(os.Environ(), "DSH_HOME="+home)
			out, err := cmd.CombinedOutput()
			return string(out), err
		}
		if out, err := dsh("plugin", "--profile", "demo", "install"); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		place := staging.Place{Dir: filepath.Join(home, "profiles", "demo"), State: filepath.Join(home, "state", "demo")}
		disk := &dying{staging.OS, -1} // lives as long as it must
		tx, err := staging.Begin(context.Background(), place, staging.Options{FS: disk})
		if err != nil {
			t.Fatal(err)
		}
		bundle := filepath.Join(tx.Stage(), "bundle")
		for file, text := range map[string]string{
			"package.json": `{"name":"bundle","version":"1.0.0","dsh":{"bundle":{"patch":"p.yml"}}}`,
			"p.yml":        "- insert: [{id: from-the-bundle, name: x}]\n",
		} {
			if err := os.MkdirAll(bundle, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(bundle, file), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		manifest := `{"dependencies":{"bundle":"1.0.0"},"dsh":{"profile":{"bundles":["bundle"]}}}`
		if err := errors.Join(tx.Replace("node_modules/bundle", bundle), tx.WriteFile("package.json", []byte(manifest), 0o644)); err != nil {
			t.Fatal(err)
		}
		disk.renames = renames
		committed := tx.Commit() == nil

		out, err := dsh("demo", "--dump-config")
		if err != nil {
			t.Fatalf("after %d renames: %v\n%s", renames, err, out)
		}
		added := strings.Contains(out, "from-the-bundle")
		if strings.Contains(out, "skipping") || added == strings.Contains(out, "# == @deepseek-ai/dsh-base") {
			t.Errorf("after %d renames a reader sees a mix:\n%s", renames, out)
		}
		if committed && !added {
			t.Errorf("after %d renames the change was reported and is not there", renames)
		}
		seen[added] = true
		// A reader leaves what lies about for the next change.
		next, err := staging.Begin(context.Background(), place, staging.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := next.Rollback(); err != nil {
			t.Fatal(err)
		}
		listing, err := filepath.Glob(filepath.Join(home, "profiles", ".*"))
		if err != nil || len(listing) > 0 {
			t.Errorf("after %d renames litter stays: %v %v", renames, listing, err)
		}
	}
	if !seen[true] || !seen[false] {
		t.Errorf("the deaths were all on one side of the commit: %v", seen)
	}
}
