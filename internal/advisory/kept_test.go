package advisory

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"dsh/internal/fault"
)

// malicious is advisories against packages of these names.
func malicious(t testing.TB, names ...string) []Advisory {
	t.Helper()
	var list []Advisory
	for i, name := range names {
		text := fmt.Sprintf(`{"id":"MAL-2025-%d","summary":"Malicious code in %s","affected":[{"package":{"ecosystem":"npm","name":%q},"ranges":[{"type":"SEMVER","events":[{"introduced":"0"}]}],"versions":["1.0.0","2.0.0"]}]}`, i, name, name)
		found, err := ParseOSV([]byte(text), "osv")
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, found...)
	}
	return list
}

func names(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("@scope%d/package-%d", i%97, i)
	}
	return list
}

func TestKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "npm")
	if _, err := OpenKept(path); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	all := names(5000) // some blocks
	if err := SaveWhole(path, malicious(t, all...), now); err != nil {
		t.Fatal(err)
	}
	check := func(kept []string, gone ...string) {
		t.Helper()
		k, err := OpenKept(path)
		if err != nil {
			t.Fatal(err)
		}
		defer k.Close()
		if !k.Whole.Equal(now) {
			t.Errorf("made %s", k.Whole)
		}
		for _, name := range kept {
			list, err := k.Find(name)
			if err != nil || len(list) != 1 || list[0].Package != name || !list[0].Malicious() || !list[0].Affects("7.0.0") {
				t.Fatalf("%s: %v, %v", name, list, err)
			}
		}
		for _, name := range append(gone, "", "a", "@", "zzz", "@scope1/package-", "@scope1/package-1a") {
			if list, err := k.Find(name); err != nil || len(list) != 0 {
				t.Fatalf("%s: %v, %v", name, list, err)
			}
		}
	}
	check(all)
	// What is asked about anew replaces what was kept of it, and nothing else.
	if err := SaveAsked(path, []string{all[0], all[1], "new", "clean"}, malicious(t, all[1], "new"), now.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	check(append(slices.Clone(all[1:]), "new"), all[0], "clean")
}

func TestKeptOdd(t *testing.T) {
	for name, text := range map[string]string{
		"empty": "", "no end": "dsh-advisories 1 - -", "another": "{}\n", "odd time": "dsh-advisories 1 yesterday -\n", "newer": "dsh-advisories 2 - -\n",
	} {
		path := filepath.Join(t.TempDir(), "npm")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenKept(path); err == nil || errors.Is(err, fs.ErrNotExist) || fault.Hint(err) == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	path := filepath.Join(t.TempDir(), "npm")
	if err := os.WriteFile(path, []byte("dsh-advisories 1 - -\nx\t{\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	k, err := OpenKept(path)
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	if _, err := k.Find("x"); err == nil {
		t.Error("a line that does not read is no error")
	}
}

// BenchmarkKept looks up the packages of one install in a copy of the size of all
// that there is.
func BenchmarkKept(b *testing.B) {
	path := filepath.Join(b.TempDir(), "npm")
	if err := SaveWhole(path, malicious(b, names(200_000)...), time.Now()); err != nil {
		b.Fatal(err)
	}
	for _, n := range []int{1, 30, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				k, err := OpenKept(path)
				if err != nil {
					b.Fatal(err)
				}
				for i := range n {
					if _, err := k.Find(fmt.Sprintf("package-%d", i*7919)); err != nil {
						b.Fatal(err)
					}
				}
				if err := k.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestReadCopy(t *testing.T) {
	folder := t.TempDir()
	documents := map[string]string{
		"MAL-1.json":       `{"id":"MAL-1","affected":[{"package":{"ecosystem":"npm","name":"evil"},"versions":["1.0.0"]}]}`,
		"deep/GHSA-1.json": `{"id":"GHSA-1","affected":[{"package":{"ecosystem":"npm","name":"x"},"versions":["1.0.0"]}]}`,
		"broken.json":      `{`,
		"README.md":        `text`,
	}
	archive, err := os.Create(filepath.Join(t.TempDir(), "all.zip"))
	if err != nil {
		t.Fatal(err)
	}
	w := zip.NewWriter(archive)
	for name, text := range documents {
		path := filepath.Join(folder, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
		f, err := w.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), archive.Close()); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{folder, archive.Name()} {
		list, unreadable, why, err := ReadCopy(path, func(name string) bool { return true })
		if err != nil || unreadable != 1 || why == nil || !strings.Contains(why.Error(), "broken.json") || len(list) != 2 || list[0].Package != "evil" || list[1].ID != "GHSA-1" {
			t.Errorf("%s: %v, %d, %v, %v", path, list, unreadable, why, err)
		}
		if list, _, _, err := ReadCopy(path, func(name string) bool { return name == "x" }); err != nil || len(list) != 1 {
			t.Errorf("%s: %v, %v", path, list, err)
		}
	}
	if _, _, _, err := ReadCopy(t.TempDir(), nil); err == nil || fault.Hint(err) == "" {
		t.Errorf("an empty folder: %v", err)
	}
	if _, _, _, err := ReadCopy(filepath.Join(folder, "README.md"), nil); err == nil || fault.Hint(err) == "" {
		t.Errorf("a text: %v", err)
	}
}

// stub answers by address.
type stub map[string]func(body string) string

func (s stub) Exchange(_ context.Context, _, address string, body []byte) ([]byte, error) {
	answer, ok := s[address]
	if !ok {
		return nil, fmt.Errorf("nothing at %s", address)
	}
	return []byte(answer(string(body))), nil
}

func TestFromOSV(t *testing.T) {
	asked := 0
	server := stub{
		"https://osv.test/v1/querybatch": func(body string) string {
			asked++
			if strings.Contains(body, "page_token") {
				if body != `{"queries":[{"package":{"name":"x","ecosystem":"npm"},"version":"1.0.0","page_token":"more"}]}` {
					t.Errorf("asked %s", body)
				}
				return `{"results":[{"vulns":[{"id":"GHSA-2"}]}]}`
			}
			return `{"results":[{"vulns":[{"id":"GHSA-1"}],"next_page_token":"more"},{}]}`
		},
		"https://osv.test/v1/vulns/GHSA-1": func(string) string {
			return `{"id":"GHSA-1","affected":[{"package":{"ecosystem":"npm","name":"x"},"versions":["1.0.0"]}]}`
		},
		"https://osv.test/v1/vulns/GHSA-2": func(string) string { // of other versions
			return `{"id":"GHSA-2","affected":[{"package":{"ecosystem":"npm","name":"x"},"versions":["3.0.0"]}]}`
		},
	}
	versions := []Version{{"x", "1.0.0"}, {"y", "1.0.0"}}
	list, err := FromOSV(t.Context(), server, "https://osv.test/", "osv", versions)
	if err != nil || len(list) != 1 || list[0].ID != "GHSA-1" || asked != 2 {
		t.Errorf("%v, %v after %d questions", list, err, asked)
	}
	for name, answer := range map[string]string{"no JSON": `<html>`, "too few": `{"results":[]}`, "odd id": `{"results":[{"vulns":[{"id":"../../x"}]},{}]}`} {
		server["https://osv.test/v1/querybatch"] = func(string) string { return answer }
		if _, err := FromOSV(t.Context(), server, "https://osv.test", "osv", versions); fault.ClassOf(err) != fault.Network {
			t.Errorf("%s: %v", name, err)
		}
	}
	server["https://osv.test/v1/querybatch"] = func(string) string {
		return `{"results":[{"next_page_token":"more"}]}`
	}
	if _, err := FromOSV(t.Context(), server, "https://osv.test", "osv", versions[:1]); fault.ClassOf(err) != fault.Network {
		t.Errorf("an answer without end: %v", err)
	}
}

func TestFromRegistry(t *testing.T) {
	server := stub{"https://registry.test/-/npm/v1/security/advisories/bulk": func(body string) string {
		if body != `{"x":["1.0.0","2.0.0"],"y":["1.0.0"]}` {
			t.Errorf("asked %s", body)
		}
		return `{"x":[{"id":1,"url":"https://example.org/GHSA-1","severity":"low","vulnerable_versions":"<2"},{"id":2,"url":"","vulnerable_versions":">5"}]}`
	}}
	list, err := FromRegistry(t.Context(), server, "https://registry.test/", "registry", []Version{{"x", "1.0.0"}, {"x", "2.0.0"}, {"y", "1.0.0"}, {"x", "1.0.0"}})
	if err != nil || len(list) != 1 || list[0].ID != "GHSA-1" {
		t.Errorf("%v, %v", list, err)
	}
}
