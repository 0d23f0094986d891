package mcp

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"dsh/internal/compose"
	"dsh/internal/fault"
	"dsh/internal/install/registry"
)

// Transport is how one speaks with a server.
type Transport string

// The transports. SSE is the one of 2024-11-05, with two addresses.
const (
	Stdio          Transport = "stdio"
	StreamableHTTP Transport = "streamable-http"
	SSE            Transport = "sse"
)

// Server is all that a connection needs.
type Server struct {
	Name      string
	Transport Transport

	// Of a program. Program is absolute, or a bare name that is looked for in
	// PATH. Env is laid over the base. Dir is absolute.
	Program string
	Args    []string
	Env     []string // "NAME=value"
	Dir     string
	// Inside are paths that, once links are followed, have to be in a
	// directory. It is looked at just before the start.
	Inside []Inside

	// Of an address.
	URL     string
	Headers []Header
}

// Inside is a path that must not lead out of a directory over a link.
type Inside struct{ What, Path, Within string }

// Header is a field that is sent to the origin of the server's URL alone.
type Header struct{ Name, Value string }

// Shown is the program with its arguments, or the address, as messages may show
// it.
func (s Server) Shown() string {
	if s.Transport != Stdio {
		return registry.ShownAddress(s.URL)
	}
	return fault.ShellWords(append([]string{s.Program}, s.ShownArgs()...)...)
}

// ShownArgs is the arguments without what is probably secret in them.
func (s Server) ShownArgs() (words []string) {
	words, _ = s.secretArgs()
	return words
}

// secretArgs is the arguments as they may be shown, and what is hidden of them.
func (s Server) secretArgs() (words, secrets []string) {
	hide := false
	for _, arg := range s.Args {
		name, value, assigned := strings.Cut(arg, "=")
		secret := compose.IsSecretKey(strings.TrimLeft(name, "-"))
		switch {
		case hide:
			secrets = append(secrets, arg)
			words = append(words, "…")
		case assigned && secret:
			secrets = append(secrets, value)
			words = append(words, name+"=…")
		default:
			words = append(words, fault.Discreet(arg))
		}
		hide = !hide && !assigned && secret && strings.HasPrefix(arg, "-")
	}
	return words, secrets
}

// masked is a text without the values of the configuration that are probably
// secret, and without what is in addresses. A server may write them to its log, or
// back in an error.
func (s Server) masked(text string) string {
	_, secrets := s.secretArgs()
	for _, v := range s.Env {
		if name, value, _ := strings.Cut(v, "="); compose.IsSecretKey(name) {
			secrets = append(secrets, value)
		}
	}
	for _, h := range s.Headers {
		secrets = append(secrets, h.Value)
	}
	if u, err := url.Parse(s.URL); err == nil && u.RawQuery != "" {
		secrets = append(secrets, u.RawQuery)
	}
	text = fault.Discreet(text)
	for _, secret := range secrets {
		// A short one is no secret, and part of too much.
		if len(secret) >= 4 {
			text = strings.ReplaceAll(text, secret, "…")
		}
	}
	return text
}

// Config is the config of a row of the plugin @deepseek-ai/dsh-mcp-client.
// Times are in milliseconds.
type Config struct {
	ServerName         string            `json:"serverName"`
	Transport          Transport         `json:"transport"`
	Command            string            `json:"command"`
	Args               []string          `json:"args"`
	Env                map[string]string `json:"env"`
	Cwd                string            `json:"cwd"`
	URL                string            `json:"url"`
	Headers            map[string]string `json:"headers"`
	ToolCallTimeoutMs  *float64          `json:"toolCallTimeoutMs"`
	FailOnStartupError bool              `json:"failOnStartupError"`
	Reconnect          Reconnect         `json:"reconnect"`
}

// Reconnect says how a lost connection is made again.
type Reconnect struct {
	Enabled        *bool    `json:"enabled"`
	InitialDelayMs *float64 `json:"initialDelayMs"`
	MaxDelayMs     *float64 `json:"maxDelayMs"`
	MaxAttempts    *float64 `json:"maxAttempts"`
}

// PluginName is the name of the plugin whose rows are servers.
const PluginName = "@deepseek-ai/dsh-mcp-client"

// CallTimeout is how long a call of a tool may take.
func (c Config) CallTimeout() time.Duration {
	return milliseconds(c.ToolCallTimeoutMs, 60*time.Second)
}

func milliseconds(ms *float64, otherwise time.Duration) time.Duration {
	if ms == nil || !(*ms >= 0) || *ms > 1e12 {
		return otherwise
	}
	return time.Duration(*ms * float64(time.Millisecond))
}

// Backoff is the rule for one outage.
type Backoff struct {
	Enabled       bool
	Initial, Most time.Duration
	Attempts      int
}

// Backoff is the rule with the defaults filled in.
func (r Reconnect) Backoff() Backoff {
	b := Backoff{Enabled: r.Enabled == nil || *r.Enabled, Initial: milliseconds(r.InitialDelayMs, 500*time.Millisecond), Most: milliseconds(r.MaxDelayMs, 30*time.Second), Attempts: 10}
	if r.MaxAttempts != nil && *r.MaxAttempts >= 0 && *r.MaxAttempts < 1e9 {
		b.Attempts = int(*r.MaxAttempts)
	}
	return b
}

var serverName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,32}$`)

// Server is the server that the config describes. dir is where a program runs
// whose row names no directory, absolute.
func (c Config) Server(dir string) (Server, error) {
	if !serverName.MatchString(c.ServerName) {
		return Server{}, fault.Errorf(fault.Composition, "serverName %q is no name of a server: 1 to 32 of A-Z, a-z, 0-9, _ and -", c.ServerName)
	}
	s := Server{Name: c.ServerName, Transport: c.Transport}
	fail := func(format string, args ...any) (Server, error) {
		return Server{}, fault.Errorf(fault.Composition, "MCP server %s: %w", c.ServerName, fmt.Errorf(format, args...))
	}
	switch c.Transport {
	case Stdio:
		if c.Command == "" {
			return fail("command is missing")
		}
		s.Program, s.Args, s.Dir = c.Command, c.Args, cmp.Or(c.Cwd, dir)
		if !filepath.IsAbs(s.Dir) {
			s.Dir = filepath.Join(dir, s.Dir)
		}
		if strings.ContainsRune(s.Program, filepath.Separator) || strings.Contains(s.Program, "/") {
			if !filepath.IsAbs(s.Program) {
				s.Program = filepath.Join(s.Dir, s.Program)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(c.Env)) {
			if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(c.Env[name], "\x00") {
				return fail("env has a name or value that no system takes: %q", name)
			}
			s.Env = append(s.Env, name+"="+c.Env[name])
		}
		s.Inside = inPlugin(s, c.Env["PLUGIN_ROOT"], c.Env["PLUGIN_DATA"])
	case StreamableHTTP, SSE:
		u, err := url.Parse(c.URL)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return fail("url is no absolute http or https address")
		}
		s.URL = c.URL
		seen := map[string]bool{}
		for _, name := range slices.Sorted(maps.Keys(c.Headers)) {
			if folded := strings.ToLower(name); seen[folded] {
				return fail("headers has %q twice, in different case", name)
			} else {
				seen[folded] = true
			}
			if strings.ContainsAny(c.Headers[name], "\r\n\x00") {
				return fail("header %q has a line break in its value", name)
			}
			s.Headers = append(s.Headers, Header{name, c.Headers[name]})
		}
	case "":
		return fail("transport is missing")
	default:
		return fail("transport %q is none of stdio, streamable-http and sse", c.Transport)
	}
	return s, nil
}

// inPlugin is what must be inside the plugin that a server belongs to: rows of
// Agent Plugins carry the two directories in their environment.
func inPlugin(s Server, root, data string) (list []Inside) {
	below := func(path, dir string) bool {
		if dir == "" || !filepath.IsAbs(path) {
			return false
		}
		return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, string(filepath.Separator))+string(filepath.Separator))
	}
	if below(s.Program, root) {
		list = append(list, Inside{"command", s.Program, root})
	}
	for _, within := range []string{root, data} {
		if below(s.Dir, within) {
			return append(list, Inside{"cwd", s.Dir, within})
		}
	}
	return list
}

// baseNames are the variables of dsh's own environment that every program gets.
func baseNames() []string {
	if runtime.GOOS == "windows" {
		return strings.Fields("APPDATA COMSPEC HOMEDRIVE HOMEPATH LOCALAPPDATA NUMBER_OF_PROCESSORS OS PATH PATHEXT PROCESSOR_ARCHITECTURE " +
			"PROGRAMDATA PROGRAMFILES SYSTEMDRIVE SYSTEMROOT TEMP TMP USERNAME USERPROFILE WINDIR")
	}
	return strings.Fields("HOME LANG LC_ALL LC_CTYPE LOGNAME PATH SHELL TERM TMPDIR TZ USER")
}

// BaseEnvironment is those variables of an environment that say where things are
// and who the user is, and none that may hold secrets: HOME, LANG, LC_ALL,
// LC_CTYPE, LOGNAME, PATH, SHELL, TERM, TMPDIR, TZ and USER, or their kin on
// Windows. Functions of shells are left out.
func BaseEnvironment(environ []string) []string {
	names := baseNames()
	var base []string
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		known := slices.ContainsFunc(names, func(n string) bool {
			return n == name || runtime.GOOS == "windows" && strings.EqualFold(n, name)
		})
		if known && !strings.HasPrefix(value, "()") {
			base = append(base, entry)
		}
	}
	return base
}

// overlaid is the variables of base with those of overlay in their place.
func overlaid(base, overlay []string) []string {
	named := func(entry string) string {
		name, _, _ := strings.Cut(entry, "=")
		if runtime.GOOS == "windows" {
			return strings.ToUpper(name)
		}
		return name
	}
	over := map[string]bool{}
	for _, entry := range overlay {
		over[named(entry)] = true
	}
	all := slices.DeleteFunc(slices.Clone(base), func(entry string) bool { return over[named(entry)] })
	return append(all, overlay...)
}
