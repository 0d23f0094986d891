// Package boot starts a profile: the environment layers, the composed tree,
// then the rows.
//
// It does not read command lines and it does not compose; it runs what was
// composed.
package boot

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"unicode"

	"dsh/internal/action"
	"dsh/internal/boot/environ"
	"dsh/internal/compose"
	"dsh/internal/fault"
)

// Request is one start of a profile.
type Request struct {
	Env     action.Env
	Environ []string      // the process environment, "NAME=value"
	Layers  action.Layers // the profile, and the patches of this run
	Args    []string      // the app's, word for word
	// Prepare runs once the environment is known to be right and before the
	// profile is opened.
	Prepare func() error
}

// Log is how a boot tells what happens. Notice gets lines in the reference
// launcher's words, Warn our own.
type Log struct {
	Notice, Warn func(string)
}

// UnsupportedError is a tree with rows whose plugins this build does not have.
type UnsupportedError struct {
	Profile string
	Rows    []compose.Row // the enabled rows that cannot run
	Total   int
	Args    []string
	// Broken says that no launcher starts the profile as it is, Ours that it has
	// layers which only dsh knows.
	Broken, Ours bool
}

func (e *UnsupportedError) Error() string {
	var b strings.Builder
	if len(e.Rows) == 0 {
		return fmt.Sprintf("profile %q has no enabled row; there is nothing to start", e.Profile)
	}
	fmt.Fprintf(&b, "profile %q cannot start: this build of dsh has no plugin for %d of its %d rows", e.Profile, len(e.Rows), e.Total)
	if len(e.Args) > 0 {
		fmt.Fprintf(&b, "\n\targuments of the app: %s", fault.ShellWords(e.Args...))
	}
	for _, row := range e.Rows {
		fmt.Fprintf(&b, "\n\t%s: %s (from %s)", rowID(row), rowName(row), row.Origin)
	}
	return b.String()
}

// Hint says what can be done with the profile all the same.
func (e *UnsupportedError) Hint() string {
	if e.Broken {
		return fault.ShellWords("dsh", "config", "check", "--profile", e.Profile) + " tells what else stops this profile, in any launcher"
	}
	hint := fault.ShellWords("dsh", "--profile", e.Profile, "--dump-config") + " prints the composed tree"
	if !e.Ours {
		hint += "; the reference launcher boots this profile as it is"
	}
	return hint
}

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

// telemetryRow is switched off on top of all layers while
// DSH_TELEMETRY_DISABLED is set to anything.
const telemetryRow = "session-telemetry-otel"

// Run starts the profile and returns when it ends.
func Run(ctx context.Context, req Request, log Log) error {
	snapshot, warnings, err := environ.Load(req.Environ, req.Env.Dir, req.Env.Home.Dir(), os.ReadFile)
	if err != nil {
		return err
	}
	for _, w := range warnings {
		log.Warn(w.String())
	}
	if err := req.Prepare(); err != nil {
		return err
	}
	composed, err := action.Compose(ctx, req.Env, action.ComposeOptions{Layers: req.Layers})
	if err != nil {
		return err
	}
	for _, w := range composed.Warnings {
		log.Warn(w)
	}
	for _, n := range composed.Notices {
		log.Notice(n)
	}
	tree := composed.Tree
	if snapshot.Getenv("DSH_TELEMETRY_DISABLED") != "" && hasRow(tree, telemetryRow) {
		off, err := compose.ParsePatches(compose.Source{File: "DSH_TELEMETRY_DISABLED"}, []byte("- id: "+telemetryRow+"\n  disabled: true\n"))
		if err != nil {
			return err
		}
		tree = compose.Apply(append(composed.Stack.Layers, compose.Layer{Label: "DSH_TELEMETRY_DISABLED", Patches: off}), composed.Rules)
	}
	return activate(req, tree, action.Blocked(req.Env, composed))
}

// ours says whether a layer is one that other launchers do not know.
func ours(l compose.Layer) bool { return l.Kind == compose.ProjectLayer || l.Kind == compose.SetLayer }

// activate starts the rows. A row whose plugin is not compiled in stops the
// start, so that nothing runs half.
func activate(req Request, tree *compose.Tree, broken bool) error {
	e := &UnsupportedError{Profile: req.Layers.Name.String(), Args: req.Args, Broken: broken, Ours: slices.ContainsFunc(tree.Layers, ours)}
	for _, row := range tree.Rows {
		e.collect(row)
	}
	return e
}

// collect counts a row and the rows in it, and notes those that would run. A
// row with a truthy group is never off; an expression decides when its row is
// mounted, which does not happen.
func (e *UnsupportedError) collect(row compose.Row) {
	e.Total++
	group, _ := row.Entry.Get("group")
	if off, expr := row.Disabled(); off && expr == nil && !compose.Truthy(group) {
		return
	}
	if row.Name() != groupPlugin {
		e.Rows = append(e.Rows, row)
	}
	for _, child := range row.Mounted() {
		e.collect(child)
	}
}

// groupPlugin holds rows and does nothing itself.
const groupPlugin = "cordis:group"

func hasRow(tree *compose.Tree, id string) bool {
	for row := range tree.All() {
		if row.ID() == id {
			return true
		}
	}
	return false
}
