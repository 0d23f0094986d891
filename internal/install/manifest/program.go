package manifest

import (
	"path"
	"strings"
	"unicode"
)

// maxProgram is how many bytes a program's name may have, so that it is a file
// name everywhere, also with the suffix that Windows needs.
const maxProgram = 250

// Program cleans one entry of a bin member as npm-normalize-package-bin does:
// of the name counts what follows the last slash, backslash or colon, and the
// file is kept inside the package. It reports false for what can be no program
// on some system: a name that is empty, "." or "..", too long or has a character
// that file names may not have, and a file that is the package itself.
// A clean entry comes back as it is.
func Program(name, file string) (string, string, bool) {
	name = inside(path.Base(strings.NewReplacer(`\`, "/", ":", "/").Replace(name)))
	file = inside(strings.ReplaceAll(file, `\`, "/"))
	ok := name != "" && len(name) <= maxProgram && !strings.ContainsAny(name, `"<>|?*`) &&
		file != "" && !strings.ContainsFunc(name+file, unicode.IsControl)
	return name, file, ok
}

// inside is a path without the steps that would lead above its root.
func inside(p string) string { return path.Join("/", p)[1:] }
