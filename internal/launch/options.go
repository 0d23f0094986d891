package launch

import (
	"slices"
	"strings"
)

// option is one launcher option. Parsing, errors and help all read this table.
type option struct {
	long  string // with its dashes
	short string // with its dash, "" without
	value string // what the value is called, "" for an option without
	help  string
	ours  bool // not the reference's: recognised only until the profile is named
	set   func(p *parser, value string) error
}

// options is in the order of the help.
var options = []option{
	{long: "--version", short: "-V", help: "print the version and exit",
		set: func(p *parser, _ string) error { p.version = true; return nil }},
	{long: "--profile", value: "name", help: "the profile to boot; a name as the first word says the same",
		set: func(p *parser, v string) error { return p.profile.set("--profile <name>", "a profile", v) }},
	{long: "--from-default-profile", value: "name", help: "replace a custom profile with a fresh copy of a shipped profile template",
		set: func(p *parser, v string) error { p.template, p.templateGiven = v, true; return nil }},
	{long: "--patch", value: "path", help: "a patch file on top of the profile's layers, for this run only (repeatable, the last one wins)",
		set: func(p *parser, v string) error { p.patches = append(p.patches, v); return nil }},
	{long: Config.String(), help: "print the composed configuration and exit",
		set: func(p *parser, _ string) error { p.dumps[Config] = true; return nil }},
	{long: ConfigSchema.String(), help: "print the JSON Schema of the configuration and exit",
		set: func(p *parser, _ string) error { p.dumps[ConfigSchema] = true; return nil }},
	{long: DefaultConfig.String(), help: "print what the bundles alone compose, without any patch of yours, and exit",
		set: func(p *parser, _ string) error { p.dumps[DefaultConfig] = true; return nil }},

	{ours: true, long: "--installation", value: "dir", help: "run on this installation of the harness: its name, a directory that holds one, or embedded, the one inside dsh",
		set: func(p *parser, v string) error { return p.globals.setInstallation(v) }},
	{ours: true, long: "--set", value: "row.key=value", help: "set one value of a row's config for this run (repeatable, on top of everything)",
		set: func(p *parser, v string) error { p.sets = append(p.sets, v); return checkSet(v) }},
	{ours: true, long: "--json", help: "print results and errors as one JSON document on stdout",
		set: func(p *parser, _ string) error { p.globals.json = true; return nil }},
}

// flags is the option as the reference names it in errors: "--patch <path>".
func (o *option) flags() string {
	flags := o.long
	if o.short != "" {
		flags = o.short + ", " + flags
	}
	if o.value != "" {
		flags += " <" + o.value + ">"
	}
	return flags
}

// findOption returns the option that a word is, nil when it is none, with the
// value of --option=value. It reads words as commander does: a word is known
// when it is an option, a short option with more letters behind it, or a long
// one that takes a value with "=" and that value.
func findOption(word string) (o *option, value string, inline bool) {
	for i := range options {
		o := &options[i]
		if word == o.long || o.short != "" && strings.HasPrefix(word, o.short) {
			return o, "", false
		}
		// An option of ours that takes no value is found here as well, to be
		// refused by name: no command line of the reference's can hold it.
		if v, ok := strings.CutPrefix(word, o.long+"="); ok && (o.value != "" || o.ours) {
			return o, v, true
		}
	}
	return nil, "", false
}

// takeOption takes the option o, and its value where it has one, off the front
// of words and returns what is left. inlineValue is what findOption returned.
func (p *parser) takeOption(o *option, inlineValue string, inline bool, words []string) ([]string, error) {
	rest := words[1:]
	value := inlineValue
	switch {
	case o.value == "" && inline:
		return nil, usagef("option '%s' takes no value, got %s", o.flags(), quoteJSON(value))
	case o.value != "" && !inline:
		if len(rest) == 0 {
			return nil, missingValue(o.flags())
		}
		value, rest = rest[0], rest[1:]
	}
	return rest, o.set(p, value)
}

// checkSet refuses a value of --set that cannot be an assignment.
func checkSet(value string) error {
	if !strings.Contains(value, "=") {
		return usagef("--set needs ROW.KEY=VALUE")
	}
	return nil
}

// checkPatches refuses paths of --patch that name no file, and to read standard
// input twice.
func checkPatches(paths []string) error {
	if slices.Contains(paths, "") {
		return usagef("--patch needs a path")
	}
	if first := slices.Index(paths, "-"); first >= 0 && slices.Contains(paths[first+1:], "-") {
		return usagef("--patch - can be given only once")
	}
	return nil
}

// once is a value that may be given one time only.
type once struct {
	value string
	given bool
}

// set takes the value of the option that errors call flags; what is the value's
// noun with its article.
func (o *once) set(flags, what, value string) error {
	if o.given {
		return invalidValue(flags, value, "select "+what+" only once")
	}
	o.value, o.given = value, true
	return nil
}

// globals are the options of our own that were read so far.
type globals struct {
	installation once
	json         bool
}

func (g *globals) setInstallation(dir string) error {
	if dir == "" {
		return usagef("--installation needs a directory")
	}
	return g.installation.set("--installation <dir>", "an installation", dir)
}

// over is what the options say, with base where they say nothing.
func (g *globals) over(base Global) Global {
	if g.installation.given {
		base.Installation = g.installation.value
	}
	base.JSON = base.JSON || g.json
	return base
}
