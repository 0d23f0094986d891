package launch

import (
	"slices"
	"strings"
)

// Syntax is what must be known of one of our commands, or of a verb of it, to
// tell its flags from its arguments. The program derives it from its command
// definitions, so nothing is written down twice.
type Syntax struct {
	// Names are the name and then its aliases.
	Names []string
	// Summary is one line for the launcher's help, which leaves out a command
	// without one.
	Summary string
	Flags   []Flag
	// Verbs are the commands below this one. A command that has any passes
	// everything from an unknown verb on as it is.
	Verbs []Syntax
}

// Flag is one flag of a command.
type Flag struct {
	// Names are without dashes.
	Names []string
	// Value tells that the next word is the flag's value.
	Value bool
}

// Invocation is one of our commands with its words in order.
type Invocation struct {
	Global Global
	// Profile is what a command with a --profile flag acts on: the flag's
	// value, else $DSH_PROFILE, else the user's choice, else the default. It is
	// empty for a command without that flag, and with a Problem.
	Profile string
	// Source is what named Profile.
	Source Source
	// Implied tells that the command line did not name Profile.
	Implied bool
	// Problem is why the user's choice, which is to count, cannot be told. It
	// ends every command that acts on Profile.
	Problem error
	// Args is the command, its flags, its verb, the verb's flags and then the
	// arguments, behind a "--" where one of them looks like a flag. A --profile
	// is still there. What is meant for Global is gone.
	Args []string
}

// Arrange puts the words of the command in the order that urfave/cli needs,
// which stops looking for flags at the first argument. Flags count wherever
// they stand, up to a "--"; each goes to the verb when the verb has it, else to
// the command above that has it. A flag that nobody has stays in front of the
// arguments, for the command to refuse. A negative number is an argument. The
// options of our own that stand before the profile on other command lines are
// understood anywhere here, except that one which the verb has as a flag goes to
// the verb. A --set, also one before the command, is for verbs that have it.
//
// Within one command a flag name must take a value in every verb or in none,
// since it may stand before the verb, and be like the option of that name. An
// error is always a *[UsageError].
func (o Own) Arrange(commands []Syntax) (Invocation, error) {
	a := arranger{options: parser{globals: o.globals, sets: slices.Clip(o.sets)}}
	inv, err := a.arrange(o, commands)
	if err != nil {
		return Invocation{}, withGlobal(err, a.options.globals.over(o.Global))
	}
	return inv, nil
}

type arranger struct {
	options   parser // of which only globals, profile, patches and sets are used
	path      []*Syntax
	typed     []string // the words that chose path
	flags     []typedFlag
	arguments []string
}

type typedFlag struct {
	names []string // more than one for "-Dw"
	words []string
}

func (a *arranger) arrange(o Own, commands []Syntax) (Invocation, error) {
	command := findSyntax(commands, o.Args[0])
	if command == nil {
		return Invocation{Global: o.Global, Args: o.Args}, nil
	}
	a.path, a.typed = []*Syntax{command}, o.Args[:1:1]
	if err := a.sort(o.Args[1:]); err != nil {
		return Invocation{}, err
	}
	if err := a.settle(len(o.sets)); err != nil {
		return Invocation{}, err
	}

	inv := Invocation{Global: a.options.globals.over(o.Global), Args: a.words()}
	help := slices.ContainsFunc(a.flags, func(f typedFlag) bool { return f.has("help") || f.has("h") })
	if help {
		return inv, nil
	}
	if a.declared("profile") {
		if a.options.profile.given {
			inv.Profile, inv.Source = a.options.profile.value, FromCommandLine
		} else {
			t := o.implied()
			inv.Profile, inv.Source, inv.Problem, inv.Implied = t.profile, t.source, t.err, true
		}
		if inv.Problem == nil {
			if err := checkProfile(inv.Profile); err != nil {
				return Invocation{}, err
			}
		}
	}
	if err := a.check(); err != nil {
		return Invocation{}, err
	}
	if a.typed[0] == "plugin" && len(a.typed) == 1 && len(a.arguments) == 0 {
		return Invocation{}, usagef("plugin needs pnpm arguments to forward (e.g. add <package>)")
	}
	return inv, nil
}

// settle decides on the options of our own once the verb is known. A --set
// before the command, of which there are early ones, goes to the verb that has
// it; what was kept for a verb that did not come is an option after all.
func (a *arranger) settle(early int) error {
	var flags []typedFlag
	if a.declared("set") {
		for _, value := range a.options.sets[:early] {
			flags = append(flags, typedFlag{names: []string{"set"}, words: []string{"--set", value}})
		}
		a.options.sets = a.options.sets[early:]
	}
	for _, f := range a.flags {
		o, value, inline := findOption(f.words[0])
		if o == nil || !o.ours || a.declared(f.names[0]) {
			flags = append(flags, f)
		} else if _, err := a.options.takeOption(o, value, inline, f.words); err != nil {
			return err
		}
	}
	a.flags = flags
	return nil
}

// check refuses what no command can be asked.
func (a *arranger) check() error {
	if len(a.options.sets) > 0 {
		return usagef("%s takes no --set", a.name())
	}
	if err := checkPatches(a.options.patches); err != nil {
		return err
	}
	// Only behind a "--" can an argument have the name of a verb. It would
	// become the verb, as it does for plugin in the reference.
	if len(a.arguments) > 0 && a.typed[0] != "plugin" && findSyntax(a.leaf().Verbs, a.arguments[0]) != nil {
		return usagef(`%s needs its verb before the "--"`, a.name())
	}
	return nil
}

// name is the command and the verb as their definitions call them.
func (a *arranger) name() string {
	var names []string
	for _, s := range a.path {
		names = append(names, s.Names[0])
	}
	return strings.Join(names, " ")
}

// looksLikeFlag tells flags from arguments. "-" is an argument, and so are
// negative numbers: no flag begins with a digit or a dot.
func looksLikeFlag(word string) bool {
	return len(word) > 1 && word[0] == '-' && !strings.ContainsRune(".0123456789", rune(word[1]))
}

// sort tells verbs, flags and arguments apart.
func (a *arranger) sort(words []string) error {
	for len(words) > 0 {
		word := words[0]
		if word == "--" {
			a.arguments = append(a.arguments, words[1:]...)
			return nil
		}
		if looksLikeFlag(word) {
			var err error
			if words, err = a.takeFlag(words); err != nil {
				return err
			}
			continue
		}
		if leaf := a.leaf(); len(leaf.Verbs) > 0 {
			verb := findSyntax(leaf.Verbs, word)
			if verb == nil {
				a.askedForJSON(words)
				a.arguments = words
				return nil
			}
			a.path, a.typed = append(a.path, verb), append(a.typed, word)
		} else {
			a.arguments = append(a.arguments, word)
		}
		words = words[1:]
	}
	return nil
}

// askedForJSON looks for --json in words that are passed on as they are. They
// will be refused, and whoever wants JSON gets that as JSON.
func (a *arranger) askedForJSON(words []string) {
	for _, word := range words {
		if word == "--" {
			return
		}
		a.options.globals.json = a.options.globals.json || word == "--json"
	}
}

// takeFlag takes one flag, and its value where it has one, off the front of
// words and returns what is left.
func (a *arranger) takeFlag(words []string) ([]string, error) {
	dashed, value, inline := strings.Cut(words[0], "=")
	f := typedFlag{names: []string{strings.TrimPrefix(strings.TrimPrefix(dashed, "-"), "-")}, words: words[:1:1]}
	flag := a.flag(f.names[0])
	if o, value, inline := findOption(words[0]); o != nil && o.ours && flag == nil {
		return a.options.takeOption(o, value, inline, words)
	}
	if letters := a.letters(dashed); flag == nil && letters != nil {
		f.names = letters
		flag = a.flag(letters[len(letters)-1])
	}
	rest := words[1:]
	if flag != nil && flag.Value && !inline {
		if len(rest) == 0 {
			return nil, missingValue(flag.described(dashed))
		}
		value = rest[0]
		f.words, rest = words[:2:2], rest[1:]
	}
	if flag != nil {
		if err := a.note(flag, value); err != nil {
			return nil, err
		}
	}
	a.flags = append(a.flags, f)
	return rest, nil
}

// note holds a flag to the rules of the launcher option of the same name.
func (a *arranger) note(flag *Flag, value string) error {
	switch {
	case flag.has("profile"):
		return a.options.profile.set("--profile <name>", "a profile", value)
	case flag.has("patch"):
		a.options.patches = append(a.options.patches, value)
	case flag.has("set"):
		return checkSet(value)
	}
	return nil
}

// letters are the flags in a word like "-Dw", nil when it is no such word.
func (a *arranger) letters(word string) []string {
	if strings.HasPrefix(word, "--") || len(word) < 3 {
		return nil
	}
	letters := strings.Split(word[1:], "")
	for i, letter := range letters {
		flag := a.flag(letter)
		if flag == nil || flag.Value && i < len(letters)-1 {
			return nil
		}
	}
	return letters
}

// words are the command line in order.
func (a *arranger) words() []string {
	at := make([][]string, len(a.path)) // the flags behind each word of the path
	for _, f := range a.flags {
		level := len(a.path) - 1
		for l := level; l >= 0; l-- {
			if a.path[l].flag(f.names[0]) != nil {
				level = l
				break
			}
		}
		at[level] = append(at[level], f.words...)
	}
	var words []string
	for i, word := range a.typed {
		words = append(append(words, word), at[i]...)
	}
	if slices.ContainsFunc(a.arguments, func(arg string) bool { return len(arg) > 1 && arg[0] == '-' }) {
		words = append(words, "--")
	}
	return append(words, a.arguments...)
}

// declared tells whether the verb or a command above it has the flag.
func (a *arranger) declared(name string) bool {
	return slices.ContainsFunc(a.path, func(s *Syntax) bool { return s.flag(name) != nil })
}

func (a *arranger) leaf() *Syntax { return a.path[len(a.path)-1] }

// flag finds a flag by name: of the verb, of the commands above it, or of the
// verbs below, one of which may still come.
func (a *arranger) flag(name string) *Flag {
	for _, s := range slices.Backward(a.path) {
		if f := s.flag(name); f != nil {
			return f
		}
	}
	return a.leaf().flagBelow(name)
}

func (s *Syntax) flag(name string) *Flag {
	for i := range s.Flags {
		if s.Flags[i].has(name) {
			return &s.Flags[i]
		}
	}
	return nil
}

func (s *Syntax) flagBelow(name string) *Flag {
	for i := range s.Verbs {
		verb := &s.Verbs[i]
		if f := verb.flag(name); f != nil {
			return f
		}
		if f := verb.flagBelow(name); f != nil {
			return f
		}
	}
	return nil
}

// described is how errors call the flag that was typed as dashed.
func (f *Flag) described(dashed string) string {
	for _, name := range f.Names {
		if o, _, _ := findOption("--" + name); o != nil {
			return o.flags()
		}
	}
	return dashed + " <value>"
}

func (f *Flag) has(name string) bool     { return slices.Contains(f.Names, name) }
func (f typedFlag) has(name string) bool { return slices.Contains(f.names, name) }

func findSyntax(list []Syntax, name string) *Syntax {
	for i := range list {
		if slices.Contains(list[i].Names, name) {
			return &list[i]
		}
	}
	return nil
}
