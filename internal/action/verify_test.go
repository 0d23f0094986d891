package action

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dsh/internal/check"
)

func TestAddedProblems(t *testing.T) {
	finding := func(line int, row string, blocks bool) check.Finding {
		return check.Finding{Code: "x", File: "f", Line: line, Row: row, Message: "it is wrong", Blocks: blocks}
	}
	before := []check.Finding{finding(1, "a", true), finding(2, "b", false), finding(3, "gone", true)}
	after := []check.Finding{
		finding(9, "a", true), finding(8, "b", false), // moved
		finding(1, "a", true),                              // once more
		finding(4, "new", true), finding(5, "late", false), // new
	}
	blocking, other := addedProblems(before, after)
	rows := func(findings []check.Finding) (rows []string) {
		for _, f := range findings {
			rows = append(rows, f.Row)
		}
		return rows
	}
	if diff := cmp.Diff([]string{"a", "new"}, rows(blocking)); diff != "" {
		t.Errorf("blocking (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"late"}, rows(other)); diff != "" {
		t.Errorf("other (-want +got)\n%s", diff)
	}
}

func TestForcedCommand(t *testing.T) {
	for want, args := range map[string][]string{
		"add --force to the command ":                 {"plugin", "add", "https://token@h.test/x.tgz?sig=secret"},
		"dsh plugin add './my dir' --force":           {"plugin", "add", "./my dir"},
		"dsh plugin add https://h.test/x.tgz --force": {"plugin", "add", "https://h.test/x.tgz"},
		"add --force to the command":                  {"plugin", "add", "--", "-x"},
	} {
		if got := (Env{Args: args}).forced(); got != strings.TrimSpace(want) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
