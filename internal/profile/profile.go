package profile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"dsh/internal/fault"
	"dsh/internal/staging"
)

// Profile is an opened profile.
type Profile struct {
	Name     Name
	Dir      string // absolute
	Manifest *Manifest
	Created  bool     // opening it made it
	Warnings []string // what opening could not do and did without

	where func(string) string // see Where; nil is identity
}

// Where is the place at which a file of the profile can be read, which is
// another than path while a transaction makes the profile.
func (p *Profile) Where(path string) string {
	if p.where == nil {
		return path
	}
	return p.where(path)
}

// PatchPath is the user's own layer. It may not exist.
func (p *Profile) PatchPath() string { return filepath.Join(p.Dir, patchFile) }

// RootPath is the empty root that the reference launcher anchors its tree in.
func (p *Profile) RootPath() string { return filepath.Join(p.Dir, rootFile) }

// WriteRoot makes cordis.yml the empty root, atomically and only when its
// bytes differ. A dump can go on when it fails.
func (p *Profile) WriteRoot() error {
	if _, err := staging.WriteFileIfChanged(p.RootPath(), []byte(emptyRoot), filePerm); err != nil {
		return fmt.Errorf("writing the root of profile %s: %w", quote(p.Name.text), err)
	}
	return nil
}

// MissingError is a profile that is not there.
type MissingError struct {
	Name Name
	Dir  string
	Left bool // the directory is there, but has no package.json
	// Lost says that the directory is what is left of a profile which depended on
	// something, and of which a fresh package.json would make a profile that does not.
	Lost bool
	Kept bool // something was kept of it, from which it can be made again
}

func (e *MissingError) Error() string {
	if e.Left {
		return fmt.Sprintf("profile %s has no package.json in %s", quote(e.Name.text), e.Dir)
	}
	return fmt.Sprintf("profile %s does not exist; create it with 'dsh plugin --profile %s add <package>'", quote(e.Name.text), fault.ShellWord(e.Name.text))
}

// Hint is the command that brings a removed profile back, or its package.json
// from what is known of it. Another profile without a directory has its remedy in the message, in
// the reference's words.
func (e *MissingError) Hint() string {
	switch name := fault.ShellWord(e.Name.text); {
	case e.Left:
		return fmt.Sprintf("dsh profile repair %s", name)
	case e.Kept:
		return fmt.Sprintf("it was there once: dsh profile undelete %s brings it back", name)
	}
	return ""
}

// Read opens a profile and never writes: one that is missing is a
// [MissingError], also where its name is a template's. What the reference
// launcher rewrites in old manifests is rewritten in memory: the headless list
// that once held the web app, and retired bundles.
func Read(home Home, name Name) (*Profile, error) {
	return open(home, name, false, writes{})
}

// ReadFrom is [Read], but a file of the profile is read at the place that where
// gives for its path. Profile.Dir stays the profile's own.
func ReadFrom(where func(path string) string, home Home, name Name) (*Profile, error) {
	return openAt(where, home, name, false, writes{})
}

// ForName is the template that a profile called name is made from where none is
// named: that of its name, else the base bundle alone.
func ForName(name Name) Template {
	tmpl, _ := templateFor(name, true)
	return tmpl
}

// OpenForReading opens a profile for dumps and starts. One with the name of a
// template is made from it when it is missing; any other that is missing is a
// [MissingError], and so is one that is lost. What [Read] rewrites in memory is written. It works in a home
// that cannot be written: what would have been written is then only in memory,
// and Warnings says so.
func OpenForReading(home Home, name Name) (*Profile, error) {
	return openForReading(home, name, false, onDisk)
}

// OpenOrCreateForReading is [OpenForReading], and whatever is missing is made
// too: from the template of its name, or else with the base bundle alone.
func OpenOrCreateForReading(home Home, name Name) (*Profile, error) {
	return openForReading(home, name, true, onDisk)
}

func openForReading(home Home, name Name, makeAny bool, w writes) (*Profile, error) {
	var warnings []string
	w.failed = func(err error) error {
		warnings = append(warnings, fmt.Sprintf("%v; going on without writing it", err))
		return nil
	}
	p, err := open(home, name, makeAny, w)
	if err != nil {
		return nil, err
	}
	p.Warnings = warnings
	return p, nil
}

// writes is what opening a profile may do to the disk, and what happens when
// it fails: an error from failed ends it, nil goes on in memory. The zero value
// writes nothing.
type writes struct {
	init   func(Home, Name, Template) (created bool, err error)
	update func(path string, data []byte) error
	failed func(error) error
}

var onDisk = writes{
	init:   Init,
	update: func(path string, data []byte) error { return staging.WriteFile(path, data, filePerm) },
	failed: func(err error) error { return err },
}

func open(home Home, name Name, makeAny bool, w writes) (*Profile, error) {
	return openAt(nil, home, name, makeAny, w)
}

// openAt opens a profile whose files are where the function says.
func openAt(where func(string) string, home Home, name Name, makeAny bool, w writes) (*Profile, error) {
	p := &Profile{Name: name, Dir: home.ProfileDir(name), where: where}
	path := filepath.Join(p.Dir, manifestFile)
	text, err := ReadFile(p.Where(path))
	if errors.Is(err, fs.ErrNotExist) {
		if err := home.CheckLink(name); err != nil {
			return nil, err
		}
		tmpl, ok := templateFor(name, makeAny)
		if gone := missing(home, name); !ok || w.init == nil || gone.Lost {
			return nil, gone
		}
		if p.Created, err = w.init(home, name, tmpl); err == nil {
			text, err = ReadFile(p.Where(path)) // another process may have been faster
		} else if err = w.failed(err); err == nil {
			text = tmpl.manifest(name)
		} else {
			return nil, err
		}
	}
	if errors.Is(err, syscall.ENOTDIR) {
		return nil, fmt.Errorf("failed to read profile manifest %s: %s: a file is in its place", path, fileAbove(path))
	}
	if err != nil {
		return nil, fmt.Errorf("failed to read profile manifest %s: %w", path, reason(err))
	}
	if p.Manifest, err = ParseManifest(path, text); err != nil {
		return nil, fault.WithHint(err, "dsh profile repair %s shows what can be done about it, and does it", fault.ShellWord(name.text))
	}
	if renew(name, p.Manifest) && w.update != nil {
		if err := w.update(path, p.Manifest.Bytes()); err != nil {
			if err := w.failed(fmt.Errorf("updating the bundle list of profile %s: %w", quote(name.text), err)); err != nil {
				return nil, err
			}
		}
	}
	return p, nil
}

func templateFor(name Name, makeAny bool) (Template, bool) {
	if tmpl, err := LookupTemplate(name.text); err == nil {
		return tmpl, true
	}
	return BaseTemplate(), makeAny
}

func missing(home Home, name Name) *MissingError {
	dir := home.ProfileDir(name)
	info, err := os.Stat(dir)
	e := &MissingError{Name: name, Dir: dir, Left: err == nil && info.IsDir(), Kept: home.Kept(name)}
	e.Lost = e.Left && (e.Kept || wasUsed(dir))
	if _, err := os.Stat(filepath.Join(dir, manifestFile)); err == nil {
		e.Lost = false // another process has just made it
	}
	return e
}

// CheckLink refuses a profile that is a link to a directory which is not there,
// such as one on a disk that is not mounted. Nothing may be made at either end.
func (h Home) CheckLink(name Name) error {
	link := h.ProfileDir(name)
	if _, err := os.Stat(link); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	target, err := os.Readlink(link)
	if err != nil {
		return nil // nothing is there
	}
	return fault.WithHint(fault.Errorf(fault.Environment, "profile %s is a link to %s, which is not there", quote(name.text), target),
		"mount the disk that it is on, or take the link away: %s", fault.ShellWords("rm", link))
}

// traces are what a profile has that once had a package.json: what is installed
// into it, and the lockfiles. A link to a package.json that is not there is one too.
var traces = []string{"node_modules", "dsh-lock.yaml", "pnpm-lock.yaml", "package-lock.json", manifestFile}

func wasUsed(dir string) bool {
	return slices.ContainsFunc(traces, func(name string) bool {
		_, err := os.Lstat(filepath.Join(dir, name))
		return err == nil
	})
}

// ReadFile is [os.ReadFile] for a file of a profile or of the home. A pipe, a
// device or a socket in its place is an error: to read it may take for ever.
func ReadFile(path string) ([]byte, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return nil, &fs.PathError{Op: "read", Path: path, Err: errors.New("it is a pipe, a device or a socket, and no file")}
	}
	return os.ReadFile(path)
}

// fileAbove is the file that stands where a directory on the way to path belongs.
func fileAbove(path string) string {
	for dir := filepath.Dir(path); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err == nil && !info.IsDir() {
			return dir
		}
	}
	return filepath.Dir(path)
}

// reason is err without the operation and the path, where the message around
// it names them.
func reason(err error) error {
	if pathError, ok := errors.AsType[*fs.PathError](err); ok {
		return pathError.Err
	}
	return err
}

// retiredBundle was shipped once and is no longer; the reference launcher
// takes it out of every list.
const retiredBundle = "@deepseek-ai/dsh-experimental-schedule-bundle"

// oldHeadless is the list of headless profiles made before headless stood on
// the base alone. Only exactly this list is replaced: any other is the user's.
var oldHeadless = []string{BaseBundle, "@deepseek-ai/dsh-web-app", "@deepseek-ai/dsh-headless"}

// renew brings an old bundle list up to date and reports whether it changed.
func renew(name Name, m *Manifest) bool {
	bundles := m.Bundles()
	renewed := slices.DeleteFunc(slices.Clone(bundles), func(bundle string) bool { return bundle == retiredBundle })
	if name.text == "headless" && slices.Equal(renewed, oldHeadless) {
		if tmpl, err := LookupTemplate(name.text); err == nil {
			renewed = tmpl.Bundles()
		}
	}
	if slices.Equal(bundles, renewed) {
		return false
	}
	m.SetBundles(renewed)
	return true
}

var _ fault.Hinted = (*MissingError)(nil)
