package boot

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dsh/internal/action"
	"dsh/internal/fault"
	"dsh/internal/installation"
	"dsh/internal/profile"
)

func request(t *testing.T, name string) Request {
	t.Helper()
	home, err := profile.ResolveHome(t.TempDir(), os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := profile.ParseName(name)
	if err != nil {
		t.Fatal(err)
	}
	return Request{
		Env:     action.Env{Home: home, Dir: t.TempDir(), Getenv: os.Getenv, Installation: installation.Embedded()},
		Layers:  action.Layers{Name: parsed},
		Args:    []string{"task", "a b"},
		Prepare: func(context.Context) error { return nil },
	}
}

func start(t *testing.T, req Request) error {
	t.Helper()
	quiet := func(string) {}
	_, err := Run(t.Context(), req, Log{Notice: quiet, Warn: quiet, News: quiet, Print: func(string, bool) {}})
	return err
}

func TestRunNamesTheRowsThatItCannotRun(t *testing.T) {
	err := start(t, request(t, "headless"))
	refused, ok := errors.AsType[*NodeError](err)
	if !ok {
		t.Fatalf("got %v", err)
	}
	text := err.Error()
	for _, want := range []string{`profile "headless"`, "arguments of the app: task 'a b'", "headless-runner: @deepseek-ai/dsh-headless (from @deepseek-ai/dsh-headless): it gives an agent its task"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	// What is compiled in does not stop a start.
	if strings.Contains(text, "hmr:") || strings.Contains(text, "llm:") || refused.Total < 13 {
		t.Errorf("%d of %d rows:\n%s", len(refused.Rows), refused.Total, text)
	}
	if hint := fault.Hint(err); !strings.HasPrefix(hint, "dsh installation add ") {
		t.Errorf("hint %q", hint)
	}
}

func TestTheEnvironmentIsCheckedFirst(t *testing.T) {
	req := request(t, "web")
	if err := os.WriteFile(filepath.Join(req.Env.Dir, ".env"), []byte("PATH=/x\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	req.Prepare = func(context.Context) error {
		t.Error("the profile was touched although the environment is refused")
		return nil
	}
	if err := start(t, req); err == nil || !strings.Contains(err.Error(), `sets "PATH"`) {
		t.Errorf("got %v", err)
	}
}

func TestTelemetrySwitch(t *testing.T) {
	for value, runs := range map[string]bool{"": true, "0": false, "false": false, "1": false} {
		req := request(t, "headless")
		patch := "- insert: [{id: g, name: g, group: true, config: [{id: session-telemetry-otel, name: '@deepseek-ai/dsh-session-telemetry-otel'}]}]\n"
		if err := os.WriteFile(req.Env.Home.PatchPath(), []byte(patch), 0o644); err != nil {
			t.Fatal(err)
		}
		if value != "" {
			req.Environ = []string{"DSH_TELEMETRY_DISABLED=" + value}
		}
		err := start(t, req)
		if got := strings.Contains(err.Error(), "session-telemetry-otel:"); got != runs {
			t.Errorf("DSH_TELEMETRY_DISABLED=%q: the row runs: %v", value, got)
		}
	}
}

func TestRowsInGroups(t *testing.T) {
	for patch, want := range map[string]string{
		"- insert: [{id: g, name: 'cordis:group', config: [{id: inner, name: p}]}]\n": "inner: p ",
		// A group within is on wherever it is, and what is in it needs it on.
		"- insert: [{id: g, name: 'cordis:group', group: true, disabled: true, config: [{id: inner, name: p, group: true, config: []}]}]\n": "inner: p ",
		"- insert: [{id: g, name: 'cordis:group', disabled: !!js undefined, config: [{id: inner, name: p}]}]\n":                             "inner: p ",
		"- insert: [{id: inner, name: p, disabled: !!js undefined}]\n":                                                                      "inner: p ",
		"- insert: [{id: [a, 1], name: p}]\n":                                                         `["a",1]: p `,
		"- insert: [{id: 1000000, name: \"p\\nq\"}]\n":                                                `1000000: "p\nq" `,
		"- insert: [{id: g, name: q, group: true, disabled: true, config: [{id: inner, name: p}]}]\n": "g: q ",
	} {
		req := request(t, "headless")
		if err := os.WriteFile(req.Env.Home.PatchPath(), []byte(patch), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := start(t, req); !strings.Contains(err.Error(), "\t"+want) {
			t.Errorf("%s lacks %q:\n%v", patch, want, err)
		}
	}
	for _, off := range []string{
		"disabled: true", "group: true, disabled: true", "disabled: !!js true", "group: true, disabled: !!js 1 < 2",
	} {
		req := request(t, "headless")
		patch := "- insert: [{id: g, name: 'cordis:group', " + off + ", config: [{id: inner, name: p}]}]\n"
		if err := os.WriteFile(req.Env.Home.PatchPath(), []byte(patch), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := start(t, req); !strings.Contains(err.Error(), "headless-runner") || strings.Contains(err.Error(), "inner") {
			t.Errorf("%s: a row in a group that is off would run:\n%v", off, err)
		}
	}
}

func TestNothingToStart(t *testing.T) {
	req := request(t, "custom")
	req.Prepare = func(context.Context) error {
		_, err := profile.OpenOrCreateForReading(req.Env.Home, req.Layers.Name)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(req.Env.Home.ProfileDir(req.Layers.Name), "package.json"), []byte("{}"), 0o644)
	}
	if err := start(t, req); err == nil || !strings.Contains(err.Error(), "nothing to start") {
		t.Errorf("got %v", err)
	}
}
