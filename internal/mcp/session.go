package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"dsh/internal/fault"
)

// Options are how a server is connected. The zero value is of use.
type Options struct {
	Version  string   // of dsh, which the server is told
	Protocol string   // the version of the protocol to begin with; "" is the newest
	Environ  []string // dsh's own environment, of which a program gets BaseEnvironment
	// Changed is told that the tools are to be listed again.
	Changed func()
	// Line is given each line of a program's standard error.
	Line func(string)
	// Grace is how long a program may take to end by itself, and again when it
	// was asked: 2 s when zero.
	Grace time.Duration
	// Limit bounds one message, in bytes: 16 MiB when zero.
	Limit int
}

// Protocols are the versions of the protocol that are understood, newest first.
func Protocols() []string {
	list := slices.Clone(sdk.SupportedProtocolVersions())
	slices.Sort(list)
	slices.Reverse(list)
	return list
}

// Tool is a tool of a server, as the server says.
type Tool struct {
	Name         string          `json:"name"`
	Title        string          `json:"title,omitempty"`
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"inputSchema"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	Annotations  json.RawMessage `json:"annotations,omitempty"`
}

// Result is what a call of a tool gave. IsError says that the tool failed, and
// not the call.
type Result struct {
	Content    []json.RawMessage `json:"content"`
	Structured json.RawMessage   `json:"structuredContent,omitempty"`
	IsError    bool              `json:"isError"`
}

// Session is a connection to a server.
type Session struct {
	server  Server
	session *sdk.ClientSession
	process *process // nil where the server is an address
	log     *tail
	grace   time.Duration
	close   func() // what is left of HTTP
	done    chan struct{}
	err     error // why done is closed

	stopOnce sync.Once
	stopErr  error
}

// ConnectError is a server that could not be connected, or failed.
type ConnectError struct {
	Server string
	Doing  string
	Exit   *Exit    // of a program that has ended by itself
	Stderr []string // its last lines
	Cause  error
}

// Brief is the error without the lines of standard error.
func (e *ConnectError) Brief() string {
	text := fmt.Sprintf("MCP server %s: %s: %v", e.Server, e.Doing, e.Cause)
	if e.Exit != nil {
		text += fmt.Sprintf(" (%s)", e.Exit)
	}
	return text
}

func (e *ConnectError) Error() string {
	text := e.Brief()
	for _, line := range e.Stderr[max(0, len(e.Stderr)-10):] {
		text += "\n\tstderr: " + line
	}
	return text
}

func (e *ConnectError) Unwrap() error { return e.Cause }

// Class is that of the cause, and Network for a server that misbehaves.
func (e *ConnectError) Class() fault.Class {
	if errors.Is(e.Cause, context.Canceled) {
		return fault.Interrupted
	}
	if c := fault.ClassOf(e.Cause); c != fault.Other {
		return c
	}
	return fault.Network
}

// pipes is a connection over the two pipes of a program. Closing it ends the
// program's input; its output is closed when the program has been stopped.
type pipes struct{ p *process }

func (t pipes) Read(b []byte) (int, error) {
	n, err := t.p.stdout.Read(b)
	t.note(err)
	return n, err
}

func (t pipes) Write(b []byte) (int, error) {
	n, err := t.p.stdin.Write(b)
	t.note(err)
	return n, err
}

func (t pipes) Close() error { _ = t.p.stdin.Close(); return nil }

// note remembers that a pipe has ended: the SDK has many words for it.
func (t pipes) note(err error) {
	if err != nil {
		t.p.cut.Store(true)
	}
}

// Connect starts a program or reaches an address, and does the handshake: the
// newest protocol first, else the one with `initialize`. ctx bounds it; without
// a deadline it is 30 s. What was started is stopped when it fails. The error is a
// *ConnectError.
func Connect(ctx context.Context, s Server, o Options) (session *Session, err error) {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
	}
	if o.Grace == 0 {
		o.Grace = 2 * time.Second
	}
	if o.Limit == 0 {
		o.Limit = 16 << 20
	}
	session = &Session{server: s, log: &tail{line: o.Line, clean: s.masked}, grace: o.Grace, close: func() {}, done: make(chan struct{})}
	if o.Protocol != "" && !slices.Contains(Protocols(), o.Protocol) {
		return nil, session.failed("connect", fault.Errorf(fault.Other, "protocol %q is unknown; known are %s", o.Protocol, strings.Join(Protocols(), ", ")))
	}
	transport, err := session.transport(ctx, s, o)
	if err != nil {
		return nil, session.failed("start", err)
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "dsh", Version: o.Version}, &sdk.ClientOptions{
		Capabilities: &sdk.ClientCapabilities{}, // none: nobody is asked, and no folders are named
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) {
			if o.Changed != nil {
				o.Changed()
			}
		},
	})
	client.AddSendingMiddleware(boundDiscovery)
	session.session, err = client.Connect(ctx, transport, &sdk.ClientSessionOptions{ProtocolVersion: o.Protocol})
	if err != nil {
		failure := session.failed("handshake", session.explained(ctx, err, o))
		_ = session.stopProcess(context.WithoutCancel(ctx))
		session.close()
		return nil, failure
	}
	go func() {
		session.err = session.session.Wait()
		close(session.done)
	}()
	return session, nil
}

// boundDiscovery gives the newest protocol's first question a third of the time,
// and 10 s at most: servers that know nothing of it may never answer.
func boundDiscovery(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, request sdk.Request) (sdk.Result, error) {
		if method == "server/discover" {
			most := 10 * time.Second
			if end, ok := ctx.Deadline(); ok {
				most = min(most, time.Until(end)/3)
			}
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, most)
			defer cancel()
		}
		return next(ctx, method, request)
	}
}

func (s *Session) transport(ctx context.Context, server Server, o Options) (sdk.Transport, error) {
	if server.Transport == Stdio {
		p, err := start(ctx, server, BaseEnvironment(o.Environ), s.log)
		if err != nil {
			return nil, err
		}
		s.process = p
		return &sdk.IOTransport{Reader: pipes{p}, Writer: pipes{p}, MaxLineLength: o.Limit}, nil
	}
	client, end, err := httpClient(server, int64(o.Limit))
	if err != nil {
		return nil, err
	}
	s.close = end
	if server.Transport == SSE {
		return &sseTransport{sdk.SSEClientTransport{Endpoint: server.URL, HTTPClient: client, MaxEventSize: o.Limit}}, nil
	}
	return &sdk.StreamableClientTransport{Endpoint: server.URL, HTTPClient: client, MaxEventSize: o.Limit}, nil
}

// sseTransport keeps the stream of events when the context of connecting ends:
// the SDK ties the stream to it.
type sseTransport struct{ sdk.SSEClientTransport }

func (t *sseTransport) Connect(ctx context.Context) (sdk.Connection, error) {
	stream, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stopped := context.AfterFunc(ctx, cancel)
	connection, err := t.SSEClientTransport.Connect(stream)
	if err != nil {
		cancel()
		return nil, err
	}
	stopped() // the connection is closed by Close from now on
	return connection, nil
}

// explained is why a handshake or a call failed, in words that help.
func (s *Session) explained(ctx context.Context, err error, o Options) error {
	text := s.server.masked(err.Error())
	_, answered := errors.AsType[*jsonrpc.Error](err)
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return context.Cause(ctx)
	case errors.Is(ctx.Err(), context.DeadlineExceeded) || errors.Is(err, context.DeadlineExceeded):
		late := fault.Errorf(fault.Network, "it did not answer in time")
		if o.Protocol == "" && s.server.Transport == Stdio {
			return fault.WithHint(late, "servers that know only older protocols may need --protocol 2025-11-25; --timeout 2m waits longer")
		}
		return late
	case s.process != nil && !answered && (strings.Contains(text, "invalid character") || strings.Contains(text, "trailing data")):
		// The SDK's words, of which TestFailures has each.
		return fault.Errorf(fault.Network, "what it wrote on standard output is no message of the protocol (logs belong on standard error): %s", text)
	case s.process != nil && !answered && s.process.cut.Load():
		// It shows only a moment later how the program ended.
		select {
		case <-s.process.ended:
			return fault.Errorf(fault.Network, "the program ended")
		case <-time.After(time.Second):
			return fault.Errorf(fault.Network, "the program closed its standard output")
		}
	}
	if answered || text == err.Error() {
		return err
	}
	return errors.New(text)
}

// failed is an error with what the program left.
func (s *Session) failed(doing string, err error) error {
	failure := &ConnectError{Server: s.server.Name, Doing: doing, Cause: err}
	if s.process != nil {
		if !s.process.alive() {
			exit := s.process.exit
			failure.Exit = &exit
		}
		failure.Stderr = s.log.last(20)
	}
	return failure
}

// Protocol is the version of the protocol that is spoken.
func (s *Session) Protocol() string { return s.session.InitializeResult().ProtocolVersion }

// Info is the server's own name and version, which may be "".
func (s *Session) Info() (name, version string) {
	if info := s.session.InitializeResult().ServerInfo; info != nil {
		return info.Name, info.Version
	}
	return "", ""
}

// Stderr is the last lines of a program's standard error.
func (s *Session) Stderr() []string { return s.log.last(keptLines) }

// Done is closed when the connection is lost or was stopped.
func (s *Session) Done() <-chan struct{} { return s.done }

// Lost is why the connection was lost. It is for after Done.
func (s *Session) Lost() error {
	err := s.err
	if err == nil {
		err = io.EOF
	}
	return s.failed("connection", s.explained(context.Background(), err, Options{}))
}

// Bounds of what a server may list.
const (
	mostPages = 1000
	mostTools = 10_000
)

// Tools lists the tools, over all pages. A name that a server lists twice is an
// error.
func (s *Session) Tools(ctx context.Context) ([]Tool, error) {
	list := []Tool{}
	seen := map[string]bool{}
	cursor := ""
	for page := 0; ; page++ {
		if page == mostPages || len(list) > mostTools {
			return nil, s.failed("list tools", fault.Errorf(fault.Network, "there is no end to them"))
		}
		answer, err := s.session.ListTools(ctx, &sdk.ListToolsParams{Cursor: cursor})
		if err != nil {
			return nil, s.failed("list tools", s.explained(ctx, err, Options{}))
		}
		for _, t := range answer.Tools {
			if seen[t.Name] {
				return nil, s.failed("list tools", fault.Errorf(fault.Network, "it lists the tool %q twice", t.Name))
			}
			seen[t.Name] = true
			tool := Tool{Name: t.Name, Title: t.Title, Description: t.Description, InputSchema: raw(t.InputSchema), OutputSchema: raw(t.OutputSchema)}
			if t.Annotations != nil {
				tool.Annotations = raw(t.Annotations)
			}
			list = append(list, tool)
		}
		if cursor = answer.NextCursor; cursor == "" {
			return list, nil
		}
	}
}

// raw is a value of the SDK as JSON, nil for none.
func raw(v any) json.RawMessage {
	if v == nil {
		return nil
	}
	text, err := json.Marshal(v)
	if err != nil || string(text) == "null" {
		return nil
	}
	return text
}

// Call calls a tool by the server's own name of it. arguments is a JSON object,
// or nothing.
func (s *Session) Call(ctx context.Context, tool string, arguments json.RawMessage) (*Result, error) {
	if len(arguments) == 0 {
		arguments = json.RawMessage("{}")
	}
	answer, err := s.session.CallTool(ctx, &sdk.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		return nil, s.failed("call "+tool, s.explained(ctx, err, Options{}))
	}
	result := &Result{Content: []json.RawMessage{}, Structured: raw(answer.StructuredContent), IsError: answer.IsError}
	for _, c := range answer.Content {
		if text := raw(c); text != nil {
			result.Content = append(result.Content, text)
		}
	}
	return result, nil
}

// Stop ends the connection, and the program with all that it started. It may be
// called more than once. ctx bounds how long that is done politely.
func (s *Session) Stop(ctx context.Context) error {
	s.stopOnce.Do(func() {
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			_ = s.session.Close() // the server may be gone
		}()
		if s.process == nil {
			select {
			case <-closed:
			case <-time.After(s.grace):
			case <-ctx.Done():
			}
		}
		s.stopErr = s.stopProcess(ctx)
		s.close()
	})
	return s.stopErr
}

func (s *Session) stopProcess(ctx context.Context) error {
	if s.process == nil {
		return nil
	}
	if err := s.process.stop(ctx, s.grace); err != nil {
		return s.failed("stop", err)
	}
	return nil
}

// Exit is how the program ended, nil while it runs and where there is none.
func (s *Session) Exit() *Exit {
	if s.process == nil || s.process.alive() {
		return nil
	}
	exit := s.process.exit
	return &exit
}
