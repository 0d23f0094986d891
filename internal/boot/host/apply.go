package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"dsh/internal/compose"
	"dsh/internal/fault"
)

// Host runs the rows of a tree. One mutex guards what it knows of the rows;
// whatever changes does so by change, which then brings the rows as far as they
// can go.
// Only the plugins' own functions, expressions and Options.Event run outside of
// it.
type Host struct {
	options Options
	slots   *Row          // provides the slots; no entry of the tree
	changes chan struct{} // holds one while a tree is applied or a row restarted, by the one who may write plans
	pending atomic.Int32  // calls of change that have not changed anything yet

	patience context.Context // ends when rows that stop are to give up
	hurry    context.CancelFunc

	// What is written with both changes and the mutex, and read with either.

	plans   []*plan // the tree
	mounted bool

	mu         sync.Mutex
	entries    []*entry // in the order of the tree; then those that it has no more
	candidates map[key][]*entry
	services   map[key]*Row // who provides what
	stopping   bool
	dirty      bool          // something has changed since the rows went as far as they could
	moving     int           // entries in a state that is
	clock      int           // the latest of all events
	base       int           // what is done next comes after it
	gone       int           // the last end of a row that was replaced; all that starts comes after it
	changed    chan struct{} // closed when something has changed
	failures   []error       // of rows that stopped badly
	events     []Event       // to be told
	telling    bool
	queued     int // how many events were to be told ever
	told       int // how many of them have been
}

// New is a host without rows.
func New(o Options) *Host {
	if o.StartTimeout == 0 {
		o.StartTimeout = 30 * time.Second
	}
	if o.StopTimeout == 0 {
		o.StopTimeout = 5 * time.Second
	}
	h := &Host{options: o, changes: make(chan struct{}, 1), changed: make(chan struct{}), services: map[key]*Row{}}
	h.patience, h.hurry = context.WithCancel(context.Background())
	h.slots = &Row{host: h, entry: &entry{state: Active}, provided: map[key]any{}}
	for service, value := range o.Slots {
		k := key{service: service}
		h.slots.provided[k], h.services[k] = value, h.slots
	}
	return h
}

// RowError is a row that did not do what it should.
type RowError struct {
	Path, Name string // of the row and of its plugin
	Err        error
}

func (e *RowError) Error() string { return fmt.Sprintf("row %s (%s): %v", e.Path, e.Name, e.Err) }
func (e *RowError) Unwrap() error { return e.Err }

// TimeoutError is a row that took too long.
type TimeoutError struct {
	Doing string // "start" or "stop"
	After time.Duration
}

func (e *TimeoutError) Error() string { return fmt.Sprintf("did not %s within %s", e.Doing, e.After) }

// ApplyError is a tree that was not applied, because rows that are new in it or
// changed do not start. The rows of before are back, but for those of Back.
type ApplyError struct {
	Rows []*RowError
	Back []*RowError // rows that ran before and do not run again
}

func (e *ApplyError) Error() string {
	var b strings.Builder
	b.WriteString("apply the changed rows: ")
	b.WriteString(e.Rows[0].Error())
	for _, row := range e.Rows[1:] {
		b.WriteString("; " + row.Error())
	}
	for _, row := range e.Back {
		b.WriteString("; and it does not run again as before: " + row.Error())
	}
	return b.String()
}

// Unwrap is the errors of the rows.
func (e *ApplyError) Unwrap() []error {
	var all []error
	for _, row := range slices.Concat(e.Rows, e.Back) {
		all = append(all, row)
	}
	return all
}

// Class is that of the layers, which have what does not start.
func (e *ApplyError) Class() fault.Class { return fault.Composition }

var errStopped = errors.New("the rows are being stopped")

// Apply makes rows the tree. The first call mounts it and returns; what becomes
// of the rows is told by [Host.Rows], once they have settled. Later ones restart
// only the rows that differ and the failed ones, stopping all that go before any
// that come are started, and wait until all have settled. When a row that is new
// or changed fails then, or one that ran before, the rows of before are put
// back; the error is an *ApplyError.
func (h *Host) Apply(ctx context.Context, rows []compose.Row) error {
	if err := h.begin(ctx); err != nil {
		return err
	}
	defer h.done()
	plans, err := h.plan(ctx, rows)
	if err != nil {
		return err
	}
	before, first := h.plans, !h.mounted
	failed, err := h.mount(plans)
	if err != nil || first {
		return err
	}
	if err := h.Settled(ctx); err != nil {
		_, _ = h.mount(before) // while rows are being stopped this does nothing
		return fmt.Errorf("apply the changed rows: %w", err)
	}
	broken := h.broken(failed)
	if len(broken) == 0 {
		return nil
	}
	if _, err := h.mount(before); err != nil {
		return err
	}
	if err := h.Settled(ctx); err != nil {
		return fmt.Errorf("put the rows of before back: %w", err)
	}
	return &ApplyError{Rows: broken, Back: h.broken(failed)}
}

// begin waits until the tree is this caller's to change.
func (h *Host) begin(ctx context.Context) error {
	select {
	case h.changes <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (h *Host) done() { <-h.changes }

// mount makes plans the tree, and returns the rows that have failed before as
// they are.
func (h *Host) mount(plans []*plan) (failed map[*entry]bool, err error) {
	failed = map[*entry]bool{}
	h.change(func() {
		if h.stopping {
			err = errStopped
			return
		}
		h.base = h.clock
		have := make(map[string]*entry, len(h.entries))
		for _, e := range h.entries {
			have[e.plan.Path] = e
		}
		entries := make([]*entry, 0, len(plans))
		for i, p := range plans {
			e := have[p.Path]
			delete(have, p.Path)
			if e == nil {
				e = &entry{plan: p, since: time.Now(), state: Off}
				if p.on {
					e.state = Waiting
				}
			} else if h.replace(e, p) {
				failed[e] = true
			}
			e.index = i
			entries = append(entries, e)
		}
		for _, e := range h.entries { // those that are left
			if have[e.plan.Path] == e {
				e.retired = true
				if e.run != nil {
					entries = append(entries, e)
				} else if e.state != Off {
					h.set(e, Off, h.base)
				}
			}
		}
		h.entries, h.plans, h.mounted = entries, plans, true
		h.candidates = map[key][]*entry{}
		for _, e := range entries {
			for _, k := range e.plan.provides {
				h.candidates[k] = append(h.candidates[k], e)
			}
		}
	})
	return failed, err
}

// replace gives a row of the tree its new plan, and says whether it has failed
// with one that is the same.
func (h *Host) replace(e *entry, p *plan) (failed bool) {
	same := !e.retired && e.plan.same(p)
	failed = same && e.state == Failed
	if r := e.run; r != nil && same && r.plan == e.plan {
		r.plan = p // what runs goes on
	}
	e.plan, e.retired = p, false
	switch {
	case e.run != nil: // and if it is not for this plan, it ends first
	case !p.on && e.state != Off:
		h.set(e, Off, h.base)
	case p.on && e.state != Waiting:
		h.set(e, Waiting, h.base)
	}
	return failed
}

// drop forgets a row that the tree has no more.
func (h *Host) drop(e *entry) {
	if e.retired && e.run == nil {
		is := func(other *entry) bool { return other == e }
		h.entries = slices.DeleteFunc(h.entries, is)
		for _, k := range e.plan.provides {
			h.candidates[k] = slices.DeleteFunc(h.candidates[k], is)
		}
	}
}

// broken is the rows that have failed, without those that had before.
func (h *Host) broken(before map[*entry]bool) (broken []*RowError) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.entries {
		if e.state == Failed && !e.retired && !before[e] {
			broken = append(broken, &RowError{e.plan.Path, e.plan.Name, e.err})
		}
	}
	return broken
}

// Restart stops a row and starts it again, a failed one as well, and waits
// until all rows have settled. The error says why the row does not run then.
func (h *Host) Restart(ctx context.Context, path string) error {
	if err := h.begin(ctx); err != nil {
		return err
	}
	defer h.done()
	var e *entry
	var err error
	h.change(func() {
		if h.stopping {
			err = errStopped
			return
		}
		i := slices.IndexFunc(h.entries, func(e *entry) bool { return e.plan.Path == path && !e.retired })
		if i < 0 {
			err = fmt.Errorf("there is no row %s", path)
			return
		}
		e = h.entries[i]
		again := *e.plan // what runs is for another plan now
		h.plans[slices.Index(h.plans, e.plan)] = &again
		e.plan = &again
		h.base = h.clock
		if e.run == nil && e.state == Failed {
			h.set(e, Waiting, h.base)
		}
	})
	if err != nil {
		return err
	}
	if err := h.Settled(ctx); err != nil {
		return fmt.Errorf("restart row %s: %w", path, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch e.state {
	case Active:
		return nil
	case Failed:
		return &RowError{e.plan.Path, e.plan.Name, e.err}
	case Waiting:
		return &RowError{e.plan.Path, e.plan.Name, errors.New(h.why(e))}
	default:
		return &RowError{e.plan.Path, e.plan.Name, errors.New("is " + e.state.String())}
	}
}

// Settled waits until no row starts or stops, or could, and what happened until
// then is told.
func (h *Host) Settled(ctx context.Context) error {
	err := h.wait(ctx, func() bool { return h.moving == 0 })
	h.mu.Lock()
	defer h.mu.Unlock()
	if err == nil && h.stopping {
		return errStopped
	}
	return err
}

// wait waits until a condition holds, and all is told that had happened when it
// came to hold. What rows log meanwhile, which may never end, does not count.
func (h *Host) wait(ctx context.Context, until func() bool) error {
	held, upTo := false, 0
	for {
		h.mu.Lock()
		holds := !h.dirty && until()
		if holds && !held {
			upTo = h.queued
		}
		held = holds
		told, changed := h.told >= upTo, h.changed
		h.mu.Unlock()
		if held && told {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// lastMoment is how long Stop waits for rows that have been told to give up: half
// of it for those that nothing uses any more, and half for what these use.
const lastMoment = 200 * time.Millisecond

// Stop stops all rows, dependents before providers, as many at once as can. No
// row starts any more, and no tree is applied. When ctx ends, so do those that
// OnStop functions have; then rows whose dependents do not end are told to stop
// all the same, and Stop returns a moment later. The error names the rows that
// did not stop well, or not at all by then.
func (h *Host) Stop(ctx context.Context) error {
	h.change(func() {
		if !h.stopping {
			h.base = h.clock
			h.stopping, h.failures = true, nil
			for _, e := range h.entries {
				if e.state == Waiting {
					h.set(e, Off, h.base)
				}
			}
		}
	})
	stopped := func() bool { return h.moving == 0 }
	err := h.wait(ctx, stopped)
	for _, press := range []func(){h.hurry, h.releaseAll} {
		if err == nil {
			break
		}
		press()
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastMoment/2)
		if h.wait(last, stopped) == nil {
			err = nil
		}
		cancel()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	failures := slices.Clone(h.failures)
	if err != nil {
		for _, e := range h.entries {
			if e.state.moving() {
				failures = append(failures, &RowError{e.plan.Path, e.plan.Name, fmt.Errorf("has not stopped: %w", err)})
			}
		}
	}
	return errors.Join(failures...)
}

// change changes the state of the host, and lets the rows go as far as they can.
// Where the next change waits already, it does that.
func (h *Host) change(f func()) {
	h.pending.Add(1)
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
	h.dirty = true
	if h.pending.Add(-1) == 0 {
		h.dirty = false
		h.step()
	}
}

// wake lets those look again who wait for a condition.
func (h *Host) wake() {
	close(h.changed)
	h.changed = make(chan struct{})
}

// started notes that Start has returned. What the row provides is there now,
// unless another row provides it.
func (h *Host) started(r *Row, err error) {
	h.change(func() {
		r.started = true
		if r.entry.state != Starting || r.failure != nil {
			return
		}
		for _, k := range r.plan.provides {
			if other := h.services[k]; other != nil && r.provided[k] != nil && err == nil {
				err = fmt.Errorf("service %q is provided by row %s already", k.service, other.spec.Path)
			}
		}
		if err != nil {
			r.failure = err
			return
		}
		r.timer.Stop()
		for k := range r.provided {
			h.services[k] = r
		}
		h.set(r.entry, Active, 0)
	})
}

// fail fails a row that does not stop already.
func (h *Host) fail(r *Row, err error) {
	h.change(func() {
		if state := r.entry.state; r.entry.run == r && r.failure == nil && (state == Starting || state == Active) {
			r.failure = err
		}
	})
}
