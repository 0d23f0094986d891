package catalog

import (
	"slices"
	"strings"
	"unicode"
)

// Score is how well a plugin fits words that are searched for: what decides more
// comes first. The zero value fits nothing.
type Score struct {
	Whole    int // words that are a whole word of a name
	Name     int // words that are in a name
	Keyword  int // words that are in a keyword, and in no name
	Describe int // words that are in the description alone
}

// Rank holds words against what a plugin says of itself. Every word has to be
// somewhere. How popular a plugin is does not count.
func Rank(words, names, keywords, descriptions []string) (Score, bool) {
	in := func(texts []string, word string) bool {
		return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(strings.ToLower(text), word) })
	}
	var s Score
	for _, word := range words {
		word = strings.ToLower(word)
		switch {
		case in(names, word):
			s.Name++
			if slices.ContainsFunc(names, func(name string) bool { return slices.Contains(parts(name), word) }) {
				s.Whole++
			}
		case in(keywords, word):
			s.Keyword++
		case in(descriptions, word):
			s.Describe++
		default:
			return Score{}, false
		}
	}
	return s, true
}

// parts is the words of a name, and the name.
func parts(name string) []string {
	name = strings.ToLower(name)
	return append(strings.FieldsFunc(name, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }), name)
}

// Compare says which of two fits better: negative is s.
func (s Score) Compare(other Score) int {
	for _, by := range [][2]int{{s.Name, other.Name}, {s.Whole, other.Whole}, {s.Keyword, other.Keyword}} {
		if by[0] != by[1] {
			return by[1] - by[0]
		}
	}
	return 0
}
