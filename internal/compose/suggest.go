package compose

import "strings"

// Closest is the one of among that word was probably meant to be, "" if none
// comes near. Case, a scope in front and the dashes, dots and underscores
// between parts count nothing; a word of up to 4 letters may have one mistake
// (a letter more, less or other, or two that changed places), one of up to 8
// letters two, a longer one three. Of words of two letters most are one mistake
// apart, so that only two that changed places count. Failing that it is the shortest that word
// is the first or the last parts of, as `webserver` is of `host-webserver`.
func Closest(word string, among []string) string {
	plain, parts := plainWord(word)
	letters := len(plain)
	if letters == 0 {
		return ""
	}
	best, bestDistance := "", allowedMistakes(letters)+1
	part := ""
	for _, candidate := range among {
		if candidate == word {
			continue
		}
		other, otherParts := plainWord(candidate)
		limit := min(bestDistance, letters, len(other)) - 1
		if d := distance(plain, other, limit); d <= limit && (d == 0 || min(letters, len(other)) > 2 || areSwapped(plain, other)) {
			best, bestDistance = candidate, d
		}
		if sharesEnd(parts, otherParts) && (part == "" || len(candidate) < len(part)) {
			part = candidate
		}
	}
	if best == "" {
		return part
	}
	return best
}

// areSwapped says whether a and b are the same two letters in another order.
func areSwapped(a, b []rune) bool {
	return len(a) == 2 && len(b) == 2 && a[0] == b[1] && a[1] == b[0]
}

func allowedMistakes(letters int) int {
	switch {
	case letters <= 4:
		return 1
	case letters <= 8:
		return 2
	default:
		return 3
	}
}

// plainWord is what counts of a word, and its parts.
func plainWord(word string) (letters []rune, parts []string) {
	if strings.HasPrefix(word, "@") {
		if _, name, ok := strings.Cut(word, "/"); ok {
			word = name
		}
	}
	parts = strings.FieldsFunc(strings.ToLower(word), func(c rune) bool { return strings.ContainsRune("-._:/@ ", c) })
	return []rune(strings.Join(parts, "")), parts
}

// sharesEnd says whether the parts of one word are the first or the last ones
// of the other. A part of one or two letters alone says too little.
func sharesEnd(a, b []string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	joined := strings.Join(a, "")
	if len(joined) < 3 || len(a) == len(b) {
		return false
	}
	return joined == strings.Join(b[:len(a)], "") || joined == strings.Join(b[len(b)-len(a):], "")
}

// distance is how many letters must be added, taken out, changed, or swapped
// with their neighbour, to make b of a; some number above limit if more than
// that.
func distance(a, b []rune, limit int) int {
	if max(len(a)-len(b), len(b)-len(a)) > limit {
		return limit + 1
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range a {
		row[0] = i + 1
		lowest := row[0]
		for j := range b {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
			lowest = min(lowest, row[j+1])
		}
		if lowest > limit {
			return limit + 1
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
