package action

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/tailscale/hujson"

	"dsh/internal/compose"
	"dsh/internal/install"
	"dsh/internal/profile"
	"dsh/internal/staging"
	"dsh/internal/trust"
)

// patchName is the profile's patch file.
const patchName = "cordis.patch.yml"

// mainFile is its manifest.
const mainFile = "package.json"

func (r *repair) exists(name string) bool {
	_, err := os.Lstat(r.path(name))
	return err == nil
}

// text reads a small file, nil where there is none.
func (r *repair) text(name string) ([]byte, error) {
	text, err := profile.ReadFile(r.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		r.read[name] = nil
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r.read[name] = append([]byte{}, text...)
	return r.read[name], nil
}

// unreadable tells of a file that the system does not give, such as a directory
// in its place.
func (r *repair) unreadable(code DamageCode, name string, err error) error {
	r.add(Damage{Code: code, File: r.path(name), Problem: err.Error(), ByHand: "make it a file that can be read, or take it away and run this again"})
	return nil
}

// keep puts what a file holds beside it, for the same readers.
func (r *repair) keep(name string) (beside string) {
	beside = r.broken(name)
	r.write[beside] = r.read[name]
	r.modes[beside] = 0o600
	if info, err := os.Stat(r.path(name)); err == nil {
		r.modes[beside] = info.Mode().Perm()
	}
	r.kept = append(r.kept, r.path(beside))
	return beside
}

// writeFiles puts the small files into the transaction.
func (r *repair) writeFiles(tx *staging.Tx) error {
	for _, name := range slices.Sorted(maps.Keys(r.read)) {
		if err := tx.Expect(name, r.read[name]); err != nil {
			return err
		}
	}
	if len(r.fresh) > 0 {
		dir := filepath.Join(tx.Stage(), "fresh")
		if err := profile.Write(dir, r.opts.Name, profile.ForName(r.opts.Name)); err != nil {
			return err
		}
		for _, name := range r.fresh {
			text, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				return err
			}
			r.write[name] = text
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.write)) {
		mode, set := r.modes[name]
		if !set {
			mode = 0o644
		}
		if err := tx.WriteFile(name, r.write[name], mode); err != nil {
			return err
		}
	}
	return nil
}

// generationWith is the content that a file has in the newest generation in
// which it is good, and which one that is, in words.
func (r *repair) generationWith(name string, good func([]byte) bool) (text []byte, from string) {
	for i := range r.generations {
		if text, ok := r.generations[i].File(name); ok && good(text) {
			return text, generationWords(&r.generations[i])
		}
	}
	return nil, ""
}

func generationWords(g *staging.Generation) string {
	return fmt.Sprintf("generation %d of %s", g.ID, g.Saved.Local().Format("2006-01-02 15:04"))
}

// lookAtLeftovers finds what changes that did not end have left. The next
// transaction finishes or takes back all of it, but what a running process has.
func (r *repair) lookAtLeftovers() error {
	state := r.env.Home.StateDir(r.opts.Name)
	if r.own == "" && isAtWork(state) {
		r.warnings = append(r.warnings, "another dsh is changing the profile right now, and what is found may be half of that")
		return nil
	}
	dir, err := filepath.EvalSymlinks(r.dir) // a change of a profile that is a link works where that leads
	if err != nil {
		return err
	}
	beside, err := os.ReadDir(filepath.Dir(dir))
	if err != nil {
		return err
	}
	for _, e := range beside {
		path := filepath.Join(filepath.Dir(dir), e.Name())
		if !isOwnBeside(e.Name(), filepath.Base(dir)) || r.own != "" && strings.HasPrefix(r.own, path+string(filepath.Separator)) {
			continue
		}
		r.add(Damage{
			Code: Leftover, File: path, Problem: "it is left of a change that did not end",
			Mend: "the change is finished or taken back", ByHand: "another dsh may be at work; if none is, remove it",
		})
	}
	entries, err := os.ReadDir(state)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		switch path := filepath.Join(state, e.Name()); {
		case e.Name() == "journal":
			r.add(Damage{
				Code: Leftover, File: path, Problem: "a change was committed and did not end", Mend: "the change is finished or taken back",
			})
		case strings.HasPrefix(e.Name(), "journal.stale-"):
			r.add(Damage{
				Code: StateSetAside, File: path, Note: true,
				Problem: "it is the record of an unfinished change of an earlier directory of this name, which cannot be finished and that nothing needs",
			})
		}
	}
	return nil
}

// isAtWork says whether a process has the lock of the profile with this state.
func isAtWork(state string) bool {
	file := filepath.Join(state, "lock")
	if _, err := os.Stat(file); err != nil {
		return false
	}
	lock, err := staging.TryAcquire(file, "dsh profile repair")
	if _, held := errors.AsType[*staging.HeldError](err); held {
		return true
	}
	// What else is wrong with it stops the change, and not the look.
	return err == nil && lock.Release() != nil
}

// isOwnBeside recognises what a transaction over the profile called base puts
// beside its directory.
func isOwnBeside(name, base string) bool {
	rest, ok := strings.CutPrefix(name, "."+base+".")
	return ok && besideName.MatchString(rest)
}

var besideName = regexp.MustCompile(`^(staging|backup|backup-copied)-[0-9a-f]{12}$`)

// lookAtManifest reads package.json, and finds another where it cannot be read.
func (r *repair) lookAtManifest() error {
	file := r.path(mainFile)
	text, err := r.text(mainFile)
	if err != nil {
		return err
	}
	d := Damage{Code: ManifestMissing, File: file, Problem: "there is no package.json"}
	if text != nil {
		m, err := profile.ParseManifest(file, text)
		if err == nil {
			r.manifest = m
			r.lookIntoManifest(text)
			return nil
		}
		d.Code, d.Problem = ManifestBroken, err.Error()
		if fixed, how := asJSON(text); fixed != nil {
			if m, err := profile.ParseManifest(file, fixed); err == nil {
				r.manifest, r.write[mainFile] = m, m.Bytes()
				d.Mend = how + ", and the broken one is kept as " + r.keep(mainFile)
				r.add(d)
				r.lookIntoManifest(fixed)
				return nil
			}
		}
	}
	last, err := r.env.lastManifest(r.opts.Name)
	if err != nil {
		return err
	}
	r.manifest = last.manifest
	r.write[mainFile] = last.manifest.Bytes()
	d.Mend = "it becomes " + last.from
	if text != nil {
		d.Mend += ", and the broken one is kept as " + r.keep(mainFile)
	}
	r.add(d)
	return nil
}

// asJSON is a package.json as JSON that was written with what JSON does not have,
// and in words what goes; nil where it is nothing of that kind.
func asJSON(text []byte) (fixed []byte, how string) {
	how = "comments and commas that JSON does not have go"
	if text, big := bytes.CutPrefix(text, []byte{0xfe, 0xff}); big {
		fixed, how = fromUTF16(text, binary.BigEndian), "it is written in UTF-8"
	} else if text, little := bytes.CutPrefix(text, []byte{0xff, 0xfe}); little {
		fixed, how = fromUTF16(text, binary.LittleEndian), "it is written in UTF-8"
	} else {
		fixed = bytes.TrimPrefix(bytes.Clone(text), []byte("\ufeff"))
	}
	fixed, err := hujson.Standardize(fixed)
	if err != nil {
		return nil, ""
	}
	return fixed, how
}

func fromUTF16(text []byte, order binary.ByteOrder) []byte {
	units := make([]uint16, len(text)/2)
	for i := range units {
		units[i] = order.Uint16(text[2*i:])
	}
	return []byte(string(utf16.Decode(units)))
}

// lookIntoManifest finds what is wrong with a package.json that can be read.
func (r *repair) lookIntoManifest(text []byte) {
	file := r.path(mainFile)
	if bytes.HasPrefix(text, []byte("\ufeff")) {
		r.add(Damage{
			Code: ByteOrderMark, File: file, Problem: "it begins with a byte-order mark, which Node.js refuses", Mend: "it is written without the mark",
		})
		r.write[mainFile] = r.manifest.Bytes()
	}
	for _, name := range repeatedDependencies(text) {
		spec, kind, ok := r.manifest.Dependency(name)
		if !ok {
			continue // the section does not count
		}
		r.add(Damage{
			Code: DependencyTwice, File: file, Problem: fmt.Sprintf("%s is in it more than once", name),
			Mend: fmt.Sprintf("one entry stays: %q in %s", spec, kind),
		})
		bundles := r.manifest.Bundles()
		r.manifest.RemoveDependency(name)
		r.manifest.SetDependency(kind, name, spec)
		r.manifest.SetBundles(bundles)
		r.write[mainFile] = r.manifest.Bytes()
	}
}

// repeatedDependencies are the names that stand in the dependency sections of a
// package.json more than once, sorted.
func repeatedDependencies(text []byte) []string {
	seen := map[string]int{}
	var sections map[string]json.RawMessage
	if json.Unmarshal(bytes.TrimPrefix(text, []byte("\ufeff")), &sections) != nil {
		return nil
	}
	for _, kind := range []profile.DependencyKind{profile.Dependencies, profile.DevDependencies, profile.OptionalDependencies} {
		d := json.NewDecoder(bytes.NewReader(sections[string(kind)]))
		for depth, isKey := 0, false; ; {
			token, err := d.Token()
			if err != nil {
				break
			}
			switch t := token.(type) {
			case json.Delim:
				if t == '{' || t == '[' {
					depth++
				} else {
					depth--
				}
				isKey = depth == 1
			case string:
				if depth == 1 && isKey {
					seen[t]++
				}
				isKey = depth == 1 && !isKey
			default:
				isKey = depth == 1
			}
		}
	}
	var repeated []string
	for name, n := range seen {
		if n > 1 {
			repeated = append(repeated, name)
		}
	}
	slices.Sort(repeated)
	return repeated
}

// source is a patch file for messages.
func (r *repair) source(file string, kind compose.Kind) compose.Source {
	return compose.Source{File: file, Dir: filepath.Dir(file), Kind: kind, UserHome: r.env.userHome()}
}

// lookAtPatch reads the profile's patch file.
func (r *repair) lookAtPatch() error {
	text, err := r.text(patchName)
	if err != nil {
		return r.unreadable(PatchBroken, patchName, err)
	}
	file := r.path(patchName)
	src := r.source(file, compose.ProfileLayer)
	reads := func(text []byte) bool {
		_, err := compose.ParsePatches(src, text)
		return err == nil
	}
	d := Damage{Code: PatchBroken, File: file}
	_, err = compose.ParsePatches(src, text)
	switch {
	case text == nil:
		d.Code, d.Problem, d.Mend = PatchMissing, "there is no patch file", "it becomes the empty list of a fresh profile"
		r.fresh = append(r.fresh, patchName)
	case holdsNothing(text):
		d.Code, d.Problem, d.Mend = PatchEmpty, "it holds no list, which the reference launcher refuses", "it gets an empty list, []"
		r.write[patchName] = withEmptyList(text)
	case err == nil:
		return nil
	default:
		d.Problem = err.Error()
		if without := withoutEmptyList(text); without != nil && reads(without) {
			d.Mend = "the [] goes, and the rest stays"
			r.write[patchName] = without
		} else if old, from := r.generationWith(patchName, reads); old != nil {
			d.Mend = "it becomes what it was in " + from
			r.write[patchName] = old
		} else {
			d.Mend = "it becomes the empty list of a fresh profile"
			r.fresh = append(r.fresh, patchName)
		}
		d.Mend += ", and the broken one is kept as " + r.keep(patchName)
	}
	r.add(d)
	return nil
}

// holdsNothing says that a text has nothing but comments.
func holdsNothing(text []byte) bool {
	for line := range bytes.Lines(bytes.TrimPrefix(text, []byte("\ufeff"))) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			return false
		}
	}
	return true
}

func withEmptyList(text []byte) []byte {
	text = bytes.Clone(text)
	if len(text) > 0 && text[len(text)-1] != '\n' {
		text = append(text, '\n')
	}
	return append(text, "[]\n"...)
}

// withoutEmptyList is a text without the one line that is [], nil where there is
// not one.
func withoutEmptyList(text []byte) []byte {
	var kept []byte
	found := 0
	for line := range bytes.Lines(text) {
		if bytes.Equal(bytes.TrimSpace(line), []byte("[]")) {
			found++
			continue
		}
		kept = append(kept, line...)
	}
	if found != 1 {
		return nil
	}
	return kept
}

// lookAtHomePatch reads the patch of the home, which no profile may change
// unasked.
func (r *repair) lookAtHomePatch() error {
	file := r.env.Home.PatchPath()
	text, err := readFile(file)
	if err == nil && text != nil {
		_, err = compose.ParsePatches(r.source(file, compose.HomeLayer), text)
	}
	if err != nil {
		r.add(Damage{
			Code: HomePatch, File: file, Problem: err.Error(),
			ByHand: "it is the layer of all profiles: mend it by hand, or dsh profile rollback --home",
		})
	}
	return nil
}

// lookAtSettings reads pnpm-workspace.yaml.
func (r *repair) lookAtSettings() error {
	name := install.WorkspaceName
	text, err := r.text(name)
	if err != nil {
		return r.unreadable(SettingsBroken, name, err)
	}
	reads := func(text []byte) bool {
		_, err := trust.PnpmApprovals(text, nil)
		return err == nil
	}
	d := Damage{Code: SettingsBroken, File: r.path(name)}
	approvals, err := trust.PnpmApprovals(text, nil)
	switch {
	case text == nil:
		d.Code, d.Problem, d.Mend = SettingsMissing, "there is no "+name+", without which pnpm would lay out another node_modules", "it becomes what a fresh profile has"
		r.fresh = append(r.fresh, name)
	case err != nil:
		d.Problem = err.Error()
		if old, from := r.generationWith(name, reads); old != nil {
			d.Mend = "it becomes what it was in " + from
			r.write[name] = old
		} else {
			d.Mend = "it becomes what a fresh profile has"
			r.fresh = append(r.fresh, name)
		}
		d.Mend += ", and the broken one is kept as " + r.keep(name)
	default:
		return r.lookAtApprovals(text, approvals)
	}
	r.add(d)
	return nil
}

// lookAtApprovals finds texts that pnpm leaves where somebody has to decide, and
// that it refuses from then on.
func (r *repair) lookAtApprovals(text []byte, approvals trust.PnpmRules) error {
	edited, err := trust.WithoutPlaceholders(text)
	for _, a := range approvals {
		if a.Placeholder == "" {
			continue
		}
		d := Damage{Code: Undecided, File: r.path(install.WorkspaceName), Problem: fmt.Sprintf("allowBuilds has %q for %s, where true or false belongs", a.Placeholder, a.Package)}
		if err == nil {
			d.Mend = "the entry goes; nothing was decided"
			r.write[install.WorkspaceName] = edited
		} else {
			d.ByHand = "write true or false there"
		}
		r.add(d)
	}
	return nil
}
