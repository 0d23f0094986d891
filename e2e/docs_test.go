package e2e

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write what dsh prints into the examples of the documentation")

// TestCompositionPage runs the examples of the page on composition.
func TestCompositionPage(t *testing.T) { runPage(t, "composition.md", "") }

// TestGuidePage runs the examples of the guide, in which a profile web is there.
func TestGuidePage(t *testing.T) {
	runPage(t, "guide.md", "```console\n$ dsh web --dump-config >/dev/null\n```\n")
}

// runPage runs the examples of a page, behind those of prelude. Each section has
// a home of its own, ~, in which ~/project is the working directory and
// ~/.dsh/profiles/x a profile without bundles. A fence ```yaml PATH is a file; of
// a ```console fence the lines that begin with $ are run, and the lines below
// are all that they print, on either stream.
func runPage(t *testing.T, page, prelude string) {
	file := filepath.Join(root(), "docs", page)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	sections := regexp.MustCompile(`(?m)^## `).Split(string(text), -1)
	commands := 0
	for i, section := range sections {
		title, _, _ := strings.Cut(section, "\n")
		if !strings.Contains(section, "```console") {
			continue
		}
		t.Run(title, func(t *testing.T) {
			sections[i] = strings.TrimPrefix(runExamples(t, prelude+section, &commands), prelude)
		})
	}
	if commands < 10 {
		t.Errorf("the page has %d commands", commands)
	}
	if *update {
		if err := os.WriteFile(file, []byte(strings.Join(sections, "## ")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

var fence = regexp.MustCompile("(?ms)^```(yaml|json|console)( [^\n]+)?\n(.*?)^```$")

// runExamples runs one section and returns it with the output of today.
func runExamples(t *testing.T, section string, commands *int) string {
	t.Helper()
	// A short path, for a dump folds long lines.
	home, err := os.MkdirTemp("/tmp", "x")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	if home, err = filepath.EvalSymlinks(home); err != nil {
		t.Fatal(err)
	}
	place := func(name string) string { return filepath.Join(home, strings.TrimPrefix(name, "~")) }
	write := func(name, text string) {
		if err := os.MkdirAll(filepath.Dir(place(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(place(name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("~/.dsh/profiles/x/package.json", `{"name":"dsh-profile-x","private":true,"dependencies":{},"dsh":{"profile":{"bundles":[]}}}`+"\n")
	write("~/project/.git/HEAD", "ref: refs/heads/main\n")
	return fence.ReplaceAllStringFunc(section, func(block string) string {
		parts := fence.FindStringSubmatch(block)
		kind, name, body := parts[1], strings.TrimSpace(parts[2]), parts[3]
		switch {
		case kind != "console" && name != "":
			write(name, body)
		case kind == "console":
			now := console(t, home, body, commands)
			if diff := cmp.Diff(body, now); diff != "" && !*update {
				t.Errorf("the page and dsh differ (-page +dsh)\n%s", diff)
			}
			return "```console\n" + now + "```"
		}
		return block
	})
}

// console runs the commands of a fence and returns it with their output.
func console(t *testing.T, home, body string, commands *int) string {
	t.Helper()
	var out strings.Builder
	for _, line := range strings.SplitAfter(body, "\n") {
		command, ok := strings.CutPrefix(line, "$ ")
		if !ok {
			continue
		}
		*commands++
		cmd := exec.Command("sh", "-c", command)
		cmd.Dir = filepath.Join(home, "project")
		cmd.Env = append(os.Environ(), "HOME="+home, "DSH_HOME=", "DSH_PROFILE=x", "PATH="+filepath.Dir(program)+string(os.PathListSeparator)+os.Getenv("PATH"))
		printed, err := cmd.CombinedOutput()
		if _, failed := err.(*exec.ExitError); err != nil && !failed {
			t.Fatal(err)
		}
		out.WriteString(line)
		out.WriteString(strings.ReplaceAll(string(printed), home, "~"))
	}
	return out.String()
}
