package environ

import "strings"

// pair is one variable of a .env file.
type pair struct{ name, value string }

// parseDotenv reads the .env dialect of util.parseEnv in Node.js 22 and 24,
// oddities included. It never fails: a line that sets nothing is passed over.
// Names come in the order of their first line, each with its last value.
//
// The dialect: "export " may stand before a name. A value in one of the three
// kinds of quotes runs to the next quote of its kind, over line ends as well,
// and what follows on that line is ignored; only in double quotes does \n mean
// a line end, and no quote can be escaped. Without a closing quote the line is
// the value, quote included. A value without quotes ends at # or at the end of
// the line. Carriage returns vanish everywhere. And one oddity: blanks right
// after "=" are passed over together with the line ends behind them, so the
// value of "A= " is the next line.
func parseDotenv(text string) []pair {
	var pairs pairList
	rest := trim(strings.ReplaceAll(text, "\r", ""))
	for rest != "" {
		// Only here, without a blank before it, "#" begins a comment; whether
		// blanks were taken away depends on the line before.
		if rest[0] == '\n' || rest[0] == '#' {
			_, rest, _ = strings.Cut(rest, "\n")
			continue
		}
		end := strings.IndexAny(rest, "=\n")
		if end < 0 {
			break
		}
		if rest[end] == '\n' {
			rest = trim(rest[end+1:])
			continue
		}
		name := trim(rest[:end])
		rest = rest[end+1:]
		if rest == "" || rest[0] == '\n' {
			pairs.set(name, "")
			rest = strings.TrimPrefix(rest, "\n")
			continue
		}
		rest = trim(rest)
		if name == "" {
			continue
		}
		if after, ok := strings.CutPrefix(name, "export "); ok {
			name = trim(after)
		}
		var value string
		value, rest = takeValue(rest)
		pairs.set(name, value)
	}
	return pairs.list
}

// takeValue splits what stands behind "=" into the value and the text that
// follows its line.
func takeValue(text string) (value, rest string) {
	if strings.HasPrefix(text, `"`) || strings.HasPrefix(text, "'") || strings.HasPrefix(text, "`") {
		quote := text[:1]
		if value, rest, ok := strings.Cut(text[1:], quote); ok {
			if quote == `"` {
				value = strings.ReplaceAll(value, `\n`, "\n")
			}
			_, rest, _ = strings.Cut(rest, "\n")
			return value, rest
		}
		value, rest, _ = strings.Cut(text, "\n")
		return value, trim(rest)
	}
	value, rest, _ = strings.Cut(text, "\n")
	value, _, _ = strings.Cut(value, "#")
	return trim(value), trim(rest)
}

// trim takes away what the dialect calls blank.
func trim(s string) string { return strings.Trim(s, " \t\n") }

// pairList keeps names in the order of their first setting.
type pairList struct {
	list []pair
	at   map[string]int
}

func (l *pairList) set(name, value string) {
	if name == "" {
		return // Node.js keeps it, but no environment can hold it
	}
	if i, ok := l.at[name]; ok {
		l.list[i].value = value
		return
	}
	if l.at == nil {
		l.at = map[string]int{}
	}
	l.at[name] = len(l.list)
	l.list = append(l.list, pair{name, value})
}
