package scope

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dsh/internal/fault"
)

// place is a folder with files and links:
//
//	work/file, work/deep/file, work/denied/file, work/denied-not
//	secret/key, other/file
//	work/to-secret -> secret, work/to-key -> secret/key, work/to-other -> other
//	work/dangling -> other/new, work/around -> deep
//	work/hard is the same file as secret/key
//	denied-link -> other; alias -> work
func place(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"work/file", "work/deep/file", "work/denied/file", "work/denied-not", "secret/key", "other/file"} {
		check(os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		check(os.WriteFile(filepath.Join(dir, name), nil, 0o644))
	}
	for name, target := range map[string]string{
		"work/to-secret": "secret", "work/to-key": "secret/key", "work/to-other": "other", "work/dangling": "other/new", "work/around": "work/deep",
		"denied-link": "other", "alias": "work", "work/dangling-key": "secret/new",
	} {
		check(os.Symlink(filepath.Join(dir, target), filepath.Join(dir, name)))
	}
	check(os.Symlink("loop", filepath.Join(dir, "work/loop")))
	check(os.Symlink("../other/none/../x", filepath.Join(dir, "work/dots")))
	check(os.Link(filepath.Join(dir, "secret/key"), filepath.Join(dir, "work/hard")))
	return dir
}

func TestCheck(t *testing.T) {
	dir := place(t)
	at := func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
	s, err := New(Config{
		Allow: []Allowed{{Target: at("alias"), Access: Write}, {Target: at("other"), Access: Read}, {Target: at("not-yet")}, {Target: at("single")}},
		Deny:  []Denied{{at("work/denied")}, {at("secret")}, {at("other/denied-to-come")}, {at("secret/key")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path        string
		read, write bool
	}{
		{"work", true, true},
		{"work/file", true, true},
		{"alias/file", true, true},
		{"work/new/deeper", true, true},
		{"work/around/file", true, true},
		{"work/denied", false, false},
		{"work/denied/file", false, false},
		{"work/denied/new", false, false},
		{"alias/denied/file", false, false},
		{"work/denied-not", true, true},
		{"work/to-secret", false, false},
		{"work/to-secret/key", false, false},
		{"work/to-key", false, false},
		{"work/hard", false, false},
		{"secret/key", false, false},
		{"other/file", true, false},
		{"work/to-other/file", true, false},
		{"denied-link/file", true, false},
		{"work/dangling", true, false},
		{"work/dangling-key", false, false},
		{"other/denied-to-come/x", false, false},
		{"not-yet/x", true, false},
		{"single", true, false},
		{"singleton", false, false},
		{"workshop", false, false},
		{"work/../secret/key", false, false},
		{"work/../work/file", false, false},
		{"work/loop", false, false},
		{"work/dots", false, false},
		{"", false, false},
	} {
		path := dir + string(filepath.Separator) + filepath.FromSlash(c.path)
		for access, want := range map[Access]bool{Read: c.read, Write: c.write} {
			err := s.Check(path, access)
			if (err == nil) != want {
				t.Errorf("%s %s: %v", access, c.path, err)
			}
			if err != nil && fault.ClassOf(err) != fault.Policy {
				t.Errorf("%s %s: %v is of class %v", access, c.path, err, fault.ClassOf(err))
			}
		}
	}
	denied, ok := errors.AsType[*DeniedError](s.Check(at("secret/key"), Read))
	if !ok || denied.By != at("secret") || !strings.Contains(denied.Error(), "the scope denies "+at("secret")) {
		t.Errorf("got %+v", denied)
	}
	if err := s.Check("work/file", Read); err == nil {
		t.Error("a relative path is taken")
	}
}

func TestDeniedByLink(t *testing.T) {
	dir := place(t)
	s, err := New(Config{Allow: []Allowed{{Target: dir, Access: Write}}, Deny: []Denied{{filepath.Join(dir, "denied-link")}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"denied-link", "denied-link/file", "other", "other/file", "work/to-other/file", "work/dangling"} {
		if err := s.Check(filepath.Join(dir, name), Read); err == nil {
			t.Errorf("%s may be read", name)
		}
	}
	if err := s.Check(filepath.Join(dir, "work/file"), Write); err != nil {
		t.Error(err)
	}
}

func TestNothingIsAllowedByItself(t *testing.T) {
	s, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Check(t.TempDir(), Read); err == nil {
		t.Error("an empty scope allows something")
	}
	root := filepath.VolumeName(t.TempDir()) + string(filepath.Separator)
	s, err = New(Config{Allow: []Allowed{{Target: root}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Check(t.TempDir(), Read); err != nil {
		t.Error(err)
	}
}

func TestWrongConfigs(t *testing.T) {
	for want, config := range map[string]Config{
		"allow[0]: target is missing":                          {Allow: []Allowed{{}}},
		`allow[1]: target "x" is not absolute`:                 {Allow: []Allowed{{Target: t.TempDir()}, {Target: "x"}}},
		`allow[0]: access "execute" is neither read nor write`: {Allow: []Allowed{{Target: t.TempDir(), Access: "execute"}}},
		"deny[0]: target is missing":                           {Deny: []Denied{{}}},
		`deny[0]: target "~/x" is not absolute`:                {Deny: []Denied{{"~/x"}}},
	} {
		if _, err := New(config); err == nil || err.Error() != want {
			t.Errorf("want %s, got %v", want, err)
		}
	}
}
