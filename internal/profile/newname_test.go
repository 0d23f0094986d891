package profile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func names(texts ...string) []Name {
	var list []Name
	for _, text := range texts {
		list = append(list, Name{text})
	}
	return list
}

func TestParseNewName(t *testing.T) {
	existing := names("mine", "Caf\u00e9", "dot.", "new line")
	for _, ok := range []string{
		"a", "work", "my profile", "a.b", ".hidden", "节点", "web", "sdk-minimal", "console", "com", "com10", "x-1", "plugin",
		"\U0001f469\u200d\U0001f4bb", "it's", "50%", strings.Repeat("a", 200), " leading",
	} {
		if name, err := ParseNewName(ok, existing); err != nil || name.String() != ok {
			t.Errorf("%q: %q, %v", ok, name, err)
		}
	}
	cannot := "a new profile cannot be called "
	for _, test := range []struct{ name, want string }{
		{"", `invalid profile name ""`},
		{"a/b", `invalid profile name "a/b"`},
		{".web.staging-12ab", `invalid profile name ".web.staging-12ab"`},
		{"-x", cannot + `"-x": it would be read as an option`},
		{"--force", cannot + `"--force": it would be read as an option`},
		{"x.", cannot + `"x.": Windows drops the dot at its end`},
		{"...", cannot + `"...": Windows drops the dot at its end`},
		{"x ", cannot + `"x ": Windows drops the space at its end`},
		{"x\u3000", cannot + "\"x\\u3000\": Windows drops the space at its end"},
		{" ", cannot + `" ": Windows drops the space at its end`},
		{"a:b", cannot + `"a:b": Windows takes no ':' in a name`},
		{"a<b", cannot + `"a<b": Windows takes no '<' in a name`},
		{`a"b`, cannot + `"a"b": Windows takes no '"' in a name`},
		{"a|b", cannot + `"a|b": Windows takes no '|' in a name`},
		{"what?", cannot + `"what?": Windows takes no '?' in a name`},
		{"*", cannot + `"*": Windows takes no '*' in a name`},
		{"a\nb", cannot + `"a\nb": it holds the control character U+000A`},
		{"a\x7f", cannot + `"a\x7f": it holds the control character U+007F`},
		{"a\u0085b", cannot + `"a\u0085b": it holds the control character U+0085`},
		{"a\u2028b", cannot + `"a\u2028b": not every system takes the character U+2028`},
		{"a\ue000", cannot + `"a\ue000": not every system takes the character U+E000`},
		{"a\u0378", cannot + `"a\u0378": not every system takes the character U+0378`},
		{"\xff", cannot + `"\xff": it is not UTF-8`},
		{"\u200b", cannot + `"\u200b": it holds nothing that can be seen`},
		{strings.Repeat("é", 101), cannot + `"` + strings.Repeat("é", 101) + `": it has 202 bytes, and more than 200 do not fit everywhere`},
		{"con", cannot + `"con": CON is a device on Windows`},
		{"NUL", cannot + `"NUL": NUL is a device on Windows`},
		{"nul.txt", cannot + `"nul.txt": NUL is a device on Windows`},
		{"Com1 .x.y", cannot + `"Com1 .x.y": COM1 is a device on Windows`},
		{"com\u00b9", cannot + "\"com\u00b9\": COM1 is a device on Windows"},
		{"lpt9", cannot + `"lpt9": LPT9 is a device on Windows`},
		{"CONOUT$", cannot + `"CONOUT$": CONOUT$ is a device on Windows`},
		{"desktop", cannot + `"desktop": that profile is managed exclusively by the Electron application`},
		{"DeskTop", cannot + `"DeskTop": that profile is managed exclusively by the Electron application`},
		{"Node_Modules", cannot + `"Node_Modules": some systems take it for node_modules`},
		{".dsh-tmp-0123456789ab", cannot + `".dsh-tmp-0123456789ab": dsh has files of that name`},
		{".patches.lock", cannot + `".patches.lock": dsh has files of that name`},
		{"work@1", cannot + `"work@1": that is how a saved state of a profile is called`},
		{"a@b@007", cannot + `"a@b@007": that is how a saved state of a profile is called`},
		{"Web", cannot + `"Web": some systems take that for the shipped profile "web"`},
		{"HEADLE\u1e9e", cannot + "\"HEADLE\u1e9e\": some systems take that for the shipped profile \"headless\""},
		{"mine", `profile "mine" exists already`},
		{"MINE", cannot + `"MINE": some systems take that for the existing profile "mine"`},
		{"cafe\u0301", cannot + "\"cafe\u0301\": some systems take that for the existing profile \"Caf\u00e9\""},
		{"dot", cannot + `"dot": some systems take that for the existing profile "dot."`},
		{"new\u00a0line", cannot + `"new\u00a0line": some systems take that for the existing profile "new line"`},
	} {
		_, err := ParseNewName(test.name, existing)
		if err == nil {
			t.Errorf("%q is accepted", test.name)
		} else if diff := cmp.Diff(test.want, err.Error()); diff != "" {
			t.Errorf("%q (-want +got):\n%s", test.name, diff)
		}
	}
}

func FuzzParseNewName(f *testing.F) {
	for _, seed := range []string{"work", "Web", "con.x", "a ", "\u200b", "Caf\u00e9", "節點"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		name, err := ParseNewName(s, nil)
		if err != nil {
			return
		}
		if strings.ContainsAny(s, "/\\\x00<>:\"|?*\n") || strings.TrimRight(s, ". ") != s || len(s) > 200 || s[0] == '-' {
			t.Fatalf("%q is accepted", s)
		}
		// What is accepted can be made, and is then found under its name.
		home := Home{t.TempDir()}
		if err := os.MkdirAll(home.ProfileDir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if found, err := home.Profiles(); err != nil || len(found) != 1 || found[0] != name {
			t.Fatalf("%q is found as %q, %v", s, found, err)
		}
		if _, err := ParseNewName(strings.ToUpper(s), names(s)); err == nil {
			t.Fatalf("%q is accepted beside %q", strings.ToUpper(s), s)
		}
	})
}

func TestCheckShipped(t *testing.T) {
	base, web := BaseBundle, "@deepseek-ai/dsh-web-app"
	for _, test := range []struct {
		name    string
		bundles []string
		refused bool
	}{
		{"work", nil, false},
		{"web", []string{base, web}, false},
		{"web", []string{"first", base, "mine", web, "last"}, false},
		{"web", []string{web, base}, true},
		{"web", []string{base}, true},
		{"web", nil, true},
	} {
		if err := CheckShipped(Name{test.name}, test.bundles); (err != nil) != test.refused {
			t.Errorf("%s %q: %v", test.name, test.bundles, err)
		}
	}
}

func TestProfiles(t *testing.T) {
	home := Home{t.TempDir()}
	if found, err := home.Profiles(); err != nil || found != nil {
		t.Errorf("an empty home has %q, %v", found, err)
	}
	for _, dir := range []string{"b", "a", "Odd:name ", "node_modules", ".b.staging-0123456789ab", ".b.backup-0123456789ab", ".dsh-tmp-0123456789ab", ".hidden"} {
		if err := os.MkdirAll(filepath.Join(home.ProfilesDir(), dir), 0o755); err != nil {
			t.Skip(err) // a system that takes no such name
		}
	}
	if err := os.WriteFile(filepath.Join(home.ProfilesDir(), "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("b", filepath.Join(home.ProfilesDir(), "link")); err != nil {
		t.Skip(err)
	}
	if err := os.Symlink("nothing", filepath.Join(home.ProfilesDir(), "dangling")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("file", filepath.Join(home.ProfilesDir(), "filelink")); err != nil {
		t.Fatal(err)
	}
	found, err := home.Profiles()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(names(".hidden", "Odd:name ", "a", "b", "dangling", "link"), found, cmp.AllowUnexported(Name{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestChosen(t *testing.T) {
	home := Home{filepath.Join(t.TempDir(), "not", "made")}
	if name, ok, err := Chosen(home); ok || err != nil {
		t.Errorf("nothing is chosen, and got %q, %v", name, err)
	}
	if was, err := Unchoose(home); was || err != nil {
		t.Errorf("took back %v, %v", was, err)
	}
	if err := Choose(home, Name{"my work"}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(home.ChosenPath())
	if err != nil || string(text) != "my work\n" {
		t.Errorf("wrote %q, %v", text, err)
	}
	if name, ok, err := Chosen(home); !ok || err != nil || name.String() != "my work" {
		t.Errorf("got %q, %v, %v", name, ok, err)
	}
	for text, want := range map[string]string{"x": "x", "x\r\n": "x", "\ufeffx\n": "x", "": "", "\n": "", "a\nb\nc\n": "", "../x\n": "", "x\n\n": "", "\nx\n": ""} {
		if err := os.WriteFile(home.ChosenPath(), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if name, ok, err := Chosen(home); name.String() != want || ok != (want != "") || (err == nil) != ok {
			t.Errorf("%q: got %q, %v, %v", text, name, ok, err)
		}
	}

	// While it is renamed, it counts by the name that it has.
	from, to := Name{"from"}, Name{"to"}
	if err := os.MkdirAll(home.ProfileDir(from), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := ChooseMoving(home, from, to); err != nil {
		t.Fatal(err)
	}
	if name, ok, err := Chosen(home); name != from || !ok || err != nil {
		t.Errorf("before: %q, %v", name, err)
	}
	if err := os.Rename(home.ProfileDir(from), home.ProfileDir(to)); err != nil {
		t.Fatal(err)
	}
	if name, ok, err := Chosen(home); name != to || !ok || err != nil {
		t.Errorf("afterwards: %q, %v", name, err)
	}
	if was, err := Unchoose(home); !was || err != nil {
		t.Errorf("took back %v, %v", was, err)
	}
	if _, ok, err := Chosen(home); ok || err != nil {
		t.Errorf("still chosen: %v", err)
	}
}
