package boot

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"dsh/bundles"
	"dsh/internal/action"
	"dsh/internal/boot/host"
	"dsh/internal/boot/live"
	"dsh/internal/boot/plugins/executable"
	"dsh/internal/boot/slot"
	"dsh/internal/compose"
	"dsh/internal/compose/configschema"
	"dsh/internal/fault"
	"dsh/internal/mcp"
	"dsh/internal/profile"
	"dsh/internal/stack"
)

// required are the ids of the rows without which a profile has not started.
// The program of a package is as well.
var required = []string{"agent-loop", "webserver", "modules", "connection", "headless-runner", "acp", "sdk-jsonrpc-server"}

// start mounts the rows, waits for the end of the run, and stops them.
func (r *run) start(ctx context.Context) (code int, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	launch := &executable.Launch{
		Stdin: r.req.Stdin, Stdout: r.req.Stdout, Stderr: r.req.Stderr,
		Environ: r.snapshot.List(), Args: slices.Clone(r.req.Args), Profile: r.profile,
		Temp: r.req.Env.Home.Path("state", r.profile.Name, "run"), Terminal: &r.terminal,
		Exit: r.exit, Ready: r.ready, Grace: grace - lastMoment,
	}
	tree := r.current.Load().tree
	r.live = live.New(tree, r.recompose)
	r.host = host.New(host.Options{
		Registry:  r.registry(launch),
		Slots:     r.slots(),
		Evaluator: r.eval,
		Check:     checkConfig,
		Dir:       r.rowDir,
		Include:   r.include,
		Event:     r.event,
		// One row that hangs leaves those below it time.
		StopTimeout: grace * 4 / 5,
	})
	r.live.Subscribe(r.reloaded)

	settled := make(chan struct{})
	var startErr error
	go func() {
		defer close(settled)
		if startErr = r.host.Apply(ctx, tree.Rows); startErr == nil {
			startErr = r.host.Settled(ctx)
		}
	}()
	why, ended := r.ending.wait(ctx, settled)
	if !ended {
		r.settled.Store(true)
		err := startErr
		if err == nil {
			err = r.audit()
		}
		if err != nil {
			why, ended = failed(err), true
		}
	}
	if !ended {
		close(r.ready)
		r.announce()
		go r.live.Run(ctx)
		why, _ = r.ending.wait(ctx, nil)
	}
	r.stopping.Store(true)
	cancel()
	code, stopErr := r.ending.stop(why, r.host.Stop)
	launch.Kill()
	mcp.KillAll()
	if stopErr != nil {
		r.log.Warn(stopErr.Error())
	}
	r.flush()
	return code, why.err
}

// exit is the slot by which rows end the run.
func (r *run) exit(code int) { r.ending.ask(asked(code)) }

// slots are the services that are there before any row.
func (r *run) slots() map[string]any {
	return map[string]any{
		slot.CommandLine: slot.NewArgs(r.req.Args),
		slot.Exit:        slot.ExitFunc(r.exit),
		slot.Environment: r.snapshot,
		slot.Ready:       slot.NewReadiness(r.ready),
		slot.HomePath:    slot.HomePathFunc(r.req.Env.Home.Path),
		slot.Profile:     r.profile,
		slot.Host:        slot.Rows(hostRows{r}),
		slot.Say:         slot.SayFunc(func(line string) { r.log.Print(line+"\n", false) }),
		slot.Warn:        slot.WarnFunc(r.log.Warn),
		slot.Reloads:     r.live,
		slot.Keeping:     slot.NewKept(),
	}
}

// hostRows is the host for rows, which are there before it.
type hostRows struct{ *run }

func (h hostRows) Rows() []host.Status                          { return h.host.Rows() }
func (h hostRows) Log(path string) []host.Line                  { return h.host.Log(path) }
func (h hostRows) Subscribe(f func(host.Event)) (cancel func()) { return h.events.Add(f) }
func (h hostRows) Restart(ctx context.Context, path string) error {
	return h.host.Restart(ctx, path)
}

func (r *run) profileContext() *slot.ProfileContext {
	p := r.current.Load().Profile
	overlays := make([]string, len(r.layers.Patches))
	for i, o := range r.layers.Patches {
		overlays[i] = o.Label
	}
	return &slot.ProfileContext{
		Name: p.Name.String(), Dir: p.Dir, PatchPath: filepath.Join(p.Dir, "cordis.patch.yml"),
		HomeDir: r.req.Env.Home.Dir(), Cwd: r.req.Env.Dir, Overlays: overlays,
		Version: r.req.Version, Env: r.env(), Layers: r.layers,
	}
}

// checkConfig holds a config against the schema of a plugin that is compiled in.
func checkConfig(row host.RowSpec, config compose.Value) error {
	text, ok := bundles.Schema(row.Name)
	if !ok {
		return nil
	}
	schema, err := configschema.Compile(row.Name, text)
	if err != nil {
		return err
	}
	problems := schema.Check(config)
	if len(problems) == 0 {
		return nil
	}
	texts := make([]string, len(problems))
	for i, p := range problems {
		texts[i] = p.Text
		if at := compose.PathText(p.Path); at != "" {
			texts[i] = at + ": " + p.Text
		}
	}
	return fault.Errorf(fault.Composition, "the config is not what %s takes: %s", row.Name, strings.Join(texts, "; "))
}

// rowDir is the directory of the layer that brought a row: the package of a
// bundle, or where the patch file is.
func (r *run) rowDir(row compose.Row) string {
	for _, e := range r.current.Load().Stack.Entries {
		if e.State != stack.Applied || e.Label != row.Origin {
			continue
		}
		if e.Bundle != nil {
			return e.Bundle.Dir
		}
		if filepath.IsAbs(e.Label) {
			return filepath.Dir(e.Label)
		}
	}
	return r.req.Env.Dir // --set, standard input
}

// include reads the rows of a file that a row of cordis:include names, with the
// patches that the row has for them.
func (r *run) include(row host.RowSpec) ([]compose.Row, error) {
	config, _ := row.Entry.Get("config")
	m, _ := config.(*compose.Map)
	name, _ := m.Get("path")
	file, ok := name.(string)
	if !ok || file == "" {
		return nil, fault.Errorf(fault.Composition, "%s needs the path of a file with rows", compose.IncludePlugin)
	}
	src := compose.Source{File: file, Dir: row.Dir}
	src.File = src.Path(file)
	src.Dir = filepath.Dir(src.File)
	text, err := os.ReadFile(src.File)
	if err != nil {
		return nil, fmt.Errorf("read the rows to include: %w", err)
	}
	v, err := compose.ParseValue(src, text)
	if err != nil {
		return nil, err
	}
	rows, ok := v.(*compose.List)
	if !ok {
		return nil, fault.Errorf(fault.Composition, "%s must hold a list of rows", src.File)
	}
	insert := &compose.Map{}
	insert.Set("insert", rows)
	patches := []compose.Patch{{Map: insert, Source: &src}}
	if more, _ := m.Get("patches"); more != nil {
		list, ok := more.(*compose.List)
		if !ok {
			return nil, fault.Errorf(fault.Composition, "the patches of %s are no list", compose.IncludePlugin)
		}
		for _, item := range list.Items {
			if patch, ok := item.(*compose.Map); ok {
				patches = append(patches, compose.Patch{Map: patch, Source: &compose.Source{File: row.Origin, Dir: row.Dir}})
			}
		}
	}
	tree := compose.Apply([]compose.Layer{{Label: src.File, Patches: patches}}, r.current.Load().Rules)
	for _, w := range tree.Warnings {
		r.log.Notice(w.String())
	}
	return tree.Rows, nil
}

// interruptIsOurs says whether Ctrl-C is for dsh. While a program has the
// terminal it is the program's.
func (r *run) interruptIsOurs() bool {
	select {
	case <-r.ready:
		return !(r.terminal.Held() && fromKeyboard(r.req.Stdin))
	default:
		return true
	}
}

// event is told what rows do.
func (r *run) event(e host.Event) {
	r.events.Tell(e)
	if r.log.Row != nil {
		line := e.Line
		if line == "" {
			line = e.State.String()
			if len(e.Missing) > 0 {
				line += " for " + strings.Join(e.Missing, ", ")
			}
			if e.Err != nil {
				line += ": " + e.Err.Error()
			}
		}
		r.log.Row(e.Path, line)
	}
	// What fails during the start is in its report, and during a reload in that
	// of the reload.
	if e.Line == "" && e.State == host.Failed && r.settled.Load() && !r.applying.Load() && !r.stopping.Load() {
		r.rowFailed(e)
	}
}

// rowFailed tells of a row that failed by itself while the profile runs. One
// that is required ends it.
func (r *run) rowFailed(e host.Event) {
	failure := rowFailure(host.Status{RowSpec: e.Row, State: e.State, Err: e.Err})
	if r.isRequired(e.Row) {
		r.ending.ask(failed(failure))
	} else {
		r.warn(failure.Error())
	}
}

// warn writes a warning, but not into the screen of a program.
func (r *run) warn(text string) {
	if r.terminal.Held() && fromKeyboard(r.req.Stdin) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if len(r.later) < keptWarnings {
			r.later = append(r.later, text)
		}
		return
	}
	r.log.Warn(text)
}

// keptWarnings is how many warnings wait for the end of a program.
const keptWarnings = 100

// flush writes what warn kept.
func (r *run) flush() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, text := range r.later {
		r.log.Warn(text)
	}
	r.later = nil
}

// announce says that the profile runs, where somebody watches and nothing else
// says so.
func (r *run) announce() {
	if r.terminal.Held() {
		return
	}
	active := 0
	for _, s := range r.host.Rows() {
		if s.State == host.Active {
			active++
		}
	}
	rows := "rows"
	if active == 1 {
		rows = "row"
	}
	r.log.News(fmt.Sprintf("%s runs with %d %s; Ctrl-C ends it", r.profile.Name, active, rows))
}

// recompose is the profile as its files are now, with all that a start checks.
func (r *run) recompose(ctx context.Context) (live.Composition, error) {
	c, err := r.compose(ctx)
	if missing, ok := errors.AsType[*profile.MissingError](err); ok {
		err = fault.Errorf(fault.Composition, "%s is not there any more", missing.Dir)
		if missing.Kept {
			err = fault.WithHint(err, "%s brings it back", fault.ShellWords("dsh", "profile", "undelete", missing.Name.String()))
		}
	}
	if err != nil {
		return live.Composition{}, err
	}
	for _, skipped := range c.Stack.Skipped() {
		if !r.said[skipped.String()] {
			return live.Composition{}, fault.Errorf(fault.Composition, "%s", skipped)
		}
	}
	if err := r.admit(ctx, c); err != nil {
		if refused, ok := errors.AsType[*NodeError](err); ok {
			refused.Running = true
		}
		if refused, ok := errors.AsType[*FindingsError](err); ok {
			refused.Running = true
		}
		return live.Composition{}, err
	}
	for _, n := range c.Notices {
		if !r.said[n] {
			r.said[n] = true
			r.warn(n)
		}
	}
	return live.Composition{Tree: c.tree, Use: func(ctx context.Context, changed bool) error { return r.use(ctx, c, changed) }}, nil
}

// use makes a composition the one that runs. Its rows are applied if they are
// others; where they do not start, all is as before.
func (r *run) use(ctx context.Context, c *composition, changed bool) error {
	before := r.current.Swap(c)
	if !changed {
		return nil
	}
	r.applying.Store(true)
	defer r.applying.Store(false)
	err := r.host.Apply(ctx, c.tree.Rows)
	if err != nil {
		r.current.Store(before)
	}
	if refused, ok := errors.AsType[*host.ApplyError](err); ok {
		return r.placed(refused, c)
	}
	return err
}

// placed is the error of rows that were not applied, with where the mistakes of
// these rows stand in the files, as far as the layers show them.
func (r *run) placed(refused *host.ApplyError, c *composition) error {
	var places []string
	for _, f := range action.Findings(r.env(), c.Composed) {
		if place := f.Place(); place != "" && slices.ContainsFunc(refused.Rows, func(row *host.RowError) bool { return path.Base(row.Path) == f.Row }) {
			places = append(places, place)
		}
	}
	if len(places) == 0 {
		return refused
	}
	slices.Sort(places)
	return fmt.Errorf("%w (%s)", refused, strings.Join(slices.Compact(places), ", "))
}

// reloaded tells how a reload ended, each mistake once.
func (r *run) reloaded(reload slot.Reload) {
	switch {
	case reload.Err == nil:
		r.mistake = ""
		if len(reload.Changed) > 0 && !r.terminal.Held() {
			r.log.News(fmt.Sprintf("%s: applied the change of %s", r.profile.Name, strings.Join(reload.Changed, ", ")))
		}
	case reload.Err.Error() != r.mistake:
		r.mistake = reload.Err.Error()
		text := fmt.Sprintf("the files of %s do not apply, and what runs stays as it is: %v", r.profile.Name, reload.Err)
		if hint := fault.Hint(reload.Err); hint != "" {
			text += "; " + hint
		}
		r.warn(text)
	}
}

// frozen are the overlays with their texts as they were composed, so that they
// stay so while the profile runs.
func frozen(overlays []stack.Overlay, composed *action.Composed) []stack.Overlay {
	frozen := slices.Clone(overlays)
	n := 0
	for _, e := range composed.Stack.Entries {
		if e.Kind != compose.PatchLayer || n >= len(frozen) {
			continue
		}
		if frozen[n].Text == nil {
			frozen[n].Text = []byte("[]\n")
			if patches := composed.Stack.Layers[e.Layer].Patches; len(patches) > 0 {
				frozen[n].Text = patches[0].Source.Text
			}
		}
		n++
	}
	return frozen
}

// flags of a run that several goroutines look at.
type flags struct {
	settled  atomic.Bool // the start is over: what fails now is not in its report
	applying atomic.Bool // a reload is being applied
	stopping atomic.Bool // the run ends
}
