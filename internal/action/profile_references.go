package action

import (
	"bufio"
	"bytes"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"

	"dsh/internal/profile"
)

// Reference is a line of a file that names the directory of a profile.
type Reference struct {
	File string `json:"file"`
	Line int    `json:"line"` // from 1
}

// String is the place, as editors understand it.
func (r Reference) String() string { return fmt.Sprintf("%s:%d", r.File, r.Line) }

// references finds the lines that name the directory of a profile: in the
// manifest, the patch file and the environment of the given profiles and, with
// home, in those files of the home. They are found by their text, which holds
// profiles/NAME, or ../NAME in a file of a profile.
func references(home profile.Home, to profile.Name, in []profile.Name, ofHome bool) []Reference {
	found := []Reference{}
	name := regexp.QuoteMeta(to.String())
	const begin, end = "(?:^|[/\\\\\"'`,;:=[{( \t])", "(?:[/\\\\\"'`,;\\]}) \t]|$)"
	any := regexp.MustCompile(begin + `profiles[/\\]+` + name + end)
	sibling := regexp.MustCompile(begin + `\.\.[/\\]+` + name + end)
	scan := func(file string, patterns ...*regexp.Regexp) {
		text, err := profile.ReadFile(file)
		if err != nil {
			return // what cannot be read names nothing that a start could use
		}
		lines := bufio.NewScanner(bytes.NewReader(text))
		lines.Buffer(nil, len(text)+1)
		for n := 1; lines.Scan(); n++ {
			if slices.ContainsFunc(patterns, func(p *regexp.Regexp) bool { return p.Match(lines.Bytes()) }) {
				found = append(found, Reference{file, n})
			}
		}
	}
	for _, of := range in {
		for _, file := range []string{"package.json", "cordis.patch.yml", ".env"} {
			scan(filepath.Join(home.ProfileDir(of), file), any, sibling)
		}
	}
	if ofHome {
		scan(home.PatchPath(), any)
		scan(home.Path(".env"), any)
	}
	return found
}
