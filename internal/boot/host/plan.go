package host

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"dsh/internal/compose"
	"dsh/internal/fault"
)

// maxIncludes is how deep includes may nest.
const maxIncludes = 16

// plan is what is wanted of one row. It does not change.
type plan struct {
	RowSpec
	parent    *plan // the carrier that it is in
	plugin    Plugin
	carrier   bool        // its config is rows, which have plans of their own
	on        bool        // not disabled, and neither is what it is in
	err       error       // why the row cannot be started at all
	needs     []need      // each service once
	provides  []key       // what it may provide
	realms    realms      // of the row and the rows in it
	intercept []intercept // outermost first
}

// need is a service of the realm that a row is in.
type need struct {
	key
	optional bool
}

// intercept is the config that a row has for a service.
type intercept struct {
	service string
	config  compose.Value
}

// same says whether a row that runs as p runs as q would.
func (p *plan) same(q *plan) bool {
	return p.Name == q.Name && p.Dir == q.Dir && p.on == q.on && p.carrier == q.carrier &&
		(p.err == nil) == (q.err == nil) &&
		(p.carrier || compose.Equal(config(p.Entry), config(q.Entry))) &&
		slices.Equal(p.needs, q.needs) && slices.Equal(p.provides, q.provides) && maps.Equal(p.realms, q.realms) &&
		slices.EqualFunc(p.intercept, q.intercept, func(a, b intercept) bool {
			return a.service == b.service && compose.Equal(a.config, b.config)
		})
}

func config(entry *compose.Map) compose.Value {
	v, _ := entry.Get("config")
	return v
}

// plan makes the plans of a tree.
func (h *Host) plan(ctx context.Context, rows []compose.Row) ([]*plan, error) {
	others := map[string]bool{}
	h.mayProvide(rows, others)
	b := planner{options: &h.options, taken: map[string]bool{}, disabled: func(p *plan, expr compose.Expr) (bool, error) {
		e := evaluation{evaluator: h.options.Evaluator, scope: func() Scope {
			return h.scope(nil, p.realms, slices.Sorted(maps.Keys(others)))
		}}
		v, err := e.expression(ctx, "disabled", expr)
		return Truthy(v), err
	}}
	err := b.rows(rows, nil, true)
	return b.plans, err
}

// mayProvide collects what rows, and the rows in them, may provide.
func (h *Host) mayProvide(rows []compose.Row, services map[string]bool) {
	for _, row := range rows {
		plugin, _ := h.options.Registry(row.Name())
		for _, service := range plugin.Provides {
			services[service] = true
		}
		h.mayProvide(row.Mounted(), services)
	}
}

// planner makes the plans of a tree.
type planner struct {
	options  *Options
	disabled func(p *plan, e compose.Expr) (bool, error) // evaluates it
	plans    []*plan                                     // in the order of the tree
	taken    map[string]bool                             // paths
	includes int                                         // how many includes surround the rows
}

// rows plans rows that stand next to each other, and those in them. The error
// is one of the tree; what is wrong with one row is its plan's.
func (b *planner) rows(rows []compose.Row, parent *plan, enabled bool) error {
	ids := map[string]bool{}
	for i, row := range rows {
		p := &plan{parent: parent}
		p.ID = rowID(row)
		if p.ID != "" && ids[p.ID] {
			return fault.Errorf(fault.Composition, "mount the rows%s: duplicate loader entry id: %s", in(parent), p.ID)
		}
		ids[p.ID] = true
		p.Path = b.path(p.ID, i, parent)
		p.Name, p.Origin, p.Entry = row.Name(), row.Origin, row.Entry
		if b.options.Dir != nil {
			p.Dir = b.options.Dir(row)
		}
		b.plans = append(b.plans, p)
		disabled := b.fill(p)
		// A group's own `disabled` is for what is in it.
		group, _ := row.Entry.Get("group")
		p.on = (parent == nil || parent.on) && (compose.Truthy(group) || enabled && !disabled)
		inner, err := b.inside(p, row)
		if err != nil {
			p.fail(err)
		}
		if p.Name == compose.IncludePlugin {
			b.includes++
		}
		if err := b.rows(inner, p, enabled && !disabled); err != nil {
			return err
		}
		if p.Name == compose.IncludePlugin {
			b.includes--
		}
	}
	return nil
}

// fail notes why the row cannot be started; the first reason counts.
func (p *plan) fail(err error) {
	if p.err == nil {
		p.err = err
	}
}

// in names where rows are, for messages.
func in(parent *plan) string {
	if parent == nil {
		return ""
	}
	return " in " + parent.Path
}

// rowID is the id as text, "" if there is none.
func rowID(row compose.Row) string {
	switch id := row.ID().(type) {
	case nil:
		return ""
	case string:
		return id
	default:
		return compose.Show(id)
	}
}

// path is the path of the row at index i. An id may hold what paths do.
func (b *planner) path(id string, i int, parent *plan) string {
	path := id
	if id == "" {
		path = fmt.Sprintf("#%d", i+1)
	}
	if parent != nil {
		path = parent.Path + "/" + path
	}
	for b.taken[path] {
		path += fmt.Sprintf("#%d", i+1)
	}
	b.taken[path] = true
	return path
}

// fill reads the keys of the row, and says whether it is disabled.
func (b *planner) fill(p *plan) (disabled bool) {
	if p.parent != nil {
		p.intercept = p.parent.intercept
		p.realms = p.parent.realms
	}
	if p.Entry == nil {
		p.err = errors.New("the row is no mapping")
		return false
	}
	var err error
	if p.realms, err = isolate(p.realms, p.Entry, p.Path); err != nil {
		p.fail(err)
	}
	for _, read := range []func() error{func() error { return b.plugin(p) }, p.inject, p.addIntercept} {
		if err := read(); err != nil {
			p.fail(err)
		}
	}
	for _, service := range p.plugin.Provides {
		p.provides = append(p.provides, p.realms.key(service))
	}
	v, _ := p.Entry.Get("disabled")
	expr, ok := v.(compose.Expr)
	if !ok {
		return compose.Truthy(v)
	}
	disabled, err = b.disabled(p, expr)
	if err != nil {
		p.fail(err)
	}
	return disabled
}

// plugin finds the plugin. What carries rows provides that it is there, which
// they need.
func (b *planner) plugin(p *plan) error {
	p.carrier = carries(p)
	if p.carrier {
		p.plugin.Provides = []string{groupService(p.Path)}
	}
	switch {
	case p.Name == "":
		return errors.New("the row has no plugin name")
	case p.Name == compose.GroupPlugin || p.Name == compose.IncludePlugin:
		return nil
	}
	found, ok := b.options.Registry(p.Name)
	if !ok {
		return fmt.Errorf("there is no plugin %s", p.Name)
	}
	found.Provides = slices.Concat(p.plugin.Provides, found.Provides)
	p.plugin = found
	return nil
}

// carries says whether a row holds rows, if only none.
func carries(p *plan) bool {
	_, rows := compose.RowsIn(p.Entry, config(p.Entry))
	return rows || p.Name == compose.GroupPlugin || p.Name == compose.IncludePlugin
}

// inside is the rows in a row.
func (b *planner) inside(p *plan, row compose.Row) ([]compose.Row, error) {
	if p.Name != compose.IncludePlugin {
		return row.Mounted(), nil
	}
	switch {
	case p.err != nil || !p.on:
		return nil, nil
	case b.options.Include == nil:
		return nil, errors.New("rows of a file cannot be included here")
	case b.includes == maxIncludes:
		return nil, fmt.Errorf("includes nest deeper than %d", maxIncludes)
	}
	return b.options.Include(p.RowSpec)
}

// groupService is what the carrier of rows provides to them.
func groupService(path string) string { return "group " + path }

// inject fills in what the row and its plugin need.
func (p *plan) inject() error {
	if p.parent != nil {
		p.need(groupService(p.parent.Path), false)
	}
	for _, n := range p.plugin.Inject {
		p.need(n.Service, n.Optional)
	}
	v, _ := p.Entry.Get("inject")
	switch v := v.(type) {
	case nil:
	case *compose.List:
		for i, item := range v.Items {
			service, ok := item.(string)
			if !ok {
				return fmt.Errorf("inject[%d]: expected the name of a service, not %s", i, compose.Show(item))
			}
			p.need(service, false)
		}
	case *compose.Map:
		for service, how := range v.All() {
			required, err := required(how)
			if err != nil {
				return fmt.Errorf("inject.%s: %w", service, err)
			}
			p.need(service, !required)
		}
	default:
		return fmt.Errorf("inject: expected a list of services, or a mapping, not %s", compose.Show(v))
	}
	return nil
}

// required reads what stands behind a service in `inject`.
func required(how compose.Value) (bool, error) {
	if m, ok := how.(*compose.Map); ok {
		how, _ = m.Get("required")
	}
	switch how := how.(type) {
	case nil:
		return true, nil
	case bool:
		return how, nil
	default:
		return false, fmt.Errorf("expected true, false or {required: …}, not %s", compose.Show(how))
	}
}

// need adds a service. One that anything requires is required.
func (p *plan) need(service string, optional bool) {
	n := need{p.realms.key(service), optional}
	i := slices.IndexFunc(p.needs, func(have need) bool { return have.key == n.key })
	if i < 0 {
		p.needs = append(p.needs, n)
	} else if !optional {
		p.needs[i].optional = false
	}
}

func (p *plan) addIntercept() error {
	v, _ := p.Entry.Get("intercept")
	if v == nil {
		return nil
	}
	m, ok := v.(*compose.Map)
	if !ok {
		return fmt.Errorf("intercept: expected a mapping of services to their config, not %s", compose.Show(v))
	}
	own := make([]intercept, 0, m.Len())
	for service, config := range m.All() {
		own = append(own, intercept{service, config})
	}
	p.intercept = slices.Concat(p.intercept, own)
	return nil
}
