package action

import (
	"cmp"
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
	"dsh/internal/inspect"
	"dsh/internal/installation"
	"dsh/internal/stack"
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

// Lint looks for mistakes in patch files and bundles, each by itself. What cannot
// be read is a finding, and no reason to leave the rest out.
func Lint(ctx context.Context, env Env, opts LintOptions) (*LintReport, error) {
	l := linter{env: env, rules: check.Options{Schema: knownSchemas(env), Rules: pathRules(env.Installation)}, report: &LintReport{Findings: []check.Finding{}}}
	l.userHome = env.userHome()
	for _, name := range opts.Files {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		l.lint(name, opts.Stdin)
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

func (l linter) lint(name string, stdin []byte) {
	if name == "-" {
		l.text(compose.Source{File: "<stdin>", Dir: l.env.Dir, Kind: compose.PatchLayer}, stdin)
		return
	}
	file := l.env.inDir(name)
	info, err := os.Stat(file)
	switch {
	case err != nil:
		l.unreadable(name, err)
		return
	case info.IsDir():
		l.bundle(name, file)
		return
	case filepath.Base(file) == "package.json":
		l.bundle(filepath.Dir(name), filepath.Dir(file))
		return
	}
	if pkg, patch, ok := packageOf(file); ok {
		l.patch(pkg, name, patch)
		return
	}
	text, err := os.ReadFile(file)
	if err != nil {
		l.unreadable(name, err)
		return
	}
	l.text(compose.Source{File: name, Dir: filepath.Dir(file), Kind: l.kind(file)}, text)
}

func (l linter) add(f check.Finding) { l.report.Findings = append(l.report.Findings, f) }

// unreadable is a finding about a file that cannot be read.
func (l linter) unreadable(name string, err error) {
	l.add(check.Finding{
		Code: check.Unreadable, Severity: check.Error, File: name, Blocks: true,
		Message: fmt.Sprintf("the file cannot be read: %v", unwrapPath(err)), Remedy: "name a patch file, or the folder of a bundle",
	})
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

// text lints one text, and gives its patches where it is one of patches.
func (l linter) text(src compose.Source, text []byte) []compose.Patch {
	src.UserHome = l.userHome
	l.report.Files = append(l.report.Files, src.File)
	l.report.Findings = append(l.report.Findings, check.File(src, text, l.rules)...)
	patches, err := compose.ParsePatches(src, text)
	if err != nil {
		return nil // a finding already
	}
	return patches
}

// bundle lints a package and the patch files that it declares. name is the
// folder as the user wrote it.
func (l linter) bundle(name, dir string) {
	manifest := filepath.Join(name, "package.json")
	pkg, err := installation.OpenPackage(dir)
	f := check.Finding{Code: check.BundleBroken, Severity: check.Error, File: manifest, Blocks: true}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.Code, f.File, f.Message, f.Remedy = check.Unreadable, name, "there is no package.json", "name a patch file, or the folder of a bundle"
		l.add(f)
		return
	case err != nil:
		f.Message, f.Remedy = err.Error(), fault.Hint(err)
		l.add(f)
		return
	}
	l.report.Files = append(l.report.Files, manifest)
	declared, err := readDeclaration(pkg.Manifest)
	switch {
	case err != nil:
		f.Message, f.Remedy = err.Error(), howToDeclare
		l.add(f)
		return
	case len(declared.patches) == 0:
		f.Code, f.Message, f.Remedy = check.BundleNoLayer, "package.json declares no dsh.bundle, so that the package has no layer", howToDeclare
		l.add(f)
		return
	}
	var patches []compose.Patch
	before := len(l.report.Findings)
	for _, patch := range declared.patches {
		if !declared.packs(patch) {
			l.add(check.Finding{
				Code: check.FileNotPacked, Severity: check.Warning, File: manifest,
				Message: fmt.Sprintf("the files of package.json do not name %s, so that npm would leave it out", patch),
				Remedy:  fmt.Sprintf("add %q to files", path.Clean(patch)),
			})
		}
		patches = append(patches, l.patch(pkg, filepath.Join(name, filepath.FromSlash(patch)), patch)...)
	}
	l.report.Findings = append(l.report.Findings, inspect.Bundle(pkg, manifest, patches)...)
	slices.SortStableFunc(l.report.Findings[before:], func(a, b check.Finding) int {
		return cmp.Or(
			cmp.Compare(slices.Index(l.report.Files, a.File), slices.Index(l.report.Files, b.File)),
			cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column),
		)
	})
}

const howToDeclare = `add "dsh": {"bundle": {"patch": "./cordis.patch.yml"}}`

// patch lints one patch file of a package. name is what messages call it.
func (l linter) patch(pkg installation.Package, name, patch string) []compose.Patch {
	text, err := pkg.ReadFile(patch)
	if err == nil {
		return l.text(compose.Source{
			File: name, Dir: filepath.Dir(filepath.Join(pkg.Dir, filepath.FromSlash(patch))), Kind: compose.BundleLayer, Root: pkg.Dir,
		}, text)
	}
	f := check.Finding{Code: check.FileMissing, Severity: check.Error, File: name, Blocks: true}
	f.Message, f.Remedy = "package.json names this patch file, and it is not there", "write the file, or correct dsh.bundle.patch"
	if _, escapes := errors.AsType[*installation.EscapeError](err); escapes {
		f.Code, f.Message = check.PathLeaves, err.Error()
		f.Remedy = "keep the patch file inside the package"
	} else if !errors.Is(err, fs.ErrNotExist) {
		f.Code, f.Message, f.Remedy = check.Unreadable, err.Error(), ""
	}
	l.add(f)
	return nil
}

// declaration is what a package.json says of a bundle and its files.
type declaration struct {
	patches []string
	files   []string // what npm packs; nil: everything
}

func readDeclaration(manifest []byte) (declaration, error) {
	patches, err := stack.PatchFiles(manifest)
	d := declaration{patches: patches}
	// What npm makes of files of another form is not ours to say.
	var root struct{ Files json.RawMessage }
	if json.Unmarshal(manifest, &root) == nil {
		_ = json.Unmarshal(root.Files, &d.files)
	}
	return d, err
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
func packageOf(file string) (pkg installation.Package, patch string, ok bool) {
	for dir := filepath.Dir(file); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		pkg, err := installation.OpenPackage(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return pkg, "", false
		}
		declared, err := readDeclaration(pkg.Manifest)
		if err != nil {
			return pkg, "", false
		}
		i := slices.IndexFunc(declared.patches, func(p string) bool { return filepath.Join(dir, filepath.FromSlash(p)) == file })
		if i < 0 {
			return pkg, "", false
		}
		return pkg, declared.patches[i], true
	}
	return pkg, "", false
}
