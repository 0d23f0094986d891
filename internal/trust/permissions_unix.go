//go:build !windows

package trust

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// othersMayWrite says who else may write a file or put another one into a
// directory, "" if nobody. A directory's group is let pass: where users have a
// group of their own, it is that.
func othersMayWrite(info fs.FileInfo) string {
	if s, ok := info.Sys().(*syscall.Stat_t); ok && s.Uid != 0 && int(s.Uid) != os.Geteuid() {
		return fmt.Sprintf("belongs to another user, %d", s.Uid)
	}
	switch perm := info.Mode().Perm(); {
	case info.Mode()&fs.ModeSticky != 0:
		return ""
	case perm&0o002 != 0:
		return "can be written by everybody"
	case perm&0o020 != 0 && !info.IsDir():
		return "can be written by its group"
	}
	return ""
}
