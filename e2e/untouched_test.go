package e2e

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// untouched COMMAND... runs a command that must do well and write nothing into
// the home: all files there have the bytes, permissions and times that they
// had, and so have the directories.
func untouched(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: untouched COMMAND...")
	}
	home := ts.MkAbs("home")
	content, times := listing(ts, home), stamps(ts, home)
	if err := ts.Exec(args[0], args[1:]...); err != nil {
		ts.Fatalf("%s: %v", args[0], err)
	}
	if now := listing(ts, home); now != content {
		ts.Fatalf("the home changed from\n%s\nto\n%s", content, now)
	}
	if now := stamps(ts, home); now != times {
		ts.Fatalf("what was written in the home changed from\n%s\nto\n%s", times, now)
	}
}

// stamps is when everything below a directory was written last, and its
// permissions.
func stamps(ts *testscript.TestScript, dir string) string {
	var out strings.Builder
	ts.Check(filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(&out, "%s %s %d\n", path, info.Mode(), info.ModTime().UnixNano())
		return nil
	}))
	return out.String()
}
