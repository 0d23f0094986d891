package trust

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"dsh/internal/fault"
	"dsh/internal/staging"
)

var since = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// granter is the environment variable that makes the test binary a process
// which grants trust in a directory: "FILE\nDIR".
const granter = "DSH_TEST_GRANT"

func TestMain(m *testing.M) {
	file, dir, ok := strings.Cut(os.Getenv(granter), "\n")
	if !ok {
		os.Exit(m.Run())
	}
	if err := Open(file).Grant(context.Background(), Record{Dir: dir, Seal: "s", Since: since}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func grant(t *testing.T, s *Store, dir string, seal Seal, files ...string) {
	t.Helper()
	if err := s.Grant(t.Context(), Record{Dir: dir, Seal: seal, Files: files, Since: since}); err != nil {
		t.Fatal(err)
	}
}

func wantState(t *testing.T, s *Store, dir string, seal Seal, want State) {
	t.Helper()
	got, err := s.State(Project{Dir: dir}, seal)
	if _, known, err := s.Recorded(Project{Dir: dir}); err != nil || known != (want != Unknown) {
		t.Errorf("%s: recorded: %v, %v; the state is %s", dir, known, err, want)
	}
	if err != nil || got != want {
		t.Errorf("%s with seal %q is %s, %v; want %s", dir, seal, got, err, want)
	}
}

func wantDirs(t *testing.T, s *Store, want ...string) {
	t.Helper()
	records, err := s.List()
	if err != nil {
		t.Fatal(err)
	}
	got := []string{}
	for _, r := range records {
		got = append(got, r.Dir)
	}
	if diff := cmp.Diff(append([]string{}, want...), got); diff != "" {
		t.Error(diff)
	}
}

func TestStore(t *testing.T) {
	root := world(t, "a/", "", "b/", "", "a/sub/", "")
	a, b := filepath.Join(root, "a"), filepath.Join(root, "b")
	file := filepath.Join(root, "home", "trust.json")
	s := Open(file)

	wantState(t, s, a, "1", Unknown)
	wantState(t, s, a, "", Unknown)
	wantDirs(t, s)
	if _, err := os.Stat(filepath.Dir(file)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("reading made the home: %v", err)
	}

	grant(t, s, b, "1", filepath.Join(b, "x.js"))
	grant(t, s, a, "1")
	wantState(t, s, a, "1", Trusted)
	wantState(t, s, a, "2", Changed)
	wantState(t, s, a, "", Changed)
	wantState(t, s, filepath.Join(a, "sub"), "1", Unknown)
	wantState(t, s, root, "1", Unknown)

	grant(t, s, a, "2")
	wantState(t, s, a, "2", Trusted)
	wantState(t, s, a, "1", Changed)
	wantDirs(t, s, a, b)

	// Another store on the file sees all of it.
	got, err := Open(file).List()
	want := []Record{{Dir: a, Seal: "2", Since: since}, {Dir: b, Seal: "1", Files: []string{filepath.Join(b, "x.js")}, Since: since}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Error(err, diff)
	}

	for _, want := range []bool{true, false} {
		if got, err := s.Revoke(t.Context(), a); err != nil || got != want {
			t.Errorf("revoked %v, %v; want %v", got, err, want)
		}
		wantState(t, s, a, "2", Unknown)
		wantState(t, s, b, "1", Trusted)
	}
}

func TestRevoke(t *testing.T) {
	tests := map[string]struct {
		trusted string
		gone    bool
		revoke  string
		want    bool
	}{
		"its path":                {trusted: "real/p", revoke: "real/p", want: true},
		"its path, unclean":       {trusted: "real/p", revoke: "real/./x/../p/", want: true},
		"a link above it":         {trusted: "real/p", revoke: "link/p", want: true},
		"a link to it":            {trusted: "real/p", revoke: "p", want: true},
		"gone":                    {trusted: "real/p", gone: true, revoke: "real/p", want: true},
		"gone, a link above it":   {trusted: "real/p", gone: true, revoke: "link/p", want: true},
		"gone, with its parent":   {trusted: "other/deep/p", revoke: "other/deep/p", want: true},
		"now a link":              {trusted: "link", revoke: "link", want: true},
		"now a link, unclean":     {trusted: "link", revoke: "other/../link/", want: true},
		"its parent":              {trusted: "real/p", revoke: "real"},
		"something in it":         {trusted: "real/p", revoke: "real/p/.dsh"},
		"another of the name":     {trusted: "real/p", revoke: "other/p"},
		"a name that only starts": {trusted: "real/p", revoke: "real/p2"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			root := world(t, "real/p/.dsh/", "", "link", "-> real", "p", "-> real/p")
			in := func(path string) string { return root + string(filepath.Separator) + filepath.FromSlash(path) }
			s := Open(in("trust.json"))
			grant(t, s, in(test.trusted), "1")
			if test.gone {
				if err := os.RemoveAll(in(test.trusted)); err != nil {
					t.Fatal(err)
				}
			}
			got, err := s.Revoke(t.Context(), in(test.revoke))
			if err != nil || got != test.want {
				t.Errorf("revoked %v, %v; want %v", got, err, test.want)
			}
			if test.want {
				wantDirs(t, s)
			} else {
				wantDirs(t, s, in(test.trusted))
			}
		})
	}
}

func TestRevokeRelativePath(t *testing.T) {
	root := world(t, "p/a/", "")
	s := Open(filepath.Join(root, "trust.json"))
	grant(t, s, filepath.Join(root, "p"), "1")
	t.Chdir(filepath.Join(root, "p", "a"))
	if got, err := s.Revoke(t.Context(), ".."); err != nil || !got {
		t.Errorf("revoked %v, %v", got, err)
	}
}

func TestRevokeWritesNothingInVain(t *testing.T) {
	root := world(t)
	s := Open(filepath.Join(root, "home", "trust.json"))
	if got, err := s.Revoke(t.Context(), root); got || err != nil {
		t.Errorf("revoked %v, %v", got, err)
	}
	if _, err := os.Stat(filepath.Join(root, "home")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the home was made: %v", err)
	}
}

// Trust does not follow a directory that moves, nor a link put in its place.
func TestStateOfReplacedDirectories(t *testing.T) {
	root := world(t, "p/", "")
	p, moved := filepath.Join(root, "p"), filepath.Join(root, "moved")
	s := Open(filepath.Join(root, "trust.json"))
	grant(t, s, p, "1")
	if err := os.Rename(p, moved); err != nil {
		t.Fatal(err)
	}
	wantState(t, s, moved, "1", Unknown)
	put(t, root, "p", "-> moved")
	wantState(t, s, moved, "1", Unknown)
	grant(t, s, moved, "1")
	wantState(t, s, moved, "1", Trusted)
	wantDirs(t, s, moved, p)
}

// On a filesystem that does not tell upper from lower case, a directory is one
// under all its spellings.
func TestSpellings(t *testing.T) {
	root := world(t, "project/.dsh/cordis.patch.yml", "", "trust.json.d/", "")
	lower, upper := filepath.Join(root, "project"), filepath.Join(root, "PROJECT")
	s := Open(filepath.Join(root, "trust.json"))
	grant(t, s, lower, "1")
	if _, err := os.Stat(upper); err != nil { // upper and lower case are told apart here
		wantState(t, s, upper, "1", Unknown)
		return
	}
	wantState(t, s, upper, "1", Trusted)
	wantState(t, s, upper, "2", Changed)
	grant(t, s, upper, "2")
	wantDirs(t, s, upper)
	if got, err := s.Revoke(t.Context(), lower); err != nil || !got {
		t.Errorf("revoked %v, %v", got, err)
	}
	if _, found, err := FindProject(lower, "", filepath.Join(upper, ".DSH")); err != nil || found {
		t.Errorf("the dsh home in another spelling: found %v, %v", found, err)
	}
	if _, found, err := FindProject(lower, upper, ""); err != nil || found {
		t.Errorf("the user's home in another spelling: found %v, %v", found, err)
	}
}

func TestGrantRefuses(t *testing.T) {
	root := world(t)
	for name, r := range map[string]Record{
		"a relative path":            {Dir: "p", Seal: "1"},
		"no path":                    {Seal: "1"},
		"no seal":                    {Dir: root},
		"a path in another encoding": {Dir: filepath.Join(root, "\xff"), Seal: "1"},
	} {
		s := Open(filepath.Join(root, "trust.json"))
		if err := s.Grant(t.Context(), r); err == nil || !strings.HasPrefix(err.Error(), "trusting "+r.Dir+": ") {
			t.Errorf("%s: the error is %v", name, err)
		}
		wantDirs(t, s)
	}
}

func TestPermissions(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no modes")
	}
	root := world(t, "shared.json", `{"version": 1, "projects": []}`)
	for name, want := range map[string]fs.FileMode{"new.json": 0o600, "shared.json": 0o600} {
		file := filepath.Join(root, name)
		grant(t, Open(file), root, "1")
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s is %v, %v", name, info.Mode(), err)
		}
	}
	needsPermissions(t)
	file := filepath.Join(root, "new.json")
	chmod(t, file, 0)
	got, err := Open(file).State(Project{Dir: root}, "1")
	if got != Unknown || fault.ClassOf(err) != fault.Environment || !strings.Contains(err.Error(), file) {
		t.Errorf("an unreadable store: %s, %v", got, err)
	}
}

func TestLinkedStore(t *testing.T) {
	root := world(t, "dotfiles/", "", "home/trust.json", "-> ../dotfiles/trust.json")
	grant(t, Open(filepath.Join(root, "home", "trust.json")), root, "1")
	wantState(t, Open(filepath.Join(root, "dotfiles", "trust.json")), root, "1", Trusted)
}

// Whatever cannot be understood is never trust, and never written over.
func TestDamagedStore(t *testing.T) {
	root := world(t)
	p := strings.ReplaceAll(root, `\`, `\\`)
	tests := map[string]struct{ text, want string }{
		"empty":             {"", "line 1: unexpected end of JSON input"},
		"cut off":           {"{\n\"version\": 1,\n\"projects\": [", "line 3: unexpected end of JSON input"},
		"no JSON":           {"{\n  version: 1\n}", "line 2: invalid character 'v' looking for beginning of object key string"},
		"merged by git":     {"{\"version\": 1,\n<<<<<<< ours\n", "line 2: invalid character '<' looking for beginning of object key string"},
		"two documents":     {`{"version": 1}` + "\n{}", "line 2: invalid character '{' after top-level value"},
		"a list":            {"[]", "line 1: json: cannot unmarshal array into Go value of type struct { Version *int \"json:\\\"version\\\"\" }"},
		"nothing":           {"null", `it has no "version"`},
		"no version":        {`{"projects": [{"dir": "` + p + `", "seal": "1"}]}`, `it has no "version"`},
		"a newer format":    {`{"version": 2, "projects": {}}`, "it is written in format 2 by a newer dsh, and this one reads format 1"},
		"an unknown format": {`{"version": 0, "projects": []}`, "there is no format 0"},
		"a version in text": {`{"version": "1"}`, "line 1: json: cannot unmarshal string"},
		"projects by name":  {"{\"version\": 1,\n \"projects\": {}}", "line 2: json: cannot unmarshal object"},
		"a date in words":   {`{"version": 1, "projects": [{"dir": "` + p + `", "seal": "1", "since": "today"}]}`, "parsing time"},
		"no seal":           {`{"version": 1, "projects": [{"dir": "` + p + `"}]}`, `a project lacks its "dir" or its "seal"`},
		"no directory":      {`{"version": 1, "projects": [{"seal": "1"}]}`, `a project lacks its "dir" or its "seal"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "my trust.json")
			put(t, filepath.Dir(file), filepath.Base(file), test.text)
			s := Open(file)
			state, stateErr := s.State(Project{Dir: root}, "1")
			if state != Unknown {
				t.Errorf("the state is %s", state)
			}
			_, listErr := s.List()
			_, revokeErr := s.Revoke(t.Context(), root)
			grantErr := s.Grant(t.Context(), Record{Dir: root, Seal: "1", Since: since})
			want := "reading the trusted directories: " + file + ": " + test.want
			for call, err := range map[string]error{"State": stateErr, "List": listErr, "Revoke": revokeErr, "Grant": grantErr} {
				if err == nil || !strings.Contains(err.Error(), want) || fault.ClassOf(err) != fault.Policy {
					t.Errorf("%s: the error is %v, want %s", call, err, want)
				}
				if hint := fault.Hint(err); hint != "to start over, with no directory trusted: rm '"+file+"'" && runtime.GOOS != "windows" {
					t.Errorf("%s: the hint is %q", call, hint)
				}
			}
			if got, err := os.ReadFile(file); err != nil || string(got) != test.text {
				t.Errorf("the file is now %q, %v", got, err)
			}
			// The hint does what it says.
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
			wantDirs(t, s)
			grant(t, s, root, "1")
			wantState(t, s, root, "1", Trusted)
		})
	}
}

// The file is part of what users see: it may be read, and lines taken out.
func TestFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("other paths")
	}
	file := filepath.Join(t.TempDir(), "trust.json")
	s := Open(file)
	grant(t, s, "/srv/b & c", "sha256:1", "/srv/b & c/x.js")
	grant(t, s, "/srv/a", "sha256:2")
	const want = `{
  "version": 1,
  "projects": [
    {
      "dir": "/srv/a",
      "seal": "sha256:2",
      "since": "2026-03-04T05:06:07Z"
    },
    {
      "dir": "/srv/b & c",
      "seal": "sha256:1",
      "files": [
        "/srv/b & c/x.js"
      ],
      "since": "2026-03-04T05:06:07Z"
    }
  ]
}
`
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
	if _, err := s.Revoke(t.Context(), "/srv/a"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Revoke(t.Context(), "/srv/b & c"); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != "{\n  \"version\": 1,\n  \"projects\": []\n}\n" {
		t.Errorf("without projects the file is %q, %v", got, err)
	}
}

// A file that was written by hand is listed in order all the same.
func TestListIsSorted(t *testing.T) {
	root := world(t, "trust.json", `{"version": 1, "projects": [{"dir": "/b", "seal": "1"}, {"dir": "/a", "seal": "1"}]}`)
	wantDirs(t, Open(filepath.Join(root, "trust.json")), "/a", "/b")
}

// A record of another system, as in a home that systems share, means nothing
// here, and can be taken out as it is listed.
func TestForeignRecord(t *testing.T) {
	root := world(t, "trust.json", `{"version": 1, "projects": [{"dir": ".", "seal": "1"}]}`)
	s := Open(filepath.Join(root, "trust.json"))
	t.Chdir(root)
	wantState(t, s, root, "1", Unknown)
	if got, err := s.Revoke(t.Context(), "."); err != nil || !got {
		t.Errorf("revoked %v, %v", got, err)
	}
}

func TestGrantsAtOnce(t *testing.T) {
	root := world(t)
	file := filepath.Join(root, "home", "trust.json")
	var want []string
	var g errgroup.Group
	for i := range 8 {
		dir := filepath.Join(root, fmt.Sprintf("goroutine%d", i))
		want = append(want, dir)
		g.Go(func() error {
			return Open(file).Grant(t.Context(), Record{Dir: dir, Seal: "s", Since: since})
		})
	}
	for i := range 4 {
		dir := filepath.Join(root, fmt.Sprintf("process%d", i))
		want = append(want, dir)
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), granter+"="+file+"\n"+dir)
		g.Go(func() error {
			if out, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	wantDirs(t, Open(file), want...)
}

func TestLockedStore(t *testing.T) {
	root := world(t)
	file := filepath.Join(root, "trust.json")
	s := Open(file)
	grant(t, s, root, "1")
	lock, err := staging.TryAcquire(file+".lock", "dsh trust elsewhere")
	if err != nil {
		t.Fatal(err)
	}
	wantState(t, s, root, "1", Trusted) // readers do not wait

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Grant(ctx, Record{Dir: filepath.Join(root, "p"), Seal: "1", Since: since}); fault.ClassOf(err) != fault.Interrupted {
		t.Errorf("granting: %v", err)
	}
	if got, err := s.Revoke(ctx, root); got || fault.ClassOf(err) != fault.Interrupted {
		t.Errorf("revoking: %v, %v", got, err)
	}
	wantDirs(t, s, root)
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	grant(t, s, root, "2")
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"", "null", "{", `{"version": 1}`, `{"version": 2, "projects": 3}`, "{\"version\": 1, \"projects\": [\n5]}",
		`{"version": 1, "projects": [{"dir": "/b", "seal": "1", "files": ["/x"], "since": "2026-03-04T05:06:07Z"}, {"dir": "/a", "seal": "2"}]}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		records, err := Open("").record.parse(text)
		if err != nil {
			if records != nil {
				t.Errorf("records with an error: %v", records)
			}
			return
		}
		written, err := Open("").record.format(records)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Open("").record.parse(written)
		if err != nil {
			t.Fatalf("%v in %s", err, written)
		}
		rewritten, err := Open("").record.format(again)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(written), string(rewritten)); diff != "" {
			t.Error(diff)
		}
	})
}
