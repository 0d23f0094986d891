package action

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"dsh/internal/check"
	"dsh/internal/compose"
	"dsh/internal/fault"
	"dsh/internal/profile"
	"dsh/internal/stack"
	"dsh/internal/staging"
	"dsh/internal/trust"
)

// TrustReport is the layer of a project, and what became of the trust in it.
type TrustReport struct {
	Dir   string `json:"dir"`
	Patch string `json:"patch"`
	// Was is the trust in the directory before: unknown, changed or trusted.
	Was       string        `json:"was"`
	Inserts   []ProjectRow  `json:"inserts"`
	Overrides []ProjectEdit `json:"overrides"`
	// Files are the paths that rows name, which the trust covers as well.
	Files []ProjectFile `json:"files"`
	// Expressions are the texts of `!!js` values, each once, which run when a
	// profile starts.
	Expressions []string `json:"expressions"`
	// Profile is the profile that ThrownAway is about, "" where none can be
	// composed: which keys of the layers below the overrides leave out.
	Profile    string          `json:"profile"`
	ThrownAway []check.Finding `json:"thrownAway"`
}

// ProjectRow is a row that a project's layer inserts.
type ProjectRow struct {
	ID     string `json:"id"` // "" for a row without one
	Plugin string `json:"plugin"`
	Group  string `json:"group,omitempty"` // id of the row that it is put into
	Line   int    `json:"line"`
}

// ProjectEdit is an override of a project's layer.
type ProjectEdit struct {
	ID   string   `json:"id"`
	Keys []string `json:"keys"`
	Line int      `json:"line"`
}

// ProjectFile is a file that a row names.
type ProjectFile struct {
	Path   string `json:"path"`
	Exists bool   `json:"exists"`
}

// Trust records that the layer of the project that dir is in may apply, as it
// is at this moment, and says what it does.
func Trust(ctx context.Context, env Env, dir string, now time.Time) (*TrustReport, error) {
	dir = env.inDir(dir)
	if err := checkDir(dir); err != nil {
		return nil, err
	}
	userHome := env.userHome()
	project, found, err := trust.FindProject(dir, userHome, env.Home.Dir())
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, env.noProject(dir)
	}
	patches, files, seal, err := stack.ReadProject(project, userHome)
	if err != nil {
		return nil, err
	}
	store := trust.Open(env.trustFile())
	state, err := store.State(project, seal)
	if err != nil {
		return nil, err
	}
	report := &TrustReport{
		Dir: project.Dir, Patch: project.Patch, Was: state.String(),
		Inserts: []ProjectRow{}, Overrides: []ProjectEdit{}, Files: []ProjectFile{}, Expressions: []string{}, ThrownAway: []check.Finding{},
	}
	w := projectWalk{report, map[*compose.List]bool{}, map[compose.Value]bool{}}
	for _, patch := range patches {
		w.patch(patch)
	}
	for _, file := range files {
		_, err := os.Stat(file)
		report.Files = append(report.Files, ProjectFile{file, err == nil})
	}
	if state != trust.Trusted {
		err = store.Grant(ctx, trust.Record{Dir: project.Dir, Seal: seal, Files: files, Since: now})
	}
	if err == nil {
		report.throwsAway(env)
	}
	return report, err
}

// throwsAway fills in what the trusted layer throws away in the profile that a
// start without a name would take, or where that is not made yet, in web. It is
// a help, and no reason to fail.
func (r *TrustReport) throwsAway(env Env) {
	env.Dir = r.Dir
	chosen, _, _ := profile.Chosen(env.Home) // "" if there is no choice
	for _, text := range []string{cmp.Or(env.Getenv("DSH_PROFILE"), chosen.String(), profile.Default.String()), "web"} {
		if name, err := profile.ParseName(text); err == nil && r.throwsAwayIn(env, name) {
			return
		}
	}
}

// throwsAwayIn is throwsAway for one profile, if it can be composed.
func (r *TrustReport) throwsAwayIn(env Env, name profile.Name) bool {
	p, err := readOrTemplate(staging.View{}, env.Home, name)
	if err != nil {
		return false
	}
	c, err := composeProfile(env, p, Layers{Name: name}, true)
	if err != nil {
		return false
	}
	r.Profile = name.String()
	for _, f := range Findings(env, c) {
		if f.Code == check.KeysDropped && f.File == r.Patch {
			r.ThrownAway = append(r.ThrownAway, f)
		}
	}
	return true
}

// projectWalk writes down what patches do.
type projectWalk struct {
	*TrustReport
	// Aliases may show what was seen again.
	rowsSeen map[*compose.List]bool
	seen     map[compose.Value]bool // by the search for expressions
}

func (w projectWalk) patch(patch compose.Patch) {
	w.expressions(patch.Map)
	id, _ := patch.Map.Get("id")
	text := ""
	if compose.Truthy(id) {
		text = compose.IDText(id)
	}
	if insert, _ := patch.Map.Get("insert"); compose.Truthy(insert) {
		w.rows(insert, text)
		return
	}
	edit := ProjectEdit{ID: text, Keys: []string{}, Line: patch.Line}
	for key := range patch.Map.All() {
		if key != "id" && key != "name" && key != "insert" {
			edit.Keys = append(edit.Keys, key)
		}
	}
	w.Overrides = append(w.Overrides, edit)
	// What is in a config may be rows as well.
	config, _ := patch.Map.Get("config")
	w.rows(config, text)
}

// rows notes the rows in what is inserted, or in a config: whatever has a name
// may run, whether or not patches find it.
func (w projectWalk) rows(v compose.Value, group string) {
	list, ok := v.(*compose.List)
	if !ok || w.rowsSeen[list] {
		return
	}
	w.rowsSeen[list] = true
	for _, item := range list.Items {
		entry, ok := item.(*compose.Map)
		if !ok {
			continue
		}
		row := compose.Row{Entry: entry}
		r := ProjectRow{Plugin: row.Name(), Group: group}
		r.Line, _ = entry.Position()
		if id := row.ID(); id != nil {
			r.ID = compose.IDText(id)
		}
		if r.Plugin == "" {
			continue
		}
		w.Inserts = append(w.Inserts, r)
		w.rows(row.Config(), r.ID)
	}
}

func (w projectWalk) expressions(v compose.Value) {
	switch v := v.(type) {
	case compose.Expr:
		if !slices.Contains(w.Expressions, v.Text) {
			w.Expressions = append(w.Expressions, v.Text)
		}
	case *compose.List:
		if !w.seen[v] {
			w.seen[v] = true
			for _, item := range v.Items {
				w.expressions(item)
			}
		}
	case *compose.Map:
		if !w.seen[v] {
			w.seen[v] = true
			for _, item := range v.All() {
				w.expressions(item)
			}
		}
	}
}

// TrustedDir is a directory whose layer the user trusts.
type TrustedDir struct {
	Dir   string    `json:"dir"`
	Since time.Time `json:"since"`
	// State is trusted, changed (the layer is left out), or missing.
	State string `json:"state"`
}

// TrustedDirs lists them, sorted by directory.
func TrustedDirs(env Env) ([]TrustedDir, error) {
	store := trust.Open(env.trustFile())
	records, err := store.List()
	if err != nil {
		return nil, err
	}
	dirs := []TrustedDir{}
	for _, r := range records {
		state, err := env.trustState(store, r.Dir)
		if err != nil {
			return nil, err
		}
		dirs = append(dirs, TrustedDir{r.Dir, r.Since, state})
	}
	return dirs, nil
}

// trustState reads no more of what a project's patch names than was trusted: it
// may name anything.
func (e Env) trustState(store *trust.Store, dir string) (string, error) {
	project := trust.Project{Dir: dir, Patch: projectPatch(dir)}
	if _, err := os.Lstat(project.Patch); errors.Is(err, fs.ErrNotExist) {
		return "missing", nil
	}
	text, err := readFile(project.Patch)
	if err != nil {
		return trust.Changed.String(), nil // what can be trusted can be read
	}
	patches, err := compose.ParsePatches(compose.Source{
		File: project.Patch, Dir: filepath.Dir(project.Patch), Kind: compose.ProjectLayer, UserHome: e.userHome(),
	}, text)
	if err != nil {
		return trust.Changed.String(), nil
	}
	state, _, err := stack.TrustOf(store, project, text, patches)
	return state.String(), err
}

// Revoke takes the trust in the directory of a project back, and says which
// one that is and whether there was any. The directory may be gone.
func Revoke(ctx context.Context, env Env, dir string) (revoked bool, project string, err error) {
	dir = env.inDir(dir)
	store := trust.Open(env.trustFile())
	if revoked, err = store.Revoke(ctx, dir); revoked || err != nil {
		return revoked, dir, err
	}
	// From a directory inside it the project is meant that applies there.
	p, found, err := trust.FindProject(dir, env.userHome(), env.Home.Dir())
	if err != nil || !found {
		return false, dir, nil
	}
	revoked, err = store.Revoke(ctx, p.Dir)
	return revoked, p.Dir, err
}

// inDir is a path that may be relative to the working directory.
func (e Env) inDir(dir string) string {
	if filepath.IsAbs(dir) {
		return filepath.Clean(dir)
	}
	return filepath.Join(e.Dir, dir)
}

// userHome is what ~ stands for, "" where that is not known: then ~ is an
// ordinary name.
func (e Env) userHome() string {
	dir, err := profile.UserHome(e.Getenv)
	if err != nil {
		return ""
	}
	return dir
}

func projectPatch(dir string) string { return filepath.Join(dir, ".dsh", "cordis.patch.yml") }

// checkDir says what is wrong with the name of a directory.
func checkDir(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fault.Errorf(fault.Other, "there is no directory %s", dir)
	case err == nil && !info.IsDir():
		return fault.WithHint(fault.Errorf(fault.Other, "%s is not a directory", dir),
			"name the directory of the project: dsh trust DIR")
	}
	return nil // another error comes again
}

// noProject says that dir is in no project, and where one was looked for.
func (e Env) noProject(dir string) error {
	project, err := e.newProject(dir)
	if err != nil {
		return err
	}
	looked, end := e.searched(dir)
	create := "dsh config set --project ROW.KEY VALUE makes one"
	if !sameFile(dir, e.Dir) {
		create = fault.ShellWords("cd", project.Dir) + " && " + create
	}
	return fault.WithHint(fault.Errorf(fault.Other, "there is no project layer for %s; looked for .dsh/cordis.patch.yml in %s, up to %s", dir, strings.Join(looked, ", "), end),
		"%s", create)
}

// searched is the directories that may be the project of dir, the nearest
// first, and what ends the search.
func (e Env) searched(dir string) (looked []string, end string) {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	for {
		if home := e.userHome(); sameFile(dir, home) {
			return looked, "the home directory"
		} else if e.holdsUserHome(dir) {
			return looked, dir + ", which the home directory is in"
		}
		looked = append(looked, dir)
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return looked, "the root of the repository"
		}
		up := filepath.Dir(dir)
		if up == dir {
			return looked, "the root of the file system"
		}
		dir = up
	}
}

// holdsUserHome says whether dir is the user's home directory or above it.
func (e Env) holdsUserHome(dir string) bool {
	home := e.userHome()
	if real, err := filepath.EvalSymlinks(home); err == nil {
		home = real
	}
	if home == "" {
		return false
	}
	rel, err := filepath.Rel(dir, home)
	return err == nil && filepath.IsLocal(rel)
}

// editedProject is the project whose patch an edit is about: the one that
// applies in the working directory, else one that is to be made there, at the
// root of the repository if there is one.
func (e Env) editedProject() (trust.Project, error) {
	project, found, err := trust.FindProject(e.Dir, e.userHome(), e.Home.Dir())
	if err != nil || found {
		return project, errors.Join(err, checkInside(project))
	}
	return e.newProject(e.Dir)
}

// newProject is the project that is to be made for dir, which is in none.
func (e Env) newProject(dir string) (trust.Project, error) {
	looked, end := e.searched(dir)
	no := ""
	switch {
	case len(looked) == 0:
		no = dir + " is no project: the home directory of the user, and what is above it, never is"
	default:
		dir = looked[0]
		if end == "the root of the repository" {
			dir = looked[len(looked)-1]
		}
		if sameFile(dir, e.Home.Dir()) {
			no = dir + " is no project: the home of dsh never is"
		} else if sameFile(filepath.Join(dir, ".dsh"), e.Home.Dir()) {
			no = dir + " cannot be a project: its .dsh is the home of dsh"
		}
	}
	if no != "" {
		return trust.Project{}, fault.WithHint(fault.Errorf(fault.Other, "%s", no),
			"the layer for all profiles is %s; --home of dsh config changes it", e.Home.PatchPath())
	}
	project := trust.Project{Dir: dir, Patch: projectPatch(dir)}
	return project, checkInside(project)
}

// checkInside refuses a patch that links lead out of its project, for an edit
// of a stranger's project must not change another file.
func checkInside(project trust.Project) error {
	for _, path := range []string{filepath.Dir(project.Patch), project.Patch} {
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			if real, err = os.Readlink(path); err != nil {
				continue // it is no link, and an error that matters comes again
			}
			// A link to nothing would be written to as well.
		}
		if rel, err := filepath.Rel(project.Dir, real); err != nil || !filepath.IsLocal(rel) {
			return fault.WithHint(fault.Errorf(fault.Policy, "%s leads out of its project, to %s", path, real),
				"edit that file itself if you mean it")
		}
	}
	return nil
}

func sameFile(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}
