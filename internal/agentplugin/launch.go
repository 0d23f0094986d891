package agentplugin

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"dsh/internal/pkgpath"
)

// LaunchPlan is all that starting a server needs. It is a pure value: nothing was
// looked up or made.
type LaunchPlan struct {
	// Program is the absolute file of a bundled command, else a bare name that the
	// platform's search finds in the client's own environment.
	Program string
	Bundled bool
	Args    []string
	Env     []string // the whole environment, NAME=value
	Dir     string   // absolute
	// Within is the directory in which Dir has to be once links are followed: the
	// plugin's root, or its data.
	Within string
}

// Plan is how the server starts with base as the environment of the client. The
// plugin's variables come over it, and PLUGIN_ROOT and PLUGIN_DATA last. foldNames
// says that names of variables are equal in every case, as on Windows.
func (s Stdio) Plan(a Anchors, base []string, foldNames bool) (LaunchPlan, error) {
	plan := LaunchPlan{Program: s.Command.String()}
	if file, bundled := s.Command.Bundled(); bundled {
		native, err := file.Native()
		if err != nil {
			return LaunchPlan{}, fmt.Errorf("server %q: command: %w", s.Label, err)
		}
		// Not filepath.Join, which would take .. for the parent of a link.
		plan.Program, plan.Bundled = a.Root+string(filepath.Separator)+native, true
	}
	for _, arg := range s.Args {
		plan.Args = append(plan.Args, arg.Expand(a))
	}
	set := func(name, text string) {
		plan.Env = slices.DeleteFunc(plan.Env, func(entry string) bool {
			old := variableName(entry)
			return old == name || foldNames && strings.EqualFold(old, name)
		})
		plan.Env = append(plan.Env, name+"="+text)
	}
	plan.Env = slices.Clone(base)
	for _, v := range s.Env {
		set(v.Name, v.Value.Expand(a))
	}
	set("PLUGIN_ROOT", a.Root)
	set("PLUGIN_DATA", a.Data)
	var err error
	if plan.Dir, plan.Within, err = s.Cwd.resolve(a); err != nil {
		return LaunchPlan{}, fmt.Errorf("server %q: cwd: %w", s.Label, err)
	}
	return plan, nil
}

// variableName is the name in an entry of an environment. Windows has some that
// begin with =.
func variableName(entry string) string {
	if len(entry) == 0 {
		return ""
	}
	name, _, _ := strings.Cut(entry[1:], "=")
	return entry[:1] + name
}

// Cwd is a working directory in one of the three forms of section 7.2.1. The zero
// value is the plugin's root.
type Cwd struct {
	text   string // as written, "" if it was left out
	inData bool
	below  Template // ./ and what is below the anchor
}

// ParseCwd reads a working directory. Where no placeholder is in what is below the
// anchor, it is known to stay there by its text.
func ParseCwd(text string) (Cwd, error) {
	c := Cwd{text: text}
	below, isRelative := strings.CutPrefix(text, "./")
	for mark, inData := range map[string]bool{rootMark: false, dataMark: true} {
		if rest, ok := strings.CutPrefix(text, mark); ok && (rest == "" || rest[0] == '/') {
			below, c.inData, isRelative = strings.TrimPrefix(rest, "/"), inData, true
		}
	}
	if !isRelative {
		return Cwd{}, fmt.Errorf("cwd %q begins with none of ./, ${PLUGIN_ROOT} and ${PLUGIN_DATA}", text)
	}
	c.below = ParseTemplate("./" + below)
	if c.below.IsLiteral() {
		if _, err := pkgpath.Parse(c.below.text); err != nil {
			return Cwd{}, fmt.Errorf("cwd %q: %w", text, err)
		}
	}
	return c, nil
}

// String is the text as it was written, "" if it was left out.
func (c Cwd) String() string { return c.text }

// InPackage is the directory as a path of the package, where it is one whatever the
// anchors are.
func (c Cwd) InPackage() (pkgpath.RelativePath, bool) {
	if c.inData || !c.below.IsLiteral() || c.text == "" {
		return pkgpath.RelativePath{}, false
	}
	p, err := pkgpath.Parse(c.below.text)
	return p, err == nil
}

// resolve expands before it looks whether the directory stays below its anchor.
func (c Cwd) resolve(a Anchors) (dir, within string, err error) {
	within = a.Root
	if c.inData {
		within = a.Data
	}
	if c.text == "" {
		return within, within, nil
	}
	below, err := pkgpath.Parse(c.below.Expand(a))
	if err != nil {
		return "", "", err
	}
	native, err := below.Native()
	if err != nil {
		return "", "", err
	}
	if native == "." {
		return within, within, nil
	}
	return within + string(filepath.Separator) + native, within, nil
}
