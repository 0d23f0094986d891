package profileapi

import (
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"strconv"
	"time"

	"dsh/internal/action"
	"dsh/internal/boot/host"
	"dsh/internal/fault"
	"dsh/internal/install"
	"dsh/internal/installation"
	"dsh/internal/profile"
)

// handler is all endpoints.
func (a *api) handler() http.Handler {
	rs := routes{}
	rs.read("/state", a.state)
	rs.read("/profiles", a.ofProfile(a.profiles))
	rs.read("/profiles/{name}", a.ofProfile(a.profileDetails))
	rs.read("/layers", a.ofProfile(a.layers))
	rs.read("/changes", a.ofProfile(a.changes))
	rs.read("/tree", a.ofProfile(a.tree))
	rs.read("/findings", a.ofProfile(a.findings))
	rs.read("/plugins", a.ofProfile(a.plugins))
	rs.read("/plugins/outdated", a.ofProfile(a.outdated))
	rs.read("/skills", a.ofProfile(a.skills))
	rs.read("/skills/{name}", a.ofProfile(a.skill))
	rs.read("/servers", a.ofProfile(a.servers))
	rs.read("/generations", a.ofProfile(a.generations))
	rs.read("/patch", a.ofProfile(a.patch))
	rs.read("/operations/{id}", a.operation)
	rs.read("/rows/{path}/log", a.rowLog)
	rs.add(http.MethodGet, "/events", a.events)
	a.changing(rs)
	return rs.handler()
}

// ofProfile is an endpoint about the profile that runs, which composes it or
// reads much of it: few of these run at once.
func (a *api) ofProfile(e endpoint) endpoint {
	return func(r *http.Request) (any, error) {
		if a.profile == nil {
			return nil, notFound("dsh runs without a profile")
		}
		select {
		case a.turns <- struct{}{}:
			defer func() { <-a.turns }()
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
		return e(r)
	}
}

// maxTurns is how many endpoints of the profile run at once.
const maxTurns = 8

// stateView is what runs.
type stateView struct {
	Profile      *profileView `json:"profile"`
	Home         string       `json:"home"`
	Version      string       `json:"version"`
	Installation string       `json:"installation"`
	Cwd          string       `json:"cwd"`
	Live         bool         `json:"live"` // edits of files are applied
	Ready        bool         `json:"ready"`
	snapshot
}

type profileView struct {
	Name      string `json:"name"`
	Dir       string `json:"dir"`
	PatchFile string `json:"patchFile"`
	Writable  bool   `json:"writable"`
}

// snapshot is what changes while a page looks on.
type snapshot struct {
	Rows      []rowView   `json:"rows"`
	Reload    *reloadView `json:"reload"`
	Operation *Operation  `json:"operation"`
}

// rowView is a row of the host.
type rowView struct {
	Path     string     `json:"path"`
	ID       string     `json:"id"`
	Name     string     `json:"name"`
	State    host.State `json:"state"`
	Missing  []string   `json:"missing"` // services that it waits for
	Why      string     `json:"why"`
	Error    string     `json:"error"`
	Hint     string     `json:"hint"`
	Since    *time.Time `json:"since"`
	Provides []string   `json:"provides"`
}

// reloadView is how the last reload of the profile's files ended.
type reloadView struct {
	Count   int      `json:"count"`
	Changed []string `json:"changed"`
	Error   string   `json:"error"`
	Hint    string   `json:"hint"`
}

func (a *api) state(*http.Request) (any, error) {
	s := stateView{Live: a.live != nil, snapshot: a.snapshot()}
	select {
	case <-a.ready:
		s.Ready = true
	default:
		s.Ready = a.ready == nil
	}
	if p := a.profile; p != nil {
		s.Profile = &profileView{p.Name, p.Dir, p.PatchPath, a.writable}
		s.Home, s.Cwd, s.Version, s.Installation = p.HomeDir, p.Cwd, p.Version, p.Env.Installation.Describe()
	}
	return s, nil
}

func (a *api) snapshot() snapshot {
	return snapshot{a.rowViews(), a.reload(), a.operations.last()}
}

func (a *api) rowViews() []rowView {
	views := []rowView{}
	for _, row := range a.rows.Rows() {
		v := rowView{
			Path: row.Path, ID: row.ID, Name: row.Name, State: row.State, Why: row.Why,
			Missing: append([]string{}, row.Missing...), Provides: append([]string{}, row.Provides...),
		}
		if !row.Since.IsZero() {
			since := row.Since.UTC()
			v.Since = &since
		}
		if row.Err != nil {
			p := problemOf(row.Err)
			v.Error, v.Hint = p.Message, p.Hint
		}
		views = append(views, v)
	}
	return views
}

func (a *api) reload() *reloadView {
	if a.live == nil {
		return nil
	}
	last := a.live.Last()
	v := &reloadView{Count: last.Count, Changed: append([]string{}, last.Changed...)}
	if last.Err != nil {
		p := problemOf(last.Err)
		v.Error, v.Hint = p.Message, p.Hint
	}
	return v
}

func (a *api) rowLog(r *http.Request) (any, error) {
	path := r.PathValue("path")
	if err := a.hasRow(path); err != nil {
		return nil, err
	}
	return map[string]any{"lines": a.log(path)}, nil
}

func (a *api) hasRow(path string) error {
	for _, row := range a.rows.Rows() {
		if row.Path == path {
			return nil
		}
	}
	return notFound("there is no row %s", path)
}

// profiles lists those of the home.
func (a *api) profiles(r *http.Request) (any, error) {
	list, err := action.ListProfiles(a.env(), a.implied(), false)
	if err != nil {
		return nil, err
	}
	return merged(list, map[string]string{"current": a.profile.Name}, tell(list.Warnings))
}

// implied is the profile of commands that name none.
func (a *api) implied() string {
	chosen, _, _ := profile.Chosen(a.env().Home) // one that cannot be read counts for no command either
	return cmp.Or(a.env().Getenv("DSH_PROFILE"), chosen.String(), profile.Default.String())
}

func (a *api) profileDetails(r *http.Request) (any, error) {
	name, err := profile.ParseName(r.PathValue("name"))
	if err != nil {
		return nil, notFound("%v", err)
	}
	details, err := action.ShowProfile(r.Context(), a.env(), name, a.implied())
	if _, gone := os.Lstat(a.env().Home.ProfileDir(name)); err != nil && errors.Is(gone, fs.ErrNotExist) {
		return nil, &failure{code: http.StatusNotFound, class: missingClass, message: err.Error(), hint: fault.Hint(err)}
	}
	if err != nil {
		return nil, err
	}
	var counts struct {
		Findings *action.CheckCounts `json:"findings"` // null where it cannot be checked
	}
	report, err := action.Check(r.Context(), a.env(), action.Layers{Name: name}, action.CheckOptions{})
	if err == nil {
		counts.Findings = &report.Counts
	}
	return merged(details, counts, tell(details.Warnings))
}

func (a *api) layers(r *http.Request) (any, error) {
	list, err := action.ListLayers(r.Context(), a.env(), a.profile.Layers)
	if err != nil {
		return nil, err
	}
	return merged(list, tell(list.Warnings))
}

func (a *api) changes(r *http.Request) (any, error) {
	text := r.URL.Query().Get("layer")
	number, err := strconv.Atoi(text)
	if err != nil {
		return nil, malformed("layer has to be the number of a layer, and is %q", text)
	}
	list, err := action.ListChanges(r.Context(), a.env(), a.profile.Layers, number)
	if err != nil {
		return nil, err
	}
	if list == nil {
		return nil, notFound("no layer that applies has the number %d", number)
	}
	return merged(list, tell(list.Warnings))
}

// treeRow is a row of the composed tree, and which row of the host it is.
type treeRow struct {
	action.RowDetail
	Host     string    `json:"host"` // "" where it is none
	Children []treeRow `json:"children,omitempty"`
}

func (a *api) tree(r *http.Request) (any, error) {
	list, err := action.DetailRows(r.Context(), a.env(), a.profile.Layers)
	if err != nil {
		return nil, err
	}
	there := map[string]bool{}
	for _, row := range a.rows.Rows() {
		there[row.Path] = true
	}
	return struct {
		Profile string             `json:"profile"`
		Layers  []action.LayerName `json:"layers"`
		Rows    []treeRow          `json:"rows"`
		told
	}{list.Profile, list.Layers, hostRows(list.Rows, "", there), tell(list.Warnings)}, nil
}

// hostRows finds the rows of the host by their paths, which it makes of ids.
func hostRows(rows []action.RowDetail, above string, there map[string]bool) []treeRow {
	list := make([]treeRow, len(rows))
	for i, row := range rows {
		path := hostPath(row.ID.V, i, above)
		list[i] = treeRow{RowDetail: row, Children: hostRows(row.Children, path+"/", there)}
		list[i].RowDetail.Children = nil
		if there[path] {
			list[i].Host = path
		}
	}
	return list
}

func (a *api) findings(r *http.Request) (any, error) {
	report, err := action.Check(r.Context(), a.env(), a.profile.Layers, action.CheckOptions{})
	if err != nil {
		return nil, err
	}
	return merged(report, tell(report.Warnings))
}

// pluginView is a dependency and what its package says of itself.
type pluginView struct {
	install.Listed
	Description string `json:"description"`
	Bundle      bool   `json:"bundle"`
	AgentPlugin bool   `json:"agentPlugin"`
}

func (a *api) plugins(r *http.Request) (any, error) {
	list, err := action.List(r.Context(), a.env(), a.name)
	if err != nil {
		return nil, err
	}
	scripts, err := action.Scripts(r.Context(), a.env(), a.name)
	if err != nil {
		return nil, err
	}
	views := make([]pluginView, len(list.Dependencies))
	for i, d := range list.Dependencies {
		views[i] = describe(list.Dir, d)
	}
	return struct {
		Profile      string                  `json:"profile"`
		Dir          string                  `json:"dir"`
		Bundles      []string                `json:"bundles"`
		Dependencies []pluginView            `json:"dependencies"`
		Scripts      []action.PackageScripts `json:"scripts"`
		told
	}{list.Profile, list.Dir, list.Bundles, views, scripts.Packages, tell(list.Warnings, scripts.Warnings)}, nil
}

// describe reads what a package says of itself, as far as it can be read.
func describe(dir string, d install.Listed) pluginView {
	v := pluginView{Listed: d, AgentPlugin: d.AgentPlugin}
	pkg, ok, err := installation.Find(dir, d.Name)
	if err != nil || !ok {
		return v
	}
	var manifest struct {
		Description any `json:"description"`
		DSH         struct {
			Bundle any `json:"bundle"`
		} `json:"dsh"`
	}
	_ = json.Unmarshal(pkg.Manifest, &manifest) // what is of another shape says nothing
	v.Description, _ = manifest.Description.(string)
	v.Description = shorten(v.Description)
	v.Bundle = manifest.DSH.Bundle != nil
	return v
}

func (a *api) outdated(r *http.Request) (any, error) {
	report, err := action.Outdated(r.Context(), a.env(), action.PluginOptions{Name: a.name}, nil)
	if err != nil {
		return nil, err
	}
	warnings := report.Warnings
	if report.Unasked != nil {
		warnings = append(warnings, report.Unasked.Error())
	}
	return merged(report, tell(warnings))
}

func (a *api) generations(r *http.Request) (any, error) {
	list, err := action.ListGenerations(r.Context(), a.env(), a.name)
	if err != nil {
		return nil, err
	}
	return merged(list, tell(list.Warnings))
}

func (a *api) patch(r *http.Request) (any, error) {
	text, err := action.ReadPatch(r.Context(), a.env(), a.name)
	if err != nil {
		return nil, err
	}
	return merged(text, map[string]bool{"writable": a.writable})
}

func (a *api) operation(r *http.Request) (any, error) {
	op, err := a.operations.find(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	return op.shown(), nil
}
