package e2e

import (
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write what dsh prints into the examples of the documentation")

// TestCompositionPage runs the examples of the page on composition, in which x is
// the chosen profile and has no bundles.
func TestCompositionPage(t *testing.T) {
	runPage(t, "composition.md", fileFence("~/.dsh/profiles/x/package.json", `{"name":"dsh-profile-x","private":true,"dependencies":{},"dsh":{"profile":{"bundles":[]}}}`)+
		fileFence("~/.dsh/default-profile", "x"))
}

// TestStartPage runs the page for newcomers from its beginning to its end, as
// they do.
func TestStartPage(t *testing.T) { runParts(t, "start.md", "", "") }

// TestGuidePage runs the examples of the guide, in which a profile web and the
// folder of a bundle are there.
func TestGuidePage(t *testing.T) {
	runPage(t, "guide.md", myPlugin+commandFence("dsh profile create web"))
}

// TestAgentPluginsPage runs the examples of the page on Agent Plugins, one after the
// other.
func TestAgentPluginsPage(t *testing.T) { runParts(t, "agent-plugins.md", "", "") }

// TestRecoveryPage runs the examples of the page on recovery, in which the profile
// work has a bundle from a folder and a value of its own.
func TestRecoveryPage(t *testing.T) { runPage(t, "recovery.md", myPlugin+work) }

// TestUpgradePage runs the examples of the page on upgrades, with the same profile,
// one that pnpm laid out, and an installation of another version.
func TestUpgradePage(t *testing.T) { runPage(t, "upgrade.md", myPlugin+work+old+next) }

var (
	// myPlugin is the folder of a bundle, ~/project/my-plugin.
	myPlugin = fileFence("~/project/my-plugin/package.json", `{"name":"my-plugin","version":"1.0.0","dsh":{"bundle":{"patch":"./cordis.patch.yml"}}}`) +
		fileFence("~/project/my-plugin/cordis.patch.yml", "- insert:\n    - id: mine\n      name: ./plugin.js\n      config:\n        level: 1") +
		fileFence("~/project/my-plugin/plugin.js", "export default {}")
	// old is a profile that the reference launcher and pnpm made.
	old = fileFence("~/.dsh/profiles/old/package.json", `{"name":"dsh-profile-old","private":true,"dependencies":{"my-plugin":"link:../../../project/my-plugin"},"dsh":{"profile":{"bundles":["@deepseek-ai/dsh-base","my-plugin"]}}}`) +
		fileFence("~/.dsh/profiles/old/pnpm-lock.yaml", "lockfileVersion: '9.0'\nimporters:\n  .:\n    dependencies:\n      my-plugin:\n        specifier: link:../../../project/my-plugin\n        version: link:../../../project/my-plugin") +
		fileFence("~/.dsh/profiles/old/node_modules/.modules.yaml", "layoutVersion: 5") +
		commandFence("ln -s ../../../../project/my-plugin ~/.dsh/profiles/old/node_modules/my-plugin")
	// next is an installation of the harness with a row that my-plugin has too.
	next = fileFence("~/project/next/node_modules/@deepseek-ai/dsh/package.json", `{"name":"@deepseek-ai/dsh","version":"9.0.0"}`) +
		fileFence("~/project/next/node_modules/@deepseek-ai/dsh-llm/package.json", `{"name":"@deepseek-ai/dsh-llm","version":"9.0.0","main":"./index.js"}`) +
		fileFence("~/project/next/node_modules/@deepseek-ai/dsh-llm/index.js", "export default {}") +
		fileFence("~/project/next/node_modules/@deepseek-ai/dsh-base/package.json", `{"name":"@deepseek-ai/dsh-base","version":"9.0.0","dsh":{"bundle":{"patch":"./cordis.patch.yml"}}}`) +
		fileFence("~/project/next/node_modules/@deepseek-ai/dsh-base/cordis.patch.yml", "- insert:\n    - id: llm\n      name: '@deepseek-ai/dsh-llm'\n    - id: mine\n      name: '@deepseek-ai/dsh-llm'")
	work = commandFence("dsh profile create work", "dsh plugin --profile work add ./my-plugin", "dsh config set llm.model my-model --profile work")
)

// fileFence is the fence that makes a file.
func fileFence(path, text string) string { return "```json " + path + "\n" + text + "\n```\n" }

// commandFence is the fence that runs commands, which must not fail.
func commandFence(lines ...string) string {
	var out strings.Builder
	for _, line := range lines {
		out.WriteString("$ " + line + " >/dev/null 2>&1 || echo failed\n")
	}
	return "```console\n" + out.String() + "```\n"
}

// TestReliabilityPage holds the names of tests on that page against the source.
func TestReliabilityPage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root(), "docs", "reliability.md"))
	if err != nil {
		t.Fatal(err)
	}
	tests := testNames(t)
	names := regexp.MustCompile("`((?:Test|Fuzz)\\w+)`").FindAllStringSubmatch(string(page), -1)
	if len(names) < 10 {
		t.Errorf("the page names %d tests", len(names))
	}
	for _, name := range names {
		if !tests[name[1]] {
			t.Errorf("there is no test %s", name[1])
		}
	}
}

// testNames is the tests and fuzz targets of the project.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	function := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Za-z0-9_]+)`)
	err := filepath.WalkDir(root(), func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(file, "_test.go") {
			return err
		}
		text, err := os.ReadFile(file)
		for _, m := range function.FindAllStringSubmatch(string(text), -1) {
			names[m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// runPage runs the examples of a page, behind those of prelude. Each section has
// a home of its own, ~, in which ~/project is the working directory. A fence
// ```yaml PATH is a file; of a ```console fence the lines that begin with $ are
// run, and the lines below are all that they print, on either stream, with another
// time.
func runPage(t *testing.T, page, prelude string) { runParts(t, page, prelude, "## ") }

// runParts runs the examples of a page whose parts begin with mark at the start of
// a line; with "" the page is one.
func runParts(t *testing.T, page, prelude, mark string) {
	path := filepath.Join(root(), "docs", page)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sections := []string{string(text)}
	if mark != "" {
		sections = regexp.MustCompile("(?m)^"+regexp.QuoteMeta(mark)).Split(string(text), -1)
	}
	run := 0
	for i, section := range sections {
		title, _, _ := strings.Cut(section, "\n")
		if !strings.Contains(section, "```console") {
			continue
		}
		t.Run(title, func(t *testing.T) {
			now, ok := strings.CutPrefix(runExamples(t, prelude+section, &run), prelude)
			if !ok {
				t.Fatal("what comes before the page says something")
			}
			sections[i] = now
		})
	}
	if run < 10 {
		t.Errorf("the page has %d commands", run)
	}
	if *update {
		if err := os.WriteFile(path, []byte(strings.Join(sections, mark)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// moment is a time as dsh prints it.
var moment = regexp.MustCompile(`\b20\d\d-\d\d-\d\d \d\d:\d\d\b`)

var fence = regexp.MustCompile("(?ms)^```(yaml|json|console)( [^\n]+)?\n(.*?)^```$")

// runExamples runs one section and returns it with the output of today.
func runExamples(t *testing.T, section string, run *int) string {
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
	write("~/project/.git/HEAD", "ref: refs/heads/main\n")
	return fence.ReplaceAllStringFunc(section, func(block string) string {
		parts := fence.FindStringSubmatch(block)
		kind, name, body := parts[1], strings.TrimSpace(parts[2]), parts[3]
		switch {
		case kind != "console" && name != "":
			write(name, body)
		case kind == "console":
			now := console(t, home, body, run)
			if diff := cmp.Diff(body, now); diff != "" && !*update {
				t.Errorf("the page and dsh differ (-page +dsh)\n%s", diff)
			}
			return "```console\n" + now + "```"
		}
		return block
	})
}

// console runs the commands of a fence and returns it with their output.
func console(t *testing.T, home, body string, run *int) string {
	t.Helper()
	var out strings.Builder
	for _, line := range strings.SplitAfter(body, "\n") {
		command, ok := strings.CutPrefix(line, "$ ")
		if !ok {
			continue
		}
		*run++
		cmd := exec.Command("sh", "-c", command)
		cmd.Dir = filepath.Join(home, "project")
		cmd.Env = append(os.Environ(), "HOME="+home, "DSH_HOME=", "DSH_PROFILE=", "PATH="+filepath.Dir(program)+string(os.PathListSeparator)+os.Getenv("PATH"))
		printed, err := cmd.CombinedOutput()
		if _, failed := err.(*exec.ExitError); err != nil && !failed {
			t.Fatal(err)
		}
		out.WriteString(line)
		text := strings.ReplaceAll(string(printed), home, "~")
		out.WriteString(moment.ReplaceAllString(text, "2026-12-01 10:30"))
	}
	return out.String()
}
