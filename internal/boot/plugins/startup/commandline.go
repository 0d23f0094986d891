package startup

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"dsh/internal/compose"
)

// option is one option of an app's command line.
type option struct {
	name  string // "--port"
	value string // how help shows its value, "" for an option that has none
	many  bool   // may be repeated, and takes all words up to the next option
	help  string
}

// syntax is the command line of one app.
type syntax struct {
	command string // as people start it: "dsh --profile web"
	purpose string
	words   string // how help shows words that are no options, "" where there may be none
	after   string // what help says about the words
	options []option
}

// given is what stands on a command line.
type given struct {
	values map[string][]string // by the option's name; options without a value have none in it
	words  []string
	help   bool
}

// usageError is a command line that is wrong, in words for people.
type usageError string

func (e usageError) Error() string { return string(e) }

// parse reads a command line as programs in Node.js do: options in any order,
// --name VALUE or --name=VALUE, and after -- only words. Who asks for help gets
// it, whatever else is wrong.
func (s syntax) parse(args []string) (given, error) {
	g := given{values: map[string][]string{}}
	for _, arg := range args {
		if arg == "--" {
			break
		}
		if arg == "-h" || arg == "--help" {
			return given{help: true}, nil
		}
	}
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case arg == "--":
			g.words = append(g.words, args[i+1:]...)
			i = len(args)
			continue
		case len(arg) < 2 || arg[0] != '-':
			g.words = append(g.words, arg)
			continue
		}
		name, value, inline := strings.Cut(arg, "=")
		at := slices.IndexFunc(s.options, func(o option) bool { return o.name == name })
		if at < 0 {
			return given{}, s.unknown(name)
		}
		o := s.options[at]
		switch {
		case o.value == "" && inline:
			return given{}, usageError(fmt.Sprintf("option '%s' takes no value", o.name))
		case o.value == "":
			g.values[o.name] = []string{}
			continue
		case inline:
			g.values[o.name] = append(g.values[o.name], value)
			continue
		}
		taken := 0
		for i+1 < len(args) && (taken == 0 || o.many) && !isOption(args[i+1]) {
			i++
			taken++
			g.values[o.name] = append(g.values[o.name], args[i])
		}
		if taken == 0 {
			return given{}, usageError(fmt.Sprintf("option '%s %s' argument missing", o.name, o.value))
		}
	}
	if s.words == "" && len(g.words) > 0 {
		return given{}, usageError(fmt.Sprintf("there may be options only, but %s is none", quoted(g.words)))
	}
	return g, nil
}

// isOption says whether a word begins an option. A lone dash does not.
func isOption(word string) bool { return len(word) > 1 && word[0] == '-' }

func quoted(words []string) string {
	shown := make([]string, min(len(words), 3))
	for i := range shown {
		shown[i] = "'" + words[i] + "'"
	}
	if len(words) > len(shown) {
		shown = append(shown, "…")
	}
	return strings.Join(shown, " ")
}

func (s syntax) unknown(name string) error {
	names := []string{"--help"}
	for _, o := range s.options {
		names = append(names, o.name)
	}
	text := fmt.Sprintf("unknown option '%s'", name)
	switch near := compose.Closest(name, names); {
	case near != "":
		text += fmt.Sprintf("\n(Did you mean %s?)", near)
	case s.words != "":
		text += fmt.Sprintf("\n(Words that begin with a dash go behind --: %s -- -- …)", s.command)
	}
	return usageError(text)
}

// single is the last value of an option that may be given once more to change
// one's mind.
func (g given) single(name string) (value string, ok bool) {
	values, ok := g.values[name]
	if !ok || len(values) == 0 {
		return "", ok
	}
	return values[len(values)-1], true
}

// columns is how wide help is.
const columns = 80

// text is the help of the app.
func (s syntax) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Usage: %s [options]", s.command)
	if s.words != "" {
		fmt.Fprintf(&b, " %s", s.words)
	}
	fmt.Fprintf(&b, "\n\n%s\n", strings.Join(wrapped(s.purpose, columns), "\n"))
	type line struct{ left, right string }
	list := func(title string, lines []line) {
		widest := slices.MaxFunc(lines, func(a, b line) int { return cmp.Compare(len(a.left), len(b.left)) })
		width := len(widest.left)
		fmt.Fprintf(&b, "\n%s:\n", title)
		for _, l := range lines {
			for i, text := range wrapped(l.right, columns-width-4) {
				left := l.left
				if i > 0 {
					left = ""
				}
				fmt.Fprintf(&b, "  %-*s  %s\n", width, left, text)
			}
		}
	}
	if s.words != "" {
		list("Arguments", []line{{strings.Trim(s.words, "[].…"), s.after}})
	}
	var lines []line
	for _, o := range s.options {
		left := o.name
		if o.value != "" {
			left += " " + o.value
		}
		lines = append(lines, line{left, o.help})
	}
	list("Options", append(lines, line{"-h, --help", "show this help and start nothing"}))
	return b.String()
}

// wrapped is a text in lines of at most width letters.
func wrapped(text string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
