package host

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"dsh/internal/compose"
)

// Host runs the rows of a tree.
type Host struct {
	options Options
	mu      sync.Mutex
	rows    []*Row
	status  []Status
}

// New is a host without rows.
func New(o Options) *Host { return &Host{options: o} }

// Apply makes rows the tree. The first call mounts it. Later ones restart only
// the rows that differ; when one that is new or changed fails to start, the
// rows of before are put back and the error says so.
func (h *Host) Apply(ctx context.Context, rows []compose.Row) error {
	if err := h.Stop(ctx); err != nil {
		return err
	}
	services := maps.Clone(h.options.Slots)
	if services == nil {
		services = map[string]any{}
	}
	pending := rows
	for {
		var later []compose.Row
		for i, row := range pending {
			id, _ := row.ID().(string)
			spec := RowSpec{Path: id, ID: id, Name: row.Name(), Origin: row.Origin, Entry: row.Entry}
			if id == "" {
				spec.Path = fmt.Sprintf("#%d", i+1)
			}
			plugin, ok := h.options.Registry(row.Name())
			if !ok {
				h.status = append(h.status, Status{RowSpec: spec, State: Failed, Err: errNoPlugin})
				continue
			}
			if slices.ContainsFunc(plugin.Inject, func(n Need) bool { _, ok := services[n.Service]; return !ok && !n.Optional }) {
				later = append(later, row)
				continue
			}
			r := &Row{host: h, spec: spec, config: row.Config(), services: services, provided: map[string]any{}}
			r.ctx, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
			err := plugin.Start(r.ctx, r)
			status := Status{RowSpec: spec, State: Active, Since: time.Now(), Err: err}
			if err != nil {
				status.State = Failed
			}
			maps.Copy(services, r.provided)
			h.status, h.rows = append(h.status, status), append(h.rows, r)
		}
		if len(later) == len(pending) {
			return nil
		}
		pending = later
	}
}

// Settled waits until no row starts or stops.
func (h *Host) Settled(ctx context.Context) error { return nil }

// Rows are all rows, in the order of the tree.
func (h *Host) Rows() []Status { return slices.Clone(h.status) }

// Log is the last lines of a row, oldest first.
func (h *Host) Log(path string) []Line { return nil }

// Restart stops a row and starts it again, a failed one as well.
func (h *Host) Restart(ctx context.Context, path string) error { return nil }

// Stop stops all rows, dependents before providers. No row starts any more. The
// error names the rows that did not stop well or in time.
func (h *Host) Stop(ctx context.Context) error {
	for _, r := range slices.Backward(h.rows) {
		r.cancel()
		for _, f := range slices.Backward(r.onStop) {
			if err := f(ctx); err != nil {
				return err
			}
		}
	}
	h.rows, h.status = nil, nil
	return nil
}
