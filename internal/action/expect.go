package action

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"dsh/internal/check"
	"dsh/internal/fault"
	"dsh/internal/inspect"
	"dsh/internal/install"
	"dsh/internal/install/store"
	"dsh/internal/installation"
)

// Expect is what a package that is added has to be, so that nothing else comes in
// by mistake. The zero value expects nothing.
type Expect struct {
	// Repository is where its source has to be kept; none is any.
	Repository install.Repository
	Layer      bool // it has to bring a layer
}

// UnexpectedRepositoryError refuses a package whose source is another than was
// expected.
type UnexpectedRepositoryError struct {
	Package string // name@version
	Want    install.Repository
	Have    install.Repository // none: it claims none
	Git     bool               // that is where it comes from, and not what it claims
}

func (e *UnexpectedRepositoryError) Error() string {
	switch {
	case e.Have.IsZero():
		return fmt.Sprintf("%s is expected to be of the repository %s, and names none", e.Package, e.Want)
	case e.Git:
		return fmt.Sprintf("%s is expected to be of the repository %s, and comes from %s", e.Package, e.Want, e.Have)
	}
	return fmt.Sprintf("%s is expected to be of the repository %s, and says that it is of %s", e.Package, e.Want, e.Have)
}

// Class is Policy.
func (e *UnexpectedRepositoryError) Class() fault.Class { return fault.Policy }

// Hint says how to get what was expected.
func (e *UnexpectedRepositoryError) Hint() string {
	return "what is in that repository is looked at with: dsh plugin info " + fault.ShellWord(repositoryWord(e.Want))
}

// repositoryWord is a repository as a command takes it.
func repositoryWord(r install.Repository) string {
	if r.Host == "github.com" {
		return "github:" + r.String()
	}
	return "https://" + r.String() + ".git"
}

// repositoryOf is where a package's source is kept: for one from git where it comes
// from, else what it claims.
func repositoryOf(origin install.Origin, packageJSON []byte) (r install.Repository, git bool) {
	if origin.Kind == install.Git {
		place, _, _ := strings.Cut(origin.Place, "#")
		if r, err := install.ParseRepository(place); err == nil {
			return r, true
		}
	}
	return install.RepositoryIn(packageJSON), false
}

// check holds what a job is about to add against what is expected of it.
func (e Expect) check(result *install.Result) error {
	for _, c := range result.Changes {
		if c.Action != install.Added && c.Action != install.Updated && c.Action != install.Kept {
			continue
		}
		if e.Layer && c.Layer != install.LayerAdded && c.Layer != install.LayerKept {
			return fault.WithHint(fault.Errorf(fault.Composition, "%s@%s brings no layer, and --strict asks for one%s; nothing was changed", c.Name, c.Version, belowText(result, c.Name)),
				"without --strict it is installed as a plain dependency")
		}
		if e.Repository.IsZero() {
			continue
		}
		s, ok := result.Staged(c.Name)
		if !ok {
			continue
		}
		pkg, err := installation.OpenPackage(s.Files)
		if err != nil {
			return err
		}
		have, git := repositoryOf(result.Lock().Nodes["node_modules/"+c.Name].Origin, pkg.Manifest)
		if !e.Repository.Same(have) {
			return &UnexpectedRepositoryError{Package: c.Name + "@" + c.Version, Want: e.Repository, Have: have, Git: git}
		}
	}
	return nil
}

// belowText names the bundles in folders of a package.
func belowText(result *install.Result, name string) string {
	s, ok := result.Staged(name)
	if !ok || s.Files == "" {
		return ""
	}
	below := inspect.BundlesBelow(s.Files, pathsOf(result.Listed(name)))
	if len(below) == 0 {
		return ""
	}
	return "; there are bundles in its folders " + strings.Join(below, ", ")
}

// pathsOf are the paths of files, those of links aside; nil of nil.
func pathsOf(files []store.File) []string {
	if files == nil {
		return nil
	}
	paths := make([]string, 0, len(files))
	for _, f := range files {
		if f.Link == "" {
			paths = append(paths, f.Path)
		}
	}
	return paths
}

// inert is a warning for each package that a job adds, that brings no layer, and in
// which there are bundles that do.
func inert(result *install.Result) []string {
	var warnings []string
	for _, c := range result.Changes {
		if c.Action != install.Added || c.Layer != install.NoLayer {
			continue
		}
		switch result.Lock().Nodes["node_modules/"+c.Name].Origin.Kind {
		case install.Git, install.URL, install.Archive:
			continue // the job says so itself, with the commands that add them
		}
		if below := belowText(result, c.Name); below != "" {
			warnings = append(warnings, c.Name+" brings no layer"+below)
		}
	}
	return warnings
}

// lacking is a warning for each package that a job adds or updates and that lacks
// files which its package.json declares. Covered are the findings about rows that
// say no more than these warnings do.
func lacking(result *install.Result, command func(words ...string) string) (warnings []string, covered func(check.Finding) bool) {
	lacks := map[string][]inspect.Lack{} // by package
	for _, c := range result.Changes {
		if c.Action != install.Added && c.Action != install.Updated {
			continue
		}
		s, ok := result.Staged(c.Name)
		if !ok {
			continue
		}
		pkg, err := installation.OpenPackage(s.Files)
		if err != nil {
			continue // said elsewhere
		}
		lacks[c.Name] = inspect.Lacking(pkg)
		if len(lacks[c.Name]) == 0 {
			continue
		}
		var files []string
		for _, l := range lacks[c.Name] {
			files = append(files, fmt.Sprintf("%s (%s)", l.File, l.Field))
		}
		have := "has no such file"
		if len(files) > 1 {
			have = "has none of these files"
		}
		text := fmt.Sprintf("%s@%s declares %s, and %s", c.Name, c.Version, strings.Join(files, ", "), have)
		n := result.Lock().Nodes["node_modules/"+c.Name]
		if n.Package != nil {
			text += whyLacking(pkg, n, command)
		}
		warnings = append(warnings, text)
	}
	return warnings, func(f check.Finding) bool {
		for name, list := range lacks {
			if slices.ContainsFunc(list, func(l inspect.Lack) bool { return l.Covers(f, name) }) {
				return true
			}
		}
		return false
	}
}

// whyLacking says why files are not there that a package declares, where its scripts
// tell it, and what helps.
func whyLacking(pkg installation.Package, n install.Located, command func(words ...string) string) string {
	var manifest struct{ Scripts map[string]string }
	_ = json.Unmarshal(pkg.Manifest, &manifest)
	if n.Origin.Kind != install.Git && n.Origin.Kind != install.Folder && n.Origin.Kind != install.Link {
		return ": it is mis-published, and its author has to publish it anew"
	}
	if n.Origin.Kind == install.Git && manifest.Scripts["prepare"] == "" && manifest.Scripts["prepublishOnly"] != "" {
		repository, _ := repositoryOf(n.Origin, pkg.Manifest)
		return fmt.Sprintf(": its author builds them only when it is published (prepublishOnly); if the registry has it, %s says whether that is the same package, and %s takes it",
			fault.ShellWords("dsh", "plugin", "info", n.Name, "--expect-repo", repository.String()), command("add", n.Name+"@latest"))
	}
	for _, script := range []string{"prepare", "build", "prepack", "prepublishOnly"} {
		if manifest.Scripts[script] != "" {
			return fmt.Sprintf(": its script %s may build them", script)
		}
	}
	return ""
}
