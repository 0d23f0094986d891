package unpack

import (
	"fmt"
	"path"
	"runtime"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"dsh/internal/portable"
)

// Type is what a member is.
type Type uint8

// Types of members. Only files, directories and, where they are allowed, links
// are let in.
const (
	File     Type = iota
	Dir           // appears with the files in it; an empty one does not
	Link          // symbolic
	HardLink      // a second name of a file
	Sparse        // a file that is mostly holes
	Other         // a device, a pipe, or something that nobody knows
	Meta          // says something about the archive and is nothing itself
)

// Member is one entry of an archive, a tree or a folder.
type Member struct {
	Name       string // as the archive has it
	Link       string // of a link, where it leads
	Type       Type
	Executable bool  // the only permission that counts
	Size       int64 // of a file
}

// Options say which part of an archive is the package.
type Options struct {
	Limits Limits
	Links  bool   // symbolic links that stay inside are let in
	Strip  bool   // the first element of every name goes, whatever it is called
	Inside string // the folder, after that, that is the package: clean, slash-separated; "" is all
}

// Rules decide what of an archive is let in, and where it goes. They are the one
// place that does: for archives in memory and in files, copied folders, trees
// of commits and results of builds.
//
// No path that they give leads out of the root, names what is there already, or
// leads through a link. So who writes what they admit into an empty directory,
// links last, writes nothing outside.
type Rules struct {
	opts   Options
	names  names
	size   int64
	seen   map[string]place // by folded path
	isDir  map[string]bool  // every directory by its path, folded or not
	dirs   []string         // of the package, that hold a file
	links  []link           // whose targets are looked at in the end
	folder string           // Inside with a slash, "" for all
}

// place is what stands at a path.
type place struct {
	path string // before folding
	kind Type   // File, Dir or Link
}

type link struct{ raw, path, target string }

// Reset prepares the rules for a new archive.
func (r *Rules) Reset(opts Options) {
	opts.Limits = opts.Limits.fill()
	if r.seen == nil {
		r.seen, r.isDir = map[string]place{}, map[string]bool{}
	}
	clear(r.seen)
	clear(r.isDir)
	clear(r.dirs)
	clear(r.links)
	*r = Rules{opts: opts, names: names{limits: opts.Limits}, seen: r.seen, isDir: r.isDir, dirs: r.dirs[:0], links: r.links[:0]}
	if opts.Inside != "" {
		r.folder = opts.Inside + "/"
	}
}

// Admit says where a member goes, slash-separated and relative to the package,
// and whether the same was there before: whoever admits a file again compares
// its content, and refuses it with [ErrTwice]. The path is "" for what is not
// laid out itself: directories, and what is outside of the package.
//
// Errors are an [*UnsafeEntryError] or a [*LimitError] that names the member.
func (r *Rules) Admit(m Member) (name string, again bool, err error) {
	switch m.Type {
	case File, Dir:
	case Meta:
		return "", false, nil
	case Link:
		if !r.opts.Links {
			return "", false, &UnsafeEntryError{m.Name, fmt.Sprintf("is a link to %q; packages hold files only", m.Link)}
		}
	case HardLink:
		return "", false, &UnsafeEntryError{m.Name, fmt.Sprintf("is a link to %q, and a hard one; packages hold files only", m.Link)}
	case Sparse:
		return "", false, &UnsafeEntryError{m.Name, "is a sparse file"}
	default:
		return "", false, &UnsafeEntryError{m.Name, "is neither a file nor a directory"}
	}
	full, err := r.path(m.Name)
	if err != nil || full == "" {
		return "", false, err
	}
	if m.Type == Dir {
		return "", false, r.directory(m.Name, full)
	}
	inside := r.isInside(full)
	// The header tells the size beforehand, so that nothing of a huge file is
	// written; what is read is bounded again.
	if m.Type == File && inside {
		if m.Size < 0 {
			return "", false, &UnsafeEntryError{m.Name, "has a size below zero"}
		}
		if m.Size > r.opts.Limits.Unpacked-r.size {
			return "", false, &LimitError{m.Name, beyondUnpacked(r.opts.Limits)}
		}
		r.size += m.Size
	}
	folded := fold(full)
	if earlier, ok := r.seen[folded]; ok {
		again, err = r.met(m, full, earlier)
		if err != nil || !inside {
			return "", false, err
		}
		return full[len(r.folder):], again, nil
	}
	if err := r.names.add(m.Name, len(full)); err != nil {
		return "", false, err
	}
	if err := r.parents(m.Name, full); err != nil {
		return "", false, err
	}
	r.seen[folded] = place{full, m.Type}
	if !inside {
		return "", false, nil
	}
	name = full[len(r.folder):]
	if m.Type == Link {
		if err := r.leads(m, name); err != nil {
			return "", false, err
		}
	}
	return name, false, nil
}

// ErrTwice refuses a file that is repeated with another content.
func ErrTwice(m Member) error {
	return &UnsafeEntryError{m.Name, "stands in the archive twice with different contents"}
}

// Dirs are the directories of the package that hold something, in no order.
func (r *Rules) Dirs() []string { return r.dirs }

func (r *Rules) isInside(full string) bool { return strings.HasPrefix(full, r.folder) }

// met is what is to be said of a second thing at a path.
func (r *Rules) met(m Member, full string, earlier place) (again bool, err error) {
	switch {
	case earlier.path != full && earlier.kind != Dir:
		how := "differs from %q only in how its letters are encoded"
		if isASCII(full) && isASCII(earlier.path) {
			how = "differs from %q only in case"
		}
		return false, &UnsafeEntryError{m.Name, fmt.Sprintf(how, earlier.path)}
	case earlier.kind == Dir && m.Type == Link:
		return false, &UnsafeEntryError{m.Name, fmt.Sprintf("is a link in the place of the directory %q", earlier.path)}
	case earlier.kind == Dir:
		return false, &UnsafeEntryError{m.Name, "is a file and a directory"}
	case earlier.kind != m.Type || m.Type == Link && slices.ContainsFunc(r.links, func(l link) bool { return r.folder+l.path == full && l.target != m.Link }):
		return false, &UnsafeEntryError{m.Name, "stands in the archive twice, and is another thing the second time"}
	}
	return true, nil
}

// directory notes a directory that the archive has as a member.
func (r *Rules) directory(raw, full string) error {
	if r.isDir[full] {
		return nil
	}
	folded := fold(full)
	if earlier, ok := r.seen[folded]; ok && earlier.kind != Dir {
		return r.inTheWay(raw, earlier, "stands in the place of")
	}
	if err := r.parents(raw, full); err != nil {
		return err
	}
	if _, ok := r.seen[folded]; !ok {
		if err := r.names.add(raw, len(full)); err != nil {
			return err
		}
		// It is noted here only, so that it is made when something is in it.
		r.seen[folded] = place{path: full, kind: Dir}
	}
	return nil
}

// parents notes the directories that something is in. A name is that of a file
// or of a directory. Two directories whose names differ only in case are one, or
// two, as the system has it; what is in them has different names.
func (r *Rules) parents(raw, full string) error {
	for dir, ok := above(full); ok && !r.isDir[dir]; dir, ok = above(dir) {
		folded := fold(dir)
		if earlier, ok := r.seen[folded]; ok && earlier.kind != Dir {
			return r.inTheWay(raw, earlier, "is below")
		}
		if err := r.names.add(raw, len(dir)); err != nil {
			return err
		}
		r.isDir[dir] = true
		r.seen[folded] = place{path: dir, kind: Dir}
		if len(dir) > len(r.folder) && r.isInside(dir) {
			r.dirs = append(r.dirs, dir[len(r.folder):])
		}
	}
	return nil
}

func (r *Rules) inTheWay(raw string, earlier place, how string) error {
	kind := "a file"
	if earlier.kind == Link {
		kind = "a link"
	}
	return &UnsafeEntryError{raw, fmt.Sprintf("%s %q, which is %s", how, earlier.path, kind)}
}

// leads checks where a link leads by its text, and notes it. Whether another
// link is on the way is known in the end.
func (r *Rules) leads(m Member, name string) error {
	if len(m.Link) > r.opts.Limits.Path {
		return &UnsafeEntryError{m.Name, "is a link whose target is too long"}
	}
	if reason := r.unfit(m.Link); reason != "" {
		return &UnsafeEntryError{m.Name, fmt.Sprintf("is a link to %q, which %s", m.Link, reason)}
	}
	r.names.bytes += len(m.Link)
	end := ""
	inside := walkLink(name, m.Link, func(on string) bool { end = on; return true })
	switch {
	case climbsAgain(m.Link):
		// The folder that it goes down into may become a link when the package is
		// laid out, as one in node_modules does.
		return &UnsafeEntryError{m.Name, fmt.Sprintf("is a link to %q, which goes down and up again", m.Link)}
	case !inside:
		return &UnsafeEntryError{m.Name, fmt.Sprintf("is a link to %q, which leaves the package's folder", m.Link)}
	case end == "" || strings.HasPrefix(fold(name)+"/", fold(end)+"/"):
		return &UnsafeEntryError{m.Name, fmt.Sprintf("is a link to %q, a folder that it is in", m.Link)}
	}
	r.links = append(r.links, link{m.Name, name, m.Link})
	return nil
}

// climbsAgain reports whether a path goes up behind a folder that it names.
func climbsAgain(target string) bool {
	down := false
	for part := range strings.SplitSeq(target, "/") {
		if part == ".." && down {
			return true
		}
		down = down || part != ".." && part != "." && part != ""
	}
	return false
}

// Finish checks what can only be known when all members are: no link leads to
// another one, or through one. It is to be called before a link is made.
func (r *Rules) Finish() error {
	for _, l := range r.links {
		var over place
		walkLink(l.path, l.target, func(on string) bool {
			p, ok := r.seen[fold(r.folder+on)]
			if ok && p.kind == Link {
				over = p
			}
			return over.path == ""
		})
		if over.path != "" {
			return &UnsafeEntryError{l.raw, fmt.Sprintf("is a link to %q, which leads over the link %q", l.target, over.path)}
		}
	}
	return nil
}

// walkLink calls f with every path that a link's target names on its way, "" for
// the root, as long as f wants more, and reports whether none of them is outside.
func walkLink(from, target string, f func(on string) bool) (inside bool) {
	at, _ := above(from)
	for part := range strings.SplitSeq(target, "/") {
		switch part {
		case "", ".":
			continue
		case "..":
			if at == "" {
				return false
			}
			at, _ = above(at)
		default:
			at = path.Join(at, part)
		}
		if !f(at) {
			break
		}
	}
	return true
}

// path turns a member's name into a path below the root, "" for the root itself.
func (r *Rules) path(raw string) (string, error) {
	if len(raw) > r.opts.Limits.Path {
		return "", (&names{limits: r.opts.Limits}).add(raw, 0)
	}
	if reason := r.unfit(raw); reason != "" {
		return "", &UnsafeEntryError{raw, reason}
	}
	full := raw
	if !isClean(raw) {
		var parts []string
		for part := range strings.SplitSeq(raw, "/") {
			switch part {
			case "", ".":
			case "..":
				return "", &UnsafeEntryError{raw, "leaves the package's folder"}
			default:
				parts = append(parts, part)
			}
		}
		full = strings.Join(parts, "/")
	}
	if !r.opts.Strip {
		return full, nil
	}
	_, rest, _ := strings.Cut(full, "/")
	return rest, nil
}

// unfit says why a name, or the target of a link, is not to be had; "" if it is.
func (r *Rules) unfit(name string) string {
	if path.IsAbs(name) || len(name) > 1 && name[1] == ':' && isLetter(name[0]) {
		return "is an absolute path"
	}
	ascii := true
	for i := range len(name) {
		switch c := name[i]; {
		case c < ' ' || c == 0x7f:
			return "has a control character in its name"
		case c == '\\':
			return "has a backslash in its name"
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	if !ascii {
		if !utf8.ValidString(name) {
			return "has a name that is not UTF-8"
		}
		if strings.ContainsFunc(name, unicode.IsControl) {
			return "has a control character in its name"
		}
	}
	if runtime.GOOS == "windows" && !windowsPath(name) {
		return "has a name that means something else on Windows"
	}
	return ""
}

// windowsPath reports whether every part of a path is the name of a file of its
// own on Windows: no device, no stream of another file, and not another's with
// dots or blanks behind it.
func windowsPath(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if part != "" && part != "." && part != ".." && portable.Unfit(part) != "" {
			return false
		}
	}
	return true
}

// isClean reports whether a path has no part that is empty, "." or "..".
func isClean(name string) bool {
	start := 0
	for i := 0; i <= len(name); i++ {
		if i < len(name) && name[i] != '/' {
			continue
		}
		if part := name[start:i]; part == "" || part == "." || part == ".." {
			return false
		}
		start = i + 1
	}
	return true
}

// fold maps all paths that some file system takes for one to one.
func fold(name string) string {
	if isASCII(name) {
		return strings.ToLower(name) // what portable.Fold does with ASCII, cheaper
	}
	return portable.Fold(name)
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// above is the directory that a path is in; it reports false where that is the
// root.
func above(p string) (dir string, ok bool) {
	i := strings.LastIndexByte(p, '/')
	if i < 0 {
		return "", false
	}
	return p[:i], true
}
