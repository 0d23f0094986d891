package install

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"

	"golang.org/x/sync/errgroup"

	"dsh/internal/install/store"
	"dsh/internal/staging"
)

// builder lays out what a tree holds. Packages may come in any order, and side
// by side: of what one brings along in its archive it leaves out what the tree
// has a package of its own for.
type builder struct {
	tree   *tree
	dir    string // everything is made below it
	mode   store.Mode
	places map[string]string // where the item at a path of the tree is made; nil is below dir
	// nested is the paths below other packages at which the tree has something,
	// and nests those packages.
	nested, nests map[string]bool
}

func newBuilder(t *tree, dir string, mode store.Mode) *builder {
	b := &builder{tree: t, dir: dir, mode: mode, nested: map[string]bool{}, nests: map[string]bool{}}
	for at := range t.lock.Nodes {
		if up := parentPlace(at); up != "" && !t.isSkipped(at) {
			b.nested[at], b.nests[up] = true, true
		}
	}
	return b
}

func (b *builder) place(at string) string {
	if b.places != nil {
		return b.places[at]
	}
	return filepath.Join(b.dir, filepath.FromSlash(at))
}

// makeParents makes the directories above the places of paths, each once.
func (b *builder) makeParents(paths []string) error {
	above := map[string]bool{}
	for _, at := range paths {
		for dir := filepath.Dir(b.place(at)); !above[dir] && len(dir) >= len(b.dir); dir = filepath.Dir(dir) {
			above[dir] = true
		}
	}
	for _, dir := range sortedKeys(above) { // a parent before its child
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// lay lays out a content at all its places.
func (b *builder) lay(n *piece, entry store.Entry) error {
	for _, at := range n.places {
		if err := b.layPackage(at, entry); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) layPackage(at string, entry store.Entry) error {
	var skip func(dir string) bool
	if b.nests[at] {
		skip = func(dir string) bool { return b.nested[at+"/"+dir] }
	}
	mode := b.mode
	if b.tree.isBuilt(at) {
		mode = store.Copy // what scripts made may change itself when it runs
	}
	if err := entry.Link(b.place(at), mode, skip); err != nil {
		return fmt.Errorf("lay out %s: %w", at, err)
	}
	return nil
}

// finish makes the links and the folders of programs among the items at paths,
// once all packages are there.
func (b *builder) finish(ctx context.Context, items map[string]item, paths []string) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, at := range paths {
		if i := items[at]; i.link != "" || i.programs != nil {
			group.Go(func() error { return errors.Join(ctx.Err(), b.finishOne(at, i)) })
		}
	}
	return group.Wait()
}

func (b *builder) finishOne(at string, i item) error {
	dst := b.place(at)
	if parentPlace(at) != "" {
		// The archive of the package above may have brought something there.
		if err := staging.RemoveAll(dst); err != nil {
			return err
		}
	}
	var err error
	if i.link != "" {
		err = staging.OS.Symlink(i.link, dst)
	} else {
		err = buildPrograms(dst, i.programs)
	}
	if err != nil {
		return fmt.Errorf("lay out %s: %w", at, err)
	}
	return nil
}

// buildPrograms makes a .bin folder. A program whose file its package does not
// have is left out.
func buildPrograms(dst string, programs map[string]program) error {
	if err := os.Mkdir(dst, 0o755); err != nil {
		return err
	}
	for name, p := range programs {
		if !p.exists() {
			continue
		}
		if err := p.build(filepath.Join(dst, name)); err != nil {
			return err
		}
	}
	return nil
}

// buildChanged builds every changed item, at a place of its own. One that
// stands below another changed one is built inside it, since the outer
// directory is replaced whole.
func (b *builder) buildChanged(ctx context.Context, want map[string]item, changed map[string]bool) error {
	b.places = map[string]string{}
	for _, at := range sortedKeys(want) {
		top := outermost(changed, at)
		if top == "" {
			continue
		}
		if _, ok := b.places[top]; !ok {
			b.places[top] = filepath.Join(b.dir, strconv.Itoa(len(b.places)))
		}
		if at != top {
			b.places[at] = filepath.Join(b.places[top], filepath.FromSlash(at[len(top):]))
		}
	}
	paths := sortedKeys(b.places)
	if err := b.makeParents(paths); err != nil {
		return err
	}
	group, laying := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, at := range paths {
		if id := want[at].content; !id.IsZero() {
			group.Go(func() error { return errors.Join(laying.Err(), b.layPackage(at, b.tree.entries[id])) })
		}
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return b.finish(ctx, want, paths)
}
