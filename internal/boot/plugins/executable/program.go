package executable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"dsh/internal/fault"
	"dsh/internal/program"
)

// interpreter is the program that the first line of a script names, "" for what
// is no script.
func interpreter(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	head := make([]byte, 256)
	n, _ := f.Read(head)
	line, _, _ := strings.Cut(string(head[:n]), "\n")
	words := strings.Fields(strings.TrimPrefix(line, "#!"))
	if !strings.HasPrefix(line, "#!") || len(words) == 0 {
		return ""
	}
	return words[0]
}

// startError says why a program that is there did not start.
func startError(p program.Program, err error) error {
	if by := interpreter(p.Path); by != "" {
		if _, missing := os.Stat(by); missing != nil {
			return fault.WithHint(fault.Errorf(fault.MissingProgram, "start %s: it is a script for %s, which is not there", p.Path, by),
				"install %s, or name another program in the first line of the script", by)
		}
	}
	if errors.Is(err, syscall.ENOEXEC) {
		return fault.WithHint(fault.Errorf(fault.Package, "start %s: the system cannot run this kind of file: %w", p.Path, syscall.ENOEXEC),
			"a script needs a first line that names what runs it, such as #!/bin/sh; a binary has to be built for this system")
	}
	if pathError, ok := err.(*fs.PathError); ok {
		err = pathError.Err
	}
	return fmt.Errorf("start %s: %w", p.Path, err)
}
