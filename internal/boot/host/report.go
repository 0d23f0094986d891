package host

import (
	"fmt"
	"slices"
	"strings"
)

// Rows are all rows, in the order of the tree.
func (h *Host) Rows() []Status {
	h.mu.Lock()
	defer h.mu.Unlock()
	rows := make([]Status, 0, len(h.entries))
	for _, e := range h.entries {
		if e.retired {
			continue
		}
		s := Status{RowSpec: e.plan.RowSpec, State: e.state, Err: e.err, Since: e.since}
		if e.state == Waiting {
			s.Missing, s.Why = h.missing(e), h.why(e)
		}
		if e.state == Active {
			for k := range e.run.provided {
				if !e.plan.carrier || k.service != groupService(e.plan.Path) {
					s.Provides = append(s.Provides, k.service)
				}
			}
			slices.Sort(s.Provides)
		}
		rows = append(rows, s)
	}
	return rows
}

// Log is the last lines of a row, oldest first.
func (h *Host) Log(path string) []Line {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.entries {
		if e.plan.Path == path {
			return e.log.all()
		}
	}
	return nil
}

// missing are the services that a waiting row requires and that are not there.
func (h *Host) missing(e *entry) []string {
	var missing []string
	for _, n := range e.plan.needs {
		if !n.optional && h.services[n.key] == nil {
			missing = append(missing, n.service)
		}
	}
	return missing
}

// why says what a waiting row waits for, and why that does not come.
func (h *Host) why(e *entry) string {
	if cycle := h.cycle(e); cycle != nil {
		return cycle.String()
	}
	var reasons []string
	for _, n := range e.plan.needs {
		if !n.optional && h.services[n.key] == nil {
			reasons = append(reasons, h.whyNot(n.key))
		}
	}
	return "waits for " + strings.Join(reasons, "; ")
}

// whyNot says why a service is not there.
func (h *Host) whyNot(k key) string {
	var reasons []string
	for _, c := range h.candidates[k] {
		if c.retired {
			continue
		}
		reason := map[State]string{
			Off: "is disabled", Waiting: "waits itself", Starting: "is starting", Active: "did not provide it",
			Stopping: "is stopping", Failed: "has failed",
		}[c.state]
		reasons = append(reasons, fmt.Sprintf("row %s %s", c.plan.Path, reason))
	}
	if len(reasons) > 0 {
		return fmt.Sprintf("%s (%s)", k.service, strings.Join(reasons, ", "))
	}
	var elsewhere []string
	for other, candidates := range h.candidates {
		if other.service != k.service || other == k {
			continue
		}
		for _, c := range candidates {
			if !c.retired {
				elsewhere = append(elsewhere, c.plan.Path)
			}
		}
	}
	if len(elsewhere) > 0 {
		slices.Sort(elsewhere)
		return fmt.Sprintf("%s (only rows of another realm provide it: %s)", k.service, strings.Join(elsewhere, ", "))
	}
	return fmt.Sprintf("%s (no row of the tree provides it)", k.service)
}

// cycle is rows that wait for each other.
type cycle []link

// link is a row and the service of the next one that it waits for.
type link struct {
	e *entry
	k key
}

func (c cycle) String() string {
	var b strings.Builder
	for i, l := range c {
		next := c[(i+1)%len(c)].e
		fmt.Fprintf(&b, "%s needs %s of %s, ", l.e.plan.Path, l.k.service, next.plan.Path)
	}
	return "waits in a cycle: " + strings.TrimSuffix(b.String(), ", ")
}

// cycle is the shortest cycle that a waiting row is in, nil if there is none.
func (h *Host) cycle(start *entry) cycle {
	from := map[*entry]link{} // how each row was found, breadth first
	queue := []*entry{start}
	for len(queue) > 0 {
		e := queue[0]
		queue = queue[1:]
		for _, n := range e.plan.needs {
			if n.optional || h.services[n.key] != nil {
				continue
			}
			for _, c := range h.candidates[n.key] {
				if c == start {
					found := cycle{{e, n.key}}
					for e != start {
						found = append(found, from[e])
						e = from[e].e
					}
					slices.Reverse(found)
					return found
				}
				if _, seen := from[c]; !seen && c.state == Waiting && !c.retired {
					from[c] = link{e, n.key}
					queue = append(queue, c)
				}
			}
		}
	}
	return nil
}
