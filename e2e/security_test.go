package e2e

import (
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
	tests := testNames(t)
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
