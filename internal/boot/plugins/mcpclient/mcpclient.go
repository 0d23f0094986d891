// Package mcpclient runs one MCP server for each of its rows: it connects,
// publishes the tools, connects again after an outage, and takes everything back
// when the row stops.
//
// It is not the protocol, which is that of package mcp.
package mcpclient

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"dsh/internal/boot/host"
	"dsh/internal/boot/plugins/tools"
	"dsh/internal/boot/slot"
	"dsh/internal/fault"
	"dsh/internal/mcp"
)

// Name is the plugin's.
const Name = mcp.PluginName

// Config is the configuration of the row.
type Config = mcp.Config

// connectTime bounds connecting and listing, and is shorter than the start of a
// row may take.
const connectTime = 25 * time.Second

// grace is how long a program may take to end by itself, and again when asked: both
// fit into the time that the stop of a row has.
const grace = time.Second

// session is what a connection does; tests have others than *mcp.Session.
type session interface {
	Tools(ctx context.Context) ([]mcp.Tool, error)
	Call(ctx context.Context, tool string, arguments json.RawMessage) (*mcp.Result, error)
	Done() <-chan struct{}
	Lost() error
	Stop(ctx context.Context) error
}

// connect makes a connection.
type connect func(ctx context.Context, s mcp.Server, o mcp.Options) (session, error)

// Plugin runs one server.
var Plugin = newPlugin(func(ctx context.Context, s mcp.Server, o mcp.Options) (session, error) {
	connected, err := mcp.Connect(ctx, s, o)
	if err != nil {
		return nil, err
	}
	return connected, nil
})

func newPlugin(c connect) host.Plugin {
	return host.Plugin{
		Inject: []host.Need{
			{Service: tools.Service},
			{Service: slot.Environment, Optional: true}, {Service: slot.Profile, Optional: true}, {Service: slot.Warn, Optional: true},
		},
		Start: func(ctx context.Context, r *host.Row) error { return start(ctx, r, c) },
	}
}

func start(ctx context.Context, r *host.Row, connect connect) error {
	var config Config
	if err := r.Decode(&config); err != nil {
		return err
	}
	dir, err := startedIn(r)
	if err != nil {
		return err
	}
	server, err := config.Server(dir)
	if err != nil {
		return err
	}
	registry, _ := host.Service[*tools.Registry](r, tools.Service)
	environment, _ := host.Service[slot.LaunchEnvironment](r, slot.Environment)
	c := &client{
		server: server, config: config, registry: registry, row: r.Path(), connect: connect,
		changed: make(chan struct{}, 1), state: tools.Connecting, since: time.Now(), logf: r.Logf,
		warn: warning(r, server.Name),
	}
	c.options = mcp.Options{
		Version: version(r), Environ: environment.List(), Grace: grace,
		Changed: func() {
			select {
			case c.changed <- struct{}{}:
			default: // it is asked for already
			}
		},
		Line: func(line string) { c.log("stderr: %s", line) },
	}
	remove, err := registry.AddServer(server.Name, c)
	if err != nil {
		return err
	}
	// In reverse: the connection ends, then the tools go, then the server.
	r.OnStop(func(context.Context) error { remove(); return nil })
	r.OnStop(func(context.Context) error { return c.withdraw() })
	r.OnStop(c.stop)
	// Else nobody waits for it: one server that hangs would hold up all.
	if config.FailOnStartupError {
		if err := c.try(ctx); err != nil {
			return err
		}
	}
	r.Go(func(ctx context.Context) error { c.supervise(ctx); return nil })
	return nil
}

// version is that of dsh, which servers are told.
func version(r *host.Row) string {
	if p, ok := host.Service[*slot.ProfileContext](r, slot.Profile); ok && p != nil && p.Version != "" {
		return p.Version
	}
	return "0"
}

// warning tells the user of a server that does not answer, and what tells more.
func warning(r *host.Row, server string) func(error) {
	warn, ok := host.Service[slot.WarnFunc](r, slot.Warn)
	if !ok {
		return func(error) {}
	}
	look := "dsh mcp check " + fault.ShellWord(server)
	if p, ok := host.Service[*slot.ProfileContext](r, slot.Profile); ok && p != nil {
		look += " --profile " + fault.ShellWord(p.Name)
	}
	return func(err error) { warn(fault.Discreet(brief(err)) + "; " + look + " tells more") }
}

// startedIn is where dsh was started.
func startedIn(r *host.Row) (string, error) {
	if p, ok := host.Service[*slot.ProfileContext](r, slot.Profile); ok && p != nil && p.Cwd != "" {
		return p.Cwd, nil
	}
	return os.Getwd()
}

// logLines is how many lines of a server's log are kept.
const logLines = 200

// client is one server and the connection to it.
type client struct {
	server   mcp.Server
	config   Config
	registry *tools.Registry
	row      string
	connect  connect
	options  mcp.Options
	changed  chan struct{} // the server says that its tools changed
	logf     func(format string, args ...any)
	warn     func(error) // tells the user

	mu        sync.Mutex
	state     tools.State
	since     time.Time
	problem   string
	session   session // nil while there is none
	listed    []tools.ServerTool
	lines     []tools.LogLine
	connected time.Time
	stopped   bool

	publishing sync.Mutex // held while tools are published; mu is not held then
	withdrawn  bool       // nothing is published any more
}

var errWithdrawn = errors.New("its row stops")

// publish makes list the tools of the server, unless they were withdrawn.
func (c *client) publish(list []tools.Tool) error {
	c.publishing.Lock()
	defer c.publishing.Unlock()
	if c.withdrawn {
		return errWithdrawn
	}
	return c.registry.Publish(c.row, list)
}

// withdraw takes the tools back for good: a server that answers only now
// publishes nothing.
func (c *client) withdraw() error {
	c.publishing.Lock()
	defer c.publishing.Unlock()
	c.withdrawn = true
	return c.registry.Publish(c.row, nil)
}

// log adds a line to the log of the server and of its row.
func (c *client) log(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	c.mu.Lock()
	if len(c.lines) == logLines {
		c.lines = slices.Delete(c.lines, 0, 1)
	}
	c.lines = append(c.lines, tools.LogLine{Time: time.Now(), Text: text})
	c.mu.Unlock()
	c.logf("%s", text)
}

// brief is an error without the lines of standard error, which the log has
// already.
func brief(err error) string {
	if failure, ok := errors.AsType[*mcp.ConnectError](err); ok {
		return failure.Brief()
	}
	return err.Error()
}

// become notes a state and what is wrong, and tells.
func (c *client) become(state tools.State, err error) {
	c.mu.Lock()
	if c.stopped {
		state = tools.Stopped
	}
	if c.state != state {
		c.state, c.since = state, time.Now()
	}
	c.problem = ""
	if err != nil {
		c.problem = fault.Discreet(brief(err))
	}
	c.mu.Unlock()
	c.registry.Changed()
}

// Status is what [tools.Server] asks for.
func (c *client) Status() tools.ServerStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	return tools.ServerStatus{
		Name: c.server.Name, Row: c.row, Transport: string(c.server.Transport), State: c.state, Error: c.problem, Since: c.since,
		Tools: append([]tools.ServerTool{}, c.listed...), Log: append([]tools.LogLine{}, c.lines...),
	}
}

// try connects, lists and publishes. On an error there is no connection.
func (c *client) try(ctx context.Context) error {
	c.become(tools.Connecting, nil)
	bounded, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	s, err := c.connect(bounded, c.server, c.options)
	if err != nil {
		c.become(tools.Connecting, err)
		return err
	}
	if err := c.list(bounded, s); err != nil {
		_ = s.Stop(context.WithoutCancel(ctx)) // what went wrong before counts
		c.become(tools.Connecting, err)
		return err
	}
	c.mu.Lock()
	late := c.stopped
	if !late {
		c.session, c.connected = s, time.Now()
	}
	count := len(c.listed)
	c.mu.Unlock()
	if late { // the row stopped meanwhile
		return s.Stop(context.WithoutCancel(ctx))
	}
	c.become(tools.Connected, nil)
	c.log("connected, %d tools", count)
	return nil
}

// list publishes the tools that a connection has. On an error the last good set
// stays.
func (c *client) list(ctx context.Context, s session) error {
	found, err := s.Tools(ctx)
	if err != nil {
		return err
	}
	var published []tools.Tool
	listed := []tools.ServerTool{}
	for _, t := range found {
		name := PublicName(c.server.Name, t.Name)
		published = append(published, tools.Tool{
			Name: name, Title: t.Title, Description: t.Description, InputSchema: t.InputSchema, Annotations: t.Annotations,
			Call: func(ctx context.Context, arguments json.RawMessage) (*tools.Result, error) {
				return c.Call(ctx, t.Name, arguments)
			},
		})
		listed = append(listed, tools.ServerTool{
			Name: t.Name, PublicName: name, Title: t.Title, Description: t.Description, InputSchema: t.InputSchema, Annotations: t.Annotations,
		})
	}
	if err := c.publish(published); err != nil {
		return fmt.Errorf("MCP server %s: publish its tools: %w", c.server.Name, err)
	}
	c.mu.Lock()
	c.listed = listed
	c.mu.Unlock()
	return nil
}

// Call calls a tool by the server's own name of it.
func (c *client) Call(ctx context.Context, tool string, arguments json.RawMessage) (*tools.Result, error) {
	c.mu.Lock()
	s, state, problem := c.session, c.state, c.problem
	c.mu.Unlock()
	if s == nil {
		text := fmt.Sprintf("MCP server %s is %s", c.server.Name, state)
		if problem != "" {
			text += ": " + problem
		}
		return nil, fault.Errorf(fault.Network, "%s", text)
	}
	ctx, cancel := context.WithTimeout(ctx, c.config.CallTimeout())
	defer cancel()
	result, err := s.Call(ctx, tool, arguments)
	if err != nil {
		return nil, err
	}
	return (*tools.Result)(result), nil
}

// supervise keeps the connection until ctx ends, and makes it where there is none
// yet: then the first outage may begin with the start.
func (c *client) supervise(ctx context.Context) {
	rule := c.config.Reconnect.Backoff()
	warned := false // of this outage
	if !c.config.FailOnStartupError {
		if err := c.try(ctx); err != nil && ctx.Err() == nil {
			c.log("it has no tools yet: %s", brief(err))
			c.warn(err)
			warned = true
		}
	}
	attempts := 0
	var lost error // why there is no connection
	for {
		c.mu.Lock()
		s := c.session
		c.mu.Unlock()
		if s != nil {
			warned = false
			if lost = c.watch(ctx, s); lost == nil {
				return
			}
			c.mu.Lock()
			// A connection that lived long ended the outage before it.
			if time.Since(c.connected) > rule.Most {
				attempts = 0
			}
			c.mu.Unlock()
		}
		if !rule.Enabled || attempts >= rule.Attempts {
			c.giveUp(rule, attempts)
			if !warned {
				c.warn(lost)
			}
			<-ctx.Done()
			return
		}
		if !pause(ctx, delayOf(rule, attempts)) {
			return
		}
		attempts++
		if err := c.try(ctx); err != nil && ctx.Err() == nil {
			lost = err
			c.log("attempt %d of %d: %s", attempts, rule.Attempts, brief(err))
		}
	}
}

// watch follows a connection until it is lost, and says why. It is nil where the row
// stops.
func (c *client) watch(ctx context.Context, s session) (lost error) {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-c.changed:
			bounded, cancel := context.WithTimeout(ctx, connectTime)
			err := c.list(bounded, s)
			cancel()
			if err != nil && ctx.Err() == nil {
				c.log("the tools stay as they were: %s", brief(err))
			} else if err == nil {
				c.log("its tools changed")
			}
		case <-s.Done():
			if ctx.Err() != nil {
				return nil
			}
			lost := s.Lost()
			c.mu.Lock()
			c.session = nil
			c.mu.Unlock()
			c.become(tools.Connecting, lost)
			c.log("%s", brief(lost))
			_ = s.Stop(ctx) // what is left of the program
			return lost
		}
	}
}

// giveUp takes the tools back; only a new start of the row tries again.
func (c *client) giveUp(rule mcp.Backoff, attempts int) {
	c.mu.Lock()
	problem := c.problem
	c.listed = nil
	c.mu.Unlock()
	_ = c.publish(nil) // nothing is never taken
	if rule.Enabled {
		c.log("down after %d attempts; it is tried again when its row starts anew", attempts)
	} else {
		c.log("down; its row does not reconnect")
	}
	c.become(tools.Down, fmt.Errorf("%s", problem))
}

// stop ends the connection.
func (c *client) stop(ctx context.Context) error {
	c.mu.Lock()
	c.stopped = true
	s := c.session
	c.session = nil
	c.mu.Unlock()
	c.become(tools.Stopped, nil)
	if s == nil {
		return nil
	}
	return s.Stop(ctx)
}

// delayOf is the wait before an attempt, the first is 0.
func delayOf(b mcp.Backoff, attempt int) time.Duration {
	delay := b.Initial
	for range attempt {
		if delay *= 2; delay >= b.Most {
			return b.Most
		}
	}
	return min(delay, b.Most)
}

// pause waits, and says whether ctx has not ended.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

var unfit = regexp.MustCompile(`[^A-Za-z0-9_-]`)

// longestName is how many characters a public name may have.
const longestName = 64

// PublicName is the name under which a tool of a server is published. It depends
// on these two names alone. Where characters had to be replaced or cut, 12
// hexadecimal digits of a hash of both follow, so that two tools stay two.
func PublicName(server, tool string) string {
	whole := "mcp__" + server + "__" + tool
	name := unfit.ReplaceAllString(strings.ToValidUTF8(whole, "_"), "_")
	if name == whole && len(name) <= longestName {
		return name
	}
	sum := sha256.Sum256([]byte(server + "\x00" + tool))
	hash := "_" + hex.EncodeToString(sum[:])[:12]
	return name[:min(len(name), longestName-len(hash))] + hash
}
