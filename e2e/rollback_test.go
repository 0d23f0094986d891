package e2e

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dsh/e2e/npmtest"
	"dsh/internal/action"
	"dsh/internal/compose"
	"dsh/internal/install"
	"dsh/internal/installation"
	"dsh/internal/profile"
)

// TestRollbackGivesEverythingBack changes profiles in random ways, goes back to
// random states of them, and compares every byte below the profile.
func TestRollbackGivesEverythingBack(t *testing.T) {
	registry, err := npmtest.New(filepath.Join(sourceDir(), "testdata", "registry"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(registry.Close)
	base := t.TempDir()
	variables := map[string]string{
		"DSH_HOME": filepath.Join(base, "home"), "HOME": base, "USERPROFILE": base,
		"npm_config_registry": registry.URL(), "npm_config_fetch_retries": "0", "npm_config_userconfig": filepath.Join(base, ".npmrc"),
	}
	env := action.Env{
		Dir: base, Installation: installation.Embedded(), Args: []string{"test"},
		Getenv: func(name string) string { return variables[name] },
	}
	if env.Home, err = profile.ResolveHome("", env.Getenv); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"linked", "copied"} {
		if err := npmtest.Unpack(filepath.Join(sourceDir(), "testdata", "registry", "@acme+late_2.0.0.txtar"), filepath.Join(base, folder)); err != nil {
			t.Fatal(err)
		}
	}
	const sequences, steps = 50, 7
	for seed := range sequences {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			name, err := profile.ParseName(fmt.Sprintf("p%d", seed))
			if err != nil {
				t.Fatal(err)
			}
			w := &walk{T: t, env: env, name: name, random: rand.New(rand.NewPCG(uint64(seed), 1))}
			for range steps {
				w.change()
			}
			for range 4 {
				w.rollback()
			}
		})
	}
}

// walk is a profile, and the states that it went through.
type walk struct {
	*testing.T
	env    action.Env
	name   profile.Name
	random *rand.Rand
	told   []string // what was done, for failures
	states []state  // the last is what is there
	byHand bool     // the last state was made by hand and is saved with the next change
}

// state is everything that a profile consists of, by path: the small files as
// they are, and the rest with what hashes tell.
type state map[string]string

func (w *walk) do(what string, err error) {
	w.Helper()
	w.told = append(w.told, what)
	if err != nil {
		w.told[len(w.told)-1] += ": " + err.Error()
	}
}

// change does one random thing to the profile. It may be refused, or change
// nothing.
func (w *walk) change() {
	ctx, opts := context.Background(), action.PluginOptions{Name: w.name}
	rows := action.EditOptions{Name: w.name, Layer: compose.ProfileLayer, Now: time.Unix(0, 0)}
	packages := []string{
		"left@1.0.0", "left", "is-odd@3.0.0", "@acme/hello@1.0.0", "@acme/hello", "@acme/stack", "@acme/bins",
		"@acme/cycle-a", "npm:left@2.0.0", "link:./linked", "./copied", "@acme/late@1.0.0",
	}
	pick := func(list ...string) string { return list[w.random.IntN(len(list))] }
	if len(w.states) == 0 {
		_, err := action.Install(ctx, w.env, opts, install.InstallOptions{})
		w.do("install", err)
		w.reached(false)
		return
	}
	hand := false
	switch w.random.IntN(9) {
	default:
		text := pick(packages...)
		spec, err := install.ParseSpec(text, w.env.Dir)
		if err == nil {
			_, err = action.Add(ctx, w.env, opts, []install.Spec{spec}, install.AddOptions{})
		}
		w.do("add "+text, err)
	case 0:
		name := pick("left", "is-odd", "@acme/hello", "@acme/stack", "@acme/late")
		_, err := action.Remove(ctx, w.env, opts, []string{name}, true)
		w.do("remove "+name, err)
	case 1:
		_, err := action.Update(ctx, w.env, opts, nil, w.random.IntN(2) == 0)
		w.do("update", err)
	case 2:
		value := fmt.Sprint(w.random.IntN(1000))
		_, err := action.Set(ctx, w.env, rows, pick("hello.count", "tools.a", "session.x"), value)
		w.do("set "+value, err)
	case 3:
		_, err := action.Switch(ctx, w.env, action.SwitchOptions{EditOptions: rows, On: w.random.IntN(2) == 0}, pick("skill", "@acme/hello", "@deepseek-ai/dsh-base"))
		w.do("switch", err)
	case 4:
		_, err := action.Replace(ctx, w.env, action.ReplaceOptions{Name: w.name, Template: pick("web", "sdk")})
		w.do("replace", err)
	case 5:
		file := filepath.Join(w.env.Home.ProfileDir(w.name), pick("cordis.patch.yml", "mine/note.txt"))
		err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, fmt.Appendf(nil, "[] # %d\r\n", w.random.IntN(1000)), 0o600))
		w.do("edit "+filepath.Base(file), err)
		hand = true
	}
	w.reached(hand)
}

// reached notes the state that is there now, if it is another one. What is
// edited by hand twice in a row is saved once.
func (w *walk) reached(byHand bool) {
	w.Helper()
	now := w.read()
	if len(w.states) > 0 && cmp.Equal(w.last().small(), now.small()) {
		return
	}
	if byHand && w.byHand {
		w.states = w.states[:len(w.states)-1]
	}
	w.byHand = byHand
	if len(w.states) > 0 && cmp.Equal(w.last().small(), now.small()) {
		w.byHand = false // edited back to what was saved
		return
	}
	w.states = append(w.states, now)
}

func (w *walk) last() state { return w.states[len(w.states)-1] }

// rollback goes back to a random state, by number or by id, and compares.
func (w *walk) rollback() {
	w.Helper()
	if len(w.states) < 2 {
		return
	}
	back := 1 + w.random.IntN(len(w.states)-1)
	want := w.states[len(w.states)-1-back]
	opts := action.RollbackOptions{PluginOptions: action.PluginOptions{Name: w.name, Offline: true}, Back: back}
	if w.random.IntN(2) == 0 {
		list, err := action.ListGenerations(context.Background(), w.env, w.name)
		if err != nil {
			w.Fatal(err)
		}
		at := back
		if list.State == action.StateEdited {
			at--
		}
		opts.Back, opts.To = 0, list.Generations[at].ID
	}
	done, err := action.Rollback(context.Background(), w.env, opts)
	w.do(fmt.Sprintf("roll back %d, to %d", opts.Back, opts.To), err)
	if err != nil {
		w.Fatalf("%s", strings.Join(w.told, "\n"))
	}
	if len(done.Warnings) > 0 {
		w.Errorf("warnings: %s\n%s", strings.Join(done.Warnings, "\n"), strings.Join(w.told, "\n"))
	}
	got := w.read()
	if diff := cmp.Diff(want, got); diff != "" {
		w.Fatalf("(-was +is)\n%s\n%s", diff, strings.Join(w.told, "\n"))
	}
	if !cmp.Equal(w.last().small(), got.small()) {
		w.states = append(w.states, got)
	}
	w.byHand = false
}

// small is the files of a state that are no packages.
func (s state) small() state {
	small := state{}
	for path, content := range s {
		if path != "cordis.yml" && path != "node_modules" && !strings.HasPrefix(path, "node_modules/") {
			small[path] = content
		}
	}
	return small
}

// read is the profile as it is.
func (w *walk) read() state {
	w.Helper()
	now := state{}
	dir := w.env.Home.ProfileDir(w.name)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		content := info.Mode().String()
		switch {
		case d.Type()&fs.ModeSymlink != 0:
			content, err = os.Readlink(path)
		case d.Type().IsRegular():
			var data []byte
			if data, err = os.ReadFile(path); err == nil {
				sum := sha256.Sum256(data)
				content += " " + hex.EncodeToString(sum[:])
			}
		}
		if rel = filepath.ToSlash(rel); !d.IsDir() || strings.HasPrefix(rel, "node_modules") {
			now[rel] = content
		}
		return err
	})
	if err != nil {
		w.Fatal(err)
	}
	// A folder that holds nothing but what dsh notes about it is as good as none.
	packages := 0
	for path := range now {
		if strings.HasPrefix(path, "node_modules/") {
			packages++
		}
	}
	if packages == 1 {
		delete(now, "node_modules")
		delete(now, "node_modules/.dsh-tree")
	}
	return now
}
