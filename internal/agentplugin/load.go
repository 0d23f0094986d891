package agentplugin

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"dsh/internal/pkgpath"
)

// Options are the choices where the specification is open, see the package's
// comment. The zero value is what it says most plainly.
type Options struct {
	Draft             bool // take the draft 1.1.0
	LenientExtensions bool // ignore members of "extensions" that are no objects
	StrictSkills      bool // skip skills with fields that Agent Skills does not list
	StrictMembers     bool // repeated members of JSON objects are errors
}

// fileLimit is how many bytes of a file are read.
const fileLimit = 4 << 20

// Plugin is what a package brings.
type Plugin struct {
	Manifest Manifest
	Skills   []Skill // by directory
	MCP      MCPState
	Servers  []Server // in the order of mcp.json
}

// Load reads a package. The diagnostics are all that is wrong, in the order in which
// it was found, whatever came of it. The error is a [*RejectedError] where there is no plugin; everything
// else, files that cannot be read too, is bounded as section 4.1 says.
func Load(source Source, o Options) (*Plugin, []Diagnostic, error) {
	found := diagnostics{}
	l := &loader{source: source, options: o, found: &found, plugin: &Plugin{MCP: MCPAbsent}}
	l.load()
	if err := found.rejection(); err != nil {
		return nil, found, err
	}
	return l.plugin, found, nil
}

type loader struct {
	source  Source
	options Options
	found   *diagnostics
	plugin  *Plugin
}

func (l *loader) load() {
	names, err := l.source.List(pkgpath.Root())
	if err != nil {
		l.found.add(ManifestUnreadable, ".", "the package cannot be read: %v", err)
		return
	}
	if !l.manifest(names) {
		return
	}
	if slices.Contains(names, pkgpath.Skills().Base()) {
		l.plugin.Skills = l.skills()
	}
	if slices.Contains(names, pkgpath.MCP().Base()) {
		l.plugin.MCP, l.plugin.Servers = l.loadMCP()
	}
	l.unread(names)
}

// unread tells of files at the root that look like a component and are none.
func (l *loader) unread(names []string) {
	for _, fixed := range []string{pkgpath.Skills().Base(), pkgpath.MCP().Base()} {
		for _, name := range names {
			if !slices.Contains(names, fixed) && strings.EqualFold(strings.TrimPrefix(name, "."), fixed) {
				l.found.add(LocationUnread, name, "it is not read; the place is %s", fixed)
			}
		}
	}
}

func (l *loader) manifest(names []string) bool {
	place := pkgpath.Manifest()
	if !slices.Contains(names, place.Base()) {
		hint := ""
		for _, name := range names {
			switch {
			case strings.EqualFold(name, place.Base()):
				hint = fmt.Sprintf("; %s is another name", name)
			case slices.Contains([]string{".claude-plugin", ".codex-plugin", ".cursor-plugin"}, name):
				hint = fmt.Sprintf("; %s is of another format", name)
			}
		}
		l.found.add(ManifestMissing, place.String(), "there is no plugin.json%s", hint)
		return false
	}
	kind, err := l.source.Kind(place)
	if _, escapes := errors.AsType[*EscapeError](err); escapes {
		l.found.add(ManifestEscapes, place.String(), "it leads out of the package")
		return false
	}
	if err != nil {
		l.found.add(ManifestUnreadable, place.String(), "it cannot be read: %v", err)
		return false
	}
	if kind != File {
		l.found.add(ManifestNotAFile, place.String(), "it is no regular file")
		return false
	}
	text, err := l.source.Read(place, fileLimit)
	if err != nil {
		l.found.add(ManifestUnreadable, place.String(), "it cannot be read: %v", err)
		return false
	}
	manifest, ok := parseManifest(text, l.options, l.found)
	if ok && manifest.Icon != nil {
		if _, err := l.source.Kind(*manifest.Icon); err != nil {
			l.found.add(IconIgnored, "plugin.json#presentation.icon", "%s cannot be read: %v; it is ignored", manifest.Icon, err)
			manifest.Icon = nil
		}
	}
	l.plugin.Manifest = manifest
	return ok
}

// expect is an error unless a place leads to this kind.
func (l *loader) expect(p pkgpath.PackagePath, want Kind) error {
	kind, err := l.source.Kind(p)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("it is a link to nothing")
	case err != nil:
		return err
	case kind == want:
		return nil
	case want == Dir:
		return errors.New("it is no directory")
	}
	return errors.New("it is no regular file")
}

func (l *loader) skills() (skills []Skill) {
	const place = "skills"
	if err := l.expect(pkgpath.Skills(), Dir); err != nil {
		l.found.add(ComponentInvalid, place, "%v", err)
		return nil
	}
	names, err := l.source.List(pkgpath.Skills())
	if err != nil {
		l.found.add(ComponentInvalid, place, "it cannot be read: %v", err)
		return nil
	}
	for _, name := range names {
		skill, ok := l.skill(name)
		if !ok {
			continue
		}
		if i := slices.IndexFunc(skills, func(s Skill) bool { return s.Name == skill.Name }); i >= 0 {
			l.found.add(SkillSkipped, skill.Directory.String(), "%s has the same name", skills[i].Directory)
			continue
		}
		skills = append(skills, skill)
	}
	return skills
}

// skill reads the skill in an entry of skills, if there is one.
func (l *loader) skill(name string) (Skill, bool) {
	skip := func(place, format string, args ...any) (Skill, bool) {
		l.found.add(SkillSkipped, place, format, args...)
		return Skill{}, false
	}
	dir, err := pkgpath.Skills().Child(name)
	if err != nil {
		return skip("skills", "%v", err)
	}
	kind, err := l.source.Kind(dir)
	switch {
	case err != nil:
		return skip(dir.String(), "%s", l.unreachable(err))
	case kind != Dir:
		return Skill{}, false
	}
	entries, err := l.source.List(dir)
	if err != nil {
		return skip(dir.String(), "it cannot be read: %v", err)
	}
	const fileName = "SKILL.md"
	if !slices.Contains(entries, fileName) {
		if i := slices.IndexFunc(entries, func(e string) bool { return strings.EqualFold(e, fileName) }); i >= 0 {
			l.found.add(LocationUnread, dir.String()+"/"+entries[i], "it is not read; the name is %s", fileName)
		}
		return Skill{}, false
	}
	file, err := dir.Child(fileName)
	if err != nil {
		return skip(dir.String(), "%v", err)
	}
	place := file.String()
	kind, err = l.source.Kind(file)
	switch {
	case err != nil:
		return skip(place, "%s", l.unreachable(err))
	case kind != File:
		return skip(place, "it is no regular file")
	}
	text, err := l.source.Read(file, fileLimit)
	if err != nil {
		return skip(place, "it cannot be read: %v", err)
	}
	return l.parsedSkill(text, dir, place)
}

// unreachable words why a place cannot be looked at.
func (l *loader) unreachable(err error) string {
	if errors.Is(err, fs.ErrNotExist) {
		return "it is a link to nothing"
	}
	return err.Error()
}

func (l *loader) parsedSkill(text []byte, dir pkgpath.PackagePath, place string) (Skill, bool) {
	p, marked := parseSkill(text, dir.Base())
	if marked {
		l.found.add(ByteOrderMark, place, "there is a byte order mark at its beginning")
	}
	unknown := make([]string, len(p.unknown))
	for i, name := range p.unknown {
		unknown[i] = fmt.Sprintf("%q", name)
	}
	if len(unknown) > 0 && l.options.StrictSkills {
		p.fail("Agent Skills has no field %s; it may stand below metadata", strings.Join(unknown, ", "))
	}
	if len(p.problems) > 0 {
		l.found.add(SkillSkipped, place, "%s", strings.Join(p.problems, "; "))
		return Skill{}, false
	}
	if len(unknown) > 0 {
		l.found.add(SkillFieldUnknown, place, "Agent Skills has no field %s, and some clients skip the skill for it; it may stand below metadata", strings.Join(unknown, ", "))
	}
	if strings.ContainsFunc(p.skill.Name, func(r rune) bool { return r > 0x7f }) {
		l.found.add(SkillNameNotASCII, place, "some clients take names of a-z, 0-9 and - only")
	}
	p.skill.Directory = dir
	return p.skill, true
}
