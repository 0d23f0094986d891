package install

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"dsh/internal/install/registry"
	"dsh/internal/trust"
)

// bound is one wish about when versions were published.
type bound struct {
	before time.Time
	age    time.Duration // how long ago that is, 0 where it is a date
	exempt []string      // versions for which it does not count
}

// age says which versions of a package are too new to be taken: by the command,
// by the profile, and by the policy, of which none loosens another.
func (s *sources) age(name string) registry.PickOptions {
	bounds := s.wishedAge(name)
	if policy := s.job.Policy; policy != nil && policy.MinimumAge > 0 {
		if all, versions := policy.ExemptVersions(trust.MinimumAgeRule, name); !all {
			bounds = append(bounds, bound{s.now.Add(-policy.MinimumAge), policy.MinimumAge, versions})
		}
	}
	return options(bounds)
}

// wishedAge is what the command and the profile say of a package.
func (s *sources) wishedAge(name string) (bounds []bound) {
	if !s.job.Before.IsZero() {
		bounds = append(bounds, bound{before: s.job.Before})
	}
	if min := s.job.settings.MinAge; min > 0 {
		if all, versions := exempted(s.job.settings.AgeExcept, name); !all {
			bounds = append(bounds, bound{s.now.Add(-min), min, versions})
		}
	}
	return bounds
}

// options picks what keeps all bounds.
func options(bounds []bound) registry.PickOptions {
	opts := registry.PickOptions{NodeVersion: assumedNode()}
	some := false
	for _, b := range bounds {
		if opts.Before.IsZero() || b.before.Before(opts.Before) {
			opts.Before, opts.Age = b.before, b.age
		}
		some = some || len(b.exempt) > 0
	}
	if some {
		opts.Exempt = func(version string, published time.Time) bool {
			return !slices.ContainsFunc(bounds, func(b bound) bool { return published.After(b.before) && !slices.Contains(b.exempt, version) })
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
