package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// probeVariable makes this test binary a server: its value says of which kind.
const probeVariable = "DSH_TEST_PROBE"

func TestMain(m *testing.M) {
	if kind := os.Getenv(probeVariable); kind != "" {
		os.Exit(probe(kind))
	}
	os.Exit(m.Run())
}

// observation is what the tool `observe` of a probe returns.
type observation struct {
	Args []string          `json:"args"`
	Cwd  string            `json:"cwd"`
	Env  map[string]string `json:"env"`
	Pid  int               `json:"pid"`
}

func observe() observation {
	o := observation{Args: os.Args[1:], Env: map[string]string{}, Pid: os.Getpid()}
	o.Cwd, _ = os.Getwd()
	for _, entry := range os.Environ() {
		name, value, _ := strings.Cut(entry, "=")
		o.Env[name] = value
	}
	return o
}

// probe is a server with one fault or none.
func probe(kind string) int {
	say := func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
	switch kind {
	case "crash":
		say("the token is %s", os.Getenv("API_TOKEN"))
		say("cannot open the database")
		return 3
	case "chatty":
		fmt.Println("Hello, I am a server")
		time.Sleep(time.Minute)
		return 0
	case "double": // two messages in one line
		fmt.Println("{} {}")
		time.Sleep(time.Minute)
		return 0
	case "quits":
		return 0
	case "hangs up": // and stays
		_ = os.Stdout.Close()
		time.Sleep(time.Minute)
		return 0
	case "mute":
		time.Sleep(time.Minute)
		return 0
	case "deaf": // to the end of its input and to being asked
		signal.Ignore(syscall.SIGTERM)
	case "child", "mute child":
		// A child that outlives its parent's input.
		child, err := os.StartProcess("/bin/sleep", []string{"sleep", "1000"}, &os.ProcAttr{Files: []*os.File{nil, nil, os.Stderr}})
		if err != nil {
			say("%v", err)
			return 1
		}
		say("child %d", child.Pid)
		if kind == "mute child" {
			time.Sleep(time.Minute)
			return 0
		}
	case "loud":
		for i := range 10_000 {
			say("line %d %s", i, strings.Repeat("x", 10_000))
		}
	}
	server := newProbe(kind)
	ctx := context.Background()
	if kind == "deaf" {
		_ = server.Run(ctx, &sdk.StdioTransport{})
		time.Sleep(time.Minute)
		return 0
	}
	if err := server.Run(ctx, &sdk.StdioTransport{}); err != nil {
		say("%v", err)
	}
	return 0
}

func newProbe(kind string) *sdk.Server {
	options := &sdk.ServerOptions{}
	if kind == "paged" {
		options.PageSize = 2
	}
	server := sdk.NewServer(&sdk.Implementation{Name: "probe", Version: "1.2.3"}, options)
	sdk.AddTool(server, &sdk.Tool{Name: "observe", Description: "Says how it was started."}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, observation, error) {
		return nil, observe(), nil
	})
	type text struct {
		Text string `json:"text"`
	}
	sdk.AddTool(server, &sdk.Tool{Name: "echo", Title: "Echo", Description: "Gives the text back."}, func(_ context.Context, _ *sdk.CallToolRequest, in text) (*sdk.CallToolResult, any, error) {
		if in.Text == "fail" {
			return nil, nil, fmt.Errorf("it was told to fail")
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: in.Text}}}, nil, nil
	})
	sdk.AddTool(server, &sdk.Tool{Name: "wait", Description: "Takes a minute."}, func(ctx context.Context, _ *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
		select {
		case <-ctx.Done():
		case <-time.After(time.Minute):
		}
		return &sdk.CallToolResult{}, nil, nil
	})
	sdk.AddTool(server, &sdk.Tool{Name: "grow", Description: "Adds a tool."}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
		sdk.AddTool(server, &sdk.Tool{Name: "grown"}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
			return &sdk.CallToolResult{}, nil, nil
		})
		return &sdk.CallToolResult{}, nil, nil
	})
	sdk.AddTool(server, &sdk.Tool{Name: "exit", Description: "Ends the program."}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
		fmt.Fprintln(os.Stderr, "going down")
		os.Exit(7)
		return nil, nil, nil
	})
	sdk.AddTool(server, &sdk.Tool{Name: "large", Description: "Answers with much."}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: strings.Repeat("x", 1<<20)}}}, nil, nil
	})
	return server
}

// probeServer is this test binary as a server.
func probeServer(t testing.TB, kind string, args ...string) Server {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return Server{Name: "probe", Transport: Stdio, Program: self, Args: args, Env: []string{probeVariable + "=" + kind, "GORACE=atexit_sleep_ms=0"}, Dir: dir}
}

func observed(t *testing.T, s *Session) (o observation) {
	t.Helper()
	result, err := s.Call(t.Context(), "observe", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(result.Structured, &o); err != nil {
		t.Fatal(err)
	}
	return o
}
