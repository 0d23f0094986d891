package profile

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTemplates(t *testing.T) {
	type template struct {
		Bundles []string
		Reload  string
	}
	got := map[string]template{}
	for _, name := range Templates() {
		tmpl, err := LookupTemplate(name)
		if err != nil {
			t.Fatal(err)
		}
		got[name] = template{tmpl.Bundles(), tmpl.reload.String()}
	}
	want := map[string]template{
		"web":         {[]string{"@deepseek-ai/dsh-base", "@deepseek-ai/dsh-web-app"}, "live"},
		"headless":    {[]string{"@deepseek-ai/dsh-base", "@deepseek-ai/dsh-headless"}, "startup"},
		"sdk":         {[]string{"@deepseek-ai/dsh-base", "@deepseek-ai/dsh-sdk-app"}, "startup"},
		"sdk-minimal": {[]string{"@deepseek-ai/dsh-sdk-minimal"}, "startup"},
		"acp":         {[]string{"@deepseek-ai/dsh-base", "@deepseek-ai/dsh-acp-app"}, "startup"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"acp", "headless", "sdk", "sdk-minimal", "web"}, Templates()); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

func TestLookupUnknownTemplate(t *testing.T) {
	for name, quoted := range map[string]string{
		"unknown": `"unknown"`, "toString": `"toString"`, "": `""`, "Web": `"Web"`, "web/": `"web/"`, "..": `".."`, "*": `"*"`,
		`a"b\`: `"a\"b\\"`, "<&>": `"<&>"`,
	} {
		_, err := LookupTemplate(name)
		want := "unknown default profile " + quoted + `; expected one of "acp", "headless", "sdk", "sdk-minimal", "web"`
		if err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", name, err, want)
		}
	}
}
