package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"dsh/internal/action"
	"dsh/internal/boot/environ"
	"dsh/internal/boot/eval"
	"dsh/internal/boot/host"
	"dsh/internal/compose"
	"dsh/internal/fault"
	"dsh/internal/ui"
)

// mcpCommand is `dsh mcp`: the MCP servers of a profile.
func (r *runner) mcpCommand() *cli.Command {
	tried := func(timeout string) []cli.Flag {
		return append(overlayFlags(),
			&cli.StringFlag{Name: "dir", Usage: "the servers of the Agent Plugin in this folder, which need not be installed"},
			&cli.DurationFlag{Name: "timeout", Usage: "wait this long (30s, 2m)", DefaultText: timeout},
			&cli.StringFlag{Name: "protocol", Usage: "begin with this version of the protocol (2025-11-25)", DefaultText: "the newest"})
	}
	return &cli.Command{
		Name: "mcp", Usage: "list the MCP servers of a profile, and try them", ArgsUsage: " ",
		Description:     "Servers are the rows of @deepseek-ai/dsh-mcp-client. check and call start the programs of\nservers, say so, and stop them with all that they started.",
		Flags:           []cli.Flag{profileFlag()},
		HideHelpCommand: true, OnUsageError: r.badFlag,
		Action: r.otherVerb("dsh mcp check starts every server and lists its tools"),
		Subcommands: []*cli.Command{
			r.configVerb("list", "list the servers and where they come from; nothing is started", " ", (*configRun).mcpList, overlayFlags()...),
			r.configVerb("check", "start a server, or all that are not off, list the tools, and stop", "[SERVER]", (*configRun).mcpCheck, tried("30s")...),
			r.configVerb("call", "start a server, call one of its tools, and stop", "SERVER TOOL [JSON|-]", (*configRun).mcpCall, tried("1m")...),
		},
	}
}

// mcpFlags are the flags that say which servers are meant, but for --set, whose
// values may be secret.
func (r *configRun) mcpFlags() []string {
	if dir := r.cli.String("dir"); dir != "" {
		return []string{"--dir", dir}
	}
	flags := []string{"--profile", r.layers.Name.String()}
	for _, patch := range r.cli.StringSlice("patch") {
		flags = append(flags, "--patch", patch)
	}
	return flags
}

// evaluation is what evaluates expressions outside of a run, where no row runs, and
// the environment that they see: as at a start, the .env files count. done ends what
// that has started.
func (r *configRun) evaluation() (evaluate action.Evaluate, environment []string, done func(), err error) {
	snapshot, warnings, err := environ.Load(r.environ, r.env.Dir, r.env.Home.Dir(), os.ReadFile)
	if err != nil {
		return nil, nil, nil, err
	}
	for _, w := range warnings {
		r.ui.Warn(w.String())
	}
	evaluator := eval.New(eval.Options{Environ: snapshot.List(), Home: r.env.Home.Dir(), Dir: r.env.Dir})
	evaluate = func(ctx context.Context, text string) (compose.Value, bool, error) {
		value, err := evaluator.Evaluate(ctx, text, host.Scope{})
		if _, none := value.(host.Undefined); none {
			return nil, false, err
		}
		return value, true, err
	}
	return evaluate, snapshot.List(), func() { _ = evaluator.Close() }, nil
}

// mcpOptions is how servers are tried. done ends what that has started.
func (r *configRun) mcpOptions() (o action.MCPOptions, done func(), err error) {
	timeout := r.cli.Duration("timeout")
	if r.cli.IsSet("timeout") && timeout <= 0 {
		return o, nil, fault.Errorf(fault.Other, "--timeout is a time such as 30s, and not %s", timeout)
	}
	evaluate, environment, done, err := r.evaluation()
	if err != nil {
		return o, nil, err
	}
	return action.MCPOptions{
		Dir: r.cli.String("dir"), Timeout: timeout, Protocol: r.cli.String("protocol"), Version: version(), Environ: environment,
		Evaluate: evaluate, Flags: r.mcpFlags(),
		Starting: func(server, what string) { r.ui.Say("%s: %s", ui.Clean(server), line(what)) },
	}, done, nil
}

func (r *configRun) mcpList() error {
	if r.cli.Args().Present() {
		return fault.WithHint(fault.Errorf(fault.Other, "mcp list takes no arguments, got %q", r.cli.Args().First()), "dsh mcp check %s", fault.ShellWord(r.cli.Args().First()))
	}
	list, err := action.ListMCP(r.ctx, r.env, r.layers)
	if err != nil {
		return err
	}
	r.warn(list.Warnings)
	return r.ui.Result(list, func(w io.Writer) {
		if len(list.Servers) == 0 {
			fmt.Fprintf(w, "profile %s has no MCP servers\n", ui.Clean(list.Profile))
		}
		table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, s := range list.Servers {
			what := s.URL
			if s.Command != "" {
				what = fault.ShellWords(append([]string{s.Command}, s.Args...)...)
			}
			from := ""
			if s.From != nil {
				from = s.From.Layer
			}
			fmt.Fprintf(table, "%s\t%s\t%s\trow %s\t%s\t%s\n", line(s.Server), s.State, line(s.Transport), line(idText(s.Row)), line(from), line(what))
		}
		table.Flush()
		for _, s := range list.Servers {
			if s.Problem != "" {
				fmt.Fprintf(w, "row %s: %s\n", line(idText(s.Row)), line(s.Problem))
			}
		}
	})
}

// mcpCheck exits with the class of the first server that does not answer.
func (r *configRun) mcpCheck() error {
	if r.cli.NArg() > 1 {
		return fault.Errorf(fault.Other, "mcp check takes the name of one server, or none for all")
	}
	o, done, err := r.mcpOptions()
	if err != nil {
		return err
	}
	defer done()
	check, err := action.CheckMCP(r.ctx, r.env, r.layers, r.cli.Args().First(), o)
	if err != nil {
		return err
	}
	r.warn(check.Warnings)
	class, failed := check.Failed()
	err = r.ui.Verdict(!failed, check, func(w io.Writer) {
		if len(check.Servers) == 0 && !failed {
			fmt.Fprintln(w, "there are no MCP servers to check")
		}
		for _, d := range check.LeftOut {
			fmt.Fprintf(w, "%s: %s %s\n", r.ui.Bold(line(d.Place)), r.ui.Red("left out:"), line(d.Message))
		}
		if len(check.LeftOut) > 0 {
			fmt.Fprintf(w, "hint: dsh agent-plugin check %s\n", line(fault.ShellWord(r.cli.String("dir"))))
		}
		for _, s := range check.Servers {
			r.mcpChecked(w, s)
		}
	})
	if err == nil && failed {
		return &saidError{class}
	}
	return err
}

func (r *configRun) mcpChecked(w io.Writer, s action.MCPChecked) {
	name := r.ui.Bold(line(s.Server))
	if !s.OK {
		fmt.Fprintf(w, "%s: %s %s", name, r.ui.Red("failed:"), line(s.Error))
		if s.Exit != nil {
			fmt.Fprintf(w, " (%s)", s.Exit)
		}
		fmt.Fprintln(w)
		for _, text := range s.Stderr {
			fmt.Fprintf(w, "  stderr: %s\n", line(text))
		}
		if s.Hint != "" {
			fmt.Fprintf(w, "  hint: %s\n", line(s.Hint))
		}
		return
	}
	who := strings.TrimSpace(s.Name + " " + s.Version)
	if who != "" {
		who = " from " + who
	}
	fmt.Fprintf(w, "%s: %s%s, protocol %s, %s\n", name, counted(len(s.Tools), "tool"), line(who), line(s.Protocol), ui.Took(time.Duration(s.Ms)*time.Millisecond))
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, t := range s.Tools {
		fmt.Fprintf(table, "  %s\t%s\n", line(t.Name), line(firstSentence(t.Description)))
	}
	table.Flush()
}

// mcpCall exits with 1 where the tool says that it failed.
func (r *configRun) mcpCall() error {
	if n := r.cli.NArg(); n != 2 && n != 3 {
		words := []string{"dsh", "mcp", "check"}
		if n == 1 {
			words = append(words, r.cli.Args().First())
		}
		return fault.WithHint(fault.Errorf(fault.Other, "mcp call needs a server, a tool, and the tool's arguments as JSON if it takes any"),
			"%s lists the tools", fault.ShellWords(slices.Concat(words, r.mcpFlags())...))
	}
	arguments := []byte(r.cli.Args().Get(2))
	if string(arguments) == "-" {
		if slices.Contains(r.cli.StringSlice("patch"), "-") {
			return fault.Errorf(fault.Other, "standard input can be named only once")
		}
		var err error
		if arguments, err = r.readStdin(r.ctx); err != nil {
			return err
		}
	}
	o, done, err := r.mcpOptions()
	if err != nil {
		return err
	}
	defer done()
	call, err := action.CallMCP(r.ctx, r.env, r.layers, r.cli.Args().Get(0), r.cli.Args().Get(1), arguments, o)
	if err != nil {
		return err
	}
	r.warn(call.Warnings)
	err = r.ui.Verdict(!call.IsError, call, func(w io.Writer) {
		for _, content := range call.Content {
			fmt.Fprintln(w, contentText(content))
		}
		if len(call.Content) == 0 && call.Structured != nil {
			fmt.Fprintln(w, ui.Clean(string(call.Structured)))
		}
	})
	if err == nil && call.IsError {
		return &saidError{fault.Other}
	}
	return err
}

// contentText is a part of an answer for people: a text as it is, and what is no
// text in a few words.
func contentText(content json.RawMessage) string {
	var part struct {
		Type, Text, URI, MIMEType string
		Data                      []byte
		Resource                  struct{ URI, Text string }
	}
	if err := json.Unmarshal(content, &part); err != nil {
		return ui.Clean(string(content))
	}
	switch part.Type {
	case "text":
		return ui.Clean(part.Text)
	case "image", "audio":
		return fmt.Sprintf("(%s, %s, %s; --json has it)", part.Type, line(part.MIMEType), ui.Bytes(int64(len(part.Data))))
	case "resource_link":
		return line(part.URI)
	case "resource":
		if part.Resource.Text != "" {
			return ui.Clean(part.Resource.Text)
		}
		return line(part.Resource.URI)
	}
	return ui.Clean(string(content))
}
