package agentplugin

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"dsh/internal/pkgpath"
)

// Server is one of [Stdio], [StreamableHTTP] and [SSE].
type Server interface {
	Name() string // as mcp.json has it
	Type() string // as mcp.json spells it
	server()
}

// Stdio is a server that is a program.
type Stdio struct {
	Label   string
	Command Command
	Args    []Template
	Env     []Variable // in the order of mcp.json
	Cwd     Cwd
}

// Variable is one of a server's environment.
type Variable struct {
	Name  string
	Value Template
}

// Command is what a server runs: a bare name, or a file of the package.
type Command struct {
	name string
	file *pkgpath.RelativePath
}

// Bundled is the file, if the command is one of the package.
func (c Command) Bundled() (pkgpath.RelativePath, bool) {
	if c.file == nil {
		return pkgpath.RelativePath{}, false
	}
	return *c.file, true
}

// String is the command as it was written.
func (c Command) String() string { return c.name }

// ParseCommand reads a command: one token, which is a bare name or begins with ./.
// Spaces are part of it, and nothing is expanded in it.
func ParseCommand(text string) (Command, error) {
	switch {
	case strings.HasPrefix(text, "./"):
		file, err := pkgpath.Parse(text)
		if err != nil {
			return Command{}, fmt.Errorf("command: %w", err)
		}
		if file.Resolve() == "." || strings.HasSuffix(text, "/") {
			return Command{}, fmt.Errorf("command %q names no file", text)
		}
		return Command{text, &file}, nil
	case text == "":
		return Command{}, errors.New("command is empty")
	case strings.Contains(text, "\x00"):
		return Command{}, errors.New("command has a NUL in it")
	case strings.HasPrefix(text, rootMark+"/"):
		return Command{}, fmt.Errorf("command %q: nothing is expanded in a command; write .%s", text, strings.TrimPrefix(text, rootMark))
	case strings.ContainsAny(text, `/\`) || text == "." || text == ".." || len(text) > 1 && text[1] == ':':
		return Command{}, fmt.Errorf("command %q is neither a bare name nor a path that begins with ./", text)
	}
	return Command{text, nil}, nil
}

// Remote is what the servers behind an address share.
type Remote struct {
	Label   string
	URL     URL
	Headers []Header // in the order of mcp.json, no two of one name in any case
}

// StreamableHTTP is a server of the current HTTP transport.
type StreamableHTTP struct{ Remote }

// SSE is a server of the HTTP+SSE transport of 2024-11-05.
type SSE struct{ Remote }

func (s Stdio) Name() string        { return s.Label }
func (r Remote) Name() string       { return r.Label }
func (Stdio) Type() string          { return "stdio" }
func (StreamableHTTP) Type() string { return "streamable-http" }
func (SSE) Type() string            { return "sse" }
func (Stdio) server()               {}
func (Remote) server()              {}

// MCPState says what became of a package's mcp.json.
type MCPState string

const (
	MCPAbsent     MCPState = "absent"
	MCPConfigured MCPState = "configured"
	MCPOff        MCPState = "disabled" // for what is wrong with it as a whole
)

// loadMCP reads mcp.json, which is there.
func (l *loader) loadMCP() (MCPState, []Server) {
	const place = "mcp.json"
	if err := l.expect(pkgpath.MCP(), File); err != nil {
		l.found.add(ComponentInvalid, place, "%v", err)
		return MCPOff, nil
	}
	text, err := l.source.Read(pkgpath.MCP(), fileLimit)
	if err != nil {
		l.found.add(ComponentInvalid, place, "it cannot be read: %v", err)
		return MCPOff, nil
	}
	servers, problem := l.parseMCP(text)
	if problem != "" {
		l.found.add(MCPDisabled, place, "%s", problem)
		return MCPOff, nil
	}
	var list []Server
	for _, m := range servers {
		if server := l.server(m); server != nil {
			list = append(list, server)
		}
	}
	return MCPConfigured, list
}

// parseMCP is the entries of mcpServers, or what is wrong with the file as a whole.
func (l *loader) parseMCP(text []byte) (servers []member, problem string) {
	v, marked, err := parseJSON(text)
	if marked {
		l.found.add(ByteOrderMark, "mcp.json", "there is a byte order mark at its beginning, which JSON has not")
	}
	switch {
	case err != nil:
		return nil, "it is not JSON: " + err.Error()
	case v.kind != objectKind:
		return nil, fmt.Sprintf("it is %s, and has to be an object", v.kind)
	}
	members, repeated := v.object()
	id, hasID := v.get("$schema")
	list, hasList := v.get("mcpServers")
	want := l.plugin.Manifest.Spec.MCPSchema()
	switch {
	case !hasID:
		return nil, fmt.Sprintf(`there is no "$schema"%s; it has to be %q`, otherCase(v, "$schema"), want)
	case id.kind != stringKind:
		return nil, fmt.Sprintf(`"$schema" is %s, and has to be %q`, id.kind, want)
	case id.text != want && (id.text == V1_0_0.MCPSchema() || id.text == V1_1_0.MCPSchema()):
		return nil, fmt.Sprintf("its version is not that of plugin.json, which is %s", l.plugin.Manifest.Spec)
	case id.text != want:
		return nil, fmt.Sprintf(`"$schema" is %q, and has to be %q`, id.text, want)
	case !hasList:
		return nil, fmt.Sprintf(`there is no "mcpServers"%s`, otherCase(v, "mcpServers"))
	case list.kind != objectKind:
		return nil, fmt.Sprintf(`"mcpServers" is %s, and has to be an object`, list.kind)
	}
	for _, m := range members {
		if m.name != "$schema" && m.name != "mcpServers" {
			return nil, fmt.Sprintf(`there is %q beside "$schema" and "mcpServers", which is not allowed`, m.name)
		}
	}
	servers, again := list.object()
	for _, name := range again {
		repeated = append(repeated, "mcpServers."+name)
	}
	for _, name := range repeated {
		if l.options.StrictMembers {
			return nil, fmt.Sprintf("%q is there more than once", name)
		}
		l.found.add(DuplicateMember, "mcp.json#"+strings.TrimPrefix(name, "mcpServers."), "it is there more than once, and the last counts")
	}
	return servers, ""
}

// server is an entry as one of the variants, or nil and a diagnostic with all that
// is wrong with it.
func (l *loader) server(m member) Server {
	p := &serverParser{loader: l, place: "mcp.json#" + m.name, fields: map[string]value{}}
	server := p.parse(m)
	if len(p.problems) > 0 {
		l.found.add(ServerSkipped, p.place, "%s", strings.Join(p.problems, "; "))
		return nil
	}
	*l.found = append(*l.found, p.notes...)
	return server
}

type serverParser struct {
	*loader
	place    string
	fields   map[string]value
	problems []string
	notes    diagnostics
}

func (p *serverParser) fail(format string, args ...any) {
	p.problems = append(p.problems, fmt.Sprintf(format, args...))
}

func (p *serverParser) note(rule Rule, format string, args ...any) {
	p.notes.add(rule, p.place, format, args...)
}

func (p *serverParser) parse(m member) Server {
	if m.value.kind != objectKind {
		p.fail("it is %s, and has to be an object", m.value.kind)
		return nil
	}
	if m.broken || m.value.hasHalfPair() {
		p.fail("it has half of a surrogate pair, so that it is no Unicode text")
		return nil
	}
	members, _ := m.value.object()
	for _, f := range members {
		p.fields[f.name] = f.value
	}
	kind, ok := p.fields["type"]
	switch {
	case !ok:
		p.fail(`there is no "type"%s; it is stdio, streamable-http or sse`, otherCase(m.value, "type"))
	case kind.kind != stringKind:
		p.fail(`"type" is %s, and has to be a string`, kind.kind)
	case kind.text == "stdio":
		p.closed(m.value, "stdio", "type", "command", "args", "env", "cwd")
		return p.stdio(m.name)
	case kind.text == "streamable-http" || kind.text == "sse":
		p.closed(m.value, kind.text, "type", "url", "headers")
		remote := p.remote(m.name)
		if kind.text == "sse" {
			return SSE{remote}
		}
		return StreamableHTTP{remote}
	case kind.text == "http":
		p.fail(`the type "http" is called streamable-http here`)
	default:
		p.fail("there is no type %q; it is stdio, streamable-http or sse", kind.text)
	}
	return nil
}

// closed refuses fields that the variant has not, and tells of repeated ones.
func (p *serverParser) closed(v value, variant string, fields ...string) {
	known := map[string]bool{}
	for _, name := range fields {
		known[name] = true
	}
	members, _ := v.object()
	for _, m := range members {
		if !known[m.name] {
			p.fail("a server of type %s has no field %q", variant, m.name)
		}
	}
	for _, name := range v.repeats() {
		switch {
		case strings.HasPrefix(name, "headers."): // which remote looks at
		case p.options.StrictMembers:
			p.fail("%q is there more than once", name)
		default:
			p.note(DuplicateMember, "%q is there more than once, and the last counts", name)
		}
	}
}

// text is a field that has to be a string.
func (p *serverParser) text(name string, required bool) (string, bool) {
	v, ok := p.fields[name]
	switch {
	case !ok && required:
		p.fail("there is no %q", name)
		return "", false
	case !ok:
		return "", false
	case v.kind != stringKind:
		p.fail("%q is %s, and has to be a string", name, v.kind)
		return "", false
	}
	return v.text, true
}

func (p *serverParser) stdio(name string) Server {
	s := Stdio{Label: name}
	if text, ok := p.text("command", true); ok {
		command, err := ParseCommand(text)
		if err != nil {
			p.fail("%v", err)
		} else {
			s.Command = command
			p.command(command)
		}
	}
	if v, ok := p.fields["args"]; ok {
		s.Args = p.args(v)
	}
	if v, ok := p.fields["env"]; ok {
		s.Env = p.env(v)
	}
	if text, ok := p.text("cwd", false); ok {
		cwd, err := ParseCwd(text)
		if err != nil {
			p.fail("%v", err)
		} else {
			s.Cwd = cwd
			p.cwd(cwd)
		}
	}
	return s
}

// command asks the package about a bundled command.
func (p *serverParser) command(c Command) {
	file, bundled := c.Bundled()
	if !bundled {
		if strings.ContainsAny(c.name, " \t") {
			p.note(CommandHasSpaces, `command %q is one name with spaces in it; arguments belong into "args"`, c.name)
		}
		return
	}
	kind, err := p.source.Kind(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		p.note(CommandMissing, "the package has no file %s", file)
	case err != nil:
		p.fail("command %s: %v", file, err)
	case kind != File:
		p.fail("command %s is no regular file", file)
	}
}

// cwd asks the package about a directory of it.
func (p *serverParser) cwd(c Cwd) {
	dir, ok := c.InPackage()
	if !ok {
		return
	}
	kind, err := p.source.Kind(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		p.note(CwdMissing, "the package has no directory %s", dir)
	case err != nil:
		p.fail("cwd %s: %v", dir, err)
	case kind != Dir:
		p.fail("cwd %s is no directory", dir)
	}
}

func (p *serverParser) args(v value) (args []Template) {
	if v.kind != arrayKind {
		p.fail(`"args" is %s, and has to be an array of strings`, v.kind)
		return nil
	}
	for i, e := range v.elements {
		switch {
		case e.kind != stringKind:
			p.fail(`"args.%d" is %s, and has to be a string`, i, e.kind)
		case strings.Contains(e.text, "\x00"):
			p.fail(`"args.%d" has a NUL in it, which no argument can have`, i)
		default:
			args = append(args, ParseTemplate(e.text))
		}
	}
	return args
}

func (p *serverParser) env(v value) (env []Variable) {
	if v.kind != objectKind {
		p.fail(`"env" is %s, and has to be an object of strings`, v.kind)
		return nil
	}
	members, _ := v.object()
	for _, m := range members {
		switch {
		case m.name == "PLUGIN_ROOT" || m.name == "PLUGIN_DATA":
			p.fail("env sets %s, which is reserved", m.name)
		case m.name == "" || strings.ContainsAny(m.name, "=\x00"):
			p.fail("env has the name %q, which no variable can have", m.name)
		case m.value.kind != stringKind:
			p.fail("the variable %q is %s, and has to be a string", m.name, m.value.kind)
		case strings.Contains(m.value.text, "\x00"):
			p.fail("the variable %q has a NUL in it", m.name)
		default:
			if upper := strings.ToUpper(m.name); upper == "PLUGIN_ROOT" || upper == "PLUGIN_DATA" {
				p.note(EnvReservedCase, "the variable %q is the reserved %s on Windows, where it has no effect", m.name, upper)
			}
			env = append(env, Variable{m.name, ParseTemplate(m.value.text)})
		}
	}
	return env
}

func (p *serverParser) remote(name string) Remote {
	r := Remote{Label: name}
	if text, ok := p.text("url", true); ok {
		address, err := ParseURL(text)
		if err != nil {
			p.fail("%v", err)
		}
		r.URL = address
	}
	v, ok := p.fields["headers"]
	if !ok {
		return r
	}
	if v.kind != objectKind {
		p.fail(`"headers" is %s, and has to be an object of strings`, v.kind)
		return r
	}
	seen := map[string]bool{}
	for _, m := range v.members { // repeated ones too
		lower := strings.ToLower(m.name)
		if seen[lower] {
			p.fail("the header %q is there more than once", m.name)
		}
		seen[lower] = true
		if m.value.kind != stringKind {
			p.fail("the header %q is %s, and has to be a string", m.name, m.value.kind)
			continue
		}
		if err := checkHeader(m.name, m.value.text); err != nil {
			p.fail("%v", err)
		}
		r.Headers = append(r.Headers, Header{m.name, m.value.text})
	}
	return r
}
