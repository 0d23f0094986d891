package action

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"dsh/internal/agentplugin"
	"dsh/internal/compose"
	"dsh/internal/fault"
	"dsh/internal/install/registry"
	"dsh/internal/mcp"
	"dsh/internal/staging"
)

// MCPList is the MCP servers of a composed profile.
type MCPList struct {
	Profile  string      `json:"profile"`
	Servers  []MCPServer `json:"servers"` // in the order of the tree
	Warnings []string    `json:"-"`
}

// MCPServer is a row that is a server. Values of variables and headers, and what
// may be secret in addresses, are left out.
type MCPServer struct {
	Server    string   `json:"server"`
	Transport string   `json:"transport"`
	Row       Shown    `json:"row"`   // null for a row without an id
	Path      string   `json:"path"`  // of the row in the tree
	State     string   `json:"state"` // on, off, or decided at boot
	From      *Where   `json:"from"`
	Command   string   `json:"command,omitempty"`
	Args      []string `json:"args,omitempty"`
	Cwd       string   `json:"cwd,omitempty"`
	Env       []string `json:"env,omitempty"` // names
	URL       string   `json:"url,omitempty"`
	Headers   []string `json:"headers,omitempty"` // names
	// Problem is why the row is no server that could be started, "" if it is.
	Problem string `json:"problem"`

	server mcp.Server
	err    error
	row    compose.Row
}

// ListMCP lists the servers of a profile.
func ListMCP(ctx context.Context, env Env, layers Layers) (*MCPList, error) {
	c, err := look(ctx, env, layers, true)
	if err != nil {
		return nil, err
	}
	list := &MCPList{Profile: layers.Name.String(), Servers: []MCPServer{}, Warnings: slices.Concat(c.Warnings, c.leftOut(), c.Notices)}
	h := newHistory(c.Tree)
	eachRow(c.Tree.Rows, "", func(row compose.Row, path string) {
		if row.Name() == mcp.PluginName {
			list.Servers = append(list.Servers, h.mcpServer(ctx, env, row, path))
		}
	})
	return list, nil
}

// eachRow calls f with every row and its path in the tree.
func eachRow(rows []compose.Row, above string, f func(row compose.Row, path string)) {
	for i, row := range rows {
		path := fmt.Sprintf("%s/%d", above, i)
		f(row, path)
		eachRow(row.Mounted(), path+"/config", f)
	}
}

// Evaluate is the value of an expression; defined is false where it has none.
type Evaluate func(ctx context.Context, text string) (value compose.Value, defined bool, err error)

// rowConfig reads the config of a row as its plugin would, into v. Without
// evaluate, expressions are an error.
func rowConfig(ctx context.Context, row compose.Row, evaluate Evaluate, v any) error {
	config := row.Config()
	if key, expr := expressionIn(config, "config"); expr != nil && evaluate == nil {
		return &expressionError{key, expr.Text}
	} else if expr != nil {
		var err error
		if config, _, err = evaluated(ctx, config, evaluate); err != nil {
			return err
		}
	}
	if config == nil {
		return nil
	}
	text, err := json.Marshal(Shown{config})
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fault.Errorf(fault.Composition, "its config is not what the plugin takes: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

// expressionError is an expression that is not evaluated.
type expressionError struct{ key, text string }

func (e *expressionError) Error() string {
	return fmt.Sprintf("%s is the expression %q, which is evaluated when the row starts", e.key, e.text)
}

// Class is that of layers.
func (e *expressionError) Class() fault.Class { return fault.Composition }

// evaluated is a value with those of its expressions in their places. The key of
// one that has none is left out.
func evaluated(ctx context.Context, v compose.Value, evaluate Evaluate) (value compose.Value, defined bool, err error) {
	switch v := v.(type) {
	case compose.Expr:
		return evaluate(ctx, v.Text)
	case *compose.Expr:
		return evaluate(ctx, v.Text)
	case *compose.Map:
		all := &compose.Map{}
		for key, item := range v.All() {
			item, defined, err := evaluated(ctx, item, evaluate)
			if err != nil {
				return nil, false, fmt.Errorf("%s: %w", key, err)
			}
			if defined {
				all.Set(key, item)
			}
		}
		return all, true, nil
	case *compose.List:
		all := &compose.List{}
		for _, item := range v.Items {
			item, _, err := evaluated(ctx, item, evaluate)
			if err != nil {
				return nil, false, err
			}
			all.Items = append(all.Items, item)
		}
		return all, true, nil
	}
	return v, true, nil
}

// expressionIn is the first expression in a value, and the keys that lead to it.
func expressionIn(v compose.Value, key string) (string, *compose.Expr) {
	switch v := v.(type) {
	case compose.Expr:
		return key, &v
	case *compose.Expr:
		return key, v
	case *compose.Map:
		for k, item := range v.All() {
			if at, expr := expressionIn(item, key+"."+k); expr != nil {
				return at, expr
			}
		}
	case *compose.List:
		for i, item := range v.Items {
			if at, expr := expressionIn(item, fmt.Sprintf("%s[%d]", key, i)); expr != nil {
				return at, expr
			}
		}
	}
	return "", nil
}

func (h *history) mcpServer(ctx context.Context, env Env, row compose.Row, path string) MCPServer {
	s := MCPServer{row: row, Row: Shown{row.ID()}, Path: path, State: h.state(row)}
	if where, ok := h.whereRow(row.Entry); ok {
		s.From = &where
	}
	config, _ := row.Config().(*compose.Map)
	text := func(key string) string {
		v, _ := config.Get(key)
		text, _ := v.(string)
		return text
	}
	keys := func(key string) (names []string) {
		v, _ := config.Get(key)
		m, _ := v.(*compose.Map)
		for name := range m.All() {
			names = append(names, name)
		}
		return names
	}
	s.Server, s.Transport, s.Cwd = withoutSecrets(text("serverName")), withoutSecrets(text("transport")), text("cwd")
	s.Command, s.Env, s.Headers = withoutSecrets(text("command")), keys("env"), keys("headers")
	if url := text("url"); url != "" {
		s.URL = registry.ShownAddress(url)
	}
	s.resolve(ctx, env, nil)
	if _, late := errors.AsType[*expressionError](s.err); s.err != nil && !late {
		s.Problem = withoutSecrets(s.err.Error())
	}
	if s.err == nil && s.server.Transport == mcp.Stdio {
		s.Args = s.server.ShownArgs()
	}
	return s
}

// resolve finds out how the server is started.
func (s *MCPServer) resolve(ctx context.Context, env Env, evaluate Evaluate) {
	var config mcp.Config
	if s.err = rowConfig(ctx, s.row, evaluate, &config); s.err == nil {
		s.server, s.err = config.Server(env.Dir)
	}
}

// MCPOptions say how servers are tried.
type MCPOptions struct {
	// Dir is the folder of an Agent Plugin that is no part of a profile; "" is
	// the profile.
	Dir      string
	Timeout  time.Duration // for each server, from its start to its tools
	Protocol string        // the version of the protocol to begin with; "" is the newest
	Version  string        // of dsh
	Environ  []string      // dsh's own environment
	// Evaluate gives the expressions of rows their values. Where it is nil, rows
	// that have some cannot be started.
	Evaluate Evaluate
	// Flags are those that say which servers are meant, for commands in hints.
	Flags []string
	// Starting is told what is started, just before. It may be nil.
	Starting func(server, what string)
}

func (o MCPOptions) starting(s mcp.Server) {
	if o.Starting != nil {
		o.Starting(s.Name, s.Shown())
	}
}

// command is a command about the same servers, for hints.
func (o MCPOptions) command(words ...string) string {
	return fault.ShellWords(slices.Concat([]string{"dsh", "mcp"}, words, o.Flags)...)
}

// check refuses what no server has a part in.
func (o MCPOptions) check() error {
	if o.Protocol != "" && !slices.Contains(mcp.Protocols(), o.Protocol) {
		return fault.Errorf(fault.Other, "protocol %q is unknown; known are %s", o.Protocol, strings.Join(mcp.Protocols(), ", "))
	}
	return nil
}

func (o MCPOptions) connection() mcp.Options {
	return mcp.Options{Version: o.Version, Protocol: o.Protocol, Environ: o.Environ}
}

// MCPCheck is how servers answered.
type MCPCheck struct {
	Profile string       `json:"profile"` // "" for a folder
	Dir     string       `json:"dir"`     // "" for a profile
	Servers []MCPChecked `json:"servers"`
	// LeftOut is what is wrong with a folder's mcp.json, so that servers in it are
	// none.
	LeftOut  []agentplugin.Diagnostic `json:"leftOut"`
	Warnings []string                 `json:"-"`
}

// MCPChecked is how one server answered.
type MCPChecked struct {
	Server    string    `json:"server"`
	Row       Shown     `json:"row"` // null where it is none
	Transport string    `json:"transport"`
	Started   string    `json:"started"` // the program with its arguments, or the address
	OK        bool      `json:"ok"`
	Protocol  string    `json:"protocol"`
	Name      string    `json:"name"` // as the server calls itself
	Version   string    `json:"version"`
	Tools     []MCPTool `json:"tools"`
	Ms        int64     `json:"ms"`
	Error     string    `json:"error"`
	Hint      string    `json:"hint"`
	Class     string    `json:"class"` // of the error
	Exit      *mcp.Exit `json:"exit"`  // of a program that ended by itself
	Stderr    []string  `json:"stderr"`

	class fault.Class
}

// MCPTool is a tool in short.
type MCPTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
}

// Failed is the class of the first server that did not answer, and that of layers
// where one was left out; ok is false where there is none.
func (c *MCPCheck) Failed() (class fault.Class, failed bool) {
	for _, s := range c.Servers {
		if !s.OK {
			return s.class, true
		}
	}
	if len(c.LeftOut) > 0 {
		return fault.Composition, true
	}
	return fault.Other, false
}

// mostAtOnce bounds how many servers are checked at one time.
const mostAtOnce = 8

// CheckMCP starts or reaches servers, does the handshake, lists their tools and
// stops them: the one of this name, or all that are not off. That some do not
// answer is no error.
func CheckMCP(ctx context.Context, env Env, layers Layers, name string, o MCPOptions) (*MCPCheck, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	check := &MCPCheck{Servers: []MCPChecked{}, LeftOut: []agentplugin.Diagnostic{}}
	targets, done, err := mcpTargets(ctx, env, layers, name, o, check)
	if err != nil {
		return nil, err
	}
	defer done()
	check.Servers = make([]MCPChecked, len(targets))
	var group sync.WaitGroup
	free := make(chan struct{}, mostAtOnce)
	for i, target := range targets {
		group.Go(func() {
			free <- struct{}{}
			defer func() { <-free }()
			check.Servers[i] = target.check(ctx, o)
		})
	}
	group.Wait()
	return check, context.Cause(ctx)
}

// mcpTargets is the servers that a command is about. done takes away what was made
// for them.
func mcpTargets(ctx context.Context, env Env, layers Layers, name string, o MCPOptions, check *MCPCheck) (targets []MCPServer, done func(), err error) {
	done = func() {}
	if o.Dir != "" {
		if targets, done, err = folderServers(env, o, check); err != nil {
			return nil, nil, err
		}
	} else {
		list, err := ListMCP(ctx, env, layers)
		if err != nil {
			return nil, nil, err
		}
		check.Profile, check.Warnings, targets = list.Profile, list.Warnings, list.Servers
	}
	all := targets
	targets = slices.DeleteFunc(slices.Clone(all), func(s MCPServer) bool {
		if name != "" {
			return s.Server != name
		}
		return s.State == rowOff
	})
	if name != "" && len(targets) == 0 {
		done()
		return nil, nil, unknownServer(name, all, o, check)
	}
	if name != "" {
		check.LeftOut = []agentplugin.Diagnostic{} // of others
	}
	if o.Dir == "" {
		for i := range targets {
			targets[i].resolve(ctx, env, o.Evaluate)
		}
	}
	return targets, done, nil
}

func unknownServer(name string, all []MCPServer, o MCPOptions, check *MCPCheck) error {
	var names []string
	for _, s := range all {
		names = append(names, s.Server)
	}
	where := "profile " + check.Profile
	if o.Dir != "" {
		where = check.Dir
	}
	look := "dsh agent-plugin check " + fault.ShellWord(o.Dir)
	for _, d := range check.LeftOut {
		if d.Place == "mcp.json#"+name {
			return fault.WithHint(fault.Errorf(fault.Composition, "%s leaves its MCP server %q out: %s", where, name, d.Message), "%s", look)
		} else if !strings.Contains(d.Place, "#") {
			return fault.WithHint(fault.Errorf(fault.Composition, "%s has no MCP servers: %s: %s", where, d.Place, d.Message), "%s", look)
		}
	}
	err := fault.Errorf(fault.Other, "%s has no MCP server %q", where, name)
	if len(check.Warnings) > 0 {
		// Whatever was left out may be where it is.
		err = fault.Errorf(fault.Other, "%w (%s)", err, strings.Join(check.Warnings, "; "))
	}
	if meant := compose.Closest(name, names); meant != "" {
		return fault.WithHint(err, "did you mean: %s", o.command("check", meant))
	}
	if o.Dir != "" {
		return fault.WithHint(err, "dsh agent-plugin inspect %s shows what loads", fault.ShellWord(o.Dir))
	}
	return fault.WithHint(err, "%s", o.command("list"))
}

// folderServers is the servers of the Agent Plugin in a folder. Their data is in a
// directory that goes when they are done.
func folderServers(env Env, o MCPOptions, check *MCPCheck) (list []MCPServer, done func(), err error) {
	plugin, found, err := loadAgentPlugin(env.inDir(o.Dir), "", agentplugin.Options{})
	if err != nil {
		return nil, nil, err
	}
	check.Dir = found.Dir
	for _, d := range found.Diagnostics {
		if file, _, _ := strings.Cut(d.Place, "#"); plugin != nil && file == "mcp.json" && d.Effect != agentplugin.Noted {
			check.LeftOut = append(check.LeftOut, d)
		} else if plugin == nil || d.Effect != agentplugin.Noted {
			check.Warnings = append(check.Warnings, d.Place+": "+d.Message)
		}
	}
	if plugin == nil {
		return nil, nil, fault.WithHint(fault.Errorf(fault.Composition, "%s is no Agent Plugin that loads", found.Dir), "dsh agent-plugin check %s", fault.ShellWord(o.Dir))
	}
	data, remove, err := staging.TempDir(os.TempDir())
	if err != nil {
		return nil, nil, err
	}
	done = func() { _ = remove() } // a later one takes it away
	if real, err := filepath.EvalSymlinks(data); err == nil {
		data = real
	}
	anchors := agentplugin.Anchors{Root: found.Dir, Data: data}
	for _, server := range plugin.Servers {
		target := MCPServer{Server: server.Name(), Transport: server.Type(), State: rowOn}
		target.server, target.err = PluginServer(server, anchors, o.Environ)
		list = append(list, target)
	}
	return list, done, nil
}

// PluginServer is a server of an Agent Plugin that is installed at these places.
func PluginServer(server agentplugin.Server, at agentplugin.Anchors, environ []string) (mcp.Server, error) {
	s := mcp.Server{Name: server.Name()}
	remote := func(transport mcp.Transport, r agentplugin.Remote) {
		s.Transport, s.URL = transport, r.URL.String()
		for _, h := range r.Headers {
			s.Headers = append(s.Headers, mcp.Header{Name: h.Name, Value: h.Value})
		}
	}
	switch server := server.(type) {
	case agentplugin.Stdio:
		plan, err := server.Plan(at, mcp.BaseEnvironment(environ), runtime.GOOS == "windows")
		if err != nil {
			return s, fault.WithClass(fault.Policy, err)
		}
		s.Transport, s.Program, s.Args, s.Env, s.Dir = mcp.Stdio, plan.Program, plan.Args, plan.Env, plan.Dir
		if plan.Bundled {
			s.Inside = append(s.Inside, mcp.Inside{What: "command", Path: plan.Program, Within: at.Root})
		}
		s.Inside = append(s.Inside, mcp.Inside{What: "cwd", Path: plan.Dir, Within: plan.Within})
	case agentplugin.StreamableHTTP:
		remote(mcp.StreamableHTTP, server.Remote)
	case agentplugin.SSE:
		remote(mcp.SSE, server.Remote)
	}
	return s, nil
}

// check tries one server.
func (s MCPServer) check(ctx context.Context, o MCPOptions) MCPChecked {
	began := time.Now()
	checked := MCPChecked{Server: s.Server, Row: s.Row, Transport: s.Transport, Tools: []MCPTool{}, Stderr: []string{}}
	fail := func(err error) MCPChecked {
		checked.OK = false
		checked.Error, checked.Hint = withoutSecrets(err.Error()), fault.Hint(err)
		checked.class = fault.ClassOf(err)
		checked.Class = checked.class.String()
		if failure, ok := errors.AsType[*mcp.ConnectError](err); ok {
			checked.Error = failure.Doing + ": " + withoutSecrets(failure.Cause.Error())
			checked.Exit = failure.Exit
			checked.Stderr = append(checked.Stderr, failure.Stderr[max(0, len(failure.Stderr)-10):]...)
		}
		checked.Ms = time.Since(began).Milliseconds()
		return checked
	}
	if s.err != nil {
		return fail(s.err)
	}
	checked.Started = s.server.Shown()
	o.starting(s.server)
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(o.Timeout, 30*time.Second))
	defer cancel()
	session, err := mcp.Connect(ctx, s.server, o.connection())
	if err != nil {
		return fail(err)
	}
	checked.Protocol = session.Protocol()
	checked.Name, checked.Version = session.Info()
	tools, err := session.Tools(ctx)
	// Stopping has its own time: a server that was slow is stopped as well.
	stopped := session.Stop(context.WithoutCancel(ctx))
	if err = errors.Join(err, stopped); err != nil {
		return fail(err)
	}
	for _, t := range tools {
		checked.Tools = append(checked.Tools, MCPTool{t.Name, t.Description, t.InputSchema})
	}
	checked.OK, checked.Ms = true, time.Since(began).Milliseconds()
	return checked
}

// MCPCall is what a tool answered.
type MCPCall struct {
	Server string `json:"server"`
	Tool   string `json:"tool"`
	mcp.Result
	Ms       int64    `json:"ms"`
	Stderr   []string `json:"stderr"`
	Warnings []string `json:"-"`
}

// CallMCP starts or reaches one server, calls one of its tools by the server's own
// name of it, and stops the server. arguments is a JSON object, or nothing. That the
// tool itself failed is no error.
func CallMCP(ctx context.Context, env Env, layers Layers, name, tool string, arguments json.RawMessage, o MCPOptions) (call *MCPCall, err error) {
	if len(bytes.TrimSpace(arguments)) == 0 {
		arguments = json.RawMessage("{}")
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(arguments, &object); err != nil || object == nil {
		return nil, fault.WithHint(fault.Errorf(fault.Other, "the arguments of a tool are one JSON object"),
			"%s", o.command("call", name, tool, `{"name": "value"}`))
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	check := &MCPCheck{}
	targets, done, err := mcpTargets(ctx, env, layers, name, o, check)
	if err != nil {
		return nil, err
	}
	defer done()
	target := targets[0]
	if len(targets) > 1 {
		return nil, fault.Errorf(fault.Composition, "profile %s has %d rows of the MCP server %q", check.Profile, len(targets), name)
	}
	if target.err != nil {
		return nil, fmt.Errorf("MCP server %s: %w", name, target.err)
	}
	o.starting(target.server)
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(o.Timeout, 60*time.Second))
	defer cancel()
	session, err := mcp.Connect(ctx, target.server, o.connection())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, session.Stop(context.WithoutCancel(ctx))) }()
	result, err := session.Call(ctx, tool, arguments)
	if err != nil {
		return nil, otherTool(ctx, session, name, tool, o, err)
	}
	return &MCPCall{Server: name, Tool: tool, Result: *result, Ms: time.Since(began).Milliseconds(), Stderr: session.Stderr(), Warnings: check.Warnings}, nil
}

// otherTool adds to an error which tool may have been meant.
func otherTool(ctx context.Context, session *mcp.Session, server, tool string, o MCPOptions, err error) error {
	tools, listed := session.Tools(ctx)
	if listed != nil || slices.ContainsFunc(tools, func(t mcp.Tool) bool { return t.Name == tool }) {
		return err
	}
	var names []string
	for _, t := range tools {
		names = append(names, t.Name)
	}
	missing := fault.Errorf(fault.Other, "MCP server %s has no tool %q; it has %s", server, tool, strings.Join(names, ", "))
	if meant := compose.Closest(tool, names); meant != "" {
		return fault.WithHint(missing, "did you mean: %s", o.command("call", server, meant))
	}
	return missing
}
