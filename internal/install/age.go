package install

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"dsh/internal/install/registry"
)

// age says which versions of a package are too new to be taken.
func (s *sources) age(name string) registry.PickOptions {
	opts := registry.PickOptions{NodeVersion: assumedNode(), Before: s.job.Before}
	if s.job.settings.MinAge == 0 {
		return opts
	}
	all, versions := exempted(s.job.settings.AgeExcept, name)
	if all {
		return opts
	}
	if old := s.now.Add(-s.job.settings.MinAge); opts.Before.IsZero() || old.Before(opts.Before) {
		opts.Before, opts.Age = old, s.job.settings.MinAge
		if len(versions) > 0 {
			opts.Exempt = func(version string) bool { return slices.Contains(versions, version) }
		}
	}
	return opts
}

// exempted reads patterns as pnpm's minimumReleaseAgeExclude has them: names in
// which * stands for anything, with or without versions ("a@1.0.0 || 1.0.1").
func exempted(patterns []string, name string) (all bool, versions []string) {
	for _, p := range patterns {
		pattern, list, _ := splitName(p)
		if matched, err := path.Match(strings.ReplaceAll(pattern, "/", "\x00"), strings.ReplaceAll(name, "/", "\x00")); err != nil || !matched {
			continue
		}
		if list == "" {
			return true, nil
		}
		for version := range strings.SplitSeq(list, "||") {
			versions = append(versions, strings.TrimSpace(version))
		}
	}
	return false, versions
}

// ago says how long ago a time was, in the largest unit that fits.
func ago(d time.Duration) string {
	if d < 0 {
		return "at a time that lies ahead"
	}
	for _, unit := range []struct {
		length time.Duration
		name   string
	}{{24 * time.Hour, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}} {
		switch n := d / unit.length; {
		case n == 1:
			return "1 " + unit.name + " ago"
		case n > 1:
			return fmt.Sprintf("%d %ss ago", n, unit.name)
		}
	}
	return "just now"
}
