package page

import (
	"io/fs"
	"path"
	"regexp"
	"strings"
	"testing"
)

// texts are the files of the page.
func texts(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := fs.WalkDir(Files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(Files, name)
		all[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestPolicy looks for what the content security policy of the page forbids, and for ways in which data could become HTML.
func TestPolicy(t *testing.T) {
	forbidden := map[string][]string{
		".html": {`<script>`, `<style`, ` style=`, ` onclick=`, ` onload=`, `javascript:`, `http://`, `https://`, `"//`},
		".js":   {"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "setAttribute(\"style\"", "http://", "https://", "import(", "srcdoc"},
		".css":  {"@import", "url(", "http://", "https://"},
	}
	for name, text := range texts(t) {
		if name == "icon.svg" {
			continue
		}
		pieces, known := forbidden[path.Ext(name)]
		if !known {
			t.Errorf("%s is of a kind that this test does not know", name)
		}
		text = strings.ReplaceAll(text, "http://www.w3.org/2000/svg", "") // a name, not an address
		for _, piece := range pieces {
			if strings.Contains(text, piece) {
				t.Errorf("%s has %q", name, piece)
			}
		}
	}
}

// TestEveryFileIsUsed follows the imports from index.html.
func TestEveryFileIsUsed(t *testing.T) {
	all := texts(t)
	used := map[string]bool{}
	var use func(name, by string)
	use = func(name, by string) {
		text, ok := all[name]
		if !ok {
			t.Errorf("%s names %s, which is not there", by, name)
		}
		if used[name] || !ok {
			return
		}
		used[name] = true
		switch path.Ext(name) {
		case ".html":
			for _, m := range regexp.MustCompile(`(?:href|src)="/([^"]+)"`).FindAllStringSubmatch(text, -1) {
				use(m[1], name)
			}
		case ".js":
			for _, m := range regexp.MustCompile(`(?m)^import .* from "(\.[^"]+)";$`).FindAllStringSubmatch(text, -1) {
				use(path.Join(path.Dir(name), m[1]), name)
			}
		}
	}
	use("index.html", "the server")
	for name := range all {
		if !used[name] {
			t.Errorf("nothing uses %s", name)
		}
	}
}

// TestSmall keeps the page small: it is part of every binary.
func TestSmall(t *testing.T) {
	size := 0
	for _, text := range texts(t) {
		size += len(text)
	}
	if limit := 128 << 10; size > limit {
		t.Errorf("the page has %d bytes, more than %d", size, limit)
	}
}
