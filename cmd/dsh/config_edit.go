package main

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"dsh/internal/action"
	"dsh/internal/compose"
	"dsh/internal/fault"
	"dsh/internal/ui"
)

// configEditVerbs change patch files and the list of bundles.
func (r *runner) configEditVerbs() []*cli.Command {
	bundle := &cli.BoolFlag{DisableDefaultText: true, Name: "bundle", Usage: "take the name for a bundle's, also where a row has it as its id"}
	force := &cli.BoolFlag{DisableDefaultText: true, Name: "force", Usage: "put a bundle back though the profile does not start with it"}
	return []*cli.Command{
		r.configVerb("set", "give a key of a row another value, in your patch file", "ROW.KEY|ROW:KEY VALUE", r.configSet, editFlags()...),
		r.configVerb("unset", "take out what your patch file says about a row or a key", "ROW[.KEY|:KEY]", r.configUnset, editFlags()...),
		r.configVerb("disable", "switch a row off, or take out the layer of a bundle", "ROW|BUNDLE",
			func(c *configRun) error { return c.configSwitch(false) }, append(editFlags(), bundle)...),
		r.configVerb("enable", "switch a row on, or put the layer of a bundle back", "ROW|BUNDLE",
			func(c *configRun) error { return c.configSwitch(true) }, append(editFlags(), bundle, force)...),
		r.configVerb("schema", "print the JSON Schema of the patch file, or install it for editors", " ", r.configSchema,
			&cli.BoolFlag{DisableDefaultText: true, Name: "install", Usage: "write it beside your patch file, and name it there"},
			homeFlag()),
	}
}

func editFlags() []cli.Flag {
	return []cli.Flag{
		homeFlag(),
		&cli.BoolFlag{DisableDefaultText: true, Name: "project", Usage: "change the patch of the project in the working directory"},
		showSecretsFlag(),
	}
}

func homeFlag() cli.Flag {
	return &cli.BoolFlag{DisableDefaultText: true, Name: "home", Usage: "change the patch of the home, for every profile"}
}

// editOptions say which patch file a verb is about.
func (c *configRun) editOptions() (action.EditOptions, error) {
	opts := action.EditOptions{Name: c.layers.Name, Layer: compose.ProfileLayer, ShowSecrets: c.showSecrets(), Now: time.Now()}
	switch home, project := c.cli.Bool("home"), c.cli.Bool("project"); {
	case home && project:
		return opts, fault.Errorf(fault.Other, "--home and --project exclude each other")
	case home:
		opts.Layer = compose.HomeLayer
	case project:
		opts.Layer = compose.ProjectLayer
	}
	return opts, nil
}

// args are the arguments of a verb, of which there must be n.
func (c *configRun) args(n int, form string) ([]string, error) {
	args := c.cli.Args().Slice()
	if len(args) == n {
		return args, nil
	}
	return nil, fault.WithHint(fault.Errorf(fault.Other, "config %s takes %s", c.cli.Command.Name, form),
		"dsh config %s --help shows the form", c.cli.Command.Name)
}

func (r *runner) configSet(c *configRun) error {
	if c.cli.NArg() == 1 {
		// The form of --set.
		if target, value, err := compose.CutAssignment(c.cli.Args().First()); err == nil {
			return fault.WithHint(fault.Errorf(fault.Other, "config set takes the place and the value as two words"),
				"dsh config set --profile %s %s", fault.ShellWord(c.layers.Name.String()), fault.ShellWords(target, value))
		}
	}
	args, err := c.args(2, "a place and its value: ROW.KEY VALUE, with quotes around a value that has spaces")
	if err != nil {
		return err
	}
	opts, err := c.editOptions()
	if err != nil {
		return err
	}
	done, err := action.Set(c.ctx, c.env, opts, args[0], args[1])
	return c.edited(done, err, func() string {
		if !done.Changed {
			return fmt.Sprintf("%s is %s already; nothing was changed", done.Target, show(done.After))
		}
		return fmt.Sprintf("%s: %s → %s in %s", done.Target, show(done.Before), show(done.After), place(done))
	})
}

func (r *runner) configUnset(c *configRun) error {
	args, err := c.args(1, "one place: ROW, ROW.KEY or ROW:KEY")
	if err != nil {
		return err
	}
	opts, err := c.editOptions()
	if err != nil {
		return err
	}
	done, err := action.Unset(c.ctx, c.env, opts, args[0])
	return c.edited(done, err, func() string {
		switch {
		case !done.Changed:
			return fmt.Sprintf("nothing to do: %s says nothing of its own about %s", done.File, args[0])
		case done.Row:
			return fmt.Sprintf("%s is not overridden any more in %s", done.Target, done.File)
		}
		return fmt.Sprintf("%s: %s → %s in %s", done.Target, show(done.Before), show(done.After), done.File)
	})
}

func (c *configRun) configSwitch(on bool) error {
	args, err := c.args(1, "the id of one row, or the name of one bundle")
	if err != nil {
		return err
	}
	edit, err := c.editOptions()
	if err != nil {
		return err
	}
	done, err := action.Switch(c.ctx, c.env, action.SwitchOptions{
		EditOptions: edit, On: on, Bundle: c.cli.Bool("bundle"), Force: c.cli.Bool("force"),
	}, args[0])
	return c.edited(done, err, func() string { return switched(done, on) })
}

// switched says what became of a row or bundle: what all layers make of it, for
// one above the file may have the last word.
func switched(done *action.Edit, on bool) string {
	what, state := done.Target, stateWord(on, done.After)
	if done.Bundle {
		what = "bundle " + what
	}
	if done.Overridden != "" {
		if now := stateWord(done.Composed == nil || !compose.Truthy(done.Composed.V), done.Composed); now != state {
			what, state = fmt.Sprintf("%s stays %s: %s", what, now, done.Overridden), ""
		}
	}
	switch {
	case state == "" && done.Changed:
		return fmt.Sprintf("%s; this was written to %s", what, place(done))
	case state == "":
		return what + "; nothing was changed"
	case done.Changed:
		return fmt.Sprintf("%s is %s now, by %s", what, state, place(done))
	default:
		return fmt.Sprintf("%s is %s already; nothing was changed", what, state)
	}
}

// stateWord is whether a row or bundle is on, unless it has an expression that
// decides.
func stateWord(on bool, disabled *action.Shown) string {
	switch {
	case disabled != nil && isExpression(disabled.V):
		return "left to its expression"
	case on:
		return "on"
	default:
		return "off"
	}
}

func isExpression(v compose.Value) bool {
	_, ok := v.(compose.Expr)
	return ok
}

// edited prints what a verb did to a file.
func (c *configRun) edited(done *action.Edit, err error, line func() string) error {
	if err != nil {
		return err
	}
	if done.Created {
		c.ui.Say("initialized profile %s at %s", done.Profile, filepath.Dir(done.File))
		c.warnReserved(c.layers.Name)
	}
	for _, w := range done.Warnings {
		c.ui.Warn(w)
	}
	for _, n := range done.Notes {
		c.ui.Say("%s", n)
	}
	text := line()
	if err := c.ui.Result(done, func(w io.Writer) { fmt.Fprintln(w, ui.Clean(text)) }); err != nil {
		return err
	}
	if done.Overridden != "" && !strings.Contains(text, done.Overridden) {
		c.ui.Say("but %s", done.Overridden)
	}
	return nil
}

// show is a value in one line, cut where it would not fit there.
func show(v *action.Shown) string {
	const most = 200
	if v == nil {
		return "nothing"
	}
	text := []rune(string(compose.AppendFlow(nil, v.V)))
	if len(text) > most {
		return string(text[:most]) + "…"
	}
	return string(text)
}

// place is the file that was edited, and the line where that is known.
func place(done *action.Edit) string {
	if done.Line == 0 {
		return done.File
	}
	return fmt.Sprintf("%s:%d", done.File, done.Line)
}

func (r *runner) configSchema(c *configRun) error {
	if _, err := c.args(0, "no arguments"); err != nil {
		return err
	}
	opts, err := c.editOptions()
	if err != nil {
		return err
	}
	if !c.cli.Bool("install") {
		if c.cli.Bool("home") {
			return fault.Errorf(fault.Other, "--home goes with --install: the schema that is printed is the same")
		}
		composed, err := action.Look(c.ctx, c.env, c.layers)
		if err != nil {
			return err
		}
		for _, w := range composed.Warnings {
			r.ui.Warn(w)
		}
		return r.printSchema(c.env, composed)
	}
	done, err := action.InstallSchema(c.ctx, c.env, opts)
	if err != nil {
		return err
	}
	for _, w := range done.Warnings {
		c.ui.Warn(w)
	}
	return c.ui.Result(done, func(w io.Writer) {
		if done.Changed {
			fmt.Fprintf(w, "wrote %s, and %s names it\n", done.Schema, done.File)
		} else {
			fmt.Fprintf(w, "%s is up to date\n", done.Schema)
		}
	})
}
