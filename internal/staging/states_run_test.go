package staging

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"
)

// A play is processes that work on one profile at the same time. At each call
// on the filesystem a process waits for its turn, so that a play is the same
// whenever it is given again; the time in it is not real.
type play struct {
	options simOptions
	there   bool       // whether there is a profile at the start
	parts   [][]deed   // what each process does, one after the other
	dies    []death    // how each process dies
	turns   []turn     // who goes on, and for how many calls
	edits   []userEdit // by the user
	// bold says that the user does not care what happens in this moment. Who is
	// right then is not told by a model of states, only that nothing is lost.
	bold   bool
	random uint64 // for names
}

type turn struct{ who, calls int }

// userEdit is the user's writing to a file, from a turn on as soon as it is possible.
type userEdit struct {
	turn, file int
	inPlace    bool // else by a rename, as most editors do
}

// death is the call at which a process dies, 0 for never.
type death struct {
	call   int
	commit bool // only calls while it commits something count
	edit   bool // the user edits a file when that has happened
}

// deed is one thing that a process does.
type deed string

const (
	deedChange  deed = "change"  // a transaction over manifest, lockfile and packages
	deedPatch   deed = "patch"   // a transaction over the patch file alone
	deedBack    deed = "back"    // a transaction that restores the generation before the newest
	deedReplace deed = "replace" // the whole profile
	deedRemove  deed = "remove"
	deedGiveUp  deed = "give up" // a transaction that is rolled back
	deedRead    deed = "read"
	deedRecover deed = "recover"
)

// deeds are what actors choose from; readers are those who see most.
var deeds = []deed{deedChange, deedPatch, deedBack, deedReplace, deedRemove, deedGiveUp, deedRecover, deedRead, deedRead, deedRead}

// The files of a profile in a play. What each holds is a token that is used
// once, so that a mix of two states is seen.
var playFiles = []string{"package.json", "dsh-lock.yaml", "cordis.patch.yml", filepath.Join("node_modules", "a", "package.json")}

const (
	patchFile  = 2 // which every change writes
	smallFiles = 3 // which the user may edit
)

// content is what playFiles hold; absent is no profile at all.
type profileState [4]string

var absent = profileState{}

func (s profileState) String() string {
	if s == absent {
		return "no profile"
	}
	return strings.Join(s[:], "|")
}

// actor is a process of a play.
type actor struct {
	name   string
	disk   *simDisk
	dies   death
	calls  int           // that count
	turn   chan struct{} // closed never; one value is one call
	wanted atomic.Value  // the call that it makes when it is its turn; "" while it is
	done   bool
	dead   bool
	// inside says that it is in a function of this package that renames what it
	// likes when the profile is locked.
	inside, locked bool
	// changing says that what the profile can be is several states for its sake.
	changing bool
	locks    []func() error
	seen     []profileState // during its reading, what the profile could be
}

// before is called before each call on the filesystem, in the actor's goroutine.
func (a *actor) before(op, path string) error {
	if a.dead {
		panic(died{}) // from a deferred function, which a real death does not run
	}
	a.wanted.Store(op + " " + path)
	<-a.turn
	a.wanted.Store("")
	if a.changing || !a.dies.commit {
		a.calls++
	}
	if a.calls > 0 && a.calls == a.dies.call {
		a.dead = true
		panic(died{})
	}
	return nil
}

// actorFS gives back the locks of an actor that dies.
type actorFS struct {
	hooked
	a *actor
}

func (f actorFS) TryLock(path string, record []byte) (func() error, error) {
	unlock, err := f.hooked.TryLock(path, record)
	if err != nil || path != filepath.Join(simPlace().State, "lock") {
		return f.a.own(unlock), err
	}
	f.a.locked = true
	return f.a.own(func() error {
		f.a.locked = false
		return unlock()
	}), nil
}

func (f actorFS) TryRLock(path string, record []byte) (func() error, error) {
	unlock, err := f.hooked.TryRLock(path, record)
	return f.a.own(unlock), err
}

func (a *actor) own(unlock func() error) func() error {
	if unlock == nil {
		return nil
	}
	given := false
	once := func() error {
		if given {
			return nil
		}
		given = true
		return unlock()
	}
	a.locks = append(a.locks, once)
	return func() error {
		if a.dead {
			return nil // the system does it, in its time
		}
		return once()
	}
}

func (a *actor) fs() FS { return actorFS{hooked{a.disk, a.before}, a} }

// stage is a play that runs.
type stage struct {
	play
	t      testing.TB
	disk   *simDisk
	actors []*actor
	tokens int
	faults []string
	calls  []string // all that were made, in order

	// possible is what the profile can be at this time, to whoever looks: one
	// state, or several while a change is under way or after a death.
	possible []profileState
	version  int // of possible
	// lasting are the edits by hand that must be found again, in the profile or
	// its history.
	lasting map[string]int // which file
	edited  int            // how often the user has edited
}

func (s *stage) faultf(format string, args ...any) {
	s.faults = append(s.faults, fmt.Sprintf(format, args...))
}

func (s *stage) token(what string) string {
	s.tokens++
	return fmt.Sprintf("%s%d", what, s.tokens)
}

// set changes what is possible.
func (s *stage) set(possible ...profileState) {
	s.possible = slices.Clone(possible)
	s.version++
	s.show()
}

// show adds what is possible to what readers may have seen.
func (s *stage) show() {
	for _, a := range s.actors {
		if a.seen == nil {
			continue
		}
		for _, p := range s.possible {
			if !slices.Contains(a.seen, p) {
				a.seen = append(a.seen, p)
			}
		}
	}
}

// run plays, and says what went wrong and which calls were made.
func (p play) run(t *testing.T) (faults, calls []string) {
	synctest.Test(t, func(t *testing.T) {
		cryptotest.SetGlobalRandom(t, p.random)
		s := &stage{play: p, t: t, disk: newSimDisk(p.options), lasting: map[string]int{}}
		s.disk.mkdirs(t, filepath.Join(simRoot, "profiles"))
		s.set(absent)
		if p.there {
			s.set(s.fill(s.token("first"), func(path, content string) error {
				s.disk.put(t, path, content, 0o644)
				return nil
			}, simPlace().Dir))
		}
		s.perform()
		faults, calls = s.faults, s.calls
	})
	return faults, calls
}

// fill writes a whole profile into dir.
func (s *stage) fill(token string, write func(path, content string) error, dir string) profileState {
	var state profileState
	for i, file := range playFiles {
		state[i] = token
		if err := write(filepath.Join(dir, file), token); err != nil {
			s.faultf("filling %s: %v", dir, err)
		}
	}
	return state
}

// perform lets the actors take their turns until all are done.
func (s *stage) perform() {
	for i, part := range s.parts {
		a := &actor{name: fmt.Sprintf("process %d", i), disk: s.disk, dies: s.dies[i], turn: make(chan struct{})}
		a.wanted.Store("")
		s.actors = append(s.actors, a)
		go s.act(a, part)
	}
	const longest = 100_000 // calls; a play has some thousand
	var wanted []userEdit
	for n, steps := 0, 0; ; n++ {
		who := turn{n, 1 + n%7} // when all turns are taken
		if n < len(s.turns) {
			who = s.turns[n]
		}
		for _, e := range s.edits {
			if e.turn == n {
				wanted = append(wanted, e)
			}
		}
		for range who.calls {
			a := s.next(who.who)
			if a == nil {
				s.end()
				return
			}
			if len(wanted) > 0 && s.edit(wanted[0]) {
				wanted = wanted[1:]
			}
			s.disk.during = func() { _ = a.before("halfway", "") }
			s.calls = append(s.calls, a.name+" "+a.wanted.Load().(string))
			a.turn <- struct{}{}
			synctest.Wait()
			if a.dead && a.dies.edit {
				a.dies.edit = false
				wanted = append(wanted, userEdit{file: patchFile}, userEdit{file: steps % smallFiles, inPlace: true})
			}
			if steps++; steps > longest {
				s.faultf("it does not come to an end")
				s.kill()
				return
			}
		}
	}
}

// next is the actor whose turn it is, beginning with who: the first that waits
// for one. When all wait for something else time passes. It is nil when all are
// done.
func (s *stage) next(who int) *actor {
	for {
		synctest.Wait()
		done := 0
		for i := range s.actors {
			a := s.actors[(who+i)%len(s.actors)]
			if a.wanted.Load() != "" {
				return a
			}
			if a.done {
				done++
			}
		}
		if done == len(s.actors) {
			return nil
		}
		time.Sleep(time.Millisecond)
	}
}

// kill ends all actors.
func (s *stage) kill() {
	for a := s.next(0); a != nil; a = s.next(0) {
		a.dies = death{call: a.calls + 1}
		a.turn <- struct{}{}
	}
}

// act is the goroutine of an actor.
func (s *stage) act(a *actor, part []deed) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(died); !ok {
				s.faultf("%s panics: %v", a.name, r)
			}
		}
		for _, unlock := range a.locks {
			_ = unlock() // of a simulated disk, which never fails
		}
		a.inside, a.changing, a.seen = false, false, nil
		a.done = true
	}()
	_ = a.before("start", "") // all begin with a turn, for none may be in the way of another
	for _, d := range part {
		s.do(a, d)
	}
}

// edit lets the user edit a file, and says whether it could be.
func (s *stage) edit(e userEdit) bool {
	if !s.bold {
		e.file = patchFile // of two, a reader could see the second without the first
	}
	path := inProfile(playFiles[e.file])
	for _, a := range s.actors {
		if a.inside && a.locked && (!s.bold || a.isAbout(path)) {
			return false
		}
	}
	before, err := disk{s.disk}.readFile(path)
	if err != nil {
		return false // no profile, or none yet
	}
	delete(s.lasting, string(before)) // the user's own doing
	token := s.token(editMark)
	s.lasting[token] = e.file
	s.edited++
	s.disk.edit(s.t, path, token, e.inPlace)
	var possible []profileState
	for _, p := range s.possible {
		if len(s.possible) > 1 {
			possible = append(possible, p) // it may be about to be replaced, and then the edit is kept elsewhere
		}
		if p != absent {
			p[e.file] = token
			possible = append(possible, p)
		}
	}
	s.set(possible...)
	return true
}

// isAbout says whether the actor has looked at a file and is about to rename it,
// or another one over it: a moment in which nobody can save an edit.
func (a *actor) isAbout(path string) bool {
	op, at, _ := strings.Cut(a.wanted.Load().(string), " ")
	switch op {
	case "Close": // it was read
		return at == path
	case "Rename": // over it, or of it back to where it was staged
		return at == path || filepath.Base(filepath.Dir(at)) == "files"
	}
	return false
}

// edit writes to a file as editors do.
func (d *simDisk) edit(t testing.TB, path, content string, inPlace bool) {
	t.Helper()
	w, err := d.find(path, true)
	if err != nil {
		t.Fatal(err)
	}
	if inPlace {
		w.node.data = []byte(content)
		return
	}
	d.put(t, path+"~", content, w.node.mode.Perm())
	if err := d.Rename(path+"~", path); err != nil {
		t.Fatal(err)
	}
}

// editMark begins what the user writes.
const editMark = "edit"

func isEdit(content string) bool { return strings.HasPrefix(content, editMark) }

// allows says whether the profile can be in a state where these are possible.
func (s *stage) allows(possible []profileState, got profileState) bool {
	return slices.ContainsFunc(possible, func(p profileState) bool {
		if p == got || !s.bold || p == absent || got == absent {
			return p == got
		}
		for i := range p {
			if p[i] != got[i] && !isEdit(p[i]) && !isEdit(got[i]) {
				return false
			}
		}
		return true
	})
}

// end looks at what is left when all are done.
func (s *stage) end() {
	ctx := context.Background()
	d := disk{s.disk}
	s.disk.during = func() {}
	if err := d.recoverPlace(ctx, simPlace()); err != nil {
		s.faultf("the last recovery: %v", err)
	}
	last := s.look(s.disk, func(path string) string { return path })
	if !s.allows(s.possible, last) {
		s.faultf("at the end there is %v, and it can only be one of %v", last, s.possible)
	}
	all := s.disk.tree(simRoot)
	for path := range all {
		name := filepath.Base(strings.TrimSuffix(path, "/"))
		if strings.Contains(name, stagingMark) || strings.Contains(name, backupMark) || isTemp(name) || strings.HasPrefix(name, "journal") {
			s.faultf("left behind: %s", path)
		}
	}
	list, err := historyOf(d, simPlace().State).List()
	if err != nil {
		s.faultf("the history: %v", err)
	}
	for edit, file := range s.lasting {
		saved := last[file] == edit || slices.ContainsFunc(list, func(g Generation) bool {
			data, _ := g.File(playFiles[file])
			return string(data) == edit
		})
		for path, content := range all { // of a profile that was replaced after a death
			saved = saved || strings.HasPrefix(path, "state/web/"+replacedMark) && strings.HasSuffix(content, " "+edit)
		}
		if !saved {
			s.faultf("%s by hand is nowhere", edit)
		}
	}
	if last == absent || len(list) == 0 {
		return
	}
	now, err := d.snapshot(simPlace().Dir, simPlace().Derived)
	if err != nil {
		s.faultf("%v", err)
	} else if !SameFiles(now.Files, list[0].Files) && !slices.ContainsFunc(last[:], isEdit) {
		s.faultf("the newest generation is not the profile, %v", last)
	}
}

// look reads the profile by calls on fsys.
func (s *stage) look(fsys FS, at func(path string) string) profileState {
	var state profileState
	for i, file := range playFiles {
		data, err := disk{fsys}.readFile(at(inProfile(file)))
		if err == nil {
			state[i] = string(data)
		}
	}
	return state
}
