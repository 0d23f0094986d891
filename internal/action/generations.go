package action

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"dsh/internal/fault"
	"dsh/internal/profile"
	"dsh/internal/staging"
)

// Generations is the saved states of a profile or of the home's layer, and
// where it is among them.
type Generations struct {
	Profile string `json:"profile"` // "" for the home
	Dir     string `json:"dir"`
	// State is what is there now: "saved", as the newest generation has it;
	// "edited", something else; or "removed", nothing.
	State string `json:"state"`
	// Current is the newest generation, 0 where there is none.
	Current int `json:"current"`
	// Edited is how what is there differs from the newest generation.
	Edited *StateChange `json:"edited"`
	// Generations are the newest first.
	Generations []GenerationInfo `json:"generations"`
	Warnings    []string         `json:"-"`
}

// What is there now of a profile that has a history.
const (
	StateSaved   = "saved"
	StateEdited  = "edited"
	StateRemoved = "removed"
)

// GenerationInfo is what there is to say about one saved state.
type GenerationInfo struct {
	ID      int       `json:"id"`
	Saved   time.Time `json:"saved"`
	Command string    `json:"command"` // that made the state; "" when it was found
	Pinned  bool      `json:"pinned"`
	// TooLarge is what the generation does not keep, and why.
	TooLarge []staging.Skipped `json:"tooLarge"`
	// Changes is how it differs from the generation before it; nil for the
	// oldest that is kept.
	Changes *StateChange `json:"changes"`
}

func infoOf(g *staging.Generation) GenerationInfo {
	return GenerationInfo{ID: g.ID, Saved: g.Saved, Command: g.Command, Pinned: g.Pinned, TooLarge: append([]staging.Skipped{}, g.TooLarge...)}
}

// subject is what has a history: a profile, or the layer of the home.
type subject struct {
	env  Env
	name profile.Name // of the profile
	home bool
}

func profileSubject(env Env, name profile.Name) subject { return subject{env: env, name: name} }
func homeSubject(env Env) subject                       { return subject{env: env, home: true} }

// profile is the name for reports, "" for the home.
func (s subject) profile() string {
	if s.home {
		return ""
	}
	return s.name.String()
}

func (s subject) dir() string {
	if s.home {
		return s.env.Home.Dir()
	}
	return s.env.Home.ProfileDir(s.name)
}

func (s subject) history() staging.History {
	if s.home {
		return staging.OpenHistory(s.env.Home.HistoryDir())
	}
	return s.env.Home.Place(s.name).History()
}

// command is one of `dsh profile` about the subject, to be pasted.
func (s subject) command(verb string, args ...string) string {
	words := []string{"dsh", "profile", verb}
	if s.home {
		words = append(words, "--home")
	} else {
		words = append(words, s.name.String())
	}
	return fault.ShellWords(append(words, args...)...)
}

// String is the subject as people call it.
func (s subject) String() string {
	if s.home {
		return "the home layer"
	}
	return fmt.Sprintf("profile %s", s.name)
}

// now is the small files as they are; nil when there is no profile.
func (s subject) now() (*staging.Generation, error) {
	if s.home {
		files, err := homeFiles(s.env.Home)
		return &staging.Generation{Files: files}, err
	}
	if _, err := os.Lstat(s.dir()); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err := s.env.Home.CheckLink(s.name); err != nil {
		return nil, err
	}
	return staging.Snapshot(s.env.Home.Place(s.name))
}

// UnknownError is a profile that is not there and that nothing is remembered of.
type UnknownError struct{ Name profile.Name }

func (e *UnknownError) Error() string {
	return fmt.Sprintf("profile %q is not there, and has no history", e.Name)
}

// Hint is the list of what there is.
func (e *UnknownError) Hint() string {
	return "dsh profile list --removed shows the profiles, and those that can be brought back"
}

// past is what is there now and the generations, newest first.
type past struct {
	subject
	now         *staging.Generation // nil: the profile is not there
	generations []staging.Generation
	warnings    []string
}

// look reads a subject and its history. One that has neither is an error.
func (s subject) look() (*past, error) {
	return s.lookBy(s.now, s.history().List)
}

// glance is look without any content of files.
func (s subject) glance() (*past, error) {
	return s.lookBy(s.there, s.history().Heads)
}

// there is a state without files, nil when there is no profile.
func (s subject) there() (*staging.Generation, error) {
	if _, err := os.Lstat(s.dir()); errors.Is(err, fs.ErrNotExist) && !s.home {
		return nil, nil
	}
	return &staging.Generation{}, nil
}

func (s subject) lookBy(now func() (*staging.Generation, error), list func() ([]staging.Generation, error)) (*past, error) {
	p := &past{subject: s}
	var err error
	if p.now, err = now(); err != nil {
		return nil, err
	}
	p.generations, err = list()
	switch {
	case err == nil:
	case len(p.generations) > 0:
		// The others are as good as before.
		p.warnings = append(p.warnings, leftOutOfHistory(err))
	default:
		return nil, fmt.Errorf("reading the history of %s: %w", s, err)
	}
	if p.now == nil && len(p.generations) == 0 {
		return nil, &UnknownError{s.name}
	}
	return p, nil
}

// settled is look for a command that has no lock: it sees what is there between
// two changes.
func (s subject) settled(ctx context.Context) (*past, error) {
	if s.home {
		return s.look()
	}
	p, warnings, err := reading(ctx, s.env, s.name, func(staging.View) (*past, error) { return s.look() })
	if err != nil {
		return nil, err
	}
	p.warnings = append(warnings, p.warnings...)
	return p, nil
}

// edited says that what is there is not what the newest generation has.
func (p *past) edited() bool {
	return p.now != nil && (len(p.generations) == 0 || !staging.Same(p.now, &p.generations[0]))
}

func sameSaved(a, b staging.SavedFile) bool {
	return a.Path == b.Path && a.Mode == b.Mode && string(a.Data) == string(b.Data)
}

// ListGenerations shows the history of a profile, also of one that is removed.
// It changes nothing.
func ListGenerations(ctx context.Context, env Env, name profile.Name) (*Generations, error) {
	return profileSubject(env, name).list(ctx)
}

// ListHomeGenerations shows the history of the home's own layer.
func ListHomeGenerations(ctx context.Context, env Env) (*Generations, error) {
	return homeSubject(env).list(ctx)
}

func (s subject) list(ctx context.Context) (*Generations, error) {
	p, err := s.settled(ctx)
	if err != nil {
		return nil, err
	}
	list := &Generations{Profile: s.profile(), Dir: s.dir(), State: StateSaved, Generations: []GenerationInfo{}, Warnings: p.warnings}
	for i := range p.generations {
		info := infoOf(&p.generations[i])
		if i+1 < len(p.generations) {
			info.Changes = compareStates(&p.generations[i+1], &p.generations[i])
		}
		list.Generations = append(list.Generations, info)
	}
	if len(p.generations) > 0 {
		list.Current = p.generations[0].ID
	}
	switch {
	case p.now == nil:
		list.State = StateRemoved
	case p.edited():
		list.State = StateEdited
		if len(p.generations) > 0 {
			list.Edited = compareStates(&p.generations[0], p.now)
		}
	}
	return list, nil
}

// Pinned is what became of the pin of a generation.
type Pinned struct {
	Profile    string `json:"profile"` // "" for the home
	Generation int    `json:"generation"`
	Pinned     bool   `json:"pinned"`
	Changed    bool   `json:"changed"`
}

// PinGeneration keeps a generation of a profile for ever, or lets retention
// have it again.
func PinGeneration(ctx context.Context, env Env, name profile.Name, id int, pinned bool) (*Pinned, error) {
	return profileSubject(env, name).pin(ctx, id, pinned)
}

// PinHomeGeneration is [PinGeneration] for the home's own layer.
func PinHomeGeneration(ctx context.Context, env Env, id int, pinned bool) (*Pinned, error) {
	return homeSubject(env).pin(ctx, id, pinned)
}

func (s subject) pin(ctx context.Context, id int, pinned bool) (*Pinned, error) {
	p, err := s.glance()
	if err != nil {
		return nil, err
	}
	g, err := p.byID(id)
	if err != nil {
		return nil, err
	}
	done := &Pinned{Profile: s.profile(), Generation: id, Pinned: pinned, Changed: g.Pinned != pinned}
	if !done.Changed {
		return done, nil
	}
	return done, s.env.unwritable(s.history().Pin(ctx, id, pinned))
}

// byID is the generation with an id.
func (p *past) byID(id int) (*staging.Generation, error) {
	for i := range p.generations {
		if p.generations[i].ID == id {
			return &p.generations[i], nil
		}
	}
	if _, err := p.history().Load(id); err != nil {
		if _, gone := errors.AsType[*staging.NoGenerationError](err); !gone {
			return nil, err
		}
	}
	err := fault.Errorf(fault.Other, "%s has no generation %d", p.subject, id)
	if len(p.generations) == 0 {
		return nil, fault.WithHint(err, "its history is empty: it begins with the next change")
	}
	return nil, fault.WithHint(err, "%s lists them", p.command("history"))
}

// back is the state that so many changes ago was there, at least one. What was
// edited by hand since the newest generation counts as one change, and so does
// the removal of the profile.
func (p *past) back(changes int) (*staging.Generation, error) {
	at := changes
	if p.now == nil || p.edited() {
		at--
	}
	if at < len(p.generations) {
		return &p.generations[at], nil
	}
	have := len(p.generations) - 1 + changes - at
	switch {
	case len(p.generations) == 0:
		return nil, fault.Errorf(fault.Other, "%s has no saved states yet: its history begins with the next change", p.subject)
	case have == 0:
		return nil, fault.Errorf(fault.Other, "%s has no state before the one that is there", p.subject)
	}
	return nil, fault.WithHint(fault.Errorf(fault.Other, "%s cannot go %d changes back: the history holds %d", p.subject, changes, have),
		"%s shows it", p.command("history"))
}

// Known says that there is a profile of a name, or that there was one that can
// be had back.
func Known(env Env, name profile.Name) bool {
	_, err := profileSubject(env, name).glance()
	_, unknown := errors.AsType[*UnknownError](err)
	return !unknown
}
