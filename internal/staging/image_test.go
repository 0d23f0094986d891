package staging

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// image is what of a home comes from the image of a container. On overlayfs its
// directories cannot be renamed, and each becomes another directory when it or
// something in it is changed first.
type image struct {
	mu      sync.Mutex
	dirs    map[string]*imageDir // by path, for they cannot be renamed
	refused int                  // the calls before the first refusal
}

type imageDir struct {
	identity string
	changed  bool
}

var images sync.Map // by home, for all processes that come there

func imageOf(home string) *image {
	if im, ok := images.Load(home); ok {
		return im.(*image)
	}
	return nil
}

// inImage is fsys as it is in a container, if the home comes from an image.
func inImage(fsys FS, home string) FS {
	if im := imageOf(home); im != nil {
		return imageFS{fsys, im, home}
	}
	return fsys
}

// baked is the scenario in a container whose image has all that it starts from.
func (sc scenario) baked() scenario {
	run, setup := sc.run, sc.setup
	sc.setup = func(t testing.TB, home string) {
		setup(t, home)
		im := &image{dirs: map[string]*imageDir{}}
		must(t, filepath.WalkDir(home, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				var is string
				is, err = OS.Identity(path)
				im.dirs[path] = &imageDir{identity: is}
			}
			return err
		}))
		images.Store(home, im)
	}
	sc.run = func(t testing.TB, fsys FS, home string) ([]string, error) {
		return run(t, inImage(fsys, home), home)
	}
	sc.name += bakedMark
	return sc
}

const bakedMark = ", in an image"

// skips says whether a call is not hurt: of a profile in an image every fifth is,
// for TestPowerLossInImage has them all, on a disk that costs less.
func (sc scenario) skips(call int) bool {
	return strings.HasSuffix(sc.name, bakedMark) && call%5 != len(sc.name)%5
}

// refuses says whether anything in the scenario is refused.
func (sc scenario) refuses(t *testing.T) bool {
	home := sc.fresh(t)
	_, err, _ := (&strike{after: 1 << 30}).try(t, sc, home)
	must(t, err)
	return imageOf(home).refused > 0
}

type imageFS struct {
	FS
	image *image
	home  string
}

// refuses says whether a path cannot be renamed.
func (f imageFS) refuses(path string) bool {
	f.image.mu.Lock()
	defer f.image.mu.Unlock()
	dir := f.image.dirs[path]
	if dir == nil {
		return false
	}
	if is, err := OS.Identity(path); err != nil || is != dir.identity {
		return false // another one has its place
	}
	if s, ok := f.FS.(struckFS); ok && f.image.refused == 0 {
		f.image.refused = s.s.calls
	}
	return true
}

// changed notes that a path is about to be changed, with all above it.
func (f imageFS) changed(path string) {
	f.image.mu.Lock()
	defer f.image.mu.Unlock()
	for ; path != f.home && path != filepath.Dir(path); path = filepath.Dir(path) {
		if dir := f.image.dirs[path]; dir != nil {
			dir.changed = true
		}
	}
}

func (f imageFS) Identity(path string) (string, error) {
	is, err := f.FS.Identity(path)
	f.image.mu.Lock()
	defer f.image.mu.Unlock()
	if dir := f.image.dirs[path]; dir != nil && dir.identity == is && !dir.changed {
		is += " of the image"
	}
	return is, err
}

func (f imageFS) Rename(oldpath, newpath string) error {
	if f.refuses(oldpath) {
		return &os.LinkError{Op: "rename", Old: oldpath, New: newpath, Err: syscall.EXDEV}
	}
	f.changed(oldpath)
	f.changed(newpath)
	return f.FS.Rename(oldpath, newpath)
}

func (f imageFS) RenameNew(oldpath, newpath string) error {
	if f.refuses(oldpath) {
		return &os.LinkError{Op: "rename", Old: oldpath, New: newpath, Err: syscall.EXDEV}
	}
	f.changed(oldpath)
	f.changed(newpath)
	return f.FS.RenameNew(oldpath, newpath)
}

func (f imageFS) Exchange(a, b string) error {
	if f.refuses(a) || f.refuses(b) {
		return errors.ErrUnsupported
	}
	f.changed(a)
	f.changed(b)
	return f.FS.Exchange(a, b)
}

func (f imageFS) Create(path string, perm fs.FileMode) (File, error) {
	f.changed(path)
	return f.FS.Create(path, perm)
}

func (f imageFS) Mkdir(path string, perm fs.FileMode) error {
	f.changed(path)
	return f.FS.Mkdir(path, perm)
}

func (f imageFS) Symlink(target, path string) error {
	f.changed(path)
	return f.FS.Symlink(target, path)
}

func (f imageFS) Link(oldpath, newpath string) error {
	f.changed(newpath)
	return f.FS.Link(oldpath, newpath)
}

func (f imageFS) Chmod(path string, perm fs.FileMode) error {
	f.changed(path)
	return f.FS.Chmod(path, perm)
}

func (f imageFS) Remove(path string) error {
	f.changed(path)
	return f.FS.Remove(path)
}

func (f imageFS) RemoveAll(path string) error {
	f.changed(path)
	return f.FS.RemoveAll(path)
}

// In a container whose image holds the profile, directories cannot be renamed. The
// process dies, or a call fails, at calls from the first refusal on.
func TestProfileInImage(t *testing.T) {
	refusals := 0
	for _, sc := range scenarios {
		sc := sc.baked()
		if !sc.refuses(t) {
			continue
		}
		refusals++
		t.Run("death/"+sc.name, func(t *testing.T) {
			t.Parallel()
			sc.dieAtEveryCall(t)
		})
		t.Run("failure/"+sc.name, func(t *testing.T) {
			t.Parallel()
			sc.failAtEveryCall(t)
		})
		if sc.whole {
			t.Run("death twice/"+sc.name, func(t *testing.T) {
				t.Parallel()
				sc.dieInRecovery(t)
			})
		}
	}
	if refusals < 10 {
		t.Errorf("only %d scenarios rename a directory", refusals)
	}
}

// IsMount is false: the disk is one filesystem.
func (*simDisk) IsMount(string) (bool, error) { return false, nil }
