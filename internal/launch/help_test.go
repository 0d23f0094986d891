package launch

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestHelpText(t *testing.T) {
	got := HelpText([]Syntax{
		{Names: []string{"plugin"}, Summary: "add, remove, install, update and list the packages of a profile"},
		{Names: []string{"secret"}},
		{Names: []string{"profile", "p"}, Summary: "make, list, copy and remove profiles, check them before they are booted, and go back to what they were"},
	})
	golden := filepath.Join("testdata", "help.txt")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.ReplaceAll(string(want), "\r\n", "\n"), got); diff != "" {
		t.Errorf("help (-want +got):\n%s", diff)
	}
	for i, line := range strings.Split(got, "\n") {
		if n := utf8.RuneCountInString(line); n > 80 {
			t.Errorf("line %d has %d columns: %s", i+1, n, line)
		}
		if strings.TrimRight(line, " ") != line {
			t.Errorf("line %d ends in a space", i+1)
		}
	}
}

func TestHelpTextOrderIsTheReferences(t *testing.T) {
	text := HelpText(nil)
	at := 0
	for _, part := range []string{
		"Usage: dsh [--profile] <name> [options] [app-args...]\n",
		"       dsh plugin --profile <name> <pnpm-args...>\n",
		"\nArguments:\n  args ",
		"\nOptions:\n  -V, --version ",
		"\n  --profile <name> ",
		"\n  --from-default-profile <name> ",
		"\n  --patch <path> ",
		"\n  --dump-config ",
		"\n  --dump-config-schema ",
		"\n  --dump-default-config ",
		"\nExamples:\n",
		"  dsh web\n",
		"  dsh rescue --from-default-profile web\n",
		"  dsh headless ",
		"  dsh tui --patch ",
		"  dsh tui --resume ",
		"  dsh web --help\n",
		"  dsh plugin ",
	} {
		i := strings.Index(text[at:], part)
		if i < 0 {
			t.Fatalf("%q is missing after:\n%s", part, text[:at])
		}
		at += i + len(part)
	}
	for _, unwanted := range []string{"help [command]", "Commands", "\n  tui", "\n  meta", "\n  upgrade"} {
		if strings.Contains(text, unwanted) {
			t.Errorf("help of a program without commands has %q", unwanted)
		}
	}
}
