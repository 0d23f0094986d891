package action

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"dsh/internal/fault"
	"dsh/internal/profile"
	"dsh/internal/staging"
)

// ExistsError is a profile that stands where one was to be made.
type ExistsError struct {
	Name profile.Name
	Dir  string
}

func (e *ExistsError) Error() string {
	return fmt.Sprintf("profile %s is there, in %s; nothing was changed", e.Name, e.Dir)
}

// Undelete brings a removed profile back: the whole directory as it was kept, or
// where it was deleted by hand the files of the newest generation, and the
// packages of its lockfile.
func Undelete(ctx context.Context, env Env, opts PluginOptions) (*RolledBack, error) {
	s := profileSubject(env, opts.Name)
	newest := func(p *past) (*staging.Generation, error) {
		if p.now != nil {
			return nil, fault.WithHint(&ExistsError{opts.Name, s.dir()}, "its earlier states: %s", s.command("history"))
		}
		return p.back(1)
	}
	p, err := s.settled(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := newest(p); err != nil {
		return nil, err
	}
	return s.restore(ctx, opts, newest)
}

// kept is the directory of a removed profile as it was kept, "" where there is
// none: the newest whose files are those of the newest generation. Others are of
// earlier profiles of that name.
func (s subject) kept(p *past) string {
	if len(p.generations) == 0 {
		return ""
	}
	place := s.env.Home.Place(s.name)
	for _, dir := range keptDirs(place.State) {
		was := place
		was.Dir = dir
		if state, err := staging.Snapshot(was); err == nil && staging.SameFiles(state.Files, p.generations[0].Files) {
			return dir
		}
	}
	return ""
}

// copyKept copies a directory that was kept of a profile, less the named entries,
// with the permissions of directories. What it returns was left out, by its
// slash-separated paths: pipes, sockets and devices, which hold nothing and which
// programs make again.
func copyKept(from, to string, except ...string) (lost []string, err error) {
	info, err := os.Stat(from)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return nil, err
	}
	var dirs []string
	others := slices.Clip(except)
	for _, e := range entries {
		switch {
		case slices.Contains(except, e.Name()), e.Type().IsRegular(), e.Type() == fs.ModeSymlink:
			continue
		case e.IsDir():
			dirs = append(dirs, e.Name())
		default:
			lost = append(lost, e.Name())
		}
		others = append(others, e.Name())
	}
	if _, err := staging.CopyTree(from, to, others...); err != nil {
		return nil, err
	}
	for _, dir := range dirs {
		below, err := copyKept(filepath.Join(from, dir), filepath.Join(to, dir))
		if err != nil {
			return nil, err
		}
		for _, path := range below {
			lost = append(lost, dir+"/"+path)
		}
	}
	return lost, staging.OS.Chmod(to, info.Mode().Perm())
}

// keptDirs are the directories of replaced and removed profiles, newest first.
func keptDirs(state string) []string {
	entries, err := os.ReadDir(state)
	if err != nil {
		return nil // nothing was kept, or the history says why it cannot be read
	}
	var numbers []int
	for _, e := range entries {
		if rest, ok := strings.CutPrefix(e.Name(), "replaced-"); ok && e.IsDir() {
			if n, err := strconv.Atoi(rest); err == nil && n > 0 && strconv.Itoa(n) == rest {
				numbers = append(numbers, n)
			}
		}
	}
	slices.Sort(numbers)
	slices.Reverse(numbers)
	dirs := make([]string, len(numbers))
	for i, n := range numbers {
		dirs[i] = filepath.Join(state, "replaced-"+strconv.Itoa(n))
	}
	return dirs
}
