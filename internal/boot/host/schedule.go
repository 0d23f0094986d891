package host

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// entry is a row in the tree of a host. It outlives what runs for it.
type entry struct {
	plan  *plan
	index int // in the tree
	state State
	err   error // of a failed row
	since time.Time
	// run is what has not ended. It is nil of a row that is off or waits, and of a
	// failed one unless it has been left.
	run *Row
	// retired says that the tree has the row no more; it goes when run has ended.
	retired bool
	missing []string // as last told
	clock   int      // of the last event
	log     ring
}

// wanted says whether the row is to run as soon as it can.
func (h *Host) wanted(e *entry) bool {
	return !h.stopping && !e.retired && e.plan.on && e.state != Failed
}

// moving says whether a row is on its way between two states.
func (s State) moving() bool { return s == Starting || s == Stopping }

// set gives a row a new state, at a logical time after that of its last one,
// and tells it.
func (h *Host) set(e *entry, s State, after int) {
	if e.state.moving() {
		h.moving--
	}
	if s.moving() {
		h.moving++
	}
	if s != Failed {
		e.err = nil
	}
	e.state, e.since, e.missing = s, time.Now(), nil
	e.clock = max(e.clock, after) + 1
	h.clock = max(h.clock, e.clock)
	h.tell(e, Event{State: s, Err: e.err})
}

// step brings the rows as far as they can go now: it stops what may not run,
// lets those end that nobody needs any more, and starts what can start. It
// looks at rows in the order of the tree, so that what it does follows from
// the states alone.
func (h *Host) step() {
	for h.stopSome() || h.startSome() {
	}
	if h.moving == 0 {
		h.tellMissing()
	}
	h.wake()
}

// stopSome begins to stop the rows that may not run any more.
func (h *Host) stopSome() (any bool) {
	for _, e := range h.entries {
		if r := e.run; r != nil && (e.state == Starting || e.state == Active) {
			if cause, ok := h.mayRun(e, r); !ok {
				h.halt(e, cause)
				any = true
			}
		}
	}
	return any
}

// mayRun says whether r may go on, and else the logical time of the cause.
func (h *Host) mayRun(e *entry, r *Row) (cause int, ok bool) {
	if !h.wanted(e) || r.plan != e.plan || r.failure != nil {
		return h.base, false
	}
	for _, n := range e.plan.needs {
		bound, now := r.bound[n.key], h.services[n.key]
		// What came because r runs would go with it.
		if bound == now || bound == nil && now.uses(r) {
			continue
		}
		if bound != nil {
			cause = max(cause, bound.entry.clock)
		}
		if now != nil {
			cause = max(cause, now.entry.clock)
		}
		return cause, false
	}
	return 0, true
}

// uses says whether a row runs with what other provides, or others that do, or
// is other itself.
func (r *Row) uses(other *Row) bool {
	return r == other || slices.ContainsFunc(r.providers, func(p *Row) bool { return p.uses(other) })
}

// halt withdraws what a row provides and stops it, once those have stopped that
// use it. A row that is still starting is told at once.
func (h *Host) halt(e *entry, cause int) {
	r := e.run
	for k := range r.provided {
		if h.services[k] == r {
			delete(h.services, k)
		}
	}
	h.set(e, Stopping, cause)
	h.releaseUnused(r)
}

// releaseUnused lets a stopping row end if nobody uses it.
func (h *Host) releaseUnused(r *Row) {
	if r.users == 0 && r.entry.state == Stopping {
		h.release(r)
	}
}

// release lets a stopping row end. What it does then has to end somewhat before
// the row is left: one that heeds ctx is still in time.
func (h *Host) release(r *Row) {
	if r.let {
		return
	}
	r.let = true
	r.timer.Stop()
	r.timer = time.AfterFunc(h.options.StopTimeout, func() { h.leave(r) })
	r.deadline = time.Now().Add(h.options.StopTimeout * 9 / 10)
	r.cancel()
	close(r.released)
}

// releaseAll lets all stopping rows end, whoever uses them.
func (h *Host) releaseAll() {
	h.change(func() {
		for _, e := range h.entries {
			if e.state == Stopping {
				h.release(e.run)
			}
		}
	})
}

// leave gives up on a row that did not stop in time.
func (h *Host) leave(r *Row) {
	h.change(func() {
		if r.over || r.left {
			return
		}
		r.left = true
		h.over(r, &TimeoutError{Doing: "stop", After: h.options.StopTimeout})
	})
}

// ended notes that nothing of a row runs any more.
func (h *Host) ended(r *Row, err error) {
	h.change(func() {
		r.timer.Stop()
		e := r.entry
		r.over, e.run = true, nil
		if r.left {
			h.line(e, "stopped, later than it should have")
			h.drop(e)
			return
		}
		h.over(r, err)
	})
}

// over is the end of a row's Stopping: err says how it stopped.
func (h *Host) over(r *Row, err error) {
	e := r.entry
	replaced := e.retired || r.plan != e.plan
	if err != nil {
		h.line(e, "stop: "+err.Error())
		if h.stopping {
			h.failures = append(h.failures, &RowError{Path: r.plan.Path, Name: r.plan.Name, Err: err})
		}
	}
	e.err = r.failure
	if r.left && e.err == nil {
		e.err = err
	}
	after := max(r.usersClock, h.base)
	switch {
	case e.err != nil && r.plan == e.plan || r.left:
		h.set(e, Failed, after)
	case h.wanted(e):
		h.set(e, Waiting, after)
	default:
		h.set(e, Off, after)
	}
	if replaced {
		h.gone = max(h.gone, e.clock)
	}
	h.drop(e)
	for _, provider := range r.providers {
		provider.users--
		provider.usersClock = max(provider.usersClock, e.clock)
		h.releaseUnused(provider)
	}
}

// replaced says whether what runs for a row runs for a plan of before. Nothing
// starts until it has ended: it may have what its successor needs, which can be
// any other row.
func (e *entry) replaced() bool {
	return e.state == Stopping && (e.retired || e.run.plan != e.plan)
}

// startSome starts the rows that can start.
func (h *Host) startSome() (any bool) {
	if slices.ContainsFunc(h.entries, (*entry).replaced) {
		return false
	}
	var held *entry
	var hope map[*entry]bool // found out when a row asks
	for _, e := range h.entries {
		if e.state != Waiting || !h.wanted(e) {
			continue
		}
		if e.plan.err != nil {
			e.err = e.plan.err
			h.set(e, Failed, h.base)
			any = true
			continue
		}
		if !h.available(e) {
			continue
		}
		if h.contested(e) {
			if hope == nil {
				hope = h.hopeful()
			}
			if h.held(e, hope) {
				held = cmp.Or(held, e) // the first
				continue
			}
		}
		h.start(e)
		any = true
	}
	if held != nil && !any && h.moving == 0 {
		// Rows wait only for what could be, and nothing moves: one has to begin.
		h.base = h.clock
		h.start(held)
		any = true
	}
	return any
}

// available says whether all that a row requires is there.
func (h *Host) available(e *entry) bool {
	for _, n := range e.plan.needs {
		if !n.optional && h.services[n.key] == nil {
			return false
		}
	}
	return true
}

// contested says whether others decide when a row starts, besides those that
// it requires: who could provide what it can do without, so that it need not
// restart when that comes; and who could provide what it provides, so that of
// two such rows always the first in the tree does.
func (h *Host) contested(e *entry) bool {
	for _, n := range e.plan.needs {
		if n.optional && h.services[n.key] == nil && len(h.candidates[n.key]) > 0 {
			return true
		}
	}
	for _, k := range e.plan.provides {
		if len(h.candidates[k]) > 1 {
			return true
		}
	}
	return false
}

// held says whether a row that could start waits for others all the same.
func (h *Host) held(e *entry, hope map[*entry]bool) bool {
	for _, n := range e.plan.needs {
		if !n.optional || h.services[n.key] != nil {
			continue
		}
		for _, c := range h.candidates[n.key] {
			if c != e && (c.state.moving() || hope[c]) {
				return true
			}
		}
	}
	for _, k := range e.plan.provides {
		for _, c := range h.candidates[k] {
			if c != e && (c.state == Stopping || c.index < e.index && (c.state == Starting || hope[c])) {
				return true
			}
		}
	}
	return false
}

// hopeful are the waiting rows that will start if all goes well.
func (h *Host) hopeful() map[*entry]bool {
	hope := map[*entry]bool{}
	comes := func(k key) bool {
		if h.services[k] != nil {
			return true
		}
		for _, c := range h.candidates[k] {
			if hope[c] || c.state == Starting || c.state == Stopping && h.wanted(c) {
				return true
			}
		}
		return false
	}
	for grown := true; grown; {
		grown = false
	entries:
		for _, e := range h.entries {
			if hope[e] || e.state != Waiting || !h.wanted(e) || e.plan.err != nil {
				continue
			}
			for _, n := range e.plan.needs {
				if !n.optional && !comes(n.key) {
					continue entries
				}
			}
			hope[e], grown = true, true
		}
	}
	return hope
}

// start starts a row with the services that are there.
func (h *Host) start(e *entry) {
	r := &Row{
		host: h, entry: e, plan: e.plan, spec: e.plan.RowSpec, realms: e.plan.realms,
		bound: map[key]*Row{}, provided: map[key]any{}, released: make(chan struct{}),
	}
	after := max(h.base, h.gone)
	for _, n := range e.plan.needs {
		provider := h.services[n.key]
		r.bound[n.key] = provider
		if provider == nil {
			for _, c := range h.candidates[n.key] {
				after = max(after, c.clock)
			}
			continue
		}
		after = max(after, provider.entry.clock)
		if !slices.Contains(r.providers, provider) {
			provider.users++
			r.providers = append(r.providers, provider)
		}
	}
	for _, k := range e.plan.provides {
		for _, c := range h.candidates[k] {
			if c.index < e.index {
				after = max(after, c.clock)
			}
		}
	}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	e.run = r
	h.set(e, Starting, after)
	r.timer = time.AfterFunc(h.options.StartTimeout, func() {
		h.change(func() {
			if e.state == Starting && e.run == r && r.failure == nil {
				r.failure = &TimeoutError{Doing: "start", After: h.options.StartTimeout}
			}
		})
	})
	go r.live(e.plan)
}
