package install

import (
	"cmp"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"dsh/internal/fault"
	"dsh/internal/install/store"
	"dsh/internal/install/unpack"
	"dsh/internal/staging"
)

// KeptDir is the folder of a profile with the archives that it keeps: each
// was made of a package that was asked for in a form of which pnpm understands
// nothing, such as a folder in a zip archive. package.json names the archive,
// and the lockfile says what it was made of.
const KeptDir = "archives"

// KeptPlace is where a profile keeps the archive of a package that has such an
// integrity, slash-separated and relative to its directory.
func KeptPlace(name, version string, id store.Integrity) string {
	stem := strings.ReplaceAll(name, "/", "+")
	if isExact(version) { // whatever else a package.json says is no name of a file
		stem += "-" + version
	}
	return path.Join(KeptDir, stem+"-"+shortSum(id)+".tgz")
}

// shortSum is the beginning of a hash that is enough to tell archives of one
// version apart.
func shortSum(id store.Integrity) string {
	sum, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(id.String(), "sha512-"))
	return hex.EncodeToString(sum[:4])
}

// Written is what an archive that a profile keeps was made of.
type Written struct {
	From      string          // as it was asked for, see [WrittenForm]
	Integrity store.Integrity // of the file that was there
}

// secretMark stands in a written form for what may have been secret.
const secretMark = "***"

// WrittenForm is the source of an archive that a profile keeps, as it can be asked
// for again from anywhere on this machine. Where an address had user, password or
// query, which can be secrets, it says only that there was something.
func WrittenForm(spec Spec) string {
	if spec.Kind != URL {
		return "file:" + addInside(filepath.ToSlash(spec.Place), spec.Inside)
	}
	place := spec.Place
	if shown := ShownSpec(place); shown != place {
		scheme, rest, _ := strings.Cut(shown, "://")
		_, before, _ := strings.Cut(place, "://")
		if i := strings.IndexAny(before, "/?#"); i >= 0 {
			before = before[:i]
		}
		if strings.Contains(before, "@") {
			rest = secretMark + "@" + rest
		}
		rest, fragment, _ := strings.Cut(rest, "#")
		if strings.Contains(place, "?") {
			rest += "?" + secretMark
		}
		if fragment != "" {
			rest += "#" + fragment
		}
		place = scheme + "://" + rest
	}
	return forced(spec) + addInside(place, spec.Inside)
}

// made is an archive that dsh made of another one.
type made struct {
	file    string // in a temporary directory of the store
	written Written
}

// keptAt is where a profile keeps the archive that it depends on as wanted; ""
// where that is no such archive. dir is the profile's.
func keptAt(wanted, dir string) string {
	spec, err := ParseDependency("x", wanted, dir)
	if err != nil || spec.Kind != Archive || spec.Inside != "" {
		return ""
	}
	at := originPlace(spec, dir)
	if path.Dir(at) != KeptDir || !strings.HasSuffix(at, ".tgz") {
		return ""
	}
	return at
}

// keepAs makes a package one whose archive the profile keeps, and returns how
// package.json names that. What the archive was made of goes into the lockfile.
func (j *Job) keepAs(name string, pkg *Package, m *made) (kept *Package, saved string) {
	at := KeptPlace(pkg.Name, pkg.Version, pkg.Integrity)
	copied := *pkg
	copied.Origin = Origin{Archive, at}
	j.written[name] = m.written
	j.archives[at] = m.file
	return &copied, "file:" + at
}

// source is what the archive of a dependency was made of. A nil lock knows of
// none.
func (l *Lock) source(name string) (Written, bool) {
	if l == nil {
		return Written{}, false
	}
	w, ok := l.Sources[name]
	return w, ok
}

// fetchAgain asks again for what the archive of a dependency was made of, and
// keeps a new one if that is something else now.
func (j *Job) fetchAgain(ctx context.Context, find *sources, name string, was Written, named bool) error {
	if strings.Contains(was.From, secretMark) {
		err := fault.Errorf(fault.Other, "%s was added with an address of which user, password and query are not kept, for they may be secret: %s", name, was.From)
		if named {
			return fault.WithHint(err, "add it again with the whole address: %s", j.command("add", name+"@ADDRESS"))
		}
		j.notes = append(j.notes, err.Error())
		return nil
	}
	spec, err := ParseSpec(was.From, j.Dir)
	if err != nil {
		return fmt.Errorf("%s, a source of %s: %w", LockName, name, err)
	}
	if spec.Kind != URL && spec.Kind != Archive {
		// Nobody but who writes lockfiles by hand asked for that.
		return fault.WithHint(fault.Errorf(fault.Policy, "%s, a source of %s: %s is no archive, and only archives are kept as others", LockName, name, ShownSpec(was.From)),
			"if you want the package from there: %s", j.command("add", name+"@"+ShownSpec(was.From)))
	}
	spec.Name = name
	if spec.Kind == Archive && isGone(spec.Place) {
		// What was made of it is kept, so that the file may go.
		j.notes = append(j.notes, fmt.Sprintf("%s: %s is not there any more; what was made of it stays", name, nativePlace(j.Dir, filepath.ToSlash(spec.Place))))
		return nil
	}
	if err := find.admits([]Spec{spec}); err != nil {
		return err
	}
	pkg, err := find.find(ctx, spec)
	if err != nil {
		return err
	}
	if locked, ok := j.locked.at("node_modules/" + name); ok && locked.Name != pkg.Name {
		return fault.WithHint(fault.Errorf(fault.Package, "%s is made of %s, which holds the package %s now, and held %s", name, ShownSpec(was.From), pkg.describe(), locked.Name),
			"to take that in its place: %s, then %s", j.command("remove", name), j.command("add", ShownSpec(was.From)))
	}
	_, kind, _ := j.manifest.Dependency(name)
	m := find.made(spec)
	switch {
	case m == nil: // what is there now needs no keeping
		j.pinned[name] = pkg
		j.manifest.SetDependency(kind, name, saved(spec, pkg, j.Dir, "", false))
	case m.written.Integrity != was.Integrity:
		kept, wanted := j.keepAs(name, pkg, m)
		j.pinned[name] = kept
		j.manifest.SetDependency(kind, name, wanted)
	}
	return nil
}

// isGone reports whether there is no file any more.
func isGone(file string) bool {
	_, err := os.Stat(file)
	return errors.Is(err, fs.ErrNotExist)
}

// writtenFor is what the archives were made of that the profile depends on by a
// lock, and what its Agent Plugins were asked for as.
func (j *Job) writtenFor(lock *Lock) map[string]Written {
	var all map[string]Written
	for name, wanted := range lock.Wanted {
		at := keptAt(wanted, j.Dir)
		n, _ := lock.at("node_modules/" + name)
		isPlugin := isWrapped(n.Package, name, wanted)
		if at == "" && !isPlugin {
			continue
		}
		w, ok := j.written[name]
		if !ok && j.locked != nil && (isPlugin || keptAt(j.locked.Wanted[name], j.Dir) == at) {
			w, ok = j.locked.Sources[name]
		}
		if ok {
			if all == nil {
				all = map[string]Written{}
			}
			all[name] = w
		}
	}
	return all
}

// keptArchives is the archives that a profile keeps by a lock, and the hash of
// each: those that dsh made, by their names. A nil lock has none.
func keptArchives(lock *Lock) map[string]store.Integrity {
	kept := map[string]store.Integrity{}
	if lock == nil {
		return kept
	}
	for name := range lock.Wanted {
		n, ok := lock.at("node_modules/" + name)
		if ok && n.Origin.Kind == Archive && n.Origin.Place == KeptPlace(n.Name, n.Version, n.Integrity) {
			kept[n.Origin.Place] = n.Integrity
		}
	}
	return kept
}

// archiveChanges is the archives that have to be written so that the profile
// keeps what a lock says, and those of before that nothing needs any more.
func (j *Job) archiveChanges(lock *Lock) (write map[string]store.Integrity, remove []string) {
	write = keptArchives(lock)
	for at := range keptArchives(j.locked) {
		if _, stays := write[at]; !stays && !lock.names(at) {
			remove = append(remove, at)
		}
	}
	if !j.locked.holds(lock) {
		remove = append(remove, j.strays(lock)...)
	}
	slices.Sort(remove)
	maps.DeleteFunc(write, func(at string, id store.Integrity) bool { return j.archives[at] == "" && j.keeps(at, id) })
	return write, slices.Compact(remove)
}

// keeps reports whether the profile has an archive. Its content is read only where
// all is held against the lockfile.
func (j *Job) keeps(at string, id store.Integrity) bool {
	return keeps(j.Files, at, id, j.Check || j.entire)
}

// keeps reports whether an archive is in a profile's directory: there is a file, and
// no link. If it is read, its hash has to be id.
func keeps(dir, at string, id store.Integrity, read bool) bool {
	file := filepath.Join(dir, filepath.FromSlash(at))
	info, err := os.Lstat(file)
	return err == nil && info.Mode().IsRegular() && (!read || CheckArchive(file, id) == nil)
}

// DamagedArchives is the archives that the profile in dir has to keep by a
// lockfile and that are lost or have another content, as sorted slash-separated
// paths below dir.
func DamagedArchives(dir string, lock *Lock) []string {
	kept := keptArchives(lock)
	maps.DeleteFunc(kept, func(at string, id store.Integrity) bool { return keeps(dir, at, id, true) })
	return sortedKeys(kept)
}

// strays is the archives in the profile that nothing in a lock points to and that
// are dsh's, whichever change left them: their names hold their own hashes.
func (j *Job) strays(lock *Lock) (list []string) {
	entries, _ := os.ReadDir(filepath.Join(j.Files, KeptDir)) // most profiles have none
	for _, e := range entries {
		at := KeptDir + "/" + e.Name()
		if e.Type().IsRegular() && keptName().MatchString(e.Name()) && !lock.names(at) && j.bearsItsHash(at) {
			list = append(list, at)
		}
	}
	return list
}

// keptName is the form of the names that [KeptPlace] gives.
var keptName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^.+-[0-9a-f]{8}\.tgz$`) })

// bearsItsHash reports whether a file of the profile has the name that
// [KeptPlace] gives to its content.
func (j *Job) bearsItsHash(at string) bool {
	f, err := os.Open(filepath.Join(j.Files, filepath.FromSlash(at)))
	if err != nil {
		return false
	}
	defer f.Close()
	id, err := ArchiveIntegrity(f)
	return err == nil && strings.HasSuffix(at, shortSum(id)+".tgz")
}

// names reports whether a lock speaks of a file of the profile: a package comes
// from it, or would, where it could be had.
func (l *Lock) names(at string) bool {
	for _, n := range l.Nodes {
		if n.Origin == (Origin{Archive, at}) {
			return true
		}
	}
	for _, specs := range []map[string]string{l.Wanted, l.Overrides} {
		for _, spec := range specs {
			if strings.HasSuffix(spec, at) {
				return true
			}
		}
	}
	return false
}

// stageArchives puts into the transaction what makes the profile's archives those
// of a lock, and returns those that are written. One that is lost is made anew
// from the store where that is possible; if not, that keeps nobody from anything.
func (j *Job) stageArchives(ctx context.Context, lock *Lock) (written []string, changed bool, err error) {
	write, remove := j.archiveChanges(lock)
	for _, at := range sortedKeys(write) {
		err := j.stageArchive(ctx, at, write[at])
		if lost, ok := errors.AsType[*lostError](err); ok && j.archives[at] == "" {
			j.notes = append(j.notes, fmt.Sprintf("%s is lost or damaged, and cannot be made anew: %v", at, lost))
			continue
		}
		if err != nil {
			return nil, false, err
		}
		if exists(j.Files, at) && j.archives[at] == "" {
			j.notes = append(j.notes, at+" was not the archive that the profile keeps, and is made anew")
		}
		written = append(written, at)
	}
	if len(remove) > 0 && len(keptArchives(lock)) == 0 && j.onlyArchives(remove) {
		remove = []string{KeptDir}
	}
	for _, at := range remove {
		if err := j.Tx.Remove(at); err != nil {
			return nil, false, err
		}
	}
	return written, len(written)+len(remove) > 0, nil
}

// onlyArchives reports whether nothing but those files is in the folder of
// archives.
func (j *Job) onlyArchives(places []string) bool {
	entries, err := os.ReadDir(filepath.Join(j.Files, KeptDir))
	return err == nil && !slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		return !slices.Contains(places, KeptDir+"/"+e.Name())
	})
}

// lostError is why the store cannot give an archive that a profile keeps.
type lostError struct{ error }

func (e *lostError) Unwrap() error { return e.error }

// stageArchive puts one archive into the transaction, from the file that is to
// come or else from the store. It can be as large as packages may be, so it is
// never whole in memory.
func (j *Job) stageArchive(ctx context.Context, at string, want store.Integrity) error {
	if file := j.archives[at]; file != "" && CheckArchive(file, want) == nil {
		return j.Tx.WriteFrom(at, 0o644, func(w io.Writer) error {
			return hashedAs(w, want, func(w io.Writer) error {
				in, err := os.Open(file)
				if err != nil {
					return err
				}
				defer in.Close()
				_, err = io.Copy(w, in)
				return err
			})
		})
	}
	entry, ok := j.Store.Get(want)
	if !ok {
		return &lostError{fault.Errorf(fault.Package, "the store does not have what was in it")}
	}
	if err := Remake(ctx, io.Discard, entry, j.Store.Limits); err != nil {
		return cmp.Or(ctx.Err(), error(&lostError{err}))
	}
	return j.Tx.WriteFrom(at, 0o644, func(w io.Writer) error { return Remake(ctx, w, entry, j.Store.Limits) })
}

// hashedAs fails if what fill writes has another hash than want.
func hashedAs(w io.Writer, want store.Integrity, fill func(io.Writer) error) error {
	sum := sha512.New()
	if err := fill(io.MultiWriter(w, sum)); err != nil {
		return err
	}
	got, err := integrityOf(sum)
	if err == nil && got != want {
		err = &store.MismatchError{Want: want, Got: got}
	}
	return err
}

// Remake writes an archive that a profile keeps anew, from the content that the
// store has of it. What has another hash is no such archive, and a
// [*store.MismatchError].
func Remake(ctx context.Context, w io.Writer, entry store.Entry, limits unpack.Limits) error {
	return hashedAs(w, entry.Integrity, func(w io.Writer) error { return PackEntry(ctx, w, entry, limits) })
}

// PackEntry writes a content of the store as an archive such as registries have:
// the same bytes for the same content. Copies stand in the place of links, which
// registries' archives do not hold. What is more than the limits allow is refused.
func PackEntry(ctx context.Context, w io.Writer, entry store.Entry, limits unpack.Limits) error {
	left := cmp.Or(limits.Unpacked, unpack.Default.Unpacked)
	return unpack.WriteTarball(ctx, w, func(add func(unpack.Member, io.Reader) error) error {
		return entry.EachFile(ctx, func(m unpack.Member, content io.Reader) error {
			if left -= m.Size; left < 0 { // many links can lead to one file
				return &unpack.LimitError{Entry: m.Name, Beyond: "is too large with copies in the place of its links"}
			}
			return add(m, content)
		})
	})
}

// isNpmArchive reports whether pnpm can install the archive in a file as it is,
// and as it is asked for.
func isNpmArchive(spec Spec, format string) bool {
	return format == unpack.TarGzip && spec.Inside == "" && spec.Forced == "" && (spec.Kind != Archive || hasNpmArchiveName(spec.Place))
}

// isFlat reports whether a package is at the top of an archive. npm's archives have
// it in a folder, and whoever reads them drops the first part of every name.
func isFlat(ctx context.Context, in io.ReaderAt, size int64, limits unpack.Limits) bool {
	flat := false
	err := unpack.Walk(ctx, in, size, limits, func(m unpack.Member, _ io.Reader) error {
		at := path.Clean("/" + m.Name)
		flat = flat || m.Type == unpack.File && (at == "/package.json" || at == "/"+pluginFile)
		return nil
	})
	return flat && err == nil
}

// repack makes of the package in an archive of any format one as registries have
// them, and brings that into the store. In the archive the package is the folder
// inside.
func repack(ctx context.Context, packages *store.Store, file, inside string, want store.Integrity) (entry store.Entry, packed string, err error) {
	in, err := os.Open(file)
	if err != nil {
		return entry, "", err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return entry, "", err
	}
	limits := packages.Limits
	root, err := findRoot(ctx, in, info.Size(), limits, inside)
	if err != nil {
		return entry, "", err
	}
	dir, err := packages.TempDir()
	if err != nil {
		return entry, "", err
	}
	scratch := store.Open(filepath.Join(dir, "scratch"))
	scratch.Limits = limits
	defer func() { err = errors.Join(err, scratch.Close()) }()
	var rules unpack.Rules
	rules.Reset(unpack.Options{Limits: limits, Links: true, Inside: root})
	tree, err := scratch.AddTree(ctx, limits, func(add func(unpack.Member, io.Reader) error) error {
		err := unpack.Walk(ctx, in, info.Size(), limits, func(m unpack.Member, content io.Reader) error {
			name, _, err := rules.Admit(m)
			if err != nil || name == "" {
				return err
			}
			m.Name = name
			return add(m, content)
		})
		if err != nil {
			return err
		}
		return rules.Finish()
	})
	if err != nil {
		return entry, "", err
	}
	packed = filepath.Join(dir, "package.tgz")
	out, err := staging.OS.Create(packed, 0o644)
	if err != nil {
		return entry, "", err
	}
	err = PackEntry(ctx, out, tree, limits)
	if err = errors.Join(err, out.Close()); err != nil {
		return entry, "", err
	}
	made, err := os.Open(packed)
	if err != nil {
		return entry, "", err
	}
	defer made.Close()
	entry, err = packages.AddTarball(ctx, made, want)
	return entry, packed, err
}

// mostNamed is how many folders of an archive are named in an error.
const mostNamed = 20

// findRoot is the folder of an archive, as its members' names have it, in which
// the package is that is asked for as the folder inside, "" for its top. Most
// archives that people make have one folder at the top, with everything in it,
// which need not be named.
func findRoot(ctx context.Context, in io.ReaderAt, size int64, limits unpack.Limits, inside string) (string, error) {
	tops := map[string]bool{}
	folders := map[string]bool{} // that hold a package.json
	holds := map[string]bool{}   // first folders, "" or one of tops, below which there is something in the folder inside
	err := unpack.Walk(ctx, in, size, limits, func(m unpack.Member, _ io.Reader) error {
		if m.Type != unpack.File && m.Type != unpack.Link {
			return nil
		}
		name := strings.TrimPrefix(path.Clean("/"+m.Name), "/")
		top, rest, below := strings.Cut(name, "/")
		if below {
			tops[top] = true
		} else {
			tops[""] = true // a file at the top
		}
		if path.Base(name) == "package.json" && len(folders) < 1000 {
			folders[path.Dir(name)] = true
		}
		if inside != "" && strings.HasPrefix(name, inside+"/") {
			holds[""] = true
		}
		if inside != "" && strings.HasPrefix(rest, inside+"/") {
			holds[top] = true
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	only := ""
	if len(tops) == 1 {
		for only = range tops {
		}
	}
	switch {
	case inside == "" && folders["."]:
		return "", nil
	case inside == "":
		return only, nil
	case holds[""]:
		return inside, nil
	case only != "" && holds[only]:
		return only + "/" + inside, nil
	}
	var named []string
	for _, folder := range sortedKeys(folders) {
		if folder = strings.TrimPrefix(strings.TrimPrefix(folder, only), "/"); folder != "" && folder != "." && len(named) < mostNamed {
			named = append(named, folder)
		}
	}
	if len(named) == 0 {
		return "", fault.Errorf(fault.Package, "there is no folder %s in it, and no folder that is a package", inside)
	}
	return "", fault.Errorf(fault.Package, "there is no folder %s in it; packages in it are %s", inside, strings.Join(named, ", "))
}
