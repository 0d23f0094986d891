package profile

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func manifestOf(t *testing.T, text string) *Manifest {
	t.Helper()
	m, err := ParseManifest("package.json", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestDisableRemembersThePlace(t *testing.T) {
	const before = `{
  "dsh": {
    "profile": {
      "bundles": [
        "a",
        "b",
        "c"
      ]
    }
  }
}
`
	for _, order := range [][]string{{"a"}, {"b"}, {"c"}, {"a", "b"}, {"b", "a"}, {"b", "c", "a"}, {"c", "b", "a"}} {
		m := manifestOf(t, before)
		for _, name := range order {
			if !m.DisableBundle(name) {
				t.Fatalf("%v: %s was not listed", order, name)
			}
			if m.DisableBundle(name) {
				t.Errorf("%v: %s was switched off twice", order, name)
			}
		}
		var names []string
		for _, p := range m.BundlePlaces() {
			names = append(names, p.Name)
		}
		if diff := cmp.Diff([]string{"a", "b", "c"}, names); diff != "" {
			t.Errorf("%v: %s", order, diff)
		}
		for _, name := range order {
			if !m.EnableBundle(name) || m.EnableBundle(name) {
				t.Errorf("%v: switching %s on", order, name)
			}
		}
		if diff := cmp.Diff(before, string(m.Bytes())); diff != "" {
			t.Errorf("%v and back: %s", order, diff)
		}
	}
}

func TestDisabledBundlesOfAFile(t *testing.T) {
	cases := []struct {
		name, profile string
		want          []BundlePlace
	}{
		{"the neighbour is gone", `"bundles":["a"],"disabledBundles":{"x":"gone"}`, []BundlePlace{{"a", false}, {"x", true}}},
		{"the first", `"bundles":["a"],"disabledBundles":{"x":""}`, []BundlePlace{{"x", true}, {"a", false}}},
		{"a chain in any order", `"bundles":["a","z"],"disabledBundles":{"y":"x","x":"a"}`, []BundlePlace{{"a", false}, {"x", true}, {"y", true}, {"z", false}}},
		{"a circle", `"bundles":["a"],"disabledBundles":{"x":"y","y":"x"}`, []BundlePlace{{"a", false}, {"x", true}, {"y", true}}},
		{"listed again by another launcher", `"bundles":["a","x"],"disabledBundles":{"x":""}`, []BundlePlace{{"a", false}, {"x", false}}},
		{"nothing", `"bundles":["a"],"disabledBundles":null`, []BundlePlace{{"a", false}}},
	}
	for _, c := range cases {
		if diff := cmp.Diff(c.want, manifestOf(t, `{"dsh":{"profile":{`+c.profile+`}}}`).BundlePlaces()); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
	for _, wrong := range []string{`[]`, `{"x":1}`, `"x"`} {
		if _, err := ParseManifest("package.json", []byte(`{"dsh":{"profile":{"disabledBundles":`+wrong+`}}}`)); err == nil {
			t.Errorf("%s is taken", wrong)
		}
	}
}

func TestForgettingDisabledBundles(t *testing.T) {
	const text = `{"dependencies":{"x":"1"},"dsh":{"profile":{"bundles":["a"],"disabledBundles":{"x":"a"}}}}`
	m := manifestOf(t, text)
	m.RemoveDependency("x")
	if got, want := string(m.Bytes()), `{"dependencies":{},"dsh":{"profile":{"bundles":["a"]}}}`; got != want {
		t.Errorf("removed: %s", got)
	}
	m = manifestOf(t, text)
	m.SetBundles([]string{"a", "x"})
	if got, want := string(m.Bytes()), `{"dependencies":{"x":"1"},"dsh":{"profile":{"bundles":["a","x"]}}}`; got != want {
		t.Errorf("listed: %s", got)
	}
}
