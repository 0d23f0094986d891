package action

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"dsh/internal/fault"
	"dsh/internal/install"
	"dsh/internal/install/store"
	"dsh/internal/profile"
	"dsh/internal/staging"
)

// rebuilt lays packages of a profile out anew that a power loss has taken: the
// small files of a profile are synced when it is changed, and its packages are
// not. They are looked at once after the machine was started, where the profile
// was changed before that; at all other times nothing is read. What was done, or
// could not be done, comes back in words.
func rebuilt(ctx context.Context, env Env, name profile.Name) (warnings []string) {
	place := env.Home.Place(name)
	if !staging.Unclean(place) {
		return nil
	}
	lost, err := env.lost(name, place.Dir)
	if err == nil && len(lost) > 0 {
		if lost, err = env.rebuild(ctx, name); err == nil && len(lost) > 0 {
			warnings = []string{fmt.Sprintf("profile %s: these packages were damaged when the machine stopped, and were laid out again: %s", name, placesInWords(lost))}
		}
	}
	if ctx.Err() != nil {
		return nil // the command says that it was interrupted
	}
	if err != nil {
		what := "packages that may have been damaged when the machine stopped"
		if len(lost) > 0 {
			what = "packages that were damaged when the machine stopped (" + placesInWords(lost) + ")"
		}
		return []string{fmt.Sprintf("profile %s has %s: %v; %s tries again", name, what, err, fault.ShellWords("dsh", "profile", "repair", name.String()))}
	}
	// Where this cannot be noted they are looked at again the next time.
	_ = staging.MarkClean(place)
	return warnings
}

// lost is what a power loss has taken of a profile's packages.
func (env Env) lost(name profile.Name, dir string) ([]string, error) {
	lock, err := lockIn(dir)
	if lock == nil || err != nil {
		return nil, err
	}
	packages := store.Open(env.Home.StoreDir())
	lost, err := install.Lost(dir, env.Home.PluginDataDir(name), lock, packages)
	return lost, errors.Join(err, packages.Close())
}

// lockIn is the lockfile in a directory, nil where there is none.
func lockIn(dir string) (*install.Lock, error) {
	file := filepath.Join(dir, install.LockName)
	text, err := profile.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return install.ParseLock(file, text)
}

// rebuild makes what is lost anew, and says what that was.
func (env Env) rebuild(ctx context.Context, name profile.Name) (lost []string, err error) {
	tx, p, err := env.begin(ctx, name, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, tx.Rollback()) }()
	lock, err := lockIn(tx.Dir())
	if err != nil || lock == nil {
		return nil, err
	}
	// Somebody else may have been faster.
	if lost, err = env.lost(name, tx.Dir()); err != nil || len(lost) == 0 {
		return nil, err
	}
	return lost, env.withJob(PluginOptions{Name: name}, tx, p, func(j *install.Job) error {
		j.Anew = lost
		if _, err := j.Restore(ctx, p.Manifest, lock); err != nil {
			return err
		}
		return tx.Commit()
	})
}

// placesInWords names places in node_modules as people do.
func placesInWords(places []string) string {
	words := make([]string, len(places))
	for i, at := range places {
		words[i] = strings.ReplaceAll(strings.TrimPrefix(at, "node_modules/"), "/node_modules/", " > ")
	}
	if len(words) > 10 {
		words = append(slices.Clip(words[:10]), fmt.Sprintf("and %d more", len(words)-10))
	}
	return strings.Join(words, ", ")
}
