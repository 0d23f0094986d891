//go:build unix

package boot

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// fromKeyboard says whether Ctrl-C at the terminal reaches this process, and
// with it every program that it runs: standard input is a terminal, and its
// foreground is ours.
func fromKeyboard(stdin io.Reader) bool {
	f, ok := stdin.(*os.File)
	if !ok {
		return false
	}
	group, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}
