package main

import (
	"testing"
	"time"
)

func TestParseAge(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0": 0, "3d": 72 * time.Hour, "1.5d": 36 * time.Hour, "2w": 14 * 24 * time.Hour, "12h": 12 * time.Hour, " 90m ": 90 * time.Minute, "1h30m": 90 * time.Minute,
	} {
		if got, err := parseAge(text); err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "3", "d", "-1d", "-2h", "soon", "1e300d", "NaNd", "Infw", "99999999999999h", "400000d", "3 d"} {
		if got, err := parseAge(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func FuzzParseAge(f *testing.F) {
	for _, text := range []string{"3d", "12h", "0", "1.5w", "1e9d", "-1s"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if age, err := parseAge(text); err == nil && (age < 0 || age > longestAge) {
			t.Errorf("%q: %v", text, age)
		}
	})
}

func TestParseMoment(t *testing.T) {
	for text, want := range map[string]string{
		"2026-11-30":                "2026-11-30T00:00:00Z",
		"2026-11-30T12:00:00Z":      "2026-11-30T12:00:00Z",
		"2026-11-30T12:00:00+02:00": "2026-11-30T10:00:00Z",
	} {
		if got, err := parseMoment(text); err != nil || got.Format(time.RFC3339) != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "yesterday", "2026-13-01", "30.11.2026", "2026-11-30 12:00"} {
		if got, err := parseMoment(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}
