package install

import (
	"bytes"
	"crypto/sha512"
	"encoding/base64"
	"strings"
	"testing"

	"dsh/internal/fault"
	"dsh/internal/profile"
)

func TestFits(t *testing.T) {
	sum := `integrity: "sha512-` + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{1}, sha512.Size)) + `"`
	const head = "lockfileVersion: \"1\"\ndependencies:\n"
	for _, tt := range []struct {
		name, manifest, lock string
		says                 string // "" fits
	}{
		{"nothing", `{}`, "lockfileVersion: \"1\"\n", ""},
		{"a version", `{"dependencies": {"a": "^1.0.0"}}`, head + "  a: \"^1.0.0\"\npackages:\n  node_modules/a:\n    version: 1.2.0\n    " + sum + "\n", ""},
		{"any version", `{"dependencies": {"a": ""}}`, head + "  a: \"*\"\npackages:\n  node_modules/a:\n    version: 1.2.0\n    " + sum + "\n", ""},
		{"a tag", `{"dependencies": {"a": "next"}}`, head + "  a: next\npackages:\n  node_modules/a:\n    version: 2.0.0-rc.1\n    " + sum + "\n", ""},
		{"an alias", `{"dependencies": {"mine": "npm:a@1"}}`, head + "  mine: \"npm:a@1\"\npackages:\n  node_modules/mine:\n    name: a\n    version: 1.2.0\n    " + sum + "\n", ""},
		{"a link", `{"dependencies": {"a": "link:../a"}}`, head + "  a: \"link:../a\"\npackages:\n  node_modules/a:\n    version: 1.2.0\n    link: \"../a\"\n", ""},
		{"an optional one that was not to be had", `{"optionalDependencies": {"a": "1"}}`, head + "  a: \"1\"\n", ""},
		{"a need that is met above", `{"dependencies": {"a": "1.0.0", "b": "1.0.0"}}`,
			head + "  a: 1.0.0\n  b: 1.0.0\npackages:\n  node_modules/a:\n    version: 1.0.0\n    " + sum + "\n    dependencies:\n      b: 1.0.0\n  node_modules/b:\n    version: 1.0.0\n    " + sum + "\n", ""},
		{"an optional need", `{"dependencies": {"a": "1.0.0"}}`,
			head + "  a: 1.0.0\npackages:\n  node_modules/a:\n    version: 1.0.0\n    " + sum + "\n    optionalDependencies:\n      b: 1.0.0\n", ""},
		{"a need that is not met", `{"dependencies": {"a": "1.0.0"}}`,
			head + "  a: 1.0.0\npackages:\n  node_modules/a:\n    version: 1.0.0\n    " + sum + "\n    dependencies:\n      b: 1.0.0\n", "which needs b"},
		{"a package below nothing", `{}`, "lockfileVersion: \"1\"\npackages:\n  node_modules/a/node_modules/b:\n    version: 1.0.0\n    " + sum + "\n", "and not node_modules/a"},
		{"a newcomer", `{"dependencies": {"a": "1"}}`, "lockfileVersion: \"1\"\n", "does not know it"},
		{"one that went", `{}`, head + "  a: \"1\"\n", "depends on a, and package.json does not"},
		{"another range", `{"dependencies": {"a": "2"}}`, head + "  a: \"1\"\n", "was made for 1"},
		{"no package", `{"dependencies": {"a": "1"}}`, head + "  a: \"1\"\n", "does not hold it"},
		{"another version", `{"dependencies": {"a": "2"}}`, head + "  a: \"2\"\npackages:\n  node_modules/a:\n    version: 1.2.0\n    " + sum + "\n", "holds a@1.2.0 for it"},
		{"another package", `{"dependencies": {"mine": "npm:a@1"}}`, head + "  mine: \"npm:a@1\"\npackages:\n  node_modules/mine:\n    name: evil\n    version: 1.2.0\n    " + sum + "\n", "holds evil@1.2.0 for it"},
		{"another folder", `{"dependencies": {"a": "link:../a"}}`, head + "  a: \"link:../a\"\npackages:\n  node_modules/a:\n    version: 1.2.0\n    link: \"../b\"\n", "holds a@1.2.0 for it"},
		{"a link for a version", `{"dependencies": {"a": "1"}}`, head + "  a: \"1\"\npackages:\n  node_modules/a:\n    version: 1.2.0\n    link: \"../b\"\n", "holds a@1.2.0 for it"},
		{"an override for what the profile asks for", `{"dependencies": {"a": "1"}}`, "lockfileVersion: \"1\"\noverrides:\n  a: 2.0.0\ndependencies:\n  a: \"1\"\npackages:\n  node_modules/a:\n    version: 2.0.0\n    " + sum + "\n", ""},
		{"another version than the override's", `{"dependencies": {"a": "1"}}`, "lockfileVersion: \"1\"\noverrides:\n  a: 2.0.0\ndependencies:\n  a: \"1\"\npackages:\n  node_modules/a:\n    version: 1.2.0\n    " + sum + "\n", "holds a@1.2.0 for it"},
		{"an override takes a need away", `{"dependencies": {"a": "1.0.0"}}`,
			"lockfileVersion: \"1\"\noverrides:\n  \"a>b\": \"-\"\ndependencies:\n  a: 1.0.0\npackages:\n  node_modules/a:\n    version: 1.0.0\n    " + sum + "\n    dependencies:\n      b: 1.0.0\n", ""},
		{"a need that is left to the installation", `{"dependencies": {"a": "1.0.0"}}`,
			"lockfileVersion: \"1\"\nomitted: [cordis]\ndependencies:\n  a: 1.0.0\npackages:\n  node_modules/a:\n    version: 1.0.0\n    " + sum + "\n    dependencies:\n      cordis: 4.0.0\n", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, err := profile.ParseManifest("package.json", []byte(tt.manifest))
			if err != nil {
				t.Fatal(err)
			}
			lock, err := ParseLock(LockName, []byte(tt.lock))
			if err != nil {
				t.Fatal(err)
			}
			err = lock.Fits(m, t.TempDir())
			switch {
			case tt.says == "" && err != nil:
				t.Error(err)
			case tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says) || fault.ClassOf(err) != fault.Package):
				t.Errorf("%v, want %q", err, tt.says)
			}
		})
	}
}
