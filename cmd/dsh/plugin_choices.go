package main

import (
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"dsh/internal/action"
	"dsh/internal/fault"
	"dsh/internal/install"
)

// readChoices reads the flags that say which versions are taken and where
// from.
func readChoices(c *cli.Context, opts *action.PluginOptions) (err error) {
	chosen := 0
	for _, mode := range []struct {
		flag string
		mode action.CacheMode
	}{{"offline", action.Offline}, {"prefer-offline", action.PreferOffline}, {"fresh", action.Fresh}} {
		if c.Bool(mode.flag) {
			opts.Mode = mode.mode
			chosen++
		}
	}
	if chosen > 1 {
		return fault.Errorf(fault.Other, "--offline, --prefer-offline and --fresh exclude each other")
	}
	if c.IsSet("before") {
		if opts.Before, err = parseMoment(c.String("before")); err != nil {
			return err
		}
	}
	if c.IsSet("min-release-age") {
		age, err := parseAge(c.String("min-release-age"))
		if err != nil {
			return err
		}
		opts.MinAge = &age
	}
	if c.IsSet("host-packages") {
		if opts.Hosts, err = install.ParseHostPolicy(c.String("host-packages")); err != nil {
			return fault.Errorf(fault.Other, "--host-packages: %w", err)
		}
	}
	return nil
}

// parseMoment reads a time of RFC 3339, or a day, which means its beginning in
// the time zone of the world: the same everywhere.
func parseMoment(text string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.Parse(layout, strings.TrimSpace(text)); err == nil {
			return at.UTC(), nil
		}
	}
	return time.Time{}, fault.WithHint(fault.Errorf(fault.Other, "--before: %q is no day and no time", text),
		"write it as 2026-11-30, or with a time as 2026-11-30T12:00:00Z")
}

// longestAge bounds what is read as an age, so that sums of times stay times.
const longestAge = 100 * 365 * 24 * time.Hour

// parseAge reads a time with a unit, of which weeks and days are more than Go
// knows, or 0.
func parseAge(text string) (time.Duration, error) {
	bad := fault.WithHint(fault.Errorf(fault.Other, "--min-release-age: %q is no age", text), "write it as 3d, 12h, 90m or 2w, or as 0 for none")
	trimmed := strings.TrimSpace(text)
	if trimmed == "0" {
		return 0, nil
	}
	for unit, long := range map[string]time.Duration{"d": 24 * time.Hour, "w": 7 * 24 * time.Hour} {
		number, ok := strings.CutSuffix(trimmed, unit)
		if !ok {
			continue
		}
		n, err := strconv.ParseFloat(number, 64)
		if err != nil || !(n >= 0 && n <= float64(longestAge/long)) {
			return 0, bad
		}
		return time.Duration(n * float64(long)), nil
	}
	age, err := time.ParseDuration(trimmed)
	if err != nil || age < 0 || age > longestAge {
		return 0, bad
	}
	return age, nil
}

// namesOnly refuses addresses where names of packages are wanted, before a message
// repeats one with a password in it.
func (p *pluginRun) namesOnly(args []string) error {
	for _, arg := range args {
		if strings.Contains(arg, "://") {
			return fault.WithHint(fault.Errorf(fault.Other, "plugin %s takes names of packages, and %s is an address", p.cli.Command.Name, install.ShownSpec(arg)),
				"dsh plugin --profile %s list shows the names", p.shellProfile())
		}
	}
	return nil
}
