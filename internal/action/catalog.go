package action

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"dsh/internal/catalog"
	"dsh/internal/fault"
	"dsh/internal/install/registry"
	"dsh/internal/staging"
)

// CatalogState is a catalogue that the user added, and what it holds.
type CatalogState struct {
	Name        string            `json:"name"`
	From        string            `json:"from"` // its address without secrets, or its file
	SSH         bool              `json:"ssh"`
	Entries     int               `json:"entries"`
	Installable int               `json:"installable"` // entries that say what to install
	Skipped     []catalog.Skipped `json:"skipped"`
	Updated     string            `json:"updated"` // when its author made it, in the author's words
	Fetched     *time.Time        `json:"fetched"` // when what is here came; of a file when it was written
	Checked     *time.Time        `json:"checked"` // when it was known to be the newest
	Changed     bool              `json:"changed"` // by this command
	Notes       []string          `json:"notes"`
	Error       string            `json:"error,omitempty"` // why the newest is not had, or nothing
}

// catalogAge is how old a copy may be before a command asks whether it is still
// the newest.
const catalogAge = time.Hour

func (env Env) catalogsFile() string { return env.Home.Path("catalogs.yaml") }

// catalogCopy is where the copy of a catalogue is kept.
func (env Env) catalogCopy(name string) string {
	return env.Home.Path("store", "catalogs", name)
}

// catalogClient asks the servers of catalogues. They are of no profile, so only
// the settings of the user count.
func (env Env) catalogClient(mode registry.CacheMode) (*registry.Client, error) {
	return env.client(PluginOptions{Mode: mode}, env.Home.Dir())
}

// openedCatalog is a catalogue as it is at hand.
type openedCatalog struct {
	catalog.Catalog
	index            *catalog.Index // nil where there is none
	fetched, checked time.Time
	changed          bool
	err              error // why the newest is not had
}

// shown is where it is from, without secrets.
func (o *openedCatalog) shown() string {
	if o.Remote() {
		return registry.ShownAddress(o.From)
	}
	return o.From
}

func (o *openedCatalog) state() CatalogState {
	s := CatalogState{Name: o.Name, From: o.shown(), SSH: o.SSH, Skipped: []catalog.Skipped{}, Notes: []string{}, Changed: o.changed}
	if o.index != nil {
		s.Entries, s.Updated = len(o.index.Entries), o.index.Updated
		for i := range o.index.Entries {
			if o.index.Entries[i].Spec.Text != "" {
				s.Installable++
			}
		}
		s.Skipped = append(s.Skipped, o.index.Skipped...)
		s.Notes = append(s.Notes, o.index.Notes...)
		fetched, checked := o.fetched.UTC(), o.checked.UTC()
		s.Fetched, s.Checked = &fetched, &checked
	}
	if o.err != nil {
		s.Error = o.err.Error()
	}
	return s
}

// openCatalog has a catalogue at hand: the newest where mode asks for that, else
// what is kept. One that is broken takes the place of none that is whole. What comes
// is kept if write is set.
func (env Env) openCatalog(ctx context.Context, client *registry.Client, c catalog.Catalog, mode registry.CacheMode, write bool) *openedCatalog {
	o := &openedCatalog{Catalog: c}
	kept, err := catalog.ReadKept(env.catalogCopy(c.Name), c.From)
	if err != nil {
		o.err = err
		return o
	}
	if kept != nil {
		o.use(kept)
	}
	now := time.Now()
	var newest *catalog.Kept
	switch fresh := o.index != nil && now.Sub(o.checked) < catalogAge && !o.checked.After(now); {
	case !c.Remote():
		newest, err = readCatalogFile(c.From, now)
	case o.index != nil && (mode == Offline || mode == PreferOffline || fresh && mode != Fresh):
		return o
	default:
		newest, err = fetchCatalog(ctx, client, c, kept, o.index != nil, now)
		if o.err = err; err != nil {
			return o
		}
	}
	index, same := o.index, err == nil && o.index != nil && bytes.Equal(newest.Text, kept.Text)
	switch {
	case same && c.Remote():
		newest.Fetched = kept.Fetched
	case err == nil && !same:
		index, err = catalog.Parse(newest.Text, c.Origin())
	}
	if err == nil {
		o.index, o.changed, o.fetched, o.checked = index, !same, newest.Fetched, newest.Checked
		if write && (!same || c.Remote()) {
			o.err = newest.Write(env.catalogCopy(c.Name))
		}
		return o
	}
	o.err = fmt.Errorf("catalogue %s (%s): %w", c.Name, o.shown(), err)
	return o
}

// use has what is kept stand for the catalogue, if it can be read.
func (o *openedCatalog) use(kept *catalog.Kept) {
	if index, err := catalog.Parse(kept.Text, o.Origin()); err == nil {
		o.index, o.fetched, o.checked = index, kept.Fetched, kept.Checked
	}
}

func readCatalogFile(file string, now time.Time) (*catalog.Kept, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, catalog.MaxBytes+1))
	return &catalog.Kept{From: file, Fetched: info.ModTime(), Checked: now, Text: text}, err
}

// fetchCatalog asks for the newest text. readable says that what is kept can be
// used, so that it need not be sent again.
func fetchCatalog(ctx context.Context, client *registry.Client, c catalog.Catalog, kept *catalog.Kept, readable bool, now time.Time) (*catalog.Kept, error) {
	var have registry.Page
	if kept != nil && readable {
		have.ETag, have.Modified = kept.ETag, kept.Modified
	}
	page, err := client.Page(ctx, "get the catalogue "+c.Name, c.From, have, catalog.MaxBytes)
	if err != nil {
		return nil, err
	}
	if page.Unchanged && kept != nil {
		same := *kept
		same.Checked = now
		return &same, nil
	}
	return &catalog.Kept{From: c.From, ETag: page.ETag, Modified: page.Modified, Fetched: now, Checked: now, Text: page.Text}, nil
}

// editCatalogs changes the list of catalogues.
func (env Env) editCatalogs(ctx context.Context, edit func([]catalog.Catalog) ([]catalog.Catalog, error)) (err error) {
	lock, err := env.acquire(ctx, env.catalogsFile()+".lock")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	list, err := catalog.ReadList(env.catalogsFile())
	if err != nil {
		return err
	}
	if list, err = edit(list); err != nil {
		return err
	}
	return catalog.WriteList(env.catalogsFile(), list)
}

// AddCatalog fetches a catalogue, and remembers it if it can be read. A place that
// is there under the same name already is looked at anew.
func AddCatalog(ctx context.Context, env Env, c catalog.Catalog) (*CatalogState, error) {
	list, err := catalog.ReadList(env.catalogsFile())
	if err != nil {
		return nil, err
	}
	if err := taken(list, c); err != nil {
		return nil, err
	}
	client, err := env.catalogClient(Fresh)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	o := env.openCatalog(ctx, client, c, Fresh, true)
	if o.err != nil {
		return nil, o.err
	}
	err = env.editCatalogs(ctx, func(list []catalog.Catalog) ([]catalog.Catalog, error) {
		if err := taken(list, c); err != nil {
			return nil, err
		}
		list = slices.DeleteFunc(list, func(other catalog.Catalog) bool { return other.Name == c.Name })
		return append(list, c), nil
	})
	if err != nil {
		return nil, err
	}
	state := o.state()
	state.Changed = !slices.Contains(list, c)
	return &state, nil
}

// taken refuses a name that another place has.
func taken(list []catalog.Catalog, c catalog.Catalog) error {
	for _, other := range list {
		if other.Name == c.Name && other.From != c.From {
			o := openedCatalog{Catalog: other}
			return fault.WithHint(fault.Errorf(fault.Other, "there is a catalogue %s already, from %s", c.Name, o.shown()),
				"dsh catalog add … --name gives another name, and dsh catalog remove %s makes room", c.Name)
		}
	}
	return nil
}

// Catalogs lists the catalogues as they are kept, and asks nobody.
func Catalogs(ctx context.Context, env Env) ([]CatalogState, error) {
	list, err := catalog.ReadList(env.catalogsFile())
	if err != nil {
		return nil, err
	}
	states := []CatalogState{}
	for _, c := range list {
		o := &openedCatalog{Catalog: c}
		kept, err := catalog.ReadKept(env.catalogCopy(c.Name), c.From)
		if err == nil && kept != nil {
			o.use(kept)
		}
		if o.index == nil && err == nil {
			err = fault.Errorf(fault.Other, "catalogue %s: nothing is kept of it; dsh catalog update %s fetches it", c.Name, c.Name)
		}
		o.err = err
		states = append(states, o.state())
	}
	return states, ctx.Err()
}

// RemoveCatalog forgets a catalogue and what is kept of it.
func RemoveCatalog(ctx context.Context, env Env, name string) (*CatalogState, error) {
	list, err := catalog.ReadList(env.catalogsFile())
	if err != nil {
		return nil, err
	}
	if _, err := catalogNamed(list, name); err != nil {
		return nil, err
	}
	var removed openedCatalog
	err = env.editCatalogs(ctx, func(list []catalog.Catalog) ([]catalog.Catalog, error) {
		c, err := catalogNamed(list, name)
		removed.Catalog = c
		return slices.DeleteFunc(list, func(other catalog.Catalog) bool { return other.Name == name }), err
	})
	if err != nil {
		return nil, err
	}
	if err := staging.OS.Remove(env.catalogCopy(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	state := removed.state()
	state.Changed = true
	return &state, nil
}

// catalogNamed is the catalogue of a name.
func catalogNamed(list []catalog.Catalog, name string) (catalog.Catalog, error) {
	var names []string
	for _, c := range list {
		if c.Name == name {
			return c, nil
		}
		names = append(names, c.Name)
	}
	err := fault.Errorf(fault.Other, "there is no catalogue %q", name)
	if len(names) == 0 {
		return catalog.Catalog{}, fault.WithHint(err, "none was added; dsh catalog add ADDRESS OR FILE adds one")
	}
	return catalog.Catalog{}, fault.WithHint(err, "there are: %s", strings.Join(names, ", "))
}

// UpdateCatalogs asks for the newest of catalogues, or of all. failed is the first
// reason why one was not had.
func UpdateCatalogs(ctx context.Context, env Env, names []string) (states []CatalogState, failed, err error) {
	list, err := catalog.ReadList(env.catalogsFile())
	if err != nil {
		return nil, nil, err
	}
	var chosen []catalog.Catalog
	for _, name := range names {
		c, err := catalogNamed(list, name)
		if err != nil {
			return nil, nil, err
		}
		chosen = append(chosen, c)
	}
	if len(names) == 0 {
		chosen = list
	}
	opened, err := env.openCatalogs(ctx, chosen, Fresh, true)
	if err != nil {
		return nil, nil, err
	}
	states = []CatalogState{}
	for _, o := range opened {
		states = append(states, o.state())
		if failed == nil {
			failed = o.err
		}
	}
	return states, failed, nil
}

// CatalogEntry is an entry of a catalogue that is to be installed.
type CatalogEntry struct {
	catalog.Entry
	Catalog  string
	Warnings []string
}

// FindInCatalog finds an entry of a catalogue, and that it says what to install.
func FindInCatalog(ctx context.Context, env Env, opts PluginOptions, name, entry string) (*CatalogEntry, error) {
	list, err := catalog.ReadList(env.catalogsFile())
	if err != nil {
		return nil, err
	}
	c, err := catalogNamed(list, name)
	if err != nil {
		return nil, err
	}
	opened, err := env.openCatalogs(ctx, []catalog.Catalog{c}, opts.Mode, !opts.DryRun)
	if err != nil {
		return nil, err
	}
	o := opened[0]
	if o.index == nil {
		return nil, o.err
	}
	found := &CatalogEntry{Catalog: name, Warnings: []string{}}
	if o.err != nil {
		found.Warnings = append(found.Warnings, fmt.Sprintf("%v; what is kept of %s counts", o.err, o.checked.Local().Format(time.DateTime)))
	}
	e, err := o.index.Find(name, entry)
	if err != nil {
		return nil, fault.WithHint(err, "dsh plugin search WORDS shows what there is")
	}
	found.Entry = *e
	if e.Spec.Text == "" {
		err := fault.Errorf(e.Class, "entry %s of catalogue %s says nothing that can be installed: %s", e.Key(), name, e.Refused)
		if e.Repository.IsZero() {
			return nil, err
		}
		return nil, fault.WithHint(err, "what is in its repository is looked at with: dsh plugin info %s", fault.ShellWord(repositoryWord(e.Repository)))
	}
	if len(e.Ignored) > 0 {
		found.Warnings = append(found.Warnings, fmt.Sprintf("entry %s of catalogue %s: its command says %s, which does not count here", e.Key(), name, strings.Join(e.Ignored, ", ")))
	}
	for _, note := range e.Notes {
		found.Warnings = append(found.Warnings, fmt.Sprintf("entry %s of catalogue %s: %s", e.Key(), name, note))
	}
	if e.Deprecated {
		text := fmt.Sprintf("catalogue %s advises against %s", name, e.Key())
		if e.Replacement != "" {
			text += ", and for " + e.Replacement
		}
		found.Warnings = append(found.Warnings, text)
	}
	return found, nil
}

// openCatalogs has several at hand.
func (env Env) openCatalogs(ctx context.Context, list []catalog.Catalog, mode registry.CacheMode, write bool) ([]*openedCatalog, error) {
	if len(list) == 0 {
		return nil, nil
	}
	client, err := env.catalogClient(mode)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	opened := make([]*openedCatalog, len(list))
	var group sync.WaitGroup
	for i, c := range list {
		group.Go(func() { opened[i] = env.openCatalog(ctx, client, c, mode, write) })
	}
	group.Wait()
	return opened, ctx.Err()
}
