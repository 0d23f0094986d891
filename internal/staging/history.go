package staging

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"

	"dsh/internal/fault"
)

// History is the saved generations of one profile, or of the home's own layer.
// It is a directory of
//
//	<id>.tar.gz  a generation: generation.json, its files below files/, and
//	             below outside/ what links led to
//	<id>.pin     empty: the generation is kept until this file goes
//	lock         held while generations are removed, pinned, or added by Save
type History struct {
	disk disk
	dir  string
}

// OpenHistory is the history in a directory, which need not exist.
func OpenHistory(dir string) History { return History{disk{OS}, dir} }

// History is the generations of the profile. They outlive its directory.
func (p Place) History() History { return historyOf(disk{OS}, p.State) }

func historyOf(d disk, state string) History {
	return History{d, filepath.Join(state, "generations")}
}

const (
	generationExt = ".tar.gz"
	pinExt        = ".pin"
)

func (h History) path(id int) string { return filepath.Join(h.dir, strconv.Itoa(id)+generationExt) }
func (h History) pin(id int) string  { return filepath.Join(h.dir, strconv.Itoa(id)+pinExt) }

// File is the archive of a generation. "tar -xzf" unpacks it.
func (h History) File(id int) string { return h.path(id) }

// NoGenerationError is a generation that is not in the history.
type NoGenerationError struct {
	Dir string // of the history
	ID  int
}

func (e *NoGenerationError) Error() string {
	return fmt.Sprintf("there is no generation %d in %s", e.ID, e.Dir)
}

// List is all generations, the newest first, with their files. Damaged ones are
// left out, and named in an error that comes beside the rest.
func (h History) List() ([]Generation, error) { return h.list(h.Load) }

// Heads is List without the files, which is much less to read. Damage to files
// does not show.
func (h History) Heads() ([]Generation, error) { return h.list(h.loadHead) }

// Newest is the first of Heads, or nil where there is none.
func (h History) Newest() (*Generation, error) {
	ids, err := h.ids()
	if err != nil {
		return nil, err
	}
	var damaged []error
	for _, id := range slices.Backward(ids) {
		g, err := h.loadHead(id)
		if err == nil {
			return g, errors.Join(damaged...)
		}
		damaged = append(damaged, err)
	}
	return nil, errors.Join(damaged...)
}

func (h History) list(load func(id int) (*Generation, error)) ([]Generation, error) {
	ids, err := h.ids()
	if err != nil {
		return nil, err
	}
	var list []Generation
	var damaged []error
	for _, id := range slices.Backward(ids) {
		g, err := load(id)
		if err != nil {
			damaged = append(damaged, err)
			continue
		}
		list = append(list, *g)
	}
	return list, errors.Join(damaged...)
}

// Load is one generation, or a [*NoGenerationError].
func (h History) Load(id int) (*Generation, error) {
	data, err := h.disk.readFile(h.path(id))
	if err != nil {
		return nil, h.unread(id, err)
	}
	g, err := decodeGeneration(data)
	return h.loaded(id, g, err)
}

// loadHead is Load without the files.
func (h History) loadHead(id int) (*Generation, error) {
	f, err := h.disk.Open(h.path(id))
	if err != nil {
		return nil, h.unread(id, err)
	}
	head, err := headOf(f)
	return h.loaded(id, head.generation(), errors.Join(err, f.Close()))
}

func (h History) unread(id int, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return &NoGenerationError{h.dir, id}
	}
	return fmt.Errorf("reading generation %d: %w", id, err)
}

// loaded is a generation, or the error of what was read, with what its file does
// not say.
func (h History) loaded(id int, g *Generation, err error) (*Generation, error) {
	if newer, ok := errors.AsType[*formatError](err); ok {
		return nil, fault.Errorf(fault.Environment, "reading generation %d: %s was saved by another dsh: %w", id, h.path(id), newer)
	}
	if err != nil {
		return nil, fault.Errorf(fault.Environment, "reading generation %d: %s is damaged: %w", id, h.path(id), err)
	}
	g.ID = id // by the name of the file: a profile that is renamed may number its generations anew
	if g.Pinned, err = h.disk.exists(h.pin(id)); err != nil {
		return nil, fmt.Errorf("reading generation %d: %w", id, err)
	}
	return g, nil
}

// Pin keeps a generation for ever, or lets it age again. It waits for others
// that change the history until ctx ends.
func (h History) Pin(ctx context.Context, id int, pinned bool) error {
	fail := func(err error) error { return fmt.Errorf("pinning generation %d: %w", id, err) }
	if there, err := h.disk.exists(h.path(id)); err != nil {
		return fail(err)
	} else if !there {
		return &NoGenerationError{h.dir, id}
	}
	lock, err := h.disk.acquire(ctx, filepath.Join(h.dir, "lock"), "", nil)
	if err != nil {
		return fail(err)
	}
	err = h.setPin(id, pinned)
	return errors.Join(err, lock.Release())
}

func (h History) setPin(id int, pinned bool) error {
	if !pinned {
		err := h.disk.Remove(h.pin(id))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("unpinning generation %d: %w", id, err)
		}
		return nil
	}
	if there, err := h.disk.exists(h.path(id)); err == nil && !there {
		return &NoGenerationError{h.dir, id} // it aged out while we waited
	}
	if _, err := h.disk.createFile(h.pin(id), nil, 0o600); err != nil {
		return fmt.Errorf("pinning generation %d: %w", id, err)
	}
	return nil
}

// Save adds a generation unless it would equal the newest, whose id it gives
// then. Command is what made the state, or "". Generations that are too old are
// removed. For a profile this is done by its transactions.
func (h History) Save(ctx context.Context, files []SavedFile, command string, now time.Time) (id int, saved bool, err error) {
	// The lock of the history is held for some renames only.
	lock, err := h.disk.acquire(ctx, filepath.Join(h.dir, "lock"), command, nil)
	if err != nil {
		return 0, false, fmt.Errorf("saving a generation: %w", err)
	}
	id, saved, err = h.save(files, command, now)
	if err = errors.Join(err, lock.Release()); err != nil {
		return id, saved, fmt.Errorf("saving a generation: %w", err)
	}
	return id, saved, nil
}

func (h History) save(files []SavedFile, command string, now time.Time) (id int, saved bool, err error) {
	ids, err := h.ids()
	if err != nil {
		return 0, false, err
	}
	newest, err := h.newest(ids)
	if err == nil && newest != nil && Same(newest, &Generation{Files: files}) {
		return newest.ID, false, nil
	}
	// A newest generation that is damaged is no reason to keep none.
	id = 1
	if len(ids) > 0 {
		id = ids[len(ids)-1] + 1
	}
	data, err := encodeGeneration(&Generation{ID: id, Saved: now, Command: command, Files: files})
	if err != nil {
		return 0, false, err
	}
	h.sweep()
	created, err := h.disk.createFile(h.path(id), data, 0o600)
	if err != nil || !created {
		return 0, false, errors.Join(err, fmt.Errorf("generation %d was saved by somebody else", id))
	}
	_ = h.age(append(ids, id), now) // what could not be removed is by the next Save
	return id, true, nil
}

// sweep removes what a process that died in Save left. What cannot be removed
// does no harm.
func (h History) sweep() {
	entries, err := h.disk.readDirIfAny(h.dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if isTemp(e.Name()) {
			_ = h.disk.Remove(filepath.Join(h.dir, e.Name()))
		}
	}
}

// ids are the generations that are there, the oldest first.
func (h History) ids() ([]int, error) {
	ids, err := h.numbered(generationExt)
	if err != nil {
		return nil, fmt.Errorf("reading the history: %w", err)
	}
	return ids, nil
}

func (h History) numbered(ext string) ([]int, error) {
	entries, err := h.disk.readDirIfAny(h.dir)
	if err != nil {
		return nil, err
	}
	var ids []int
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ext)
		if id, err := strconv.Atoi(name); ok && err == nil && id > 0 && strconv.Itoa(id) == name {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids, nil
}

// newest is the last of the ids, or nil where there is none.
func (h History) newest(ids []int) (*Generation, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	last := ids[len(ids)-1]
	g, err := h.Load(last)
	if err != nil {
		g, err = h.Load(last) // once more, in case it passed
	}
	return g, err
}

// How long generations are kept: the newest always, others up to a number and
// an age, and pinned ones for ever.
const (
	keepAlways = 10
	keepNumber = 100
	keepAge    = 90 * 24 * time.Hour
)

// age removes the generations, of all ids, that are too old or too many. It is
// for whoever has the history's lock. How old they are is told by the generation
// before those of now: one command with a wrong clock makes nothing old.
func (h History) age(ids []int, now time.Time) (failed []error) {
	if len(ids) <= keepAlways {
		return nil
	}
	pins, err := h.numbered(pinExt)
	if err != nil {
		return []error{fmt.Errorf("removing old generations: %w", err)}
	}
	limit := h.before(ids, now).Add(-keepAge)
	for i, id := range ids[:len(ids)-keepAlways] {
		if slices.Contains(pins, id) {
			continue
		}
		if len(ids)-i <= keepNumber && !h.olderThan(id, limit) {
			continue
		}
		if err := h.disk.Remove(h.path(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = append(failed, fmt.Errorf("removing generation %d, which is too old: %w", id, err))
		}
	}
	return failed
}

// before is now, or when the newest generation was saved that was not saved with
// the very newest, if that is earlier. A command saves two at once, at most.
func (h History) before(ids []int, now time.Time) time.Time {
	var newest time.Time
	for i, id := range slices.Backward(ids) {
		head, err := h.loadHead(id)
		switch {
		case err != nil:
		case i == len(ids)-1:
			newest = head.Saved
		case head.Saved.Equal(newest):
		case head.Saved.Before(now):
			return head.Saved
		default:
			return now
		}
	}
	return now
}

// olderThan asks a generation for its time. One that cannot say it stays until
// it is one too many.
func (h History) olderThan(id int, limit time.Time) bool {
	g, err := h.loadHead(id)
	return err == nil && g.Saved.Before(limit)
}

// retire removes old generations after a commit. Somebody who pins one at this
// moment has it done by the next.
func (h History) retire(now time.Time) []string {
	warn := func(err error) []string { return []string{fmt.Sprintf("removing old generations: %v", err)} }
	ids, err := h.ids()
	if err != nil {
		return warn(err)
	}
	if len(ids) <= keepAlways {
		return nil
	}
	lock, err := h.disk.tryAcquire(filepath.Join(h.dir, "lock"), "")
	if _, held := errors.AsType[*HeldError](err); held {
		return nil
	}
	if err != nil {
		return warn(err)
	}
	failed := append(h.age(ids, now), lock.Release())
	if err := errors.Join(failed...); err != nil {
		return warn(err)
	}
	return nil
}

// The members of a generation's archive.
const (
	headName    = "generation.json"
	filesName   = "files/"
	outsideName = "outside/"
	headFormat  = 1
)

// How large an archive can be, unpacked, and the head in it. Headers of long
// names come on top of what [room] counts, which is less than twice as much.
const (
	largestArchive = 4 * largestSum
	largestHead    = largestArchive / 4
)

// generationHead is generation.json.
type generationHead struct {
	Format   int       `json:"format"`
	ID       int       `json:"id"`
	Saved    time.Time `json:"saved"`
	Command  string    `json:"command,omitempty"`
	TooLarge []Skipped `json:"tooLarge,omitempty"`
}

// encodeGeneration is the archive of a generation. One that could not be read
// again is an error.
func encodeGeneration(g *Generation) ([]byte, error) {
	head, err := json.MarshalIndent(generationHead{headFormat, g.ID, g.Saved.UTC(), g.Command, g.TooLarge}, "", "\t")
	if err != nil {
		return nil, err
	}
	if len(head) > largestHead {
		return nil, fault.Errorf(fault.Environment, "there are too many files that no generation keeps, %d, to name them all", len(g.TooLarge))
	}
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	unpacked := &counter{Writer: z}
	if err := errors.Join(writeMembers(unpacked, g, head), z.Close()); err != nil {
		return nil, err
	}
	if unpacked.n > largestArchive {
		return nil, fault.Errorf(fault.Environment, "the small files are %d bytes, and no generation holds more than %d", unpacked.n, largestArchive)
	}
	return packed.Bytes(), nil
}

// counter counts what is written.
type counter struct {
	io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.Writer.Write(p)
	c.n += int64(n)
	return n, err
}

func writeMembers(to io.Writer, g *Generation, head []byte) error {
	w := tar.NewWriter(to)
	add := func(h tar.Header, data []byte) error {
		h.Format, h.ModTime, h.Size = tar.FormatPAX, g.Saved.UTC().Truncate(time.Second), int64(len(data))
		if err := w.WriteHeader(&h); err != nil {
			return err
		}
		_, err := w.Write(data)
		return err
	}
	err := add(tar.Header{Typeflag: tar.TypeReg, Name: headName, Mode: 0o600}, head)
	for _, part := range []struct {
		below string
		files []SavedFile
	}{{filesName, g.Files}, {outsideName, g.Outside}, {filesName, g.Dirs}} {
		for _, f := range part.files {
			if err != nil {
				return err
			}
			switch {
			case f.Mode.IsDir():
				name := strings.TrimSuffix(part.below+f.Path, ".") // "." is the profile itself
				err = add(tar.Header{Typeflag: tar.TypeDir, Name: strings.TrimSuffix(name, "/") + "/", Mode: int64(f.Mode.Perm())}, nil)
			case f.Mode&fs.ModeSymlink != 0:
				err = add(tar.Header{Typeflag: tar.TypeSymlink, Name: part.below + f.Path, Linkname: string(f.Data), Mode: 0o777}, nil)
			default:
				err = add(tar.Header{Typeflag: tar.TypeReg, Name: part.below + f.Path, Mode: int64(f.Mode.Perm())}, f.Data)
			}
		}
	}
	return errors.Join(err, w.Close())
}

func decodeGeneration(data []byte) (*Generation, error) {
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	content := &io.LimitedReader{R: z, N: largestArchive + 1}
	r := tar.NewReader(content)
	head, err := readHead(r)
	if err != nil {
		return nil, err
	}
	g := head.generation()
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) && content.N > 0 {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("after %d files: %w", len(g.Files), err)
		}
		if err := g.readMember(h, r); err != nil {
			return nil, err
		}
	}
	// The checksum is at the very end.
	if _, err := io.Copy(io.Discard, content); err != nil {
		return nil, err
	}
	if content.N == 0 {
		return nil, errors.New("it is too large")
	}
	return g, g.check()
}

// check refuses files that are not in order, and what is outside without a link
// that leads there.
func (g *Generation) check() error {
	for _, files := range [][]SavedFile{g.Files, g.Outside, g.Dirs} {
		for i := 1; i < len(files); i++ {
			if files[i-1].Path >= files[i].Path {
				return errors.New("its files are not in order")
			}
		}
	}
	for _, f := range g.Outside {
		if link, ok := find(g.Files, f.Path); !ok || link.Mode&fs.ModeSymlink == 0 {
			return fmt.Errorf("it has %s%s, and no link %s%[2]s", outsideName, f.Path, filesName)
		}
	}
	return nil
}

// formatError is a generation whose format this program does not know.
type formatError struct{ format int }

func (e *formatError) Error() string {
	return fmt.Sprintf("its format is %d, and this one knows %d", e.format, headFormat)
}

// headOf is the head of an archive.
func headOf(archive io.Reader) (generationHead, error) {
	z, err := gzip.NewReader(archive)
	if err != nil {
		return generationHead{}, err
	}
	return readHead(tar.NewReader(z))
}

func (h generationHead) generation() *Generation {
	return &Generation{ID: h.ID, Saved: h.Saved, Command: h.Command, TooLarge: h.TooLarge}
}

func readHead(r *tar.Reader) (generationHead, error) {
	var head generationHead
	h, err := r.Next()
	if err != nil {
		return head, err
	}
	if h.Name != headName || h.Typeflag != tar.TypeReg {
		return head, fmt.Errorf("it begins with %s, not with %s", h.Name, headName)
	}
	data, err := io.ReadAll(io.LimitReader(r, largestHead))
	if err != nil {
		return head, err
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return head, fmt.Errorf("%s: %w", headName, err)
	}
	if head.Format != headFormat {
		return head, &formatError{head.Format}
	}
	return head, nil
}

// readMember adds a member of the archive to the generation.
func (g *Generation) readMember(h *tar.Header, r io.Reader) error {
	if h.Typeflag == tar.TypeDir {
		return g.readDir(h)
	}
	files := &g.Files
	name, ok := strings.CutPrefix(h.Name, filesName)
	if !ok {
		files = &g.Outside
		name, ok = strings.CutPrefix(h.Name, outsideName)
	}
	if !ok || !isSaved(name) {
		return fmt.Errorf("it has a file with the name %q", h.Name)
	}
	switch {
	case h.Typeflag == tar.TypeSymlink && files == &g.Files:
		*files = append(*files, SavedFile{name, fs.ModeSymlink, []byte(h.Linkname)})
	case h.Typeflag == tar.TypeReg:
		data, err := io.ReadAll(r)
		if err != nil {
			return fmt.Errorf("%s: %w", h.Name, err)
		}
		*files = append(*files, SavedFile{name, fs.FileMode(h.Mode).Perm(), data})
	default:
		return fmt.Errorf("%s is neither a file nor a link", h.Name)
	}
	return nil
}

// isSaved says whether a name is that of a file that a profile may have.
func isSaved(name string) bool {
	return fs.ValidPath(name) && name != "." && path.Clean(name) == name && filepath.IsLocal(filepath.FromSlash(name))
}

// readDir adds a directory with its permissions.
func (g *Generation) readDir(h *tar.Header) error {
	name, ok := strings.CutPrefix(h.Name, filesName)
	if name = strings.TrimSuffix(name, "/"); name == "" {
		name = "."
	}
	if !ok || name != "." && !isSaved(name) {
		return fmt.Errorf("it has a directory with the name %q", h.Name)
	}
	g.Dirs = append(g.Dirs, SavedFile{Path: name, Mode: fs.ModeDir | fs.FileMode(h.Mode).Perm()})
	return nil
}
