package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"dsh/internal/fault"
)

func connected(t *testing.T, s Server, o Options) *Session {
	t.Helper()
	if o.Environ == nil {
		o.Environ = []string{"PATH=" + os.Getenv("PATH"), "HOME=/home/me", "API_TOKEN=nobody", "NPM_TOKEN=nobody", "LANG=() { evil; }"}
	}
	session, err := Connect(t.Context(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Stop(context.Background()) })
	return session
}

func TestProgram(t *testing.T) {
	s := probeServer(t, "plain", "a b", "", "${X}", "$HOME")
	s.Env = append(s.Env, "X=1", "HOME=/other")
	session := connected(t, s, Options{Version: "0"})
	if name, version := session.Info(); name != "probe" || version != "1.2.3" || session.Protocol() == "" {
		t.Errorf("got %q %q, protocol %q", name, version, session.Protocol())
	}
	o := observed(t, session)
	if want := []string{"a b", "", "${X}", "$HOME"}; !slices.Equal(o.Args, want) {
		t.Errorf("arguments are %q", o.Args)
	}
	if o.Cwd != s.Dir {
		t.Errorf("it runs in %s, not in %s", o.Cwd, s.Dir)
	}
	for name, want := range map[string]string{"X": "1", "HOME": "/other", "PATH": os.Getenv("PATH"), "API_TOKEN": "", "NPM_TOKEN": "", "LANG": ""} {
		if got, there := o.Env[name]; got != want || there != (want != "") {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	result, err := session.Call(t.Context(), "echo", json.RawMessage(`{"text":"hello"}`))
	if err != nil || len(result.Content) != 1 || !strings.Contains(string(result.Content[0]), `"hello"`) || result.IsError {
		t.Errorf("echo gave %+v, %v", result, err)
	}
	if result, err := session.Call(t.Context(), "echo", json.RawMessage(`{"text":"fail"}`)); err != nil || !result.IsError {
		t.Errorf("a tool that fails gave %+v, %v", result, err)
	}
	if _, err := session.Call(t.Context(), "nothing", nil); err == nil {
		t.Error("a tool that is not there answered")
	}
	if err := session.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if exit := session.Exit(); exit == nil || exit.Code != 0 {
		t.Errorf("it ended with %v", exit)
	}
	if _, err := session.Call(t.Context(), "echo", nil); err == nil {
		t.Error("a stopped server answered")
	}
}

func TestProtocols(t *testing.T) {
	for _, protocol := range Protocols() {
		session := connected(t, probeServer(t, "plain"), Options{Protocol: protocol})
		if session.Protocol() != protocol {
			t.Errorf("asked for %s, got %s", protocol, session.Protocol())
		}
	}
	if _, err := Connect(t.Context(), probeServer(t, "plain"), Options{Protocol: "1999-01-01"}); err == nil || !strings.Contains(err.Error(), "2025-11-25") {
		t.Errorf("an unknown protocol gave %v", err)
	}
}

func TestToolsOverPages(t *testing.T) {
	tools, err := connected(t, probeServer(t, "paged"), Options{}).Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range tools {
		names = append(names, tool.Name)
	}
	if want := []string{"echo", "exit", "grow", "large", "observe", "wait"}; !slices.Equal(names, want) {
		t.Errorf("tools are %v", names)
	}
	if at := slices.IndexFunc(tools, func(t Tool) bool { return t.Name == "echo" }); at < 0 || tools[at].Title != "Echo" || !strings.Contains(string(tools[at].InputSchema), `"text"`) {
		t.Errorf("echo is %+v", tools)
	}
}

func TestToolsChanged(t *testing.T) {
	for _, protocol := range []string{"2025-11-25", ""} {
		changed := make(chan struct{}, 10)
		session := connected(t, probeServer(t, "plain"), Options{Protocol: protocol, Changed: func() { changed <- struct{}{} }})
		if _, err := session.Call(t.Context(), "grow", nil); err != nil {
			t.Fatal(err)
		}
		select {
		case <-changed:
		case <-time.After(10 * time.Second):
			t.Fatalf("protocol %q: nobody said that the tools changed", protocol)
		}
		if tools, err := session.Tools(t.Context()); err != nil || len(tools) != 7 {
			t.Errorf("%d tools, %v", len(tools), err)
		}
	}
}

func TestFailures(t *testing.T) {
	for kind, c := range map[string]struct {
		class fault.Class
		words []string
	}{
		"crash":    {fault.Network, []string{"MCP server probe", "exit code 3", "cannot open the database"}},
		"chatty":   {fault.Network, []string{"standard output is no message", "invalid character"}},
		"double":   {fault.Network, []string{"standard output is no message", "trailing data"}},
		"mute":     {fault.Network, []string{"did not answer in time"}},
		"quits":    {fault.Network, []string{"the program ended (exit code 0)"}},
		"hangs up": {fault.Network, []string{"the program closed its standard output"}},
	} {
		t.Run(kind, func(t *testing.T) {
			s := probeServer(t, kind)
			s.Env = append(s.Env, "API_TOKEN=s3cr3t-value")
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			_, err := Connect(ctx, s, Options{Grace: 50 * time.Millisecond})
			if err == nil {
				t.Fatal("it connected")
			}
			for _, word := range c.words {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("%q is not in: %v", word, err)
				}
			}
			if strings.Contains(err.Error(), "s3cr3t") {
				t.Errorf("a secret is in: %v", err)
			}
			if got := fault.ClassOf(err); got != c.class {
				t.Errorf("class is %v", got)
			}
		})
	}
}

func TestWhatCannotStart(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "plain"), []byte("#!/bin/sh\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*Server)
		class  fault.Class
		word   string
	}{
		"bare name":      {func(s *Server) { s.Program = "no-such-program-at-all" }, fault.MissingProgram, "no program"},
		"words":          {func(s *Server) { s.Program = "node server.js" }, fault.MissingProgram, "no program"},
		"missing file":   {func(s *Server) { s.Program = filepath.Join(dir, "none") }, fault.MissingProgram, "is not there"},
		"not executable": {func(s *Server) { s.Program = filepath.Join(dir, "plain") }, fault.Environment, "not executable"},
		"no directory":   {func(s *Server) { s.Dir = filepath.Join(dir, "none") }, fault.Environment, "working directory"},
		"a file for dir": {func(s *Server) { s.Dir = filepath.Join(dir, "plain") }, fault.Environment, "no directory"},
	} {
		t.Run(name, func(t *testing.T) {
			s := probeServer(t, "plain")
			c.change(&s)
			_, err := Connect(t.Context(), s, Options{})
			if err == nil || !strings.Contains(err.Error(), c.word) || fault.ClassOf(err) != c.class {
				t.Errorf("got %v of class %v", err, fault.ClassOf(err))
			}
		})
	}
}

// TestInside looks at links just before the start, whatever they were before.
func TestInside(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"plugin/bin", "plugin/work", "outside"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	self, _ := os.Executable()
	link := func(target, at string) string {
		t.Helper()
		if err := os.Symlink(target, filepath.Join(root, "plugin", at)); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(root, "plugin", at)
	}
	plugin := filepath.Join(root, "plugin")
	for name, c := range map[string]struct {
		inside Inside
		class  fault.Class // Other: it starts
	}{
		"within":          {Inside{"cwd", filepath.Join(plugin, "work"), plugin}, fault.Other},
		"itself":          {Inside{"cwd", plugin, plugin}, fault.Other},
		"link within":     {Inside{"cwd", link("work", "to-work"), plugin}, fault.Other},
		"link out":        {Inside{"cwd", link("../outside", "out"), plugin}, fault.Policy},
		"two links out":   {Inside{"command", link("out", "twice"), plugin}, fault.Policy},
		"absolute out":    {Inside{"command", link(self, "self"), plugin}, fault.Policy},
		"dangling":        {Inside{"command", link("nowhere", "dangling"), plugin}, fault.MissingProgram},
		"loop":            {Inside{"command", link("loop", "loop"), plugin}, fault.Environment},
		"through a link":  {Inside{"command", filepath.Join(plugin, "out", "x"), plugin}, fault.MissingProgram},
		"a like-named":    {Inside{"cwd", filepath.Join(root, "outside"), plugin}, fault.Policy},
		"link to sibling": {Inside{"cwd", link(filepath.Join(root, "outside"), "sibling"), plugin}, fault.Policy},
	} {
		t.Run(name, func(t *testing.T) {
			s := probeServer(t, "plain")
			s.Inside = []Inside{c.inside}
			session, err := Connect(t.Context(), s, Options{})
			if err == nil {
				_ = session.Stop(t.Context())
			}
			if c.class == fault.Other && err != nil || c.class != fault.Other && (err == nil || fault.ClassOf(err) != c.class) {
				t.Errorf("got %v of class %v", err, fault.ClassOf(err))
			}
		})
	}
}

func TestRowsOfPluginsAreHeldInside(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Log("paths of unix")
	}
	c := Config{ServerName: "x", Transport: Stdio, Command: "/p/bin/run", Cwd: "/d/work", Env: map[string]string{"PLUGIN_ROOT": "/p", "PLUGIN_DATA": "/d"}}
	s, err := c.Server("/start")
	if err != nil {
		t.Fatal(err)
	}
	want := []Inside{{"command", "/p/bin/run", "/p"}, {"cwd", "/d/work", "/d"}}
	if !slices.Equal(s.Inside, want) {
		t.Errorf("inside is %v", s.Inside)
	}
	c.Env = nil
	if s, _ := c.Server("/start"); s.Inside != nil {
		t.Errorf("a row of nobody's plugin has %v", s.Inside)
	}
}

func TestLost(t *testing.T) {
	session := connected(t, probeServer(t, "plain"), Options{})
	if _, err := session.Call(t.Context(), "exit", nil); err == nil || !strings.Contains(err.Error(), "exit code 7") || !strings.Contains(err.Error(), "going down") {
		t.Errorf("the call gave %v", err)
	}
	select {
	case <-session.Done():
	case <-time.After(10 * time.Second):
		t.Fatal("the connection is not known to be lost")
	}
	if err := session.Lost(); !strings.Contains(err.Error(), "exit code 7") {
		t.Errorf("lost: %v", err)
	}
}

func TestMessageBound(t *testing.T) {
	session := connected(t, probeServer(t, "plain"), Options{Limit: 100_000})
	if _, err := session.Call(t.Context(), "large", nil); err == nil {
		t.Error("a message over the limit was taken")
	}
	<-session.Done()
}

func TestCallTimeOut(t *testing.T) {
	session := connected(t, probeServer(t, "plain"), Options{})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := session.Call(ctx, "wait", nil); err == nil || !strings.Contains(err.Error(), "in time") {
		t.Errorf("got %v", err)
	}
	if _, err := session.Call(t.Context(), "echo", json.RawMessage(`{"text":"x"}`)); err != nil {
		t.Errorf("the connection did not outlive a call: %v", err)
	}
}

func TestStandardErrorIsBounded(t *testing.T) {
	var lines int
	session := connected(t, probeServer(t, "loud"), Options{Line: func(string) { lines++ }})
	observed(t, session)
	if err := session.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	kept := session.Stderr()
	if len(kept) > keptLines || len(kept[0]) > lineLength || lines < 10_000 {
		t.Errorf("%d lines of %d bytes kept, %d seen", len(kept), len(kept[0]), lines)
	}
}

func TestShownHasNoSecrets(t *testing.T) {
	for want, s := range map[string]Server{
		"run --token=… --api-key … x API_KEY=… plain=1": {Transport: Stdio, Program: "run", Args: []string{"--token=abcd", "--api-key", "abcd", "x", "API_KEY=abcd", "plain=1"}},
		"run --url=https://host/x":                      {Transport: Stdio, Program: "run", Args: []string{"--url=https://me:abcd@host/x?abcd"}},
		"https://host/mcp":                              {Transport: SSE, URL: "https://me:abcd@host/mcp?key=abcd"},
	} {
		if got := strings.NewReplacer("'", "").Replace(s.Shown()); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestErrorIsAConnectError(t *testing.T) {
	_, err := Connect(t.Context(), Server{Name: "x", Transport: Stdio, Program: "no-such-program-at-all"}, Options{})
	if _, ok := errors.AsType[*ConnectError](err); !ok {
		t.Errorf("got %T", err)
	}
}
