package inspect

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestBundlesBelow: the same bundles are found in a folder that is read and in a
// package whose files are known, of which nothing but these files is opened.
func TestBundlesBelow(t *testing.T) {
	const bundle, plain = `{"name": "x", "version": "1.0.0", "dsh": {"bundle": {"patch": "p.yml"}}}`, `{"name": "x", "version": "1.0.0"}`
	dir := t.TempDir()
	for name, text := range map[string]string{
		"package.json":                         bundle,
		"packages/a/package.json":              bundle,
		"packages/b/package.json":              plain,
		"packages/c/package.json":              "no JSON",
		"packages/c/inner/deep/package.json":   bundle,
		"packages/c/inner/deep/5/package.json": bundle,
		"top/package.json":                     bundle,
		"top/other.json":                       bundle,
		"top/node_modules/m/package.json":      bundle,
		".hidden/package.json":                 bundle,
		"packages/.x/package.json":             bundle,
		"packages/d/my-package.json":           bundle,
	} {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var files []string
	err := fs.WalkDir(os.DirFS(dir), ".", func(file string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, file)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"packages/a", "packages/c/inner/deep", "top"}
	if got := BundlesBelow(dir, nil); !slices.Equal(got, want) {
		t.Errorf("of a folder: %q, not %q", got, want)
	}
	if got := BundlesBelow(dir, files); !slices.Equal(got, want) {
		t.Errorf("of known files: %q, not %q", got, want)
	}
	if got := BundlesBelow(dir, []string{}); len(got) > 0 {
		t.Errorf("of a package without files: %q", got)
	}
	if got := BundlesBelow(filepath.Join(dir, "gone"), nil); len(got) > 0 {
		t.Errorf("of nothing: %q", got)
	}
}
