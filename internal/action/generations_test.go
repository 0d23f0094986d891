package action

import (
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dsh/internal/profile"
	"dsh/internal/staging"
)

// stateOf is a state with files, in order of their names.
func stateOf(id int, namesAndTexts ...string) *staging.Generation {
	g := &staging.Generation{ID: id}
	for i := 0; i < len(namesAndTexts); i += 2 {
		g.Files = append(g.Files, staging.SavedFile{Path: namesAndTexts[i], Mode: 0o644, Data: []byte(namesAndTexts[i+1])})
	}
	return g
}

// historyOf is a past with these states, newest first, and now in place.
func historyOf(now *staging.Generation, generations ...*staging.Generation) *past {
	p := &past{subject: subject{name: profile.Default}, now: now}
	for _, g := range generations {
		p.generations = append(p.generations, *g)
	}
	return p
}

func TestBack(t *testing.T) {
	one, two, three := stateOf(1, "a", "1"), stateOf(2, "a", "2"), stateOf(3, "a", "3")
	for name, c := range map[string]struct {
		past *past
		back int
		want int
		err  string
	}{
		"the state before":              {historyOf(three, three, two, one), 1, 2, ""},
		"two changes":                   {historyOf(three, three, two, one), 2, 1, ""},
		"too many":                      {historyOf(three, three, two, one), 3, 0, "profile default cannot go 3 changes back: the history holds 2"},
		"edits are a change":            {historyOf(stateOf(0, "a", "x"), three, two, one), 1, 3, ""},
		"edits and one more":            {historyOf(stateOf(0, "a", "x"), three, two, one), 2, 2, ""},
		"too many with edits":           {historyOf(stateOf(0, "a", "x"), two, one), 3, 0, "profile default cannot go 3 changes back: the history holds 2"},
		"removed":                       {historyOf(nil, three, two), 1, 3, ""},
		"the oldest":                    {historyOf(one, one), 1, 0, "profile default has no state before the one that is there"},
		"a profile before its history":  {historyOf(one), 1, 0, "profile default has no saved states yet: its history begins with the next change"},
		"edited permissions are edits":  {historyOf(&staging.Generation{Files: []staging.SavedFile{{Path: "a", Mode: 0o755, Data: []byte("1")}}}, one), 1, 1, ""},
		"a link is not a file like it":  {historyOf(&staging.Generation{Files: []staging.SavedFile{{Path: "a", Mode: fs.ModeSymlink, Data: []byte("1")}}}, one), 1, 1, ""},
		"a file more is an edit":        {historyOf(stateOf(0, "a", "1", "b", "2"), one), 1, 1, ""},
		"a file less is an edit":        {historyOf(stateOf(0), one), 1, 1, ""},
		"an empty profile, and nothing": {historyOf(stateOf(0), stateOf(1)), 1, 0, "profile default has no state before the one that is there"},
	} {
		got, err := c.past.back(c.back)
		text, id := "", 0
		if err != nil {
			text = err.Error()
		} else {
			id = got.ID
		}
		if text != c.err || id != c.want {
			t.Errorf("%s: generation %d, error %q", name, id, text)
		}
	}
}

func TestCompareStates(t *testing.T) {
	const lock = "lockfileVersion: \"1\"\ndependencies:\n  left: ^1.0.0\npackages:\n  node_modules/left:\n    version: 1.0.0\n    integrity: sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==\n"
	before := stateOf(1,
		"cordis.patch.yml", "- id: a\n- id: b\n",
		"dsh-lock.yaml", lock,
		"gone.txt", "one\ntwo\n",
		"package.json", `{"dependencies":{"left":"^1.0.0","moved":"1.0.0"},"dsh":{"profile":{"bundles":["a","b"]}}}`+"\n")
	after := stateOf(2,
		"binary", "\x00\x01\n",
		"cordis.patch.yml", "- id: a\n- id: c\n- id: d\n",
		"package.json", `{"dependencies":{"right":"2.0.0"},"devDependencies":{"moved":"1.0.0"},"dsh":{"profile":{"bundles":["b","right"]}}}`+"\n")
	want := &StateChange{
		Dependencies: []DependencyChange{
			{"left", &DependencyInfo{"^1.0.0", "1.0.0", profile.Dependencies, "^1.0.0"}, nil},
			{"moved", &DependencyInfo{"1.0.0", "", profile.Dependencies, "1.0.0"}, &DependencyInfo{"1.0.0", "", profile.DevDependencies, "1.0.0"}},
			{"right", nil, &DependencyInfo{"2.0.0", "", profile.Dependencies, "2.0.0"}},
		},
		Bundles: BundleDiff{Added: []string{"right"}, Removed: []string{"a"}},
		// "right" is not locked, so nobody knows what comes with it.
		Packages: PackageCounts{},
		Files: []FileChange{
			{"binary", "added", 0, 0, false},
			{"cordis.patch.yml", "changed", 2, 1, false},
			{"dsh-lock.yaml", "removed", 0, 7, false},
			{"gone.txt", "removed", 0, 2, false},
			{"package.json", "changed", 1, 1, false},
		},
	}
	if diff := cmp.Diff(want, compareStates(before, after), cmp.AllowUnexported(DependencyInfo{})); diff != "" {
		t.Error(diff)
	}
	for name, states := range map[string][2]*staging.Generation{
		"the same":    {before, before},
		"two nothing": {nil, nil},
		"no files":    {stateOf(1), nil},
	} {
		if c := compareStates(states[0], states[1]); !c.Empty() {
			t.Errorf("%s: %+v", name, c)
		}
	}
	if c := compareStates(before, stateOf(2, "package.json", "{}")); c.Packages != (PackageCounts{Removed: 1}) {
		t.Errorf("without dependencies: %+v", c)
	}
	// What cannot be read differs as a file.
	broken := compareStates(before, stateOf(2, "dsh-lock.yaml", "{", "package.json", "{"))
	unreadable := 0
	for _, f := range broken.Files {
		if f.Unreadable {
			unreadable++
		}
	}
	if len(broken.Files) != 4 || unreadable != 2 || len(broken.Dependencies)+len(broken.Bundles.Removed)+broken.Packages.Removed != 0 {
		t.Errorf("broken files: %+v", broken)
	}
	// A lockfile that comes to dependencies which are there adds none of them.
	manifest := []string{"package.json", `{"dependencies":{"left":"^1.0.0"}}`}
	adopted := compareStates(stateOf(1, manifest...), stateOf(2, append([]string{"dsh-lock.yaml", lock}, manifest...)...))
	if len(adopted.Dependencies) != 0 || adopted.Packages != (PackageCounts{}) || len(adopted.Files) != 1 {
		t.Errorf("a lockfile alone: %+v", adopted)
	}
}

func TestCountLines(t *testing.T) {
	for _, c := range []struct {
		a, b           string
		added, removed int
	}{
		{"", "", 0, 0},
		{"a\n", "a\n", 0, 0},
		{"", "a\nb\n", 2, 0},
		{"a\nb\n", "", 0, 2},
		{"a\nb\nc\n", "a\nx\nc\n", 1, 1},
		{"a\n", "a", 1, 1}, // the end of the line
		{"-- a\n", "++ b\n", 1, 1},
		{"\n\n\n", "\n", 0, 2},
	} {
		if added, removed := countLines([]byte(c.a), []byte(c.b)); added != c.added || removed != c.removed {
			t.Errorf("%q to %q: +%d -%d", c.a, c.b, added, removed)
		}
	}
}

func FuzzCountLines(f *testing.F) {
	f.Add("a\nb\n", "b\nc")
	f.Fuzz(func(t *testing.T, a, b string) {
		added, removed := countLines([]byte(a), []byte(b))
		if (added+removed == 0) != (a == b) {
			t.Errorf("%q to %q: +%d -%d", a, b, added, removed)
		}
		lines := func(s string) int { return len(slices.Collect(strings.Lines(s))) }
		if lines(a)+added-removed != lines(b) {
			t.Errorf("%q to %q: +%d -%d", a, b, added, removed)
		}
	})
}
