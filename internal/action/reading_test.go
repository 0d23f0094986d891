package action

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"testing"

	"dsh/internal/install"
	"dsh/internal/profile"
	"dsh/internal/staging"
)

// dying is a filesystem that cannot exchange two directories, for a process that
// dies as soon as one is not there.
type dying struct {
	staging.FS
	dir  string
	dead bool
}

var errDead = errors.New("the process is dead")

func (d *dying) change(do func() error) error {
	if d.dead {
		return errDead
	}
	err := do()
	_, gone := os.Lstat(d.dir)
	d.dead = errors.Is(gone, fs.ErrNotExist)
	return err
}

func (d *dying) Exchange(string, string) error { return errors.ErrUnsupported }
func (d *dying) Rename(from, to string) error {
	return d.change(func() error { return d.FS.Rename(from, to) })
}
func (d *dying) RenameNew(from, to string) error {
	return d.change(func() error { return d.FS.RenameNew(from, to) })
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
func (d *dying) Create(path string, perm fs.FileMode) (f staging.File, err error) {
	return f, d.change(func() error { f, err = d.FS.Create(path, perm); return err })
}

// A profile whose directory is out of its place, since the process that replaced
// it died, is there for every command.
func TestCommandsFindAProfileThatIsBeingReplaced(t *testing.T) {
	for what, command := range map[string]func(Env, profile.Name) error{
		"plugin install": func(env Env, name profile.Name) error {
			_, err := Install(t.Context(), env, PluginOptions{Name: name, Offline: true}, install.InstallOptions{})
			return err
		},
		"plugin update": func(env Env, name profile.Name) error {
			_, err := Update(t.Context(), env, PluginOptions{Name: name}, nil, false)
			return err
		},
		"plugin remove": func(env Env, name profile.Name) error {
			_, err := Remove(t.Context(), env, PluginOptions{Name: name, Offline: true}, []string{"x"}, false)
			return err
		},
		"profile export": func(env Env, name profile.Name) error {
			_, err := Export(t.Context(), env, ExportOptions{Name: name, File: "x.tar.gz"})
			return err
		},
		"profile remove": func(env Env, name profile.Name) error {
			_, err := CheckRemovable(env, []profile.Name{name}, false)
			return err
		},
		"profile rename": func(env Env, name profile.Name) error {
			to, err := profile.ParseName("other")
			if err == nil {
				_, err = RenameProfile(t.Context(), env, PluginOptions{Name: to, Offline: true}, name)
			}
			return err
		},
	} {
		t.Run(what, func(t *testing.T) {
			env, name := world(t)
			if _, err := replace(env, name, false); err != nil {
				t.Fatal(err)
			}
			place := env.Home.Place(name)
			_, err := staging.ReplaceDir(context.Background(), place, func(stage string) error {
				return profile.Write(stage, name, profile.BaseTemplate())
			}, staging.Options{FS: &dying{FS: staging.OS, dir: place.Dir}})
			if _, gone := os.Lstat(place.Dir); !errors.Is(err, errDead) || !errors.Is(gone, fs.ErrNotExist) {
				t.Fatalf("it lives: %v, %v", err, gone)
			}
			if err := command(env, name); err != nil {
				t.Error(err)
			}
		})
	}
}
