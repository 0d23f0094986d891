package staging

import (
	"archive/tar"
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"
)

var noon = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)

func saved(path, content string) SavedFile { return SavedFile{path, 0o644, []byte(content)} }

func TestSnapshot(t *testing.T) {
	home := newHome(t)
	place := placeIn(home)
	put(t, place.Dir+"/agent-plugins/日本 語's/run.sh", "x", 0o755)
	put(t, place.Dir+"/agent-plugins/x/node_modules/y/z", "derived", 0o644)
	put(t, place.Dir+"/agent-plugins/x/.git/HEAD", "not kept", 0o644)
	put(t, place.Dir+"/.dsh-tmp-0123456789ab", "temporary", 0o644)
	put(t, place.Dir+"/.dsh-tmp-0123456789ab-new", "temporary", 0o644)
	put(t, place.Dir+"/.dsh-tmp-notes", "the user's", 0o644)
	put(t, place.Dir+"/cordis.yml", "derived", 0o644)
	put(t, place.Dir+"/large", strings.Repeat("x", largestFile+1), 0o644)
	put(t, place.Dir+"/empty", "", 0o600)
	mkdir(t, place.Dir+"/empty-dir")
	put(t, home+"/dotfiles/env", "A=1", 0o600)
	link(t, "../../dotfiles/env", place.Dir+"/.env")
	link(t, "package.json", place.Dir+"/inside")
	link(t, "nowhere", place.Dir+"/dangling")
	link(t, "circle", place.Dir+"/circle")
	link(t, "../../dotfiles", place.Dir+"/folder")
	want := &Generation{
		Files: []SavedFile{
			saved(".dsh-tmp-notes", "the user's"),
			{".env", 0o600, []byte("A=1")},
			{"agent-plugins/日本 語's/run.sh", 0o755, []byte("x")},
			{"circle", fs.ModeSymlink, []byte("circle")},
			saved("cordis.patch.yml", "[]\n"),
			{"dangling", fs.ModeSymlink, []byte("nowhere")},
			saved("dsh-lock.yaml", "old: 1\n"),
			{"empty", 0o600, []byte("")},
			{"folder", fs.ModeSymlink, []byte("../../dotfiles")},
			{"inside", fs.ModeSymlink, []byte("package.json")},
			{"package.json", 0o600, []byte(`{"old":1}`)},
		},
		TooLarge: []string{"large"},
	}
	got, err := Snapshot(place)
	must(t, err)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	data, ok := got.File("package.json")
	if !ok || string(data) != `{"old":1}` {
		t.Errorf("the manifest is %q", data)
	}
	for _, none := range []string{"inside", "package", "zzz"} {
		if _, ok := got.File(none); ok {
			t.Errorf("%s is a file", none)
		}
	}
}

// Where not all fits, what is at the top of the profile is kept.
func TestSnapshotSum(t *testing.T) {
	dir := t.TempDir()
	for i := range largestSum / largestFile {
		put(t, filepath.Join(dir, "a", strconv.Itoa(i)), strings.Repeat("x", largestFile), 0o644)
	}
	put(t, dir+"/package.json", "{}", 0o644)
	put(t, dir+"/b/small", "x", 0o644)
	g, err := Snapshot(Place{Dir: dir})
	must(t, err)
	if _, ok := g.File("package.json"); !ok {
		t.Error("the manifest is left out")
	}
	if _, ok := g.File("b/small"); !ok {
		t.Error("a small file is left out")
	}
	if diff := cmp.Diff([]string{"a/9"}, g.TooLarge); diff != "" {
		t.Error(diff)
	}
}

// A file that is refused twice is named and not kept, once does not count.
func TestSnapshotRefused(t *testing.T) {
	for refusals, want := range map[int][]string{1: nil, 2: {"package.json"}} {
		home := newHome(t)
		left := refusals
		d := disk{hooked{OS, func(op, path string) error {
			if op == "Open" && filepath.Base(path) == "package.json" && left > 0 {
				left--
				return syscall.EACCES
			}
			return nil
		}}}
		g, err := d.snapshot(placeIn(home).Dir, placeIn(home).Derived)
		must(t, err)
		if diff := cmp.Diff(want, g.TooLarge); diff != "" {
			t.Errorf("after %d refusals: %s", refusals, diff)
		}
	}
	if _, err := Snapshot(Place{Dir: t.TempDir() + "/none"}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of nothing: %v", err)
	}
}

func TestHistory(t *testing.T) {
	h := OpenHistory(filepath.Join(t.TempDir(), "not", "yet"))
	if list, err := h.List(); err != nil || len(list) > 0 {
		t.Error(list, err)
	}
	_, err := h.Load(1)
	if none, ok := errors.AsType[*NoGenerationError](err); !ok || none.ID != 1 {
		t.Errorf("of nothing: %v", err)
	}
	one := []SavedFile{saved("a", "1"), {"b/c", 0o755, []byte("x")}, {"l", fs.ModeSymlink, []byte("../out")}}
	two := []SavedFile{saved("a", "2")}
	steps := []struct {
		files []SavedFile
		id    int
		saved bool
	}{{one, 1, true}, {one, 1, false}, {two, 2, true}, {two, 2, false}, {one, 3, true}}
	for i, step := range steps {
		id, saved, err := h.Save(step.files, "dsh "+strconv.Itoa(i), noon.Add(time.Duration(i)))
		if err != nil || id != step.id || saved != step.saved {
			t.Errorf("step %d: %d, %t, %v", i, id, saved, err)
		}
	}
	must(t, h.Pin(t.Context(), 2, true), h.Pin(t.Context(), 2, true))
	want := []Generation{
		{ID: 3, Saved: noon.Add(4), Command: "dsh 4", Files: one},
		{ID: 2, Saved: noon.Add(2), Command: "dsh 2", Files: two, Pinned: true},
		{ID: 1, Saved: noon, Command: "dsh 0", Files: one},
	}
	got, err := h.List()
	must(t, err)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	must(t, h.Pin(t.Context(), 2, false), h.Pin(t.Context(), 2, false))
	if g, err := h.Load(2); err != nil || g.Pinned {
		t.Error(g, err)
	}
	for _, id := range []int{0, 4, -1} {
		if _, ok := errors.AsType[*NoGenerationError](h.Pin(t.Context(), id, true)); !ok {
			t.Errorf("%d can be pinned", id)
		}
	}
}

func TestHistoryAges(t *testing.T) {
	h := OpenHistory(t.TempDir())
	save := func(n int, now time.Time) {
		t.Helper()
		for range n {
			_, saved, err := h.Save([]SavedFile{saved("a", strconv.Itoa(must1(h.ids())))}, "", now)
			if err != nil || !saved {
				t.Fatal(err)
			}
		}
	}
	expect := func(what string, want ...int) {
		t.Helper()
		got, err := h.ids()
		must(t, err)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
	save(12, noon)
	must(t, h.Pin(t.Context(), 2, true))
	save(1, noon.Add(keepAge))
	expect("none is too old", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13)
	save(1, noon.Add(keepAge+1))
	expect("the oldest go, but for ten and the pinned one", 2, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14)
	save(keepNumber, noon.Add(keepAge+1))
	ids, err := h.ids()
	must(t, err)
	if len(ids) != keepNumber+1 || ids[0] != 2 || ids[1] != 15 {
		t.Errorf("%d are kept: %v", len(ids), ids)
	}
}

func must1(ids []int, err error) int {
	if err != nil || len(ids) == 0 {
		return 0
	}
	return ids[len(ids)-1]
}

func TestHistoryDamaged(t *testing.T) {
	dir := t.TempDir()
	h := OpenHistory(dir)
	for i := range 4 {
		_, _, err := h.Save([]SavedFile{saved("a", strconv.Itoa(i))}, "", noon)
		must(t, err)
	}
	whole, err := os.ReadFile(dir + "/2.tar.gz")
	must(t, err)
	put(t, dir+"/2.tar.gz", string(whole[:len(whole)-3]), 0o600)
	put(t, dir+"/4.tar.gz", "", 0o600)
	put(t, dir+"/notes.tar.gz", "the user's", 0o600)
	put(t, dir+"/.dsh-tmp-0123456789ab", "of a dead process", 0o600)
	list, err := h.List()
	if len(list) != 2 || list[0].ID != 3 || list[1].ID != 1 {
		t.Errorf("%v", list)
	}
	for _, name := range []string{"2.tar.gz", "4.tar.gz"} {
		if err == nil || !strings.Contains(err.Error(), filepath.Join(dir, name)+" is damaged") {
			t.Errorf("the error is %v", err)
		}
	}
	id, saved, err := h.Save([]SavedFile{saved("a", "3")}, "", noon)
	if id != 5 || !saved || err != nil {
		t.Error(id, saved, err)
	}
	if _, err := os.Lstat(dir + "/.dsh-tmp-0123456789ab"); err == nil {
		t.Error("the temporary file is still there")
	}
}

func TestGenerationRefuses(t *testing.T) {
	head := tar.Header{Typeflag: tar.TypeReg, Name: headName}
	const good = `{"format":1}`
	tests := map[string][]tar.Header{
		"no head":        {{Typeflag: tar.TypeReg, Name: "files/a"}},
		"up":             {head, {Typeflag: tar.TypeReg, Name: "files/../a"}},
		"absolute":       {head, {Typeflag: tar.TypeReg, Name: "/etc/passwd"}},
		"beside":         {head, {Typeflag: tar.TypeReg, Name: "a"}},
		"the root":       {head, {Typeflag: tar.TypeReg, Name: "files/."}},
		"a directory":    {head, {Typeflag: tar.TypeDir, Name: "files/a/"}},
		"a hard link":    {head, {Typeflag: tar.TypeLink, Name: "files/a", Linkname: "files/b"}},
		"not sorted":     {head, {Typeflag: tar.TypeReg, Name: "files/b"}, {Typeflag: tar.TypeReg, Name: "files/a"}},
		"twice":          {head, {Typeflag: tar.TypeReg, Name: "files/b"}, {Typeflag: tar.TypeReg, Name: "files/b"}},
		"nothing":        {},
		"a newer format": {{Typeflag: tar.TypeReg, Name: headName, Uname: `{"format":2}`}},
		"a broken head":  {{Typeflag: tar.TypeReg, Name: headName, Uname: `{"format":`}},
	}
	for name, members := range tests {
		t.Run(name, func(t *testing.T) {
			var buf bytes.Buffer
			z := gzip.NewWriter(&buf)
			w := tar.NewWriter(z)
			for _, h := range members {
				content := ""
				if h.Name == headName {
					if content = h.Uname; content == "" {
						content = good
					}
					h.Uname = ""
				}
				h.Size = int64(len(content))
				must(t, w.WriteHeader(&h))
				_, err := w.Write([]byte(content))
				must(t, err)
			}
			must(t, w.Close(), z.Close())
			g, err := decodeGeneration(buf.Bytes())
			if err == nil {
				t.Errorf("it is read as %v", g)
			}
			if _, newer := errors.AsType[*formatError](err); newer != (name == "a newer format") {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

func FuzzGeneration(f *testing.F) {
	data, err := encodeGeneration(&Generation{ID: 3, Saved: noon, Command: "dsh x", TooLarge: []string{"big"}, Files: []SavedFile{
		saved("a", "1"), {"b/c", 0o755, []byte("x")}, {"l", fs.ModeSymlink, []byte("../out")}, saved(strings.Repeat("漢", 80)+"/\xff", "y"),
	}})
	must(f, err)
	f.Add(data)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		g, err := decodeGeneration(data)
		if err != nil {
			return
		}
		// What was read is what is written.
		again, err := encodeGeneration(g)
		if err != nil {
			return // a time or name that no archive holds
		}
		back, err := decodeGeneration(again)
		must(t, err)
		if !SameFiles(g.Files, back.Files) {
			t.Error(cmp.Diff(g, back))
		}
	})
}
