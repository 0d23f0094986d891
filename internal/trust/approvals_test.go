package trust

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"dsh/internal/fault"
)

func approve(t *testing.T, a *Approvals, name, version, content string) {
	t.Helper()
	if err := a.Approve(t.Context(), Approval{name, version, content, "scripts", since}); err != nil {
		t.Fatal(err)
	}
}

func approved(t *testing.T, a *Approvals, name, content string) bool {
	t.Helper()
	list, err := a.List()
	if err != nil {
		t.Fatal(err)
	}
	return Approved(list, name, content)
}

func names(t *testing.T, a *Approvals) string {
	t.Helper()
	list, err := a.List()
	if err != nil {
		t.Fatal(err)
	}
	return named(list)
}

func named(list []Approval) string {
	var all []string
	for _, p := range list {
		all = append(all, p.Name+"@"+p.Version+" "+p.Content)
	}
	return strings.Join(all, ", ")
}

func TestApprovals(t *testing.T) {
	file := filepath.Join(t.TempDir(), "home", "approvals.json")
	a := OpenApprovals(file)
	if approved(t, a, "a", "sha512-1") || names(t, a) != "" {
		t.Error("nothing is approved yet")
	}
	approve(t, a, "b", "1.0.0", "sha512-b")
	approve(t, a, "a", "1.0.0", "sha512-1")
	for content, want := range map[string]bool{"sha512-1": true, "sha512-2": false, "": false, "sha512-b": false} {
		if approved(t, a, "a", content) != want {
			t.Errorf("a with %q: %v", content, !want)
		}
	}
	if approved(t, a, "A", "sha512-1") || approved(t, a, "", "sha512-1") {
		t.Error("another name is approved")
	}
	approve(t, a, "a", "1.0.0", "sha512-1") // again
	approve(t, a, "a", "1.1.0", "sha512-2")
	if got := names(t, OpenApprovals(file)); got != "a@1.0.0 sha512-1, a@1.1.0 sha512-2, b@1.0.0 sha512-b" {
		t.Error(got)
	}
	revoked, err := a.Revoke(t.Context(), "a", "1.0.0")
	if err != nil || named(revoked) != "a@1.0.0 sha512-1" || approved(t, a, "a", "sha512-1") || !approved(t, a, "a", "sha512-2") {
		t.Error(revoked, err)
	}
	approve(t, a, "a", "1.0.0", "sha512-1")
	if revoked, err := a.Revoke(t.Context(), "a", ""); err != nil || named(revoked) != "a@1.0.0 sha512-1, a@1.1.0 sha512-2" || names(t, a) != "b@1.0.0 sha512-b" {
		t.Error(revoked, err)
	}
	before, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if revoked, err := a.Revoke(t.Context(), "a", ""); err != nil || revoked != nil {
		t.Error(revoked, err)
	}
	if after, err := os.Stat(file); err != nil || !os.SameFile(before, after) {
		t.Error("revoking nothing wrote the file")
	}
	text, err := os.ReadFile(file)
	want := "{\n  \"version\": 1,\n  \"approvals\": [\n    {\n      \"name\": \"b\",\n      \"version\": \"1.0.0\",\n      \"content\": \"sha512-b\",\n      \"scripts\": \"scripts\",\n      \"since\": \"2026-03-04T05:06:07Z\"\n    }\n  ]\n}\n"
	if diff := cmp.Diff(want, string(text)); diff != "" || err != nil {
		t.Error(diff, err)
	}
	for name, p := range map[string]Approval{"no name": {Content: "x"}, "no content": {Name: "a"}} {
		if err := a.Approve(t.Context(), p); err == nil {
			t.Errorf("%s: approved", name)
		}
	}
}

func TestApprovalsOfDamagedFiles(t *testing.T) {
	for text, want := range map[string]string{
		"":                                    "unexpected end",
		"[]":                                  "cannot unmarshal",
		"{}":                                  `it has no "version"`,
		`{"version": 2, "approvals": []}`:     "written in format 2 by a newer dsh, and this one reads format 1",
		`{"version": 0}`:                      "there is no format 0",
		"{\"version\": 1,\n\"approvals\": 3}": "line 2",
		`{"version": 1, "approvals": [{"name": "a", "version": "1.0.0"}]}`: "nothing says which content is meant",
		`{"version": 1, "approvals": [{"content": "a"}]}`:                  "the package has no name",
	} {
		file := filepath.Join(t.TempDir(), "approvals.json")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		a := OpenApprovals(file)
		list, err := a.List()
		if len(list) > 0 || err == nil || !strings.Contains(err.Error(), want) || fault.ClassOf(err) != fault.Policy || !strings.Contains(fault.Hint(err), fault.ShellWords("rm", file)) {
			t.Errorf("%q: %v, %v", text, list, err)
		}
		if err := a.Approve(t.Context(), Approval{Name: "a", Content: "b"}); err == nil {
			t.Errorf("%q was written over", text)
		}
		if _, err := a.Revoke(t.Context(), "a", ""); err == nil {
			t.Errorf("%q was written over", text)
		}
		if now, _ := os.ReadFile(file); string(now) != text {
			t.Errorf("%q became %q", text, now)
		}
	}
}

func TestApprovalsAtOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "approvals.json")
	var all errgroup.Group
	for i := range 20 {
		all.Go(func() error {
			return OpenApprovals(file).Approve(context.Background(), Approval{Name: fmt.Sprint("p", i), Content: "c"})
		})
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
	if list, err := OpenApprovals(file).List(); len(list) != 20 || err != nil {
		t.Errorf("%d approvals, %v", len(list), err)
	}
}

func FuzzApprovals(f *testing.F) {
	f.Add([]byte(`{"version": 1, "approvals": [{"name": "a", "version": "1.0.0", "content": "sha512-x", "since": "2026-03-04T05:06:07Z"}]}`))
	f.Add([]byte(`{"version": 1, "projects": []}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r := OpenApprovals("").record
		list, err := r.parse(text)
		if err != nil {
			return
		}
		for _, p := range list {
			if p.Name == "" || p.Content == "" {
				t.Fatalf("%q approves %+v", text, p)
			}
		}
		written, err := r.format(list)
		if err != nil || !json.Valid(written) {
			t.Fatalf("%q: %q, %v", text, written, err)
		}
		if again, err := r.parse(written); err != nil || named(again) != named(list) {
			t.Fatalf("%q became %q: %v", text, written, err)
		}
	})
}
