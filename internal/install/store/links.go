package store

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"dsh/internal/install/unpack"
	"dsh/internal/staging"
)

// maxCopies bounds the copies in the place of links: each of many can lead to a
// folder of many files.
var maxCopies = unpack.Default

// layLinks makes the links of a sorted list in a directory, but for what is left
// out. Where the system does not let links be made, a link is a copy of what it
// leads to.
func layLinks(files []File, from, to *staging.Dir, leavesOut func(name string) bool) error {
	copies := copier{files: files}
	for _, f := range files {
		if f.Link == "" || leavesOut(f.Path) {
			continue
		}
		err := to.Symlink(f.Link, f.Path)
		if errors.Is(err, errors.ErrUnsupported) {
			err = copies.lay(f, from, to)
		}
		if err != nil {
			return fmt.Errorf("make the link %s: %w", f.Path, err)
		}
	}
	return nil
}

// placed is a file under a name that need not be its own.
type placed struct {
	name string
	of   File
}

// withCopies are the files of a sorted list, sorted, with copies in the place of
// links.
func withCopies(files []File) ([]placed, error) {
	copies := copier{files: files}
	var all []placed
	for _, f := range files {
		if f.Link == "" {
			all = append(all, placed{f.Path, f})
			continue
		}
		list, err := copies.of(f)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	slices.SortFunc(all, func(a, b placed) int { return strings.Compare(a.name, b.name) })
	return all, nil
}

// copier finds what stands for links, and counts it.
type copier struct {
	files []File // sorted
	count int
	bytes int64
}

// of is what stands for a link: the file that it leads to, or the files below the
// directory. The links below that are left out; they might lead around.
func (c *copier) of(link File) ([]placed, error) {
	dir, _, _ := cutLast(link.Path)
	end := path.Join(dir, link.Link)
	var list []placed
	at := func(name string) int {
		i, _ := slices.BinarySearchFunc(c.files, name, func(f File, name string) int { return strings.Compare(f.Path, name) })
		return i
	}
	if i := at(end); i < len(c.files) && c.files[i].Path == end {
		list = append(list, placed{link.Path, c.files[i]})
	}
	const afterSlash = "0" // in the order of bytes
	for _, f := range c.files[at(end+"/"):at(end+afterSlash)] {
		list = append(list, placed{link.Path + f.Path[len(end):], f})
	}
	list = slices.DeleteFunc(list, func(p placed) bool { return p.of.Link != "" })
	for _, p := range list {
		c.count++
		c.bytes += p.of.Size
	}
	if c.count > maxCopies.Entries || c.bytes > maxCopies.Unpacked {
		return nil, &unpack.LimitError{Entry: link.Path, Beyond: "is too large with copies in the place of its links"}
	}
	return list, nil
}

// lay makes the copies that stand for a link.
func (c *copier) lay(link File, from, to *staging.Dir) error {
	list, err := c.of(link)
	if err != nil {
		return err
	}
	made := map[string]bool{}
	for _, p := range list {
		if err := makeDirs(to, p.name, made); err != nil {
			return err
		}
		if err := from.CopyTo(p.of.Path, to, p.name, fileMode(p.of.Executable)); err != nil {
			return err
		}
	}
	return nil
}

// makeDirs makes the directories that a file is in.
func makeDirs(in *staging.Dir, name string, made map[string]bool) error {
	dir, _, ok := cutLast(name)
	if !ok || made[dir] {
		return nil
	}
	if err := makeDirs(in, dir, made); err != nil {
		return err
	}
	made[dir] = true
	return in.Mkdir(dir)
}
