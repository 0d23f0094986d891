// Package tools is the registry of tools: what rows of MCP servers bring, under
// names that are unique, for whoever calls them.
//
// It runs no tool itself and knows no protocol, and it shows none to a model: that
// is an agent's work.
package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"dsh/internal/boot/host"
	"dsh/internal/boot/slot"
	"dsh/internal/fault"
)

// Service is the name under which the *Registry is provided.
const Service = "tools"

// Name is the plugin's.
const Name = "@deepseek-ai/dsh-tools"

// Config is the configuration of the row. It is for agents.
type Config struct {
	Mode                string   `json:"mode"`
	MaxParallelSubCalls *float64 `json:"maxParallelSubCalls"`
}

// Plugin provides the registry.
var Plugin = host.Plugin{Provides: []string{Service}, Start: func(_ context.Context, r *host.Row) error {
	var config Config
	if err := r.Decode(&config); err != nil {
		return err
	}
	if !slices.Contains([]string{"", "native", "code", "both"}, config.Mode) {
		return fault.Errorf(fault.Composition, "mode %q is none of native, code and both", config.Mode)
	}
	r.Provide(Service, New())
	return nil
}}

// Result is what a call gave. IsError says that the tool failed, and not the call.
type Result struct {
	Content    []json.RawMessage `json:"content"`
	Structured json.RawMessage   `json:"structuredContent,omitempty"`
	IsError    bool              `json:"isError"`
}

// Call calls a tool. arguments is a JSON object, or nothing.
type Call func(ctx context.Context, arguments json.RawMessage) (*Result, error)

// Tool is a tool that can be called.
type Tool struct {
	Name        string          `json:"name"` // unique among all
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
	Annotations json.RawMessage `json:"annotations,omitempty"`
	Owner       string          `json:"owner"` // the path of the row that brings it
	Call        Call            `json:"-"`
}

// Server is an MCP server whose row runs.
type Server interface {
	Status() ServerStatus
	// Call calls a tool by the server's own name of it.
	Call(ctx context.Context, tool string, arguments json.RawMessage) (*Result, error)
}

// State is what the connection to a server does.
type State string

// The states. A server that is down is not tried again until its row starts anew.
const (
	Connecting State = "connecting"
	Connected  State = "connected"
	Down       State = "down"
	Stopped    State = "stopped"
)

// ServerStatus is a server as it is now.
type ServerStatus struct {
	Name      string       `json:"name"`
	Row       string       `json:"row"` // its path
	Transport string       `json:"transport"`
	State     State        `json:"state"`
	Error     string       `json:"error"` // why it is not connected, or what went wrong last
	Since     time.Time    `json:"since"` // of the state
	Tools     []ServerTool `json:"tools"` // the last good list
	Log       []LogLine    `json:"log"`   // the last lines
}

// ServerTool is a tool of a server under both of its names.
type ServerTool struct {
	Name        string          `json:"name"`
	PublicName  string          `json:"publicName"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
	Annotations json.RawMessage `json:"annotations,omitempty"`
}

// LogLine is a line of a server's log.
type LogLine struct {
	Time time.Time `json:"time"`
	Text string    `json:"text"`
}

// Registry is the tools of all rows, and the servers among them. It may be used by
// several goroutines.
type Registry struct {
	mu      sync.Mutex
	tools   map[string]Tool // by name
	servers map[string]Server
	hear    slot.Listeners[struct{}]
}

// New is an empty registry.
func New() *Registry {
	return &Registry{tools: map[string]Tool{}, servers: map[string]Server{}}
}

// TakenError is a name that somebody else holds.
type TakenError struct{ Kind, Name, Owner string }

func (e *TakenError) Error() string {
	return fmt.Sprintf("the %s name %s is taken by %s", e.Kind, e.Name, e.Owner)
}

// Class is that of rows that do not fit together.
func (e *TakenError) Class() fault.Class { return fault.Composition }

// Publish makes list the tools of an owner, in place of those that it had, at
// once. Where a name is taken, or stands twice in the list, nothing changes, and
// the error is a *TakenError.
func (g *Registry) Publish(owner string, list []Tool) error {
	g.mu.Lock()
	names := map[string]bool{}
	for _, t := range list {
		by, taken := g.tools[t.Name]
		if names[t.Name] {
			by, taken = Tool{Owner: owner + " itself"}, true
		} else if by.Owner == owner {
			taken = false
		}
		if taken {
			g.mu.Unlock()
			return &TakenError{"tool", t.Name, by.Owner}
		}
		names[t.Name] = true
	}
	for name, t := range g.tools {
		if t.Owner == owner {
			delete(g.tools, name)
		}
	}
	for _, t := range list {
		t.Owner = owner
		g.tools[t.Name] = t
	}
	g.mu.Unlock()
	g.Changed()
	return nil
}

// List is all tools, by name.
func (g *Registry) List() []Tool {
	g.mu.Lock()
	defer g.mu.Unlock()
	list := make([]Tool, 0, len(g.tools))
	for _, t := range g.tools {
		list = append(list, t)
	}
	slices.SortFunc(list, func(a, b Tool) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// Call calls a tool by its unique name.
func (g *Registry) Call(ctx context.Context, name string, arguments json.RawMessage) (*Result, error) {
	g.mu.Lock()
	t, ok := g.tools[name]
	g.mu.Unlock()
	if !ok {
		return nil, fault.Errorf(fault.Other, "there is no tool %q", name)
	}
	return t.Call(ctx, arguments)
}

// AddServer adds a server under a name that is unique among those whose rows run,
// until remove is called.
func (g *Registry) AddServer(name string, s Server) (remove func(), err error) {
	g.mu.Lock()
	if by, taken := g.servers[name]; taken {
		g.mu.Unlock()
		return nil, &TakenError{"server", name, "row " + by.Status().Row}
	}
	g.servers[name] = s
	g.mu.Unlock()
	g.Changed()
	return func() {
		g.mu.Lock()
		if g.servers[name] == s {
			delete(g.servers, name)
		}
		g.mu.Unlock()
		g.Changed()
	}, nil
}

// Servers is the servers whose rows run, by name.
func (g *Registry) Servers() []Server {
	g.mu.Lock()
	defer g.mu.Unlock()
	names := make([]string, 0, len(g.servers))
	for name := range g.servers {
		names = append(names, name)
	}
	slices.Sort(names)
	list := make([]Server, len(names))
	for i, name := range names {
		list[i] = g.servers[name]
	}
	return list
}

// Server is the server of a name.
func (g *Registry) Server(name string) (Server, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s, ok := g.servers[name]
	return s, ok
}

// Changed tells all who hear that a tool or the state of a server changed.
func (g *Registry) Changed() { g.hear.Tell(struct{}{}) }

// Subscribe calls f after every change, until cancel is called. f does not wait and
// does not call the registry's Publish or AddServer.
func (g *Registry) Subscribe(f func()) (cancel func()) {
	return g.hear.Add(func(struct{}) { f() })
}

// Expression is what expressions see: the names.
func (g *Registry) Expression() any {
	names := []string{}
	for _, t := range g.List() {
		names = append(names, t.Name)
	}
	return map[string]any{"names": names}
}
