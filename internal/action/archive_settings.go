package action

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"dsh/internal/boot/environ"
	"dsh/internal/install"
	"dsh/internal/staging"
	"dsh/internal/trust"
)

// PlanSetting is a file of an archive that changes what happens later, here or
// when another package manager works on the profile.
type PlanSetting struct {
	File string `json:"file"`
	Does string `json:"does"` // goes on where File ends
}

// settingsIn finds them among the files of a profile.
func settingsIn(files []staging.SavedFile) []PlanSetting {
	found := []PlanSetting{}
	for _, f := range files {
		for _, does := range whatDoes(f) {
			found = append(found, PlanSetting{f.Path, does})
		}
	}
	return found
}

// whatDoes says what a file changes by its name.
func whatDoes(f staging.SavedFile) []string {
	base := strings.ToLower(path.Base(f.Path)) // some systems open it by any case
	switch {
	case base == npmrcName:
		return does("sets %s", npmrcSettings(f.Data))
	case base == ".env" || strings.HasPrefix(base, ".env.") && isSecretFile(base):
		return does("sets %s", environ.Names(string(f.Data)))
	case base == ".pnpmfile.cjs" || base == ".pnpmfile.mjs":
		return []string{"is code that pnpm runs"}
	case base == ".yarnrc.yml":
		return []string{"can name code that yarn runs"}
	case base == install.WorkspaceName:
		approvals, err := trust.PnpmApprovals(f.Data, nil)
		if err != nil {
			return []string{"cannot be read, so that nobody knows what pnpm would run by it"}
		}
		approvals = slices.DeleteFunc(approvals, func(a trust.PnpmRule) bool { return !a.Allowed })
		var allowed []string
		for _, a := range approvals {
			allowed = append(allowed, a.Package)
		}
		return does("lets pnpm run scripts of %s", allowed)
	case base == manifestName:
		return does("has scripts that npm and pnpm run when they install: %s", installScripts(f.Data))
	}
	return nil
}

func does(format string, names []string) []string {
	if len(names) == 0 {
		return nil
	}
	return []string{fmt.Sprintf(format, strings.Join(names, ", "))}
}

// npmrcSettings is the registries of an .npmrc with their addresses, and the
// names of its other settings, whose values may be secret.
func npmrcSettings(text []byte) []string {
	var settings []string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#' || line[0] == ';':
		case isRegistryLine(line):
			settings = append(settings, line)
		default:
			key, _, _ := strings.Cut(line, "=")
			settings = append(settings, strings.TrimSpace(key))
		}
	}
	return settings
}

// installScripts is the scripts of a manifest that package managers run by
// themselves in the directory that they install in.
func installScripts(text []byte) []string {
	var manifest struct{ Scripts map[string]json.RawMessage }
	if json.Unmarshal(text, &manifest) != nil {
		return nil // that is refused elsewhere
	}
	var found []string
	for _, name := range []string{"pnpm:devPreinstall", "preinstall", "install", "postinstall", "prepublish", "preprepare", "prepare", "postprepare"} {
		if _, ok := manifest.Scripts[name]; ok {
			found = append(found, name)
		}
	}
	return found
}
