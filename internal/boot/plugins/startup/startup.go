// Package startup is the rows that read the command line of an app: the words
// behind the profile's name. Each gives what it found to other rows as a
// service.
//
// It starts nothing, and it prints nothing: help and mistakes are an Exit.
package startup

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"dsh/internal/boot/host"
	"dsh/internal/boot/plugins/webserver"
	"dsh/internal/boot/slot"
	"dsh/internal/compose"
	"dsh/internal/fault"
)

// The services.
const (
	WebService      = "webStartup"      // Web
	HeadlessService = "headlessStartup" // Headless
	SDKService      = "sdkAppStartup"   // Driven
	ACPService      = "acpAppStartup"   // Driven
)

// Exit is a command line that starts nothing: help that was asked for, or a
// mistake. Text ends with a line end; it is for standard output where Code is
// 0, else for standard error.
type Exit struct {
	Code int
	Text string
}

// App is a plugin that reads a command line.
type App struct {
	Name    string // the plugin's
	service string
	syntax  func(config compose.Value) syntax
	read    func(g given) (any, error)
	config  func() any // a fresh value to decode the row's configuration into, nil where it has none
}

// Apps are the start-up plugins.
func Apps() []App { return []App{webApp, headlessApp, sdkApp, acpApp} }

// Parse reads a command line. config is that of the row; expressions in it
// count as absent.
func (a App) Parse(config compose.Value, args []string) (value any, exit *Exit) {
	s := a.syntax(config)
	g, err := s.parse(args)
	if err == nil && g.help {
		return nil, &Exit{0, s.text()}
	}
	if err == nil {
		value, err = a.read(g)
	}
	if err != nil {
		return nil, &Exit{1, fmt.Sprintf("error: %s\n\n%s --help tells what can be given.\n", strings.Map(printable, err.Error()), s.command)}
	}
	return value, nil
}

// printable keeps what a word of the command line holds from steering the
// terminal.
func printable(c rune) rune {
	if c != '\n' && !unicode.IsPrint(c) {
		return unicode.ReplacementChar
	}
	return c
}

// Plugin is the app as a plugin.
func (a App) Plugin() host.Plugin {
	return host.Plugin{
		Inject:   []host.Need{{Service: slot.CommandLine}, {Service: slot.Exit, Optional: true}},
		Provides: []string{a.service},
		Start: func(_ context.Context, r *host.Row) error {
			var config any = new(struct{})
			if a.config != nil {
				config = a.config()
			}
			if err := r.Decode(config); err != nil {
				return err
			}
			args, _ := host.Service[slot.Args](r, slot.CommandLine)
			value, exit := a.Parse(r.Config(), args.Get())
			if exit != nil {
				// A boot reads the command line before it starts anything. It comes
				// to this where the row was changed while the profile runs.
				if end, ok := host.Service[slot.ExitFunc](r, slot.Exit); ok {
					end(exit.Code)
				}
				return fault.Errorf(fault.Other, "%s", strings.TrimSpace(exit.Text))
			}
			r.Provide(a.service, value)
			return nil
		},
	}
}

// Web is what `dsh web` was told. Expressions see it as ctx.webStartup.
type Web struct {
	Host         string   `json:"host,omitempty"` // "" if not given
	Port         *int     `json:"port,omitempty"` // nil if not given
	OpenBrowser  bool     `json:"openBrowser"`
	TrustedHosts []string `json:"trustedHosts"`
}

// Expression is what expressions see.
func (w Web) Expression() any { return w }

var webApp = App{
	Name:    "@deepseek-ai/dsh-web-app/startup",
	service: WebService,
	syntax: func(compose.Value) syntax {
		return syntax{
			command: "dsh --profile web",
			purpose: "Serve the page of this profile, and open it in the browser.",
			options: []option{
				{name: "--host", value: "<host>", help: "address to listen on; one that stands for all addresses, as 0.0.0.0, is refused (default: 127.0.0.1)"},
				{name: "--port", value: "<n>", help: "port to listen on; 0 lets the system choose one that is free (default: 3080)"},
				{name: "--trusted-host", value: "<authority...>", many: true, help: "further names of this machine under which the page may be asked for, each with or without a port"},
				{name: "--no-open", help: "print the address and open no browser"},
			},
		}
	},
	read: func(g given) (any, error) {
		web := Web{OpenBrowser: true, TrustedHosts: []string{}}
		if _, ok := g.values["--no-open"]; ok {
			web.OpenBrowser = false
		}
		if name, ok := g.single("--host"); ok {
			if _, err := webserver.ParseHost(name); err != nil {
				return nil, usageError(fmt.Sprintf("option '--host <host>' argument '%s' is invalid: %s", name, err))
			}
			web.Host = name
		}
		if text, ok := g.single("--port"); ok {
			port, err := strconv.ParseUint(text, 10, 16)
			if err != nil || strings.Trim(text, "0123456789") != "" {
				return nil, usageError(fmt.Sprintf("option '--port <n>' argument '%s' is invalid: a port is a number from 0 to 65535", text))
			}
			number := int(port)
			web.Port = &number
		}
		for _, authority := range g.values["--trusted-host"] {
			if authority == "" || strings.ContainsAny(authority, "/*@?# \t") {
				return nil, usageError(fmt.Sprintf("option '--trusted-host <authority...>' argument '%s' is invalid: give a host name, with or without a port, and no address of a page", authority))
			}
			web.TrustedHosts = append(web.TrustedHosts, authority)
		}
		return web, nil
	},
}

// Headless is what `dsh headless` was told. Expressions see it as
// ctx.headlessStartup.
type Headless struct {
	Task string `json:"task"`
}

// Expression is what expressions see.
func (h Headless) Expression() any { return h }

var headlessApp = App{
	Name:    "@deepseek-ai/dsh-headless/startup",
	service: HeadlessService,
	syntax: func(compose.Value) syntax {
		return syntax{
			command: "dsh --profile headless",
			purpose: "Give an agent one task, print what it answers, and end with it.",
			words:   "[task...]",
			after:   "what the agent is to do; several words are joined by spaces",
		}
	},
	read: func(g given) (any, error) {
		task := strings.Join(g.words, " ")
		if strings.TrimSpace(task) == "" {
			return nil, usageError(`a task is required, as in: dsh --profile headless "say which tests fail, and why"`)
		}
		return Headless{task}, nil
	},
}

// Driven is what an app was told that has no options: nothing.
type Driven struct{}

// Expression is what expressions see.
func (d Driven) Expression() any { return d }

var sdkApp = App{
	Name:    "@deepseek-ai/dsh-sdk-app",
	service: SDKService,
	config:  func() any { return new(SDKConfig) },
	syntax: func(config compose.Value) syntax {
		profile := "sdk"
		if m, ok := config.(*compose.Map); ok {
			if name, _ := m.Get("profile"); name != nil {
				if text, ok := name.(string); ok && text != "" {
					profile = text
				}
			}
		}
		return syntax{
			command: fault.ShellWords("dsh", "--profile", profile),
			purpose: "Let a program drive an agent: JSON-RPC requests on standard input, answers on standard output, one message a line. It ends with its input.",
		}
	},
	read: func(given) (any, error) { return Driven{}, nil },
}

var acpApp = App{
	Name:    "@deepseek-ai/dsh-acp-app",
	service: ACPService,
	syntax: func(compose.Value) syntax {
		return syntax{
			command: "dsh --profile acp",
			purpose: "Let an editor drive an agent: the Agent Client Protocol on standard input and output. It ends with its input.",
		}
	},
	read: func(given) (any, error) { return Driven{}, nil },
}

// SDKConfig is the configuration of the SDK's row.
type SDKConfig struct {
	Profile string `json:"profile"` // in the help text, "" is sdk
}
