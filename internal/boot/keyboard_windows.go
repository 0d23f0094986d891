package boot

import (
	"io"
	"os"

	"golang.org/x/sys/windows"
)

// fromKeyboard says whether Ctrl-C reaches this process and with it every
// program that it runs: standard input is a console.
func fromKeyboard(stdin io.Reader) bool {
	f, ok := stdin.(*os.File)
	if !ok {
		return false
	}
	var mode uint32
	return windows.GetConsoleMode(windows.Handle(f.Fd()), &mode) == nil
}
