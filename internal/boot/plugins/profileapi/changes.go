package profileapi

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"dsh/internal/action"
	"dsh/internal/compose"
	"dsh/internal/fault"
	"dsh/internal/install"
	"dsh/internal/staging"
)

// maxNamed is how many packages one change names at most.
const maxNamed = 100

// lockWait is how long a change that is answered at once waits for another
// process.
const lockWait = 10 * time.Second

// restartWait is how long the restart of a row is waited for: what a row has for
// its stop and its start, and what others need that go with it. Nothing of a
// profile is applied in the meantime.
const restartWait = time.Minute

// changing adds the endpoints that take a body. All but the check of a text
// change something.
func (a *api) changing(rs routes) {
	post(rs, "/patch/check", a.checkPatch)
	post(rs, "/patch", writing(a, a.savePatch))
	post(rs, "/plugins/add", writing(a, a.add))
	post(rs, "/plugins/update", writing(a, a.update))
	post(rs, "/plugins/remove", writing(a, a.remove))
	post(rs, "/plugins/install", writing(a, a.install))
	post(rs, "/plugins/approve", writing(a, a.approve))
	post(rs, "/generations/rollback", writing(a, a.rollback))
	post(rs, "/operations/{id}/cancel", writing(a, a.cancel))
	post(rs, "/servers/{name}/call", writing(a, a.call))
	post(rs, "/rows/{path}/restart", writing(a, a.restart))
}

// writing is an endpoint that the row's config has to allow.
func writing[T any](a *api, e func(*http.Request, T) (any, error)) func(*http.Request, T) (any, error) {
	return func(r *http.Request, body T) (any, error) {
		switch {
		case a.profile == nil:
			return nil, notFound("dsh runs without a profile")
		case !a.writable:
			hint := "set writable in the config of its row"
			if a.id != "" {
				place := compose.Target{ID: a.id, Path: []string{"writable"}}.String()
				hint = fault.ShellWords("dsh", "config", "set", place, "true", "--profile", a.profile.Name) + " allows changes"
			}
			return nil, &failure{code: http.StatusForbidden, class: readOnlyClass, message: "this page may only be looked at", hint: hint}
		}
		return e(r, body)
	}
}

type checkBody struct {
	Text string `json:"text"`
}

func (a *api) checkPatch(r *http.Request, body checkBody) (any, error) {
	if len(body.Text) > action.MaxPatchText {
		return nil, refused(fault.Composition, "a patch file has at most %d KiB", action.MaxPatchText>>10)
	}
	return a.ofProfile(func(r *http.Request) (any, error) {
		return action.CheckPatch(r.Context(), a.env(), a.profile.Layers, body.Text)
	})(r)
}

type saveBody struct {
	Text     *string `json:"text"`
	Revision string  `json:"revision"`
	Force    bool    `json:"force"`
}

func (a *api) savePatch(r *http.Request, body saveBody) (any, error) {
	if body.Text == nil || body.Revision == "" {
		return nil, malformed("text and revision have to be there")
	}
	env := a.env()
	env.Doing, env.Wait = "edit of "+a.profile.PatchPath+" on the page", lockWait
	saved, err := action.SavePatch(r.Context(), env, action.SaveOptions{Layers: a.profile.Layers, Revision: body.Revision, Force: body.Force}, *body.Text)
	if err != nil {
		return nil, heldLong(err)
	}
	a.hub.notify(treeChanged)
	return merged(saved, tell(saved.Warnings))
}

// change is a change of packages that is to run in the background.
type change struct {
	kind, title string
	args        []string // of the command that does the same
	force       bool
	work        func(context.Context, action.Env, action.PluginOptions) (outcome, error)
}

// begin starts a change, and answers with its id.
func (a *api) begin(c change) (any, error) {
	env := a.env()
	env.Args, env.Wait = c.args, 0
	words := []string{"dsh"}
	for _, arg := range c.args {
		words = append(words, install.ShownSpec(arg))
	}
	view := Operation{Kind: c.kind, Title: fault.Discreet(c.title), Command: fault.ShellWords(words...)}
	id, err := a.operations.start(view, func(ctx context.Context, op *operation) (outcome, error) {
		env.Waiting = func(h staging.Holder) { op.waiting(h.String()) }
		return c.work(ctx, env, action.PluginOptions{Name: a.name, Force: c.force, Events: op.events()})
	})
	if err != nil {
		return nil, err
	}
	a.operations.notify(operationChanged)
	return status{http.StatusAccepted, map[string]string{"operation": id}}, nil
}

// pluginArgs is the command line of a verb of `dsh plugin`.
func (a *api) pluginArgs(verb string, words ...string) []string {
	return slices.Concat([]string{"plugin", "--profile", a.profile.Name, verb}, words)
}

type addBody struct {
	Specs []string `json:"specs"`
	Force bool     `json:"force"`
}

func (a *api) add(_ *http.Request, body addBody) (any, error) {
	if err := named(body.Specs, "specs", 1); err != nil {
		return nil, err
	}
	specs := make([]install.Spec, len(body.Specs))
	shown := make([]string, len(body.Specs))
	for i, text := range body.Specs {
		spec, err := install.ParseSpec(text, a.env().Dir)
		if err != nil {
			return nil, err
		}
		if spec.Kind == install.Archive && action.IsSet(spec.Place) || spec.Kind == install.URL && action.SetAddress(spec.Place) {
			return nil, fault.WithHint(fault.Errorf(fault.Other, "%s is a set of packages, which the page cannot add", install.ShownSpec(text)), "%s",
				fault.ShellWords("dsh", "plugin", "--profile", a.profile.Name, "add", install.ShownSpec(text)))
		}
		specs[i], shown[i] = spec, install.ShownSpec(text)
	}
	return a.begin(change{
		kind: "add", title: "Adding " + strings.Join(shown, ", "), args: a.pluginArgs("add", body.Specs...), force: body.Force,
		work: func(ctx context.Context, env action.Env, opts action.PluginOptions) (outcome, error) {
			return reported(action.Add(ctx, env, opts, specs, install.AddOptions{}))
		},
	})
}

type updateBody struct {
	Names  []string `json:"names"` // none is all
	Latest bool     `json:"latest"`
	Force  bool     `json:"force"`
}

func (a *api) update(_ *http.Request, body updateBody) (any, error) {
	if err := named(body.Names, "names", 0); err != nil {
		return nil, err
	}
	title, args := "Updating all packages", body.Names
	if len(body.Names) > 0 {
		title = "Updating " + strings.Join(body.Names, ", ")
	}
	if body.Latest {
		args = append([]string{"--latest"}, args...)
	}
	return a.begin(change{
		kind: "update", title: title, args: a.pluginArgs("update", args...), force: body.Force,
		work: func(ctx context.Context, env action.Env, opts action.PluginOptions) (outcome, error) {
			return reported(action.Update(ctx, env, opts, body.Names, body.Latest))
		},
	})
}

type removeBody struct {
	Names []string `json:"names"`
	Force bool     `json:"force"`
}

func (a *api) remove(_ *http.Request, body removeBody) (any, error) {
	if err := named(body.Names, "names", 1); err != nil {
		return nil, err
	}
	return a.begin(change{
		kind: "remove", title: "Removing " + strings.Join(body.Names, ", "), args: a.pluginArgs("remove", body.Names...), force: body.Force,
		work: func(ctx context.Context, env action.Env, opts action.PluginOptions) (outcome, error) {
			return reported(action.Remove(ctx, env, opts, body.Names, false))
		},
	})
}

type installBody struct {
	Force bool `json:"force"`
}

func (a *api) install(_ *http.Request, body installBody) (any, error) {
	return a.begin(change{
		kind: "install", title: "Installing what package.json says", args: a.pluginArgs("install"), force: body.Force,
		work: func(ctx context.Context, env action.Env, opts action.PluginOptions) (outcome, error) {
			return reported(action.Install(ctx, env, opts, install.InstallOptions{Force: body.Force}))
		},
	})
}

// approveBody names the scripts that were shown: of exactly these contents they
// may run.
type approveBody struct {
	Packages []approval `json:"packages"`
	Force    bool       `json:"force"`
}

type approval struct {
	Spec    string `json:"spec"`
	Content string `json:"content"`
}

func (a *api) approve(_ *http.Request, body approveBody) (any, error) {
	specs := make([]string, len(body.Packages))
	for i, p := range body.Packages {
		if specs[i] = p.Spec; p.Content == "" {
			return nil, malformed("packages has no content of %q", p.Spec)
		}
	}
	if err := named(specs, "packages", 1); err != nil {
		return nil, err
	}
	shown := make([]string, len(specs))
	for i, spec := range specs {
		shown[i] = install.ShownSpec(spec)
	}
	return a.begin(change{
		kind: "approve", title: "Running the scripts of " + strings.Join(shown, ", "), args: a.pluginArgs("approve", specs...), force: body.Force,
		work: func(ctx context.Context, env action.Env, opts action.PluginOptions) (outcome, error) {
			return a.approved(ctx, env, opts, body.Packages)
		},
	})
}

// approved looks for the scripts once more, and approves those that were shown
// and nothing else.
func (a *api) approved(ctx context.Context, env action.Env, opts action.PluginOptions, shown []approval) (outcome, error) {
	report, err := action.Scripts(ctx, env, a.name)
	if err != nil {
		return outcome{}, err
	}
	what := &action.ToApprove{Profile: a.name.String(), Inside: true}
	for _, s := range shown {
		n := slices.IndexFunc(report.Packages, func(p action.PackageScripts) bool { return p.Spec == s.Spec && p.Content == s.Content })
		if n < 0 {
			return outcome{}, &failure{class: conflictClass, message: "the scripts of " + install.ShownSpec(s.Spec) + " are not those that were shown any more; nothing was approved"}
		}
		what.Packages = append(what.Packages, report.Packages[n])
	}
	done, err := action.ApproveScripts(ctx, env, opts, what, shown[0].Spec, time.Now())
	if err != nil {
		return outcome{}, err
	}
	out := outcome{result: done, warnings: done.Warnings}
	if done.Report != nil {
		out.warnings = slices.Concat(out.warnings, done.Report.Warnings)
	}
	for _, p := range done.Packages {
		out.summary = append(out.summary, fmt.Sprintf("%s %s: scripts %s", p.Name, p.Version, p.State))
	}
	return out, nil
}

type rollbackBody struct {
	ID int `json:"id"`
}

func (a *api) rollback(_ *http.Request, body rollbackBody) (any, error) {
	if body.ID < 1 {
		return nil, malformed("id has to be that of a generation")
	}
	return a.begin(change{
		kind: "rollback", title: "Going back to generation " + strconv.Itoa(body.ID),
		args: []string{"profile", "rollback", a.profile.Name, "--to", strconv.Itoa(body.ID)},
		work: func(ctx context.Context, env action.Env, opts action.PluginOptions) (outcome, error) {
			done, err := action.Rollback(ctx, env, action.RollbackOptions{PluginOptions: opts, To: body.ID})
			if err != nil {
				return outcome{}, err
			}
			out := outcome{result: done, warnings: done.Warnings, summary: []string{fmt.Sprintf("the profile is as generation %d", done.To.ID)}}
			if !done.Changed {
				out.summary = []string{fmt.Sprintf("the profile was as generation %d already", done.To.ID)}
			}
			return out, nil
		},
	})
}

func (a *api) cancel(r *http.Request, _ struct{}) (any, error) {
	op, err := a.operations.find(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	if !op.runs() {
		return op.shown(), nil
	}
	op.cancel()
	return status{http.StatusAccepted, op.shown()}, nil
}

// restart answers before it is done: the row may be the one that serves this
// request.
func (a *api) restart(r *http.Request, _ struct{}) (any, error) {
	path := r.PathValue("path")
	if err := a.hasRow(path); err != nil {
		return nil, err
	}
	a.background(func(row context.Context) error {
		ctx, cancel := context.WithTimeout(row, restartWait)
		defer cancel()
		// Where this row goes with the one that restarts, its end is no failure.
		if err := a.rows.Restart(ctx, path); err != nil && row.Err() == nil {
			a.logf("restart %s: %v", path, err)
		}
		return nil
	})
	return status{http.StatusAccepted, struct{}{}}, nil
}

// named refuses lists of packages that name too few or too many.
func named(names []string, key string, least int) error {
	switch {
	case len(names) < least:
		return malformed("%s has to name a package", key)
	case len(names) > maxNamed:
		return malformed("%s names more than %d packages", key, maxNamed)
	case slices.ContainsFunc(names, func(name string) bool { return strings.TrimSpace(name) == "" || strings.HasPrefix(name, "-") }):
		return malformed("%s has an empty name, or one that begins with -", key)
	}
	return nil
}

// reported is the outcome of a change of packages.
func reported(report *action.Report, err error) (outcome, error) {
	if err != nil {
		return outcome{}, err
	}
	out := outcome{result: report, warnings: report.Warnings}
	for _, c := range report.Changes {
		out.summary = append(out.summary, changeText(c))
	}
	for _, name := range report.Absent {
		out.summary = append(out.summary, "the profile does not depend on "+name)
	}
	for _, p := range report.Pending {
		out.summary = append(out.summary, fmt.Sprintf("%s %s has scripts that wait for your approval", p.Name, p.Version))
	}
	if t := report.Tree; t.Added+t.Changed+t.Removed > 0 {
		out.summary = append(out.summary, fmt.Sprintf("packages: %d added, %d changed, %d removed", t.Added, t.Changed, t.Removed))
	} else if len(out.summary) == 0 {
		out.summary = append(out.summary, "nothing to change")
	}
	return out, nil
}

func changeText(c install.Change) string {
	var text string
	switch c.Action {
	case install.Updated:
		text = fmt.Sprintf("updated %s %s → %s", c.Name, c.Before, c.Version)
	case install.Removed:
		text = fmt.Sprintf("removed %s %s", c.Name, c.Before)
	case install.LeftOut:
		return fmt.Sprintf("left out %s: %s", c.Name, c.Reason)
	default:
		text = fmt.Sprintf("%s %s %s", c.Action, c.Name, c.Version)
	}
	switch c.Layer {
	case install.LayerAdded:
		text += ", now a layer"
	case install.LayerRemoved:
		text += ", no longer a layer"
	case install.LayerOff:
		text += ", its layer is switched off"
	}
	return text
}
