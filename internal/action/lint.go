package action

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"dsh/internal/check"
	"dsh/internal/compose"
	"dsh/internal/fault"
	"dsh/internal/installation"
	"dsh/internal/profile"
)

// LintOptions say what to lint.
type LintOptions struct {
	// Files are patch files, folders of packages and their package.json; "-" is
	// Stdin.
	Files []string
	Stdin []byte
}

// LintReport is what was found in single files.
type LintReport struct {
	Files    []string        `json:"files"` // that were read
	Findings []check.Finding `json:"findings"`
	Counts   CheckCounts     `json:"counts"`
}

// Lint looks for mistakes in patch files and bundles, each by itself. A file
// that is not there is an error.
func Lint(ctx context.Context, env Env, opts LintOptions) (*LintReport, error) {
	l := linter{env: env, rules: check.Options{Schema: knownSchemas(env), Rules: pathRules(env.Installation)}, report: &LintReport{Findings: []check.Finding{}}}
	l.userHome, _ = profile.UserHome(env.Getenv) // without one ~ is an ordinary name
	for _, name := range opts.Files {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := l.lint(name, opts.Stdin); err != nil {
			return nil, err
		}
	}
	l.report.Counts = count(l.report.Findings)
	return l.report, nil
}

type linter struct {
	env      Env
	rules    check.Options
	userHome string
	report   *LintReport
}

func (l linter) lint(name string, stdin []byte) error {
	if name == "-" {
		l.text(compose.Source{File: "<stdin>", Dir: l.env.Dir, Kind: compose.PatchLayer}, stdin)
		return nil
	}
	file := name
	if !filepath.IsAbs(file) {
		file = filepath.Join(l.env.Dir, name)
	}
	info, err := os.Stat(file)
	if err != nil {
		return fault.WithClass(fault.Composition, fmt.Errorf("lint %s: %w", name, unwrapPath(err)))
	}
	switch {
	case info.IsDir():
		return l.bundle(name, file)
	case filepath.Base(file) == "package.json":
		return l.bundle(filepath.Dir(name), filepath.Dir(file))
	}
	if dir, patch, ok := packageOf(file); ok {
		pkg, err := installation.OpenPackage(dir)
		if err == nil {
			return l.patch(pkg, name, patch)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return fault.WithClass(fault.Composition, fmt.Errorf("lint %s: %w", name, unwrapPath(err)))
	}
	l.text(compose.Source{File: name, Dir: filepath.Dir(file), Kind: l.kind(file)}, text)
	return nil
}

// unwrapPath is err without the path, which the message around it has.
func unwrapPath(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

// kind is what layer a file is by where it lies.
func (l linter) kind(file string) compose.Kind {
	dir := filepath.Dir(file)
	switch {
	case filepath.Base(file) != patchFile:
		return compose.PatchLayer
	case file == l.env.Home.PatchPath():
		return compose.HomeLayer
	case filepath.Dir(dir) == l.env.Home.ProfilesDir():
		return compose.ProfileLayer
	case filepath.Base(dir) == ".dsh":
		return compose.ProjectLayer
	default:
		return compose.PatchLayer
	}
}

func (l linter) text(src compose.Source, text []byte) {
	src.UserHome = l.userHome
	l.report.Files = append(l.report.Files, src.File)
	l.report.Findings = append(l.report.Findings, check.File(src, text, l.rules)...)
}

// bundle lints the patch files that a package declares. name is the folder as
// the user wrote it.
func (l linter) bundle(name, dir string) error {
	pkg, err := installation.OpenPackage(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return fault.WithHint(fault.Errorf(fault.Composition, "lint %s: there is no package.json", name), "name a patch file, or the folder of a bundle")
	}
	if err != nil {
		return err
	}
	manifest := filepath.Join(name, "package.json")
	l.report.Files = append(l.report.Files, manifest)
	declared, err := readDeclaration(pkg.Manifest)
	f := check.Finding{Code: check.BundleNoLayer, Severity: check.Error, File: manifest, Blocks: true}
	switch {
	case err != nil:
		f.Code, f.Message, f.Remedy = check.BundleBroken, err.Error(), howToDeclare
		l.report.Findings = append(l.report.Findings, f)
		return nil
	case len(declared.patches) == 0:
		f.Message, f.Remedy = "package.json declares no dsh.bundle, so that the package has no layer", howToDeclare
		l.report.Findings = append(l.report.Findings, f)
		return nil
	}
	for _, patch := range declared.patches {
		if !declared.packs(patch) {
			l.report.Findings = append(l.report.Findings, check.Finding{
				Code: check.FileNotPacked, Severity: check.Warning, File: manifest,
				Message: fmt.Sprintf("the files of package.json do not name %s, so that npm would leave it out", patch),
				Remedy:  fmt.Sprintf("add %q to files", path.Clean(patch)),
			})
		}
		if err := l.patch(pkg, filepath.Join(name, filepath.FromSlash(patch)), patch); err != nil {
			return err
		}
	}
	return nil
}

const howToDeclare = `add "dsh": {"bundle": {"patch": "./cordis.patch.yml"}}`

// patch lints one patch file of a package. name is what messages call it.
func (l linter) patch(pkg installation.Package, name, patch string) error {
	text, err := pkg.ReadFile(patch)
	if err == nil {
		l.text(compose.Source{
			File: name, Dir: filepath.Dir(filepath.Join(pkg.Dir, filepath.FromSlash(patch))), Kind: compose.BundleLayer, Root: pkg.Dir,
		}, text)
		return nil
	}
	f := check.Finding{Code: check.FileMissing, Severity: check.Error, File: name, Blocks: true}
	f.Message, f.Remedy = "package.json names this patch file, and it is not there", "write the file, or correct dsh.bundle.patch"
	if _, escapes := errors.AsType[*installation.EscapeError](err); escapes {
		f.Code, f.Message = check.PathLeaves, err.Error()
		f.Remedy = "keep the patch file inside the package"
	} else if !errors.Is(err, fs.ErrNotExist) {
		f.Code, f.Message, f.Remedy = check.Unreadable, err.Error(), ""
	}
	l.report.Findings = append(l.report.Findings, f)
	return nil
}

// declaration is what a package.json says of a bundle and its files.
type declaration struct {
	patches []string
	files   []string // what npm packs; nil: everything
}

func readDeclaration(manifest []byte) (declaration, error) {
	var root struct {
		Files []string
		DSH   struct {
			Bundle struct{ Patch json.RawMessage }
		} `json:"dsh"`
	}
	var d declaration
	if err := json.Unmarshal(manifest, &root); err != nil {
		return d, errors.New("dsh.bundle and files in package.json have another form than they should")
	}
	d.files = root.Files
	var one string
	switch patch := root.DSH.Bundle.Patch; {
	case patch == nil:
	case json.Unmarshal(patch, &one) == nil && one != "":
		d.patches = []string{one}
	case json.Unmarshal(patch, &d.patches) != nil || len(d.patches) == 0:
		return d, errors.New("dsh.bundle.patch must be a file path or a list of file paths")
	}
	return d, nil
}

// packs says whether npm packs a file. Patterns that only npm knows count as
// if they named it.
func (d declaration) packs(file string) bool {
	if d.files == nil {
		return true
	}
	file = path.Clean(filepath.ToSlash(file))
	for _, pattern := range d.files {
		pattern = path.Clean("/" + strings.TrimPrefix(filepath.ToSlash(pattern), "./"))[1:]
		if pattern == "" || strings.ContainsAny(pattern, "!{}()") || strings.Contains(pattern, "**") {
			return true
		}
		// A folder packs everything in it.
		for part := file; part != "."; part = path.Dir(part) {
			if ok, err := path.Match(pattern, part); ok || err != nil {
				return true
			}
		}
	}
	return false
}

// packageOf is the package that declares a file as one of its patch files, and
// what it calls the file.
func packageOf(file string) (dir, patch string, ok bool) {
	for dir = filepath.Dir(file); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		pkg, err := installation.OpenPackage(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", "", false
		}
		declared, err := readDeclaration(pkg.Manifest)
		if err != nil {
			return "", "", false
		}
		i := slices.IndexFunc(declared.patches, func(p string) bool { return filepath.Join(dir, filepath.FromSlash(p)) == file })
		if i < 0 {
			return "", "", false
		}
		return dir, declared.patches[i], true
	}
	return "", "", false
}
