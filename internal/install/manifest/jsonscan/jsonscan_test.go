package jsonscan

import (
	"math/rand/v2"
	"testing"
)

func TestQuoteAfter(t *testing.T) {
	simple := func(s string, i int) int {
		for ; i < len(s) && s[i] != '"'; i++ {
			if s[i] == '\\' {
				i++
			}
		}
		return i
	}
	random := rand.New(rand.NewPCG(1, 2))
	const alphabet = "\"\\#!]\x00\xa2\xdcaaaaaaaaaaaaaaaa"
	for range 100_000 {
		b := make([]byte, random.IntN(40))
		for i := range b {
			b[i] = alphabet[random.IntN(len(alphabet))]
		}
		s := string(b)
		if got, want := QuoteAfter(s, 0), simple(s, 0); got != want {
			t.Fatalf("%q: %d, want %d", s, got, want)
		}
	}
}
