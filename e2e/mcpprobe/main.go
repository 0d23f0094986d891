// Mcpprobe is an MCP server for tests: it says how it was started. Its first
// argument may be a fault: crash, chatty, mute or deaf. With "family FILE" it has a
// child, and writes both process ids into the file; with "stubborn FILE" neither
// heeds anything, and it does not answer.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type observation struct {
	Args []string          `json:"args"`
	Cwd  string            `json:"cwd"`
	Env  map[string]string `json:"env"`
}

func main() {
	fault := ""
	if len(os.Args) > 1 {
		fault = os.Args[1]
	}
	switch fault {
	case "crash":
		fmt.Fprintf(os.Stderr, "the token is %s\ncannot open the database\n", os.Getenv("API_TOKEN"))
		os.Exit(3)
	case "chatty":
		fmt.Println("Hello, I am a server")
		time.Sleep(time.Minute)
	case "mute":
		time.Sleep(time.Minute)
	case "deaf":
		signal.Ignore(syscall.SIGTERM)
	case "child":
		time.Sleep(time.Minute)
		return
	case "stubborn child":
		signal.Ignore(syscall.SIGTERM)
		time.Sleep(time.Minute)
		return
	case "family":
		family("child", os.Args[2])
	case "stubborn":
		asked := make(chan os.Signal, 1)
		signal.Notify(asked, syscall.SIGTERM)
		family("stubborn child", os.Args[2])
		for range asked {
			note(os.Args[2], "asked")
		}
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "mcpprobe", Version: "1.2.3"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "observe", Description: "Says how it was started. Takes nothing."},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, observation, error) {
			o := observation{Args: os.Args[1:], Env: map[string]string{}}
			for _, entry := range os.Environ() {
				name, value, _ := strings.Cut(entry, "=")
				o.Env[name] = value
			}
			var err error
			o.Cwd, err = os.Getwd()
			return nil, o, err
		})
	type text struct {
		Text string `json:"text"`
	}
	mcp.AddTool(server, &mcp.Tool{Name: "echo", Title: "Echo", Description: "Gives a text back."},
		func(_ context.Context, _ *mcp.CallToolRequest, in text) (*mcp.CallToolResult, any, error) {
			if in.Text == "fail" {
				return nil, nil, errors.New("it was told to fail")
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: in.Text}}}, nil, nil
		})
	if err := server.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if fault == "deaf" {
		time.Sleep(time.Minute)
	}
}

// family starts a child, and notes who there is.
func family(kind, file string) {
	child := exec.Command(os.Args[0], kind)
	if err := child.Start(); err != nil {
		note(file, err.Error())
		os.Exit(1)
	}
	note(file, fmt.Sprintf("%d %d", os.Getpid(), child.Process.Pid))
}

// note adds a line to a file.
func note(file, line string) {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err == nil {
		_, err = fmt.Fprintln(f, line)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
