package action

import (
	"strings"
	"testing"
)

func TestCommandLinesAreKeptWithoutValues(t *testing.T) {
	for line, want := range map[string]string{
		"plugin add x":                              "plugin add x",
		"config set w.token hunter2":                "config set w.token …",
		"config --home set --profile x w.n hunter2": "config --home set --profile x w.n …",
		"config set w.n -5 --home":                  "config set w.n … --home",
		"config unset w.token":                      "config unset w.token",
		"--set w.token=hunter2 web":                 "--set w.token=… web",
		"--set=w.token=hunter2 web":                 "--set=w.token=… web",
		"config dump --set w.token=a=b --profile x": "config dump --set w.token=… --profile x",
		"config set w.token -- --hunter2":           "config set w.token -- …",
		"config set -- w.token --hunter2":           "config set -- w.token …",
		"config set -- -w.token hunter2":            "config set -- -w.token …",
		"config set w.token -- --profile hunter2":   "config set w.token -- … …",
		"config set w.token -- --set=hunter2":       "config set w.token -- …",
		"config set w.token -- --set hunter2":       "config set w.token -- … …",
		"config set w.token -- --":                  "config set w.token -- …",
		"config set -- w.token -- hunter2":          "config set -- w.token … …",
		"config set --profile x w.token -- hunter2": "config set --profile x w.token -- …",
		"plugin add set":                            "plugin add set",
	} {
		got := strings.Join(withoutValues(strings.Fields(line)), " ")
		if strings.Contains(got, "hunter2") {
			t.Errorf("%s: %s", line, got)
		}
		if want = strings.Join(strings.Fields(want), " "); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
}
