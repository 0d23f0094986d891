package staging

import (
	"context"
	"errors"
	"flag"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// do lets an actor do one thing, and keeps account of what the profile can be.
func (s *stage) do(a *actor, d deed) {
	ctx := context.Background()
	switch d {
	case deedRead:
		s.read(ctx, a)
	case deedRecover:
		s.inside(a, func() {
			if err := (disk{a.fs()}).recoverPlace(ctx, simPlace()); err != nil {
				s.faultf("%s: recovery: %v", a.name, err)
			}
		})
	case deedReplace:
		s.replace(ctx, a)
	case deedRemove:
		s.remove(ctx, a)
	default:
		s.change(ctx, a, d)
	}
}

func (s *stage) inside(a *actor, do func()) {
	a.inside = true
	do() // after a death act puts it right
	a.inside = false
}

// read reads the profile as every reader should.
func (s *stage) read(ctx context.Context, a *actor) {
	a.seen = []profileState{}
	s.show()
	version, quiet := s.version, !s.changing()
	var got profileState
	var err error
	s.inside(a, func() {
		_, err = disk{a.fs()}.read(ctx, simPlace(), func(v View) error {
			got = s.look(a.fs(), v.Path)
			return nil
		})
	})
	seen := a.seen
	a.seen = nil
	switch {
	case err != nil:
		s.faultf("%s: reading: %v", a.name, err)
	case !s.allows(seen, got):
		s.faultf("%s reads %v, and it could only be one of %v", a.name, got, seen)
	case quiet && version == s.version:
		// Nobody has begun to change it since, so nobody may see another one from
		// here on.
		s.set(got)
	}
}

// changing says whether some actor is changing the profile.
func (s *stage) changing() bool {
	return slices.ContainsFunc(s.actors, func(a *actor) bool { return a.changing })
}

// change is a transaction.
func (s *stage) change(ctx context.Context, a *actor, d deed) {
	fsys := a.fs()
	token := s.token(strings.ReplaceAll(string(d), " ", "-"))
	options := Options{FS: fsys, Command: token}
	made := absent
	if d != deedBack {
		options.Init = func(dir string) error {
			made = s.fill(token+"-made", func(path, content string) error { return s.put(fsys, path, content) }, dir)
			return nil
		}
	}
	var tx *Tx
	var err error
	s.inside(a, func() { tx, err = Begin(ctx, simPlace(), options) })
	if errors.Is(err, fs.ErrNotExist) && d == deedBack {
		return
	}
	if err != nil {
		s.faultf("%s: beginning: %v", a.name, err)
		return
	}
	// With the lock nobody else changes anything but the user.
	a.seen = []profileState{}
	s.show()
	version, edited := s.version, s.edited
	old := s.look(fsys, func(path string) string {
		rel, err := filepath.Rel(simPlace().Dir, path)
		if err != nil {
			panic(err)
		}
		return filepath.Join(tx.Dir(), rel)
	})
	seen := a.seen
	a.seen = nil
	if tx.Creating() {
		if old != made || !s.allows(seen, absent) {
			s.faultf("%s makes %v where there could be one of %v, and reads %v", a.name, made, seen, old)
		}
		if version == s.version {
			s.set(absent)
		}
	} else {
		if !s.allows(seen, old) {
			s.faultf("%s finds %v when it begins, and it could only be one of %v", a.name, old, seen)
		}
		if version == s.version {
			s.set(old)
		}
	}

	next := old
	fill := func() error {
		var errs []error
		for i, file := range playFiles[:smallFiles] {
			errs = append(errs, tx.Expect(file, []byte(old[i])))
		}
		if d == deedBack {
			list, err := historyOf(disk{fsys}, simPlace().State).List()
			if err != nil || len(list) < 2 {
				return errors.Join(err, tx.Rollback())
			}
			for i, file := range playFiles[:smallFiles] {
				data, _ := list[1].File(file)
				next[i] = string(data)
			}
			next[3] = next[1]
			errs = append(errs, tx.Restore(&list[1]))
		} else {
			next[patchFile] = token
			errs = append(errs, tx.WriteFile("cordis.patch.yml", []byte(token), 0o644))
		}
		if d == deedChange {
			next[0], next[1], next[3] = token, token, token
			errs = append(errs, tx.WriteFile("package.json", []byte(token), 0o644), tx.WriteFile("dsh-lock.yaml", []byte(token), 0o644))
		}
		if d == deedChange || d == deedBack {
			staged := filepath.Join(tx.Stage(), "a")
			errs = append(errs, fsys.Mkdir(staged, 0o755), s.put(fsys, filepath.Join(staged, "package.json"), next[3]), tx.Replace("node_modules/a", staged))
		}
		return errors.Join(errs...)
	}
	if err := fill(); err != nil {
		s.faultf("%s: filling the transaction: %v", a.name, err)
	}
	s.inside(a, func() {
		if d == deedGiveUp {
			err = tx.Rollback()
			return
		}
		if tx.ended {
			return // there was nothing to go back to
		}
		before := s.possible
		s.set(append(slices.Clone(before), next)...)
		a.changing = true
		err = tx.Commit()
		a.changing = false
		changed, isChanged := errors.AsType[*ChangedError](err)
		switch {
		case err == nil && !s.bold && !tx.Creating() && !slices.ContainsFunc(before, func(p profileState) bool { return p[patchFile] == old[patchFile] }):
			s.faultf("%s writes over what the user wrote since it began, one of %v", a.name, before)
		case err == nil:
			s.set(next)
		case isChanged && s.edited > edited:
			s.set(before...)
			err = nil
		case isChanged:
			s.faultf("%s is told that %s was edited, and nobody did", a.name, changed.Path)
		}
	})
	if err != nil {
		s.faultf("%s: ending a transaction: %v", a.name, err)
	}
}

func (s *stage) put(fsys FS, path, content string) error {
	return errors.Join(disk{fsys}.mkdirAll(filepath.Dir(path)), disk{fsys}.writeNew(path, []byte(content), 0o644, false))
}

// replace replaces the profile as a whole.
func (s *stage) replace(ctx context.Context, a *actor) {
	fsys := a.fs()
	token := s.token("replaced")
	s.inside(a, func() {
		var before []profileState
		_, err := ReplaceDir(ctx, simPlace(), func(dir string) error {
			next := s.fill(token, func(path, content string) error { return s.put(fsys, path, content) }, dir)
			before = s.possible
			s.set(append(slices.Clone(before), next)...)
			a.changing = true
			return nil
		}, Options{FS: fsys, Command: token})
		a.changing = false
		_, lost := errors.AsType[*LostRace](err)
		switch {
		case lost && before == nil:
		case err != nil:
			s.faultf("%s: replacing: %v", a.name, err)
		default:
			s.set(s.possible[len(s.possible)-1])
		}
	})
}

// remove removes the profile.
func (s *stage) remove(ctx context.Context, a *actor) {
	token := s.token("removed")
	s.inside(a, func() {
		// With the lock held, and before that nobody is hurt by it.
		var before []profileState
		_, err := RemoveDir(ctx, simPlace(), Options{FS: a.fs(), Command: token, Decide: func() (bool, error) {
			before = s.possible
			s.set(append(slices.Clone(before), absent)...)
			a.changing = true
			return false, nil
		}})
		a.changing = false
		_, lost := errors.AsType[*LostRace](err)
		switch {
		case lost && before == nil:
		case errors.Is(err, fs.ErrNotExist) && before == nil:
			// Others may have removed it, or begun to.
		case err != nil:
			s.faultf("%s: removing: %v", a.name, err)
		default:
			s.set(absent)
		}
	})
}

// playDepth is how much happens in a play at most.
var playDepth = flag.Int("play-depth", 3, "in TestInterleavedProcesses, the deeds of each process")

func drawPlay(t *rapid.T) play {
	p := play{
		options: simOptions{
			noLinks:     rapid.Bool().Draw(t, "noLinks"),
			noExchange:  rapid.Bool().Draw(t, "noExchange"),
			noRenameNew: rapid.Bool().Draw(t, "noRenameNew"),
		},
		there:  rapid.Bool().Draw(t, "there"),
		random: rapid.Uint64().Draw(t, "random"),
	}
	deed := rapid.SampledFrom(deeds)
	for range rapid.IntRange(1, 4).Draw(t, "processes") {
		p.parts = append(p.parts, rapid.SliceOfN(deed, 1, *playDepth).Draw(t, "deeds"))
		var dies death
		switch rapid.IntRange(0, 4).Draw(t, "mortal") {
		case 1:
			dies.call = rapid.IntRange(1, 400).Draw(t, "dies")
		case 2:
			dies.commit, dies.call = true, rapid.IntRange(1, 80).Draw(t, "dies committing")
		}
		dies.edit = rapid.Bool().Draw(t, "edit")
		p.dies = append(p.dies, dies)
	}
	for range rapid.IntRange(0, 80).Draw(t, "turns") {
		p.turns = append(p.turns, turn{rapid.IntRange(0, len(p.parts)-1).Draw(t, "who"), rapid.IntRange(1, 60).Draw(t, "calls")})
	}
	p.bold = rapid.Bool().Draw(t, "bold")
	for range rapid.IntRange(0, 6).Draw(t, "edits") {
		p.edits = append(p.edits, userEdit{
			turn: rapid.IntRange(0, 100).Draw(t, "turn"), file: rapid.IntRange(0, smallFiles-1).Draw(t, "file"), inPlace: rapid.Bool().Draw(t, "in place"),
		})
	}
	return p
}

// Processes change and read one profile at the same time, some die in it, and
// the user edits a file meanwhile. Whoever reads finds one whole state, and it
// is one that there may be at that time; no edit is lost, and nothing lies about
// when all have ended.
func TestInterleavedProcesses(t *testing.T) {
	for range 6 { // as a hundred plays are soon over
		rapid.Check(t, func(rt *rapid.T) {
			p := drawPlay(rt)
			if faults, _ := p.run(t); len(faults) > 0 {
				rt.Fatalf("%s\n%+v", strings.Join(faults, "\n"), p)
			}
		})
	}
}

// What a play finds once can be looked at again.
func TestPlaysCanBeRepeated(t *testing.T) {
	for seed := range 10 {
		p := rapid.Custom(drawPlay).Example(seed)
		_, once := p.run(t)
		_, again := p.run(t)
		if diff := cmp.Diff(once, again); diff != "" {
			t.Fatalf("%+v\n%s", p, diff)
		}
	}
}
