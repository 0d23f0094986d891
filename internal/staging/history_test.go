package staging

import (
	"archive/tar"
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/klauspost/compress/gzip"
)

var noon = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)

// public compares what a generation says, and not what it was made of.
var public = cmpopts.IgnoreUnexported(Generation{})

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
			{".env", fs.ModeSymlink, []byte("../../dotfiles/env")},
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
		Outside:  []SavedFile{{".env", 0o600, []byte("A=1")}},
		TooLarge: []Skipped{{"large", LargeFile}},
	}
	got, err := Snapshot(place)
	must(t, err)
	if diff := cmp.Diff(want, got, public); diff != "" {
		t.Error(diff)
	}
	if data, ok := got.File(".env"); !ok || string(data) != "A=1" {
		t.Errorf("the link leads to %q", data)
	}
	followed := slices.Clone(want.Files)
	followed[1] = want.Outside[0]
	if diff := cmp.Diff(followed, got.Followed()); diff != "" {
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
	if diff := cmp.Diff([]Skipped{{"a/9", LargeSum}}, g.TooLarge); diff != "" {
		t.Error(diff)
	}
}

// A directory with too many files is named as a whole, and does not count for
// those above it.
func TestSnapshotCount(t *testing.T) {
	dir := t.TempDir()
	fill := func(sub string, n int) {
		mkdir(t, filepath.Join(dir, sub))
		for i := range n {
			must(t, os.WriteFile(filepath.Join(dir, sub, strconv.Itoa(i)), nil, 0o644))
		}
	}
	fill("full", largestCount)
	fill("over/deep/a", largestCount/2)
	fill("over/deep/b", largestCount/2+1)
	fill("over/c", largestCount-1) // and the one directory that is too full
	fill("sum/a", largestCount+1)
	fill("sum/b", largestCount)
	g, err := Snapshot(Place{Dir: dir})
	must(t, err)
	want := []Skipped{{"over/deep", ManyFiles}, {"sum", ManyFiles}}
	if diff := cmp.Diff(want, g.TooLarge); diff != "" || len(g.Files) != 2*largestCount-1 {
		t.Errorf("%d files are kept: %s", len(g.Files), diff)
	}
	// The way back touches nothing in there.
	tx, err := Begin(t.Context(), Place{Dir: dir, State: t.TempDir()}, Options{})
	must(t, err, tx.Restore(&Generation{}), tx.Commit())
	left := 0
	must(t, filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if !d.IsDir() {
			left++
		}
		return err
	}))
	if left != 3*largestCount+2 {
		t.Errorf("%d files are left", left)
	}
}

// What a snapshot keeps at most can be saved and read again, and what could not
// be read again is not saved.
func TestGenerationLimits(t *testing.T) {
	full := func(name func(i int) string, size int) *Generation {
		l := &listing{}
		for i := range 18_000 {
			path := name(i)
			l.entries = append(l.entries, &entry{path: path, looked: true, read: true, file: SavedFile{path, 0o644, make([]byte, size)}})
		}
		g, err := l.generation()
		must(t, err)
		return g
	}
	long := strings.Repeat("n", 200)
	for name, g := range map[string]*Generation{
		"many":       full(strconv.Itoa, 0),
		"odd sizes":  full(strconv.Itoa, 513),
		"long names": full(func(i int) string { return strings.Repeat("漢", 80) + strconv.Itoa(i) }, 1),
		"links": func() *Generation {
			g := full(strconv.Itoa, 0)
			for i := range g.Files {
				g.Files[i].Mode, g.Files[i].Data = fs.ModeSymlink, []byte(long)
			}
			return g
		}(),
	} {
		data, err := encodeGeneration(g)
		must(t, err)
		back, err := decodeGeneration(data)
		must(t, err)
		if len(g.Files) < 1000 || len(g.TooLarge) < 1000 || !Same(g, back) || !slices.Equal(g.TooLarge, back.TooLarge) {
			t.Errorf("%s: %d files are read as %d, %d without content as %d", name, len(g.Files), len(back.Files), len(g.TooLarge), len(back.TooLarge))
		}
	}
	large := &Generation{Files: []SavedFile{{"a", 0o644, make([]byte, largestArchive)}}}
	if _, err := encodeGeneration(large); err == nil || !strings.Contains(err.Error(), "no generation holds more") {
		t.Errorf("too large: %v", err)
	}
	large = &Generation{TooLarge: []Skipped{{strings.Repeat("x", largestHead), LargeSum}}}
	if _, err := encodeGeneration(large); err == nil || !strings.Contains(err.Error(), "to name them all") {
		t.Errorf("too many: %v", err)
	}
}

// A file that is refused twice is named and not kept, once does not count.
func TestSnapshotRefused(t *testing.T) {
	for refusals, want := range map[int][]Skipped{1: nil, 2: {{"package.json", Unreadable}}} {
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
	if newest, err := h.Newest(); err != nil || newest != nil {
		t.Error(newest, err)
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
		id, saved, err := h.Save(t.Context(), step.files, "dsh "+strconv.Itoa(i), noon.Add(time.Duration(i)))
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
	if diff := cmp.Diff(want, got, public); diff != "" {
		t.Error(diff)
	}
	for i := range want {
		want[i].Files = nil
	}
	heads, err := h.Heads()
	must(t, err)
	newest, err := h.Newest()
	must(t, err)
	if diff := cmp.Diff(want, heads, public); diff != "" || newest == nil || newest.ID != 3 || newest.Files != nil {
		t.Error(newest, diff)
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
			_, saved, err := h.Save(t.Context(), []SavedFile{saved("a", strconv.Itoa(must1(h.ids())))}, "", now)
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
	expect("the one before is not too late for any", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14)
	save(1, noon.Add(keepAge+2))
	expect("the oldest go, but for ten and the pinned one", 2, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
	save(keepNumber, noon.Add(keepAge+3))
	ids, err := h.ids()
	must(t, err)
	if len(ids) != keepNumber+1 || ids[0] != 2 || ids[1] != 16 {
		t.Errorf("%d are kept: %v", len(ids), ids)
	}
}

// A command that runs when the clock is wrong makes nothing old.
func TestHistoryWrongClock(t *testing.T) {
	h := OpenHistory(t.TempDir())
	times := make([]time.Time, 2*keepAlways)
	for i := range times {
		times[i] = noon.Add(time.Duration(i))
	}
	wrong := noon.Add(50 * 365 * 24 * time.Hour)
	times = append(times, wrong, wrong, noon.Add(time.Hour), noon.Add(-time.Hour), noon.Add(2*time.Hour))
	for i, now := range times {
		_, _, err := h.Save(t.Context(), []SavedFile{saved("a", strconv.Itoa(i))}, "", now)
		must(t, err)
	}
	if ids, err := h.ids(); err != nil || len(ids) != len(times) {
		t.Errorf("%d of %d are kept, error %v", len(ids), len(times), err)
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
		_, _, err := h.Save(t.Context(), []SavedFile{saved("a", strconv.Itoa(i))}, "", noon)
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
	if newest, err := h.Newest(); newest == nil || newest.ID != 3 || err == nil || !strings.Contains(err.Error(), "4.tar.gz is damaged") {
		t.Error(newest, err)
	}
	id, saved, err := h.Save(t.Context(), []SavedFile{saved("a", "3")}, "", noon)
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
		"a directory up": {head, {Typeflag: tar.TypeDir, Name: "files/../"}},
		"dirs unsorted":  {head, {Typeflag: tar.TypeDir, Name: "files/b/"}, {Typeflag: tar.TypeDir, Name: "files/a/"}},
		"a hard link":    {head, {Typeflag: tar.TypeLink, Name: "files/a", Linkname: "files/b"}},
		"not sorted":     {head, {Typeflag: tar.TypeReg, Name: "files/b"}, {Typeflag: tar.TypeReg, Name: "files/a"}},
		"twice":          {head, {Typeflag: tar.TypeReg, Name: "files/b"}, {Typeflag: tar.TypeReg, Name: "files/b"}},
		"a link outside": {head, {Typeflag: tar.TypeSymlink, Name: "files/a", Linkname: "b"}, {Typeflag: tar.TypeSymlink, Name: "outside/a", Linkname: "b"}},
		"no link to it":  {head, {Typeflag: tar.TypeReg, Name: "files/a"}, {Typeflag: tar.TypeReg, Name: "outside/a"}},
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
	data, err := encodeGeneration(&Generation{ID: 3, Saved: noon, Command: "dsh x", TooLarge: []Skipped{{"big", LargeFile}}, Outside: []SavedFile{saved("l", "x")}, Files: []SavedFile{
		saved("a", "1"), {"b/c", 0o755, []byte("x")}, {"l", fs.ModeSymlink, []byte("../out")}, saved(strings.Repeat("漢", 80)+"/\xff", "y"),
	}})
	must(f, err)
	f.Add(data)
	data, err = encodeGeneration(&Generation{Dirs: []SavedFile{{Path: ".", Mode: fs.ModeDir | 0o700}, {Path: "a/b", Mode: fs.ModeDir | 0o711}}})
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
		if !Same(g, back) || !SameFiles(g.Dirs, back.Dirs) {
			t.Error(cmp.Diff(g, back, public))
		}
	})
}
