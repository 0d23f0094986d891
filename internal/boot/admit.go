package boot

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"unicode"

	"dsh/internal/action"
	"dsh/internal/boot/host"
	"dsh/internal/boot/plugins"
	"dsh/internal/boot/plugins/executable"
	"dsh/internal/check"
	"dsh/internal/compose"
	"dsh/internal/fault"
	"dsh/internal/installation"
	"dsh/internal/program"
)

// NodeRow is a row that this host cannot run.
type NodeRow struct {
	Row compose.Row
	Why string
}

// NodeError is a tree with rows that need the harness on Node.js.
type NodeError struct {
	Profile string
	Rows    []NodeRow // the enabled ones, in the order of the tree
	Total   int       // all rows
	Args    []string
	// Broken says that no launcher starts the profile as it is.
	Broken bool
	// Remedy is the command that gives the profile a harness.
	Remedy string
	// Running says that the profile runs, and these rows came with an edit.
	Running bool
}

func (e *NodeError) Error() string {
	var b strings.Builder
	needs := "need Node.js"
	if len(e.Rows) == 1 {
		needs = "needs Node.js"
	}
	if e.Running {
		fmt.Fprintf(&b, "%d of the %d rows %s", len(e.Rows), e.Total, needs)
	} else {
		fmt.Fprintf(&b, "profile %q cannot start: %d of its %d rows %s", e.Profile, len(e.Rows), e.Total, needs)
	}
	if len(e.Args) > 0 && !e.Running {
		fmt.Fprintf(&b, "\n\targuments of the app: %s", fault.ShellWords(e.Args...))
	}
	for _, r := range e.Rows {
		fmt.Fprintf(&b, "\n\t%s: %s (from %s): %s", rowID(r.Row), rowName(r.Row), r.Row.Origin, r.Why)
	}
	return b.String()
}

// Hint says what can be done with the profile all the same.
func (e *NodeError) Hint() string {
	if e.Broken {
		return checkCommand(e.Profile) + " tells what else stops this profile, in any launcher"
	}
	return e.Remedy
}

func checkCommand(profile string) string {
	return fault.ShellWords("dsh", "config", "check", "--profile", profile)
}

// FindingsError is a tree with mistakes that stop it.
type FindingsError struct {
	Profile  string
	Findings []check.Finding
	Running  bool // the profile runs, and the mistakes came with an edit
}

func (e *FindingsError) Error() string {
	var b strings.Builder
	if !e.Running {
		fmt.Fprintf(&b, "profile %q cannot start: ", e.Profile)
	}
	b.WriteString("its layers have mistakes")
	for _, f := range e.Findings {
		b.WriteString("\n\t")
		if place := f.Place(); place != "" {
			b.WriteString(place + ": ")
		}
		b.WriteString(f.Message)
	}
	return b.String()
}

// Hint is the command that tells more.
func (e *FindingsError) Hint() string { return checkCommand(e.Profile) + " tells how to mend them" }

// rowError is a row that cannot run as it is.
type rowError struct {
	row compose.Row
	err error
}

func (e *rowError) Error() string {
	return fmt.Sprintf("row %s: %s (from %s): %v", rowID(e.row), rowName(e.row), e.row.Origin, e.err)
}

func (e *rowError) Unwrap() error { return e.err }

func rowID(row compose.Row) string {
	if row.ID() == nil {
		return "(no id)"
	}
	return word(row.ID())
}

func rowName(row compose.Row) string {
	if row.Name() == "" {
		return "(no plugin name)"
	}
	return word(row.Name())
}

// word is a text as it is where that cannot be misread, else as JSON.
func word(v compose.Value) string {
	if s, ok := v.(string); ok && !strings.ContainsFunc(s, unicode.IsControl) {
		return s
	}
	return compose.Show(v)
}

// admit refuses a tree with rows that cannot run here, and one with mistakes,
// so that nothing runs half.
func (r *run) admit(ctx context.Context, c *composition) error {
	name := r.req.Layers.Name
	rows := r.enabled(ctx, c)
	if len(rows) == 0 {
		return fault.WithHint(fault.Errorf(fault.Composition, "profile %q has no enabled row; there is nothing to start", name),
			"%s prints the composed tree", fault.ShellWords("dsh", "--profile", name.String(), "--dump-config"))
	}
	refused := &NodeError{Profile: name.String(), Args: r.req.Args}
	for range c.tree.Mounted() {
		refused.Total++
	}
	var mistakes []error
	var program *compose.Row
	for _, row := range rows {
		if why, needs := c.needsNode(row.Name()); needs {
			refused.Rows = append(refused.Rows, NodeRow{row, why})
			continue
		}
		_, is, err := c.programs.find(row.Name())
		switch {
		case err != nil:
			mistakes = append(mistakes, &rowError{row, err})
		case is && program != nil:
			mistakes = append(mistakes, &rowError{row, executable.TakenError{Owner: rowID(*program)}})
		case is:
			program = &row
		}
	}
	var findings []check.Finding
	for _, f := range action.Findings(r.req.Env, c.Composed) {
		if f.Blocks {
			findings = append(findings, f)
		}
	}
	switch {
	case len(refused.Rows) > 0:
		refused.Broken, refused.Remedy = len(findings) > 0, action.InstallationHint(r.req.Env, name)
		return refused
	case len(findings) > 0:
		return &FindingsError{Profile: name.String(), Findings: findings}
	default:
		return errors.Join(mistakes...)
	}
}

// needsNode says why a row with this plugin does not run here. A row without a
// plugin is a mistake and not that.
func (c *composition) needsNode(name string) (why string, needs bool) {
	if name == "" {
		return "", false
	}
	if _, ok := plugins.Lookup(name); !ok {
		if _, ok, _ := c.programs.find(name); ok {
			return "", false
		}
	}
	return plugins.NeedsNode(name)
}

// enabled are the rows that would run, groups left out and the rows in them
// not.
func (r *run) enabled(ctx context.Context, c *composition) (enabled []compose.Row) {
	for row := range c.tree.Enabled(func(row compose.Row, expr compose.Expr) bool { return r.off(ctx, c, row, expr) }) {
		if row.Name() != compose.GroupPlugin {
			enabled = append(enabled, row)
		}
	}
	return enabled
}

// off says whether an expression disables a row. It is asked only of rows that
// could not run, or may hold such; the host asks it of the others. One that
// needs more than there is before the start counts as false.
func (r *run) off(ctx context.Context, c *composition, row compose.Row, expr compose.Expr) bool {
	if _, needs := c.needsNode(row.Name()); !needs && len(row.Mounted()) == 0 {
		return false
	}
	v, err := r.eval.Evaluate(ctx, expr.Text, host.Scope{Services: r.expressible()})
	return err == nil && host.Truthy(v)
}

// programs finds the programs of packages, each once.
type programs struct {
	dir string // of the profile

	mu    sync.Mutex
	found map[string]foundProgram
}

type foundProgram struct {
	program program.Program
	ok      bool
	err     error
}

// find is the program of the package of that name, as the profile has it.
func (p *programs) find(name string) (program.Program, bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if f, ok := p.found[name]; ok {
		return f.program, f.ok, f.err
	}
	var f foundProgram
	if pkg, ok, err := installation.Find(p.dir, name); err == nil && ok {
		f.program, f.ok, f.err = program.Of(pkg)
	}
	if p.found == nil {
		p.found = map[string]foundProgram{}
	}
	p.found[name] = f
	return f.program, f.ok, f.err
}

// has says whether the package of that name is a program.
func (p *programs) has(name string) bool {
	_, ok, _ := p.find(name)
	return ok
}

// registry is the plugins of the rows: what is compiled in, and the programs.
func (r *run) registry(launch *executable.Launch) host.Registry {
	return func(name string) (host.Plugin, bool) {
		if plugin, ok := plugins.Lookup(name); ok {
			return plugin, true
		}
		program, ok, err := r.current.Load().programs.find(name)
		if err != nil {
			return host.Plugin{Start: func(context.Context, *host.Row) error { return err }}, true
		}
		if !ok {
			return host.Plugin{}, false
		}
		return launch.Plugin(program), true
	}
}
