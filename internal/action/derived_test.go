package action

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dsh/internal/install"
	"dsh/internal/profile"
	"dsh/internal/staging"
)

// installed is a home with a profile x that has copies of folders.
func installed(t *testing.T, names ...string) (*stocked, profile.Name) {
	t.Helper()
	s := newStocked(t)
	name, err := profile.ParseName("x")
	s.must(err)
	var specs []install.Spec
	for _, pkg := range names {
		dir := filepath.Join(s.env.Home.Dir(), pkg)
		s.write(filepath.Join(dir, "package.json"), `{"name": "`+pkg+`", "version": "1.0.0"}`)
		s.write(filepath.Join(dir, "index.js"), "// "+pkg+"\n")
		spec, err := install.ParseSpec("file:"+dir, s.env.Dir)
		s.must(err)
		specs = append(specs, spec)
	}
	_, err = Add(t.Context(), s.env, PluginOptions{Name: name}, specs, install.AddOptions{})
	s.must(err)
	return s, name
}

// afterAStart makes the last change of a profile one that was made before the
// machine was started.
func afterAStart(t *testing.T, place staging.Place, boot string) {
	t.Helper()
	if staging.BootID() == "" {
		t.Skip("this system does not tell one start from another")
	}
	if err := os.WriteFile(filepath.Join(place.State, "commits"), []byte("1\n"+boot+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if !staging.Unclean(place) {
		t.Fatal("the profile is not unclean")
	}
}

// lose gives a file the zeros that a power loss leaves.
func lose(t *testing.T, file string) {
	t.Helper()
	info, err := os.Stat(file)
	if err == nil {
		err = os.Chmod(file, 0o644)
	}
	if err == nil {
		err = os.WriteFile(file, make([]byte, info.Size()), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestRebuilt(t *testing.T) {
	s, name := installed(t, "a", "b", "c")
	place := s.env.Home.Place(name)
	file := func(pkg string) string { return filepath.Join(place.Dir, "node_modules", pkg, "index.js") }
	content := func(pkg string) string {
		t.Helper()
		text, err := os.ReadFile(file(pkg))
		s.must(err)
		return string(text)
	}
	run := func() string {
		t.Helper()
		return strings.Join(rebuilt(context.Background(), s.env, name), "\n")
	}

	// In the boot of the change nothing is looked at.
	lose(t, file("a"))
	if said := run(); said != "" || content("a") == "// a\n" {
		t.Errorf("in the same boot: %q, %q", said, content("a"))
	}

	afterAStart(t, place, "first")
	s.must(os.RemoveAll(filepath.Dir(file("b"))))
	want := "profile x: these packages were damaged when the machine stopped, and were laid out again: a, b"
	if said := run(); said != want {
		t.Errorf("said %q, want %q", said, want)
	}
	for _, pkg := range []string{"a", "b", "c"} {
		if content(pkg) != "// "+pkg+"\n" {
			t.Errorf("%s: %q", pkg, content(pkg))
		}
	}
	if staging.Unclean(place) || run() != "" {
		t.Error("it is looked at again")
	}

	// What cannot be had again is named, and tried again.
	afterAStart(t, place, "second")
	lose(t, file("a"))
	lose(t, filepath.Join(s.env.Home.Dir(), "a", "index.js"))
	said := run()
	for _, part := range []string{"profile x has packages that were damaged when the machine stopped (a): ", "content does not match its integrity", "; dsh profile repair x tries again"} {
		if !strings.Contains(said, part) {
			t.Errorf("no %q in %q", part, said)
		}
	}
	if !staging.Unclean(place) {
		t.Error("it is not tried again")
	}
	s.write(filepath.Join(s.env.Home.Dir(), "a", "index.js"), "// a\n")
	if said := run(); said != strings.TrimSuffix(want, ", b") || content("a") != "// a\n" {
		t.Errorf("in the end: %q, %q", said, content("a"))
	}
}

// A profile without a lockfile, or none at all, has nothing to rebuild.
func TestRebuiltOfNothing(t *testing.T) {
	for i, remove := range []string{install.LockName, "."} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			s, name := installed(t, "a")
			place := s.env.Home.Place(name)
			afterAStart(t, place, "first")
			s.must(os.RemoveAll(filepath.Join(place.Dir, remove)))
			if said := rebuilt(t.Context(), s.env, name); len(said) > 0 || staging.Unclean(place) {
				t.Errorf("said %q", said)
			}
		})
	}
}
