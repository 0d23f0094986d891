package unpack

import (
	"cmp"
	"fmt"

	"dsh/internal/fault"
)

// Limits bound what one archive, folder or tree may hold. A field that is zero
// means that of [Default].
type Limits struct {
	Unpacked int64 // bytes of all files together
	Entries  int   // files, links and directories
	Ratio    int   // unpacked bytes for one byte of the archive; counts from ratioFrom bytes on
	Path     int   // bytes of a name
}

// Default is far above any package that people have and far below what would
// hurt a machine.
var Default = Limits{Unpacked: 512 << 20, Entries: 100_000, Ratio: 200, Path: 1024}

// ratioFrom is how many bytes are unpacked before their ratio to the archive
// counts: a small archive of a repetitive file is no danger. At this size real
// packages stay below 40.
const ratioFrom = 16 << 20

// maxNames bounds the bytes of all names and link targets together, which are
// held in memory.
const maxNames = 32 << 20

// fill gives zero fields their defaults.
func (l Limits) fill() Limits {
	return Limits{
		cmp.Or(l.Unpacked, Default.Unpacked), cmp.Or(l.Entries, Default.Entries),
		cmp.Or(l.Ratio, Default.Ratio), cmp.Or(l.Path, Default.Path),
	}
}

// TooDense reports whether so many unpacked bytes are more than may come from an
// archive of a size.
func (l Limits) TooDense(unpacked, packed int64) bool {
	return unpacked > ratioFrom && unpacked/int64(l.fill().Ratio) > max(packed, 1)
}

// stream is how many bytes of a tar archive are read that unpacks to no more
// than the limit: each member has a header, perhaps a long one, and padding.
func (l Limits) stream() int64 { return l.Unpacked + int64(l.Entries)*4096 + 1<<20 }

// names counts what is in an archive, and bounds what that takes on the disk and
// in memory.
type names struct {
	limits Limits
	count  int // files, links and directories
	bytes  int // of their paths
}

// add counts something with a path of a size, for a member.
func (n *names) add(raw string, size int) error {
	n.count++
	n.bytes += size
	switch {
	case len(raw) > n.limits.Path:
		return &LimitError{raw[:n.limits.Path] + "…", fmt.Sprintf("has a name of more than %d bytes", n.limits.Path)}
	case n.count > n.limits.Entries:
		return &LimitError{raw, fmt.Sprintf("holds more than %d files and directories", n.limits.Entries)}
	case n.bytes > maxNames:
		return &LimitError{raw, "has names that are longer than " + bytesText(maxNames) + " together"}
	}
	return nil
}

// UnsafeEntryError says that an archive holds something that no package may.
type UnsafeEntryError struct {
	Entry, Reason string
}

func (e *UnsafeEntryError) Error() string {
	return fmt.Sprintf("archive entry %q %s", e.Entry, e.Reason)
}

// Class implements fault.Classed.
func (e *UnsafeEntryError) Class() fault.Class { return fault.Policy }

// LimitError says at which entry an archive goes beyond a limit.
type LimitError struct {
	Entry  string // "" before the first
	Beyond string // what it does, as in "unpacks to more than 512 MiB"
}

func (e *LimitError) Error() string {
	if e.Entry == "" {
		return "the package " + e.Beyond
	}
	return fmt.Sprintf("archive entry %q: with it the package %s", e.Entry, e.Beyond)
}

// Class implements fault.Classed.
func (e *LimitError) Class() fault.Class { return fault.Policy }

func beyondUnpacked(l Limits) string {
	return "unpacks to more than " + bytesText(l.Unpacked)
}

func beyondRatio(l Limits) string {
	return fmt.Sprintf("unpacks to more than %d times its size", l.Ratio)
}

// bytesText is a size in the largest unit that shows it exactly.
func bytesText(n int64) string {
	units := []string{"bytes", "KiB", "MiB", "GiB"}
	i := 0
	for ; i < len(units)-1 && n%1024 == 0 && n > 0; i++ {
		n /= 1024
	}
	return fmt.Sprintf("%d %s", n, units[i])
}
