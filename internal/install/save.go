package install

import (
	"net/url"
	"path/filepath"
	"strings"

	"dsh/internal/npmrange"
)

// saved is what package.json gets for a package that was asked for as spec.
// old is what stands there now, "" for a newcomer. The rules are pnpm's, since
// pnpm works on the same file: an exact version stays exact, "~1.2", "1.2" and
// "1.2.x" become ~ and everything else ^, both with the version that was
// picked; a prerelease is pinned, because no range that people write would
// ever reach the next one; and a pin stays a pin.
func saved(spec Spec, pkg *Package, dir, old string, exact bool) string {
	switch spec.Kind {
	case Registry:
		return withAlias(spec, rangeStyle(spec.Wanted, old, pkg.Version, exact)+pkg.Version)
	case URL:
		return originPlace(spec, dir)
	case Git:
		return spec.Git.String()
	case Link:
		return "link:" + originPlace(spec, dir)
	default:
		return "file:" + originPlace(spec, dir)
	}
}

// withAlias writes a range for the package that spec targets.
func withAlias(spec Spec, wanted string) string {
	if spec.Name != spec.Target {
		return "npm:" + spec.Target + "@" + wanted
	}
	return wanted
}

// rangeStyle is the operator in front of a saved version: "^", "~" or none.
func rangeStyle(wanted, old, version string, exact bool) string {
	if v, err := npmrange.ParseVersionLoose(version); err != nil || v.Prerelease() {
		return ""
	}
	_, oldWanted := cutAlias(old)
	if exact || isExact(wanted) || isExact(oldWanted) {
		return ""
	}
	wanted = strings.TrimSpace(wanted)
	if strings.HasPrefix(wanted, "~") {
		return "~"
	}
	if parts := strings.Split(wanted, "."); len(parts) == 2 || (len(parts) == 3 && isAny(parts[2])) {
		if isNumber(parts[0]) && !isAny(parts[1]) && isNumber(parts[1]) || len(parts) == 2 && isNumber(parts[0]) && isAny(parts[1]) {
			return "~"
		}
	}
	return "^"
}

// operator is the operator of a saved range that holds one version behind
// it, "" for every other text.
func operator(wanted string) string {
	_, wanted = cutAlias(wanted)
	for _, op := range []string{"^", "~"} {
		if rest, ok := strings.CutPrefix(wanted, op); ok && isExact(rest) {
			return op
		}
	}
	return ""
}

// cutAlias takes "npm:name@" off a saved spec.
func cutAlias(text string) (target, wanted string) {
	if real, ok := strings.CutPrefix(text, "npm:"); ok {
		if target, wanted, ok := splitName(real); ok {
			return target, wanted
		}
	}
	return "", text
}

func isExact(s string) bool {
	_, err := npmrange.ParseVersion(s)
	return err == nil && s != ""
}

func isRange(s string) bool {
	_, err := npmrange.ParseRangeLoose(s)
	return err == nil
}

func isAny(s string) bool { return s == "x" || s == "X" || s == "*" }

func isNumber(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// originPlace is the place of a spec as manifest and lockfile hold it: a
// relative path stays relative to the profile, an absolute one absolute.
func originPlace(spec Spec, dir string) string {
	place := spec.Place
	switch {
	case spec.Kind == Git:
		return spec.Git.String()
	case spec.Kind == URL:
		return forced(spec) + addInside(place, spec.Inside)
	case spec.Relative:
		if rel, err := filepath.Rel(dir, place); err == nil {
			place = rel
		}
	}
	return addInside(filepath.ToSlash(place), spec.Inside)
}

// forced is what go-getter reads in front of an address.
func forced(spec Spec) string {
	if spec.Forced == "" {
		return ""
	}
	return spec.Forced + "::"
}

// addInside names a folder in an archive, behind the archive and before the
// query of an address.
func addInside(place, inside string) string {
	if inside == "" {
		return place
	}
	query := ""
	if strings.Contains(place, "://") {
		if i := strings.IndexAny(place, "?#"); i >= 0 {
			place, query = place[:i], place[i:]
		}
		inside = (&url.URL{Path: inside}).EscapedPath()
	}
	return place + "//" + inside + query
}
