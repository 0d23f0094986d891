package action

import "testing"

func TestPacks(t *testing.T) {
	for _, c := range []struct {
		files []string
		patch string
		want  bool
	}{
		{nil, "cordis.patch.yml", true},
		{[]string{}, "cordis.patch.yml", false},
		{[]string{"cordis.patch.yml"}, "./cordis.patch.yml", true},
		{[]string{"./cordis.patch.yml"}, "cordis.patch.yml", true},
		{[]string{"/cordis.patch.yml"}, "cordis.patch.yml", true},
		{[]string{"*.yml"}, "cordis.patch.yml", true},
		{[]string{"*.yml"}, "patches/one.yml", false},
		{[]string{"patches"}, "patches/deep/one.yml", true},
		{[]string{"patches/"}, "patches/one.yml", true},
		{[]string{"patches/*"}, "patches/one.yml", true},
		{[]string{"lib", "README.md"}, "patches/one.yml", false},
		{[]string{"patch"}, "patches/one.yml", false},
		{[]string{"*"}, "patches/one.yml", true},
		{[]string{"."}, "patches/one.yml", true},
		{[]string{"**/*.yml"}, "patches/one.yml", true},
		{[]string{"lib", "!patches"}, "patches/one.yml", true}, // only npm knows
		{[]string{"[x"}, "patches/one.yml", true},              // likewise
	} {
		if got := (declaration{files: c.files}).packs(c.patch); got != c.want {
			t.Errorf("files %q pack %s: %v", c.files, c.patch, got)
		}
	}
}
