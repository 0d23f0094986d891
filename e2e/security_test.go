package e2e

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestSecurityPage looks whether what the page says holds its promises is there:
// files, packages, tests and scripts.
func TestSecurityPage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root(), "docs", "security.md"))
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]bool{}
	function := regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9_]+)`)
	err = filepath.WalkDir(root(), func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(file, "_test.go") {
			return err
		}
		text, err := os.ReadFile(file)
		for _, m := range function.FindAllStringSubmatch(string(text), -1) {
			tests[m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for _, m := range regexp.MustCompile("`([^`\n]+)`").FindAllStringSubmatch(string(page), -1) {
		name := m[1]
		switch {
		case regexp.MustCompile(`^Test[A-Z]\w*$`).MatchString(name):
			if !tests[name] {
				t.Errorf("there is no test %s", name)
			}
		case strings.HasSuffix(name, ".txtar"):
			if _, err := os.Stat(filepath.Join(root(), "e2e", "testdata", "script", name)); err != nil {
				t.Error(err)
			}
		case strings.HasPrefix(name, "internal/"):
			if _, err := os.Stat(filepath.Join(root(), filepath.FromSlash(name))); err != nil {
				t.Error(err)
			}
		default:
			continue
		}
		named++
	}
	if named < 50 {
		t.Errorf("the page names %d things that hold its promises", named)
	}
}
