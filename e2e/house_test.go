package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	source "go/token"
	"go/types"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// root is the project's directory.
func root() string { return filepath.Dir(sourceDir()) }

// mayImport is who may import whom, of our own packages, tests left out.
var mayImport = map[string][]string{
	"internal/fault":                     {},
	"internal/staging":                   {"internal/fault"},
	"internal/archive":                   {"internal/fault", "internal/portable"},
	"internal/portable":                  {},
	"internal/pkgpath":                   {},
	"internal/agentplugin":               {"internal/fault", "internal/pkgpath"},
	"internal/mcp":                       {"internal/compose", "internal/fault", "internal/install/registry"},
	"internal/skills":                    {"internal/fault"},
	"internal/npmrange":                  {},
	"internal/launch":                    {"internal/fault"},
	"internal/compose":                   {"internal/compose/jsexpr", "internal/fault"},
	"internal/compose/jsexpr":            {},
	"internal/compose/configschema":      {"internal/compose"},
	"internal/check":                     {"internal/compose", "internal/compose/configschema", "internal/compose/jsexpr", "internal/fault", "internal/patchedit"},
	"internal/inspect":                   {"internal/check", "internal/compose", "internal/fault", "internal/install/manifest", "internal/installation", "internal/npmrange", "internal/profile", "internal/program", "internal/stack"},
	"internal/program":                   {"internal/fault", "internal/installation", "internal/pkgpath"},
	"internal/patchedit":                 {"internal/compose", "internal/fault"},
	"internal/trust":                     {"internal/fault", "internal/staging", "internal/workspace"},
	"internal/workspace":                 {},
	"internal/build":                     {"internal/fault", "internal/staging"},
	"internal/profile":                   {"internal/fault", "internal/portable", "internal/staging", "profiles"},
	"internal/installation":              {"internal/fault", "internal/npmrange", "internal/profile", "bundles"},
	"internal/runtimes":                  {"internal/fault", "internal/npmrange", "internal/profile", "internal/staging"},
	"internal/install":                   {"internal/agentplugin", "internal/archive", "internal/build", "internal/workspace", "internal/fault", "internal/npmrange", "internal/profile", "internal/staging", "internal/trust", "internal/install/download", "internal/install/git", "internal/install/manifest", "internal/install/registry", "internal/install/store", "internal/install/unpack"},
	"internal/install/download":          {"internal/fault", "internal/staging", "internal/install/registry"},
	"internal/install/git":               {"internal/fault", "internal/npmrange", "internal/staging"},
	"internal/install/manifest":          {"internal/install/manifest/jsonscan"},
	"internal/install/manifest/jsonscan": {},
	"internal/install/registry":          {"internal/fault", "internal/npmrange", "internal/staging", "internal/install/manifest", "internal/install/manifest/jsonscan"},
	"internal/install/store":             {"internal/fault", "internal/staging", "internal/install/manifest", "internal/install/store/inflate", "internal/install/unpack"},
	"internal/install/unpack":            {"internal/fault", "internal/portable"},
	"internal/install/store/inflate":     {},
	"internal/stack":                     {"internal/compose", "internal/fault", "internal/installation", "internal/npmrange", "internal/profile", "internal/trust"},
	"internal/advisory":                  {"internal/fault", "internal/npmrange", "internal/staging"},
	"internal/catalog":                   {"internal/fault", "internal/install", "internal/staging"},
	"internal/action": {
		"internal/catalog",
		"internal/advisory", "internal/agentplugin", "bundles", "internal/archive", "internal/compose", "internal/fault", "internal/install", "internal/install/manifest", "internal/install/registry", "internal/install/store", "internal/install/unpack",
		"internal/installation", "internal/profile", "internal/runtimes", "internal/stack", "internal/staging", "internal/trust",
		"internal/build", "internal/boot/environ", "internal/check", "internal/compose/jsexpr", "internal/inspect", "internal/mcp", "internal/npmrange", "internal/patchedit", "internal/portable", "internal/skills",
	},
	"internal/boot": {
		"bundles", "internal/action", "internal/boot/environ", "internal/boot/eval", "internal/boot/host", "internal/boot/live", "internal/boot/plugins", "internal/boot/plugins/executable", "internal/boot/slot",
		"internal/check", "internal/compose", "internal/compose/configschema", "internal/fault", "internal/installation", "internal/mcp", "internal/profile", "internal/program", "internal/stack", "internal/staging",
	},
	"internal/boot/environ":            {},
	"internal/boot/eval":               {"internal/boot/host", "internal/compose", "internal/compose/jsexpr", "internal/fault"},
	"internal/boot/host":               {"internal/compose", "internal/fault"},
	"internal/boot/plugins/executable": {"internal/boot/host", "internal/boot/slot", "internal/fault", "internal/program", "internal/staging"},
	"internal/boot/plugins": {
		"internal/boot/host", "internal/boot/page", "internal/compose",
		"internal/boot/plugins/agent", "internal/boot/plugins/credentials", "internal/boot/plugins/frontend", "internal/boot/plugins/hmr", "internal/boot/plugins/inventory", "internal/boot/plugins/mcpclient", "internal/boot/plugins/skill", "internal/boot/plugins/tools", "internal/boot/plugins/profileapi",
		"internal/boot/plugins/scope", "internal/boot/plugins/settings", "internal/boot/plugins/startup", "internal/boot/plugins/webruntime", "internal/boot/plugins/webserver",
	},
	"internal/boot/plugins/agent":       {"internal/boot/host", "internal/boot/slot", "internal/fault", "internal/boot/plugins/credentials"},
	"internal/boot/plugins/credentials": {"internal/boot/host", "internal/boot/slot", "internal/compose", "internal/fault", "internal/boot/plugins/settings"},
	"internal/boot/plugins/frontend":    {"internal/boot/host", "internal/fault", "internal/boot/plugins/webserver"},
	"internal/boot/plugins/inventory":   {"internal/boot/host", "internal/boot/slot", "internal/boot/plugins/webserver"},
	"internal/boot/plugins/profileapi": {
		"internal/action", "internal/boot/host", "internal/boot/slot", "internal/boot/plugins/skill", "internal/boot/plugins/tools", "internal/boot/plugins/webserver",
		"internal/check", "internal/compose", "internal/fault", "internal/install", "internal/installation", "internal/profile", "internal/staging",
	},
	"internal/boot/plugins/mcpclient":  {"internal/boot/host", "internal/boot/slot", "internal/boot/plugins/tools", "internal/fault", "internal/mcp"},
	"internal/boot/plugins/skill":      {"internal/boot/host", "internal/boot/slot", "internal/boot/plugins/tools", "internal/fault", "internal/skills"},
	"internal/boot/plugins/tools":      {"internal/boot/host", "internal/boot/slot", "internal/fault"},
	"internal/boot/plugins/scope":      {"internal/boot/host", "internal/fault"},
	"internal/boot/plugins/settings":   {"internal/boot/host", "internal/boot/slot", "internal/compose", "internal/fault", "internal/boot/live"},
	"internal/boot/plugins/startup":    {"internal/boot/host", "internal/boot/slot", "internal/compose", "internal/fault", "internal/boot/plugins/webserver"},
	"internal/boot/plugins/webruntime": {"internal/boot/host", "internal/boot/slot", "internal/fault", "internal/boot/plugins/webserver"},
	"internal/boot/plugins/webserver":  {"internal/boot/host", "internal/boot/slot", "internal/compose", "internal/fault"},
	"internal/boot/plugins/hmr":        {"internal/boot/host", "internal/boot/live", "internal/boot/slot", "internal/profile"},
	"internal/boot/live":               {"internal/boot/slot", "internal/compose", "internal/fault", "internal/profile"},
	"internal/boot/slot":               {"internal/action", "internal/boot/environ", "internal/boot/host"},
	"internal/boot/page":               {},
	"internal/ui":                      {"internal/fault"},
	"profiles":                         {},
	"bundles":                          {},
	"cmd/dsh": {
		"internal/action", "internal/advisory", "internal/agentplugin", "internal/boot", "internal/build", "internal/catalog", "internal/fault", "internal/install", "internal/launch",
		"internal/profile", "internal/stack", "internal/staging", "internal/trust", "internal/ui", "internal/check", "internal/compose", "internal/boot/environ", "internal/boot/eval", "internal/boot/host",
	},
	"e2e/npmtest":  {},
	"e2e/gittest":  {},
	"e2e/bench":    {},
	"e2e/mcpprobe": {},
}

// imports lists what each package of the project imports, tests left out.
func imports(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	err := filepath.WalkDir(root(), func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || (d.Name()[0] == '.' && file != root())) {
			return fs.SkipDir
		}
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		parsed, err := parser.ParseFile(source.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root(), filepath.Dir(file))
		if err != nil {
			return err
		}
		pkg := filepath.ToSlash(rel)
		for _, spec := range parsed.Imports {
			found[pkg] = append(found[pkg], strings.Trim(spec.Path.Value, `"`))
		}
		if found[pkg] == nil {
			found[pkg] = []string{}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestWhoMayImportWhom(t *testing.T) {
	for pkg, list := range imports(t) {
		allowed, known := mayImport[pkg]
		if !known {
			t.Errorf("package %s is not in the table of who may import whom", pkg)
		}
		for _, imported := range list {
			ours, ok := strings.CutPrefix(imported, "dsh/")
			if ok && !slices.Contains(allowed, ours) {
				t.Errorf("%s imports %s, which the table does not allow", pkg, ours)
			}
		}
	}
}

func TestOutsideWorldStaysAtTheEdge(t *testing.T) {
	only := map[string][]string{
		// Composition is a function of its arguments.
		"os":       {"!internal/compose", "!internal/launch", "!internal/npmrange"},
		"net/http": {"internal/boot/plugins/frontend", "internal/boot/plugins/inventory", "internal/boot/plugins/profileapi", "internal/boot/plugins/webserver", "internal/install/download", "internal/install/registry", "internal/mcp", "e2e/npmtest", "e2e/gittest"},
		// Layers, edits of them, pnpm's own files, policies, catalogues, and the frontmatter of skills.
		"gopkg.in/yaml.v3":                           {"internal/agentplugin", "internal/catalog", "internal/compose", "internal/patchedit", "internal/install", "internal/skills", "internal/trust", "internal/workspace"},
		"github.com/modelcontextprotocol/go-sdk/mcp": {"internal/mcp", "e2e/mcpprobe"},
		"github.com/hashicorp/go-getter/v2":          {"internal/install/download"},
		"github.com/urfave/cli/v2":                   {"cmd/dsh"},
		"golang.org/x/term":                          {"internal/ui"},
	}
	for pkg, list := range imports(t) {
		for _, imported := range list {
			rule, ok := only[imported]
			if !ok {
				continue
			}
			forbidden := slices.Contains(rule, "!"+pkg) || (rule[0][0] != '!' && !slices.Contains(rule, pkg))
			if forbidden {
				t.Errorf("%s imports %s", pkg, imported)
			}
		}
	}
}

// writers are the functions that change files, directories or links, by their
// full names.
var writers = func() map[string]bool {
	of := map[string]string{
		"os.": "WriteFile Create CreateTemp OpenFile Mkdir MkdirAll MkdirTemp Rename Remove RemoveAll Symlink Link " +
			"Chmod Chown Lchown Chtimes Truncate CopyFS",
		"(*os.Root).": "WriteFile Create OpenFile Mkdir MkdirAll Rename Remove RemoveAll Symlink Link Chmod Chown Lchown Chtimes",
		"(*os.File).": "Chmod Chown Truncate",
		"io/ioutil.":  "WriteFile TempFile TempDir",
		"syscall.": "Open Creat Mkdir Mkdirat Mknod Rename Renameat Unlink Unlinkat Rmdir Symlink Link Chmod Fchmod Fchmodat Chown Lchown " +
			"Truncate Utimes UtimesNano CreateFile DeleteFile MoveFile",
		"(*github.com/hashicorp/go-getter/v2.Client).": "Get",
	}
	all := map[string]bool{}
	for owner, names := range of {
		for name := range strings.FieldsSeq(names) {
			all[owner+name] = true
		}
	}
	return all
}()

// mayWrite is who may use which writers outside internal/staging, and why.
// Everything else goes through a function of that package.
var mayWrite = map[string]struct{ writers, why string }{
	"internal/install/tree.go": {
		"os.WriteFile os.Symlink",
		"writes the links of programs and the marker below Tx.Stage, for Tx.Replace",
	},
	"internal/install/builder.go": {
		"os.Mkdir",
		"makes directories of packages below Tx.Stage, for Tx.Replace",
	},
	"internal/install/download/download.go": {
		"(*github.com/hashicorp/go-getter/v2.Client).Get",
		"downloads into Options.Temp, which is a staging.TempDir",
	},
	"internal/install/store/store.go": {
		"os.Mkdir os.WriteFile",
		"makes an entry of the store in a staging.TempDir, and copies of entries below Tx.Stage",
	},
	"internal/action/installation_add.go": {
		"os.MkdirAll",
		"fills a staging.TempDir",
	},
	"internal/action/compat_kept.go": {
		"os.MkdirAll",
		"fills a staging.TempDir",
	},
}

// TestOnlyStagingWrites looks at every use of a writer in the program's source:
// a profile that is written in one place can be lost in one place only.
func TestOnlyStagingWrites(t *testing.T) {
	used := map[string]bool{}
	for _, pkg := range typeCheck(t) {
		if pkg.dir == "internal/staging" {
			continue
		}
		for id, object := range pkg.info.Uses {
			fn, ok := object.(*types.Func)
			if !ok || !writers[fn.FullName()] {
				continue
			}
			at := pkg.files.Position(id.Pos())
			file := path.Join(pkg.dir, filepath.Base(at.Filename))
			used[file+" "+fn.FullName()] = true
			if !slices.Contains(strings.Fields(mayWrite[file].writers), fn.FullName()) {
				t.Errorf("%s:%d uses %s; what dsh writes goes through internal/staging", file, at.Line, fn.FullName())
			}
		}
	}
	for file, may := range mayWrite {
		for writer := range strings.FieldsSeq(may.writers) {
			if !used[file+" "+writer] {
				t.Errorf("%s may use %s and does not: take it from the list", file, writer)
			}
		}
	}
}

// typed is a package of the program with what its names mean.
type typed struct {
	dir   string
	files *source.FileSet
	info  types.Info
}

// typeCheck reads the program's packages, tests left out, as this system
// compiles them.
func typeCheck(t *testing.T) []typed {
	t.Helper()
	cmd := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,Module", "./cmd/dsh")
	cmd.Dir = root()
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	type listed struct {
		ImportPath, Dir, Export string
		GoFiles                 []string
		Module                  *struct{ Main bool }
	}
	exports := map[string]string{}
	var ours []listed
	for list := json.NewDecoder(bytes.NewReader(out)); ; {
		var pkg listed
		if err := list.Decode(&pkg); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		exports[pkg.ImportPath] = pkg.Export
		if pkg.Module != nil && pkg.Module.Main {
			ours = append(ours, pkg)
		}
	}
	files := source.NewFileSet()
	compiled := importer.ForCompiler(files, "gc", func(name string) (io.ReadCloser, error) { return os.Open(exports[name]) })
	var all []typed
	for _, pkg := range ours {
		var parsed []*ast.File
		for _, name := range pkg.GoFiles {
			file, err := parser.ParseFile(files, filepath.Join(pkg.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			parsed = append(parsed, file)
		}
		found := typed{strings.TrimPrefix(pkg.ImportPath, "dsh/"), files, types.Info{Uses: map[*ast.Ident]types.Object{}}}
		if _, err := (&types.Config{Importer: compiled}).Check(pkg.ImportPath, files, parsed, &found.info); err != nil {
			t.Fatal(err)
		}
		all = append(all, found)
	}
	return all
}

// TestPackagePathsComeFromListings holds pkgpath.PackagePath to its two ways of
// being made, the fixed locations and Child, and these to the loader: then no path
// that an author wrote is taken for a place in a package.
func TestPackagePathsComeFromListings(t *testing.T) {
	const loader = "internal/agentplugin"
	makers := []string{"Child", "MCP", "Manifest", "Root", "Skills"}
	files := source.NewFileSet()
	matches, err := filepath.Glob(filepath.Join(root(), "internal/pkgpath/*.go"))
	if err != nil {
		t.Fatal(err)
	}
	isPackagePath := func(e ast.Expr) bool {
		name, ok := e.(*ast.Ident)
		return ok && name.Name == "PackagePath"
	}
	var found []string
	for _, name := range matches {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(files, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, imported := range file.Imports {
			if path := strings.Trim(imported.Path.Value, `"`); path == "unsafe" || path == "reflect" || strings.HasPrefix(path, "dsh/") {
				t.Errorf("%s imports %s", name, path)
			}
		}
		for _, decl := range file.Decls {
			fn, isFunc := decl.(*ast.FuncDecl)
			if isFunc && fn.Type.Results != nil && slices.ContainsFunc(fn.Type.Results.List, func(f *ast.Field) bool { return isPackagePath(f.Type) }) {
				found = append(found, fn.Name.Name)
			}
			ast.Inspect(decl, func(n ast.Node) bool {
				made := false
				switch n := n.(type) {
				case *ast.CompositeLit:
					made = isPackagePath(n.Type)
				case *ast.CallExpr: // a conversion, or new
					made = isPackagePath(n.Fun) || slices.ContainsFunc(n.Args, isPackagePath)
				case *ast.AssignStmt: // of a field
					made = slices.ContainsFunc(n.Lhs, func(e ast.Expr) bool {
						field, ok := e.(*ast.SelectorExpr)
						return ok && field.Sel.Name == "names"
					})
				}
				if made && (!isFunc || !slices.Contains(makers, fn.Name.Name)) {
					t.Errorf("%s makes a PackagePath, which is left to %s", files.Position(n.Pos()), strings.Join(makers, ", "))
				}
				return true
			})
		}
	}
	slices.Sort(found)
	if diff := cmp.Diff(makers, found); diff != "" {
		t.Errorf("other functions give a PackagePath (-known +found)\n%s", diff)
	}
	for _, pkg := range typeCheck(t) {
		for id, object := range pkg.info.Uses {
			fn, ok := object.(*types.Func)
			if ok && fn.Pkg() != nil && fn.Pkg().Path() == "dsh/internal/pkgpath" && slices.Contains(makers, fn.Name()) && pkg.dir != loader && pkg.dir != "internal/pkgpath" {
				t.Errorf("%s uses pkgpath.%s, which is left to %s", pkg.files.Position(id.Pos()), fn.Name(), loader)
			}
		}
	}
}

func TestNamesSayWhatIsInside(t *testing.T) {
	for pkg := range imports(t) {
		if slices.Contains([]string{"util", "utils", "common", "helpers", "misc"}, path.Base(pkg)) {
			t.Errorf("package %s has a name that says nothing", pkg)
		}
	}
}

func TestDirectDependencies(t *testing.T) {
	cmd := exec.Command("go", "mod", "edit", "-json")
	cmd.Dir = root()
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var mod struct {
		Require []struct {
			Path     string
			Indirect bool
		}
	}
	if err := json.Unmarshal(out, &mod); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range mod.Require {
		if !r.Indirect {
			got = append(got, r.Path)
		}
	}
	want := []string{
		"cloud.google.com/go/storage",              // the build with the tag cloud: why it refuses
		"github.com/Masterminds/semver/v3",         // versions: parsing and order
		"github.com/chromedp/cdproto",              // browser tests: what they look at
		"github.com/chromedp/chromedp",             // browser tests
		"github.com/dop251/goja",                   // expressions of layers, in a process of their own
		"github.com/fsnotify/fsnotify",             // following the files of a profile while it runs
		"github.com/gofrs/flock",                   // locks of profiles
		"github.com/google/go-cmp",                 // tests
		"github.com/hashicorp/go-getter/gcs/v2",    // the same: its storage
		"github.com/hashicorp/go-getter/s3/v2",     // the same: storage that speaks S3
		"github.com/hashicorp/go-getter/v2",        // archives by address
		"github.com/johannesboyne/gofakes3",        // tests of the build with the tag cloud
		"github.com/klauspost/compress",            // gzip
		"github.com/modelcontextprotocol/go-sdk",   // MCP servers
		"github.com/rogpeppe/go-internal",          // tests: scripts
		"github.com/santhosh-tekuri/jsonschema/v6", // tests: row config against its schemas
		"github.com/tailscale/hujson",              // edits of package.json
		"github.com/tdewolff/parse/v2",             // expressions of layers
		"github.com/ulikunitz/xz",                  // LZMA2 of archives
		"github.com/urfave/cli/v2",                 // commands
		"golang.org/x/sync",                        // errgroup
		"golang.org/x/sys",                         // renames and locks that package os lacks
		"golang.org/x/term",                        // is it a terminal
		"golang.org/x/text",                        // case folding and normal forms of names
		"gopkg.in/yaml.v3",                         // the nodes of layers
		"pgregory.net/rapid",                       // tests: properties
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the direct dependencies changed; each needs a reason here\n%s", diff)
	}
}

// TestREADME runs the README's first command as it stands, in a copy of the
// project, with nothing but Go and the shell's basics on the path.
func TestREADME(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root(), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, after, ok := strings.Cut(string(text), "```sh\n")
	command, _, closed := strings.Cut(after, "```")
	if !ok || !closed {
		t.Fatal("the README has no command")
	}
	project := t.TempDir()
	copyProject(t, project)
	cmd := exec.Command("sh", "-c", command)
	cmd.Dir = project
	cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir(), "npm_config_registry=http://127.0.0.1:1/")
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, stderr.String())
	}
	for _, want := range []string{"# == @deepseek-ai/dsh-base, patched by hello-bundle", "# == hello-bundle\n- id: hello"} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("the tree lacks %q:\n%s", want, stdout.String())
		}
	}
}

// TestGuide compares the tree that the guide shows with the real one.
func TestGuide(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root(), "docs", "guide.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, after, ok := strings.Cut(string(text), "dsh web --dump-config\n")
	_, after, ok2 := strings.Cut(after, "```yaml\n")
	shown, _, ok3 := strings.Cut(after, "```")
	if !ok || !ok2 || !ok3 {
		t.Fatal("the guide shows no tree")
	}
	cmd := exec.Command(program, "web", "--dump-config")
	cmd.Env = append(os.Environ(), "DSH_HOME="+t.TempDir())
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(out), shown) {
		t.Errorf("the guide shows\n%s\nand dsh prints\n%.200s", shown, out)
	}
}

// copyProject copies what building dsh needs.
func copyProject(t *testing.T, dst string) {
	t.Helper()
	for _, part := range []string{"go.mod", "go.sum", "cmd", "internal", "profiles", "bundles", "docs"} {
		err := filepath.WalkDir(filepath.Join(root(), part), func(file string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(root(), file)
			if err != nil {
				return err
			}
			to := filepath.Join(dst, rel)
			if d.IsDir() {
				if d.Name() == "testdata" {
					return fs.SkipDir
				}
				return os.MkdirAll(to, 0o755)
			}
			return copyFile(file, to)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	_, err = io.Copy(out, in)
	return err
}
