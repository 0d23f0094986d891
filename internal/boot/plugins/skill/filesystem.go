package skill

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"

	"dsh/internal/boot/host"
	"dsh/internal/boot/slot"
	"dsh/internal/skills"
)

// FilesystemName is that of the plugin that finds skills in folders.
const FilesystemName = skills.PluginName

// FilesystemConfig is the configuration of its row.
type FilesystemConfig = skills.Config

// FilesystemPlugin is a provider of the skills in folders.
var FilesystemPlugin = host.Plugin{
	Inject: []host.Need{
		{Service: Service}, {Service: slot.HomePath, Optional: true}, {Service: slot.Environment, Optional: true}, {Service: slot.Profile, Optional: true},
	},
	Start: func(_ context.Context, r *host.Row) error {
		var config FilesystemConfig
		if err := r.Decode(&config); err != nil {
			return err
		}
		place, err := placeOf(r)
		if err != nil {
			return err
		}
		catalogue, _ := host.Service[*Catalogue](r, Service)
		set, remove, err := catalogue.Add(config.Provider(), r.Path())
		if err != nil {
			return err
		}
		r.OnStop(func(context.Context) error { remove(); return nil })
		f := &folders{roots: config.Roots(place), set: set, logf: r.Logf}
		if config.Watch == nil || *config.Watch {
			// Watching comes first, so that no change is between it and looking.
			if err := f.watch(r, config); err != nil {
				r.Logf("changes of the folders are not followed: %v", err)
			}
		}
		f.scan()
		if f.notify != nil {
			r.Go(func(ctx context.Context) error { f.run(ctx); return nil })
		}
		return nil
	},
}

// placeOf is where the folders are that the config does not name.
func placeOf(r *host.Row) (place skills.Place, err error) {
	if home, ok := host.Service[slot.HomePathFunc](r, slot.HomePath); ok && home != nil {
		place.DshHome = home()
	}
	environment, _ := host.Service[slot.LaunchEnvironment](r, slot.Environment)
	userHome := environment.Getenv("HOME")
	if userHome == "" {
		userHome, _ = os.UserHomeDir() // without one there is no such folder
	}
	place.AgentsHome = skills.AgentsHome(environment.Getenv, userHome)
	if p, ok := host.Service[*slot.ProfileContext](r, slot.Profile); ok && p != nil && p.Cwd != "" {
		place.Cwd = p.Cwd
		return place, nil
	}
	place.Cwd, err = os.Getwd()
	return place, err
}

// folders is the roots of one row.
type folders struct {
	roots  []skills.Root
	set    func(skills.Found)
	logf   func(format string, args ...any)
	last   *skills.Found
	notify *fsnotify.Watcher
	quiet  time.Duration
}

// scan looks through the folders and tells what is new.
func (f *folders) scan() {
	found := skills.Scan(f.roots)
	if f.last != nil && reflect.DeepEqual(*f.last, found) {
		return
	}
	f.last = &found
	for _, s := range found.Skipped {
		f.logf("skipped %s: %s", s.Path, s.Why)
	}
	f.set(found)
}

func (f *folders) watch(r *host.Row, config FilesystemConfig) (err error) {
	if f.notify, err = fsnotify.NewWatcher(); err != nil {
		return err
	}
	r.OnStop(func(context.Context) error { return f.notify.Close() })
	f.quiet = 200 * time.Millisecond
	if ms := config.WatchStabilityThresholdMs; ms > 0 && ms < 60_000 {
		f.quiet = time.Duration(ms * float64(time.Millisecond))
	}
	f.follow()
	return nil
}

// follow watches the folders, their own folders, and for a folder that is not there
// the nearest directory that is. What cannot be watched is seen with the next change
// elsewhere.
func (f *folders) follow() {
	for _, root := range f.roots {
		at := root.Dir
		for f.notify.Add(at) != nil && filepath.Dir(at) != at {
			at = filepath.Dir(at)
		}
		// A folder that is replaced is made anew in the one above it.
		_ = f.notify.Add(filepath.Dir(at))
		if at != root.Dir {
			continue
		}
		entries, _ := os.ReadDir(root.Dir) // scan tells of it
		for _, e := range entries {
			path := filepath.Join(root.Dir, e.Name())
			if info, err := os.Stat(path); err == nil && info.IsDir() {
				_ = f.notify.Add(path)
			}
		}
	}
}

// matters says whether something at a path can change what is found.
func (f *folders) matters(path string) bool {
	for _, root := range f.roots {
		if below(path, root.Dir) || below(root.Dir, path) {
			return true
		}
	}
	return false
}

// below says whether path is dir or in it.
func below(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, string(filepath.Separator))+string(filepath.Separator))
}

func (f *folders) run(ctx context.Context) {
	var due <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case event, ok := <-f.notify.Events:
			if !ok {
				return
			}
			if event.Op == fsnotify.Chmod || !f.matters(event.Name) {
				continue
			}
			if due == nil {
				due = time.After(f.quiet)
			}
		case _, ok := <-f.notify.Errors:
			if !ok {
				return
			}
			if due == nil { // events were lost; the folders tell
				due = time.After(f.quiet)
			}
		case <-due:
			due = nil
			f.follow()
			f.scan()
		}
	}
}
