// Mcpprobe is an MCP server for tests: it says how it was started. Its first
// argument may be a fault: crash, chatty, mute or deaf.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
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
