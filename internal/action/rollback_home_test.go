package action

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dsh/internal/staging"
)

// homeWorld is a home whose own files are edited.
type homeWorld struct {
	t   *testing.T
	env Env
}

// homeFile is one of them.
type homeFile struct {
	Text string
	Mode fs.FileMode
}

// lay makes the files what a state has, by hand.
func (h homeWorld) lay(state map[string]homeFile) {
	h.t.Helper()
	for _, name := range homeLayer {
		path := h.env.Home.Path(name)
		err := os.Remove(path)
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		if f, ok := state[name]; ok {
			err = errors.Join(err, os.WriteFile(path, []byte(f.Text), 0o600), os.Chmod(path, f.Mode))
		}
		if err != nil {
			h.t.Fatal(err)
		}
	}
}

func (h homeWorld) state() map[string]homeFile {
	h.t.Helper()
	files, err := homeFiles(h.env.Home)
	if err != nil {
		h.t.Fatal(err)
	}
	state := map[string]homeFile{}
	for _, f := range files {
		state[f.Path] = homeFile{string(f.Data), f.Mode}
	}
	return state
}

// back goes back, one change or to a state.
func (h homeWorld) back(to int) *RolledBack {
	h.t.Helper()
	done, err := RollbackHome(context.Background(), h.env, RollbackOptions{Back: 1, To: to})
	if err != nil {
		h.t.Fatal(err)
	}
	if len(done.Warnings) > 0 || !done.Changed {
		h.t.Errorf("to %d: %+v", to, done)
	}
	return done
}

// Each state of the home's files comes back from the next one, with content and
// permissions, and again is left for the next one.
func TestRollbackHome(t *testing.T) {
	env, _ := world(t)
	h := homeWorld{t, env}
	const patch = "cordis.patch.yml"
	states := []map[string]homeFile{
		{},
		{patch: {"[]\n", 0o644}},
		{patch: {"[]\n", 0o644}, ".env": {"A=1\n", 0o644}},
		{patch: {"- id: a\n", 0o644}, ".env": {"A=2\n", 0o644}},
		{patch: {"- id: a\n", 0o644}},
		{".env": {"A=1\n", 0o644}},
	}
	if runtime.GOOS != "windows" {
		states = append(states,
			map[string]homeFile{".env": {"A=1\n", 0o600}},
			map[string]homeFile{".env": {"A=1\n", 0o666}, patch: {"[]\n", 0o600}},
			map[string]homeFile{".env": {"A=3\n", 0o640}, patch: {"[]\n", 0o644}},
			map[string]homeFile{".env": {"A=3\n", 0o644}, patch: {"- id: a\n", 0o640}},
		)
	}
	for i, state := range states {
		if i == 0 {
			continue // it is found
		}
		if err := env.inHomeHistory(t.Context(), func() error { h.lay(state); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	for i := len(states) - 1; i > 0; i-- {
		h.back(i) // the id of the state before, for ids begin with 1
		if diff := cmp.Diff(states[i-1], h.state()); diff != "" {
			t.Errorf("state %d: %s", i-1, diff)
		}
		h.back(0)
		if diff := cmp.Diff(states[i], h.state()); diff != "" {
			t.Errorf("state %d again: %s", i, diff)
		}
		h.back(0)
	}
}

// Permissions that somebody changed by hand are a change like others, and one
// step takes them back.
func TestRollbackHomeOfPermissions(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("permissions are not in the mode")
	}
	env, _ := world(t)
	h := homeWorld{t, env}
	state := map[string]homeFile{".env": {"A=1\n", 0o644}}
	if err := env.inHomeHistory(t.Context(), func() error { h.lay(state); return nil }); err != nil {
		t.Fatal(err)
	}
	h.lay(map[string]homeFile{".env": {"A=1\n", 0o600}})
	h.back(0)
	if diff := cmp.Diff(state, h.state()); diff != "" {
		t.Error(diff)
	}
}

// What somebody edits after the rollback looked stays, and so does what is the
// same in both states.
func TestRollbackHomeLeavesEdits(t *testing.T) {
	env, _ := world(t)
	h := homeWorld{t, env}
	const patch = "cordis.patch.yml"
	h.lay(map[string]homeFile{".env": {"A=1\n", 0o644}, patch: {"[]\n", 0o644}})
	now, err := homeSubject(env).now()
	if err != nil {
		t.Fatal(err)
	}
	target := stateOf(1, ".env", "A=1\n", patch, "- id: a\n")
	change := compareStates(now, target)
	before, err := os.Stat(env.Home.Path(".env"))
	if err != nil {
		t.Fatal(err)
	}
	if err := env.writeHome(change, now, target); err != nil {
		t.Fatal(err)
	}
	if after, err := os.Stat(env.Home.Path(".env")); err != nil || !os.SameFile(before, after) {
		t.Errorf(".env was written though nothing of it differs: %v", err)
	}
	for name, edited := range map[string]map[string]homeFile{
		"another file": {".env": {"A=mine\n", 0o644}, patch: {"[]\n", 0o644}},
		"the file":     {".env": {"A=1\n", 0o644}, patch: {"# mine\n[]\n", 0o644}},
		"gone":         {".env": {"A=1\n", 0o644}},
	} {
		h.lay(edited)
		err := env.writeHome(change, now, target)
		if _, changed := errors.AsType[*staging.ChangedError](err); !changed {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(edited, h.state()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
