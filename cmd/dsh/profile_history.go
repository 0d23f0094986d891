package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"dsh/internal/action"
	"dsh/internal/fault"
	"dsh/internal/install"
	"dsh/internal/profile"
	"dsh/internal/ui"
)

// profileHistoryVerbs are the saved states of profiles, and the way back to
// them.
func (r *runner) profileHistoryVerbs() []*cli.Command {
	offline := &cli.BoolFlag{DisableDefaultText: true, Name: "offline", Usage: "use nothing but the store"}
	registry := &cli.StringFlag{Name: "registry", Usage: "the npm registry to ask, instead of .npmrc's"}
	home := &cli.BoolFlag{DisableDefaultText: true, Name: "home", Usage: "the layer of the home, and no profile"}
	return []*cli.Command{
		r.profileVerb("history", "list the saved states, and what each command changed", "[NAME]", (*profileRun).history, home),
		r.profileVerb("rollback", "go back to a saved state: N changes back, or the one before the last", "[NAME] [N]", (*profileRun).rollback,
			&cli.IntFlag{Name: "to", Usage: "the id of the state, as profile history shows it", DefaultText: "N changes back"},
			&cli.BoolFlag{DisableDefaultText: true, Name: "dry-run", Usage: "say what would change, and change nothing"},
			home, offline, registry),
		r.profileVerb("pin", "keep a saved state for ever", "ID [NAME]", (*profileRun).pin,
			&cli.BoolFlag{DisableDefaultText: true, Name: "unpin", Usage: "let it go when it is old"}, home),
		r.profileVerb("undelete", "bring a removed profile back", "NAME", (*profileRun).undelete, offline, registry),
	}
}

// homeOnly reports whether the verb is about the layer of the home; then no
// profile may be named.
func (p *profileRun) homeOnly() (bool, error) {
	if !p.cli.Bool("home") {
		return false, nil
	}
	if !p.invocation.Implied {
		return false, fault.Errorf(fault.Other, "--home is about the layer of all profiles: name none with it")
	}
	return true, p.done()
}

// pluginOptions are what restoring packages takes.
func (p *profileRun) pluginOptions(name profile.Name, progress *installProgress) action.PluginOptions {
	return action.PluginOptions{
		Name: name, Offline: p.cli.Bool("offline"), Registry: p.cli.String("registry"), Events: progress.events(),
	}
}

func (p *profileRun) history() error {
	list, err := p.generations()
	if err != nil {
		return err
	}
	for _, w := range list.Warnings {
		p.ui.Warn(w)
	}
	return p.ui.Result(list, func(w io.Writer) { p.printHistory(w, list) })
}

func (p *profileRun) generations() (*action.Generations, error) {
	home, err := p.homeOnly()
	if err != nil {
		return nil, err
	}
	if home {
		return action.ListHomeGenerations(p.ctx, p.env)
	}
	name, err := p.named()
	if err == nil {
		err = p.done()
	}
	if err != nil {
		return nil, err
	}
	return action.ListGenerations(p.ctx, p.env, name)
}

// subjectOf is a profile, or the home's layer, in a sentence.
func subjectOf(profile string) string {
	if profile == "" {
		return "the home layer"
	}
	return "profile " + profile
}

// rollbackCommand takes one change of a profile, or of the home's layer, back.
func rollbackCommand(profile string, args ...string) string {
	words := []string{"dsh", "profile", "rollback", profile}
	if profile == "" {
		words[3] = "--home"
	}
	return fault.ShellWords(append(words, args...)...)
}

func (p *profileRun) printHistory(w io.Writer, list *action.Generations) {
	subject := ui.Clean(subjectOf(list.Profile))
	switch {
	case len(list.Generations) == 0:
		fmt.Fprintf(w, "%s has no saved states yet; the first ones come with the next change\n", subject)
		return
	case list.State == action.StateRemoved:
		fmt.Fprintf(w, "%s is removed; this brings it back: %s\n", subject, fault.ShellWords("dsh", "profile", "undelete", list.Profile))
	case list.State == action.StateEdited:
		fmt.Fprintf(w, "%s was edited by hand since generation %d; this takes it back: %s\n", subject, list.Current, rollbackCommand(list.Profile))
		printChanges(w, "    ", list.Edited)
	default:
		fmt.Fprintf(w, "%s is as generation %d\n", subject, list.Current)
	}
	for _, g := range list.Generations {
		line := fmt.Sprintf("%4d  %s  %s", g.ID, localTime(g.Saved), p.ui.Bold(ui.Clean(madeBy(g))))
		if g.Pinned {
			line += "  (pinned)"
		}
		fmt.Fprintln(w, line)
		printChanges(w, "      ", g.Changes)
	}
}

// madeBy is what made a state.
func madeBy(g action.GenerationInfo) string {
	if g.Command == "" {
		return "found as it is: edited by hand, or from before"
	}
	return g.Command
}

// localTime is a time for people to read, to the minute.
func localTime(t time.Time) string { return t.Local().Format("2006-01-02 15:04") }

// printChanges tells how two states differ, one fact a line.
func printChanges(w io.Writer, indent string, c *action.StateChange) {
	for _, line := range changeLines(c) {
		fmt.Fprintln(w, indent+ui.Clean(line))
	}
}

func changeLines(c *action.StateChange) []string {
	if c == nil {
		return nil
	}
	var lines []string
	for _, d := range c.Dependencies {
		lines = append(lines, dependencyLine(d))
	}
	for _, list := range []struct {
		what  string
		names []string
	}{{"layers added: ", c.Bundles.Added}, {"layers removed: ", c.Bundles.Removed}} {
		if len(list.names) > 0 {
			lines = append(lines, list.what+strings.Join(list.names, ", "))
		}
	}
	if c.Bundles.Reordered {
		lines = append(lines, "layers in another order")
	}
	known := len(lines) > 0
	for _, f := range c.Files {
		// What is said already needs no lines to be counted.
		if known && !f.Unreadable && (f.Path == "package.json" || f.Path == install.LockName) {
			continue
		}
		lines = append(lines, fileLine(f))
	}
	return lines
}

func dependencyLine(d action.DependencyChange) string {
	switch {
	case d.Before == nil:
		return fmt.Sprintf("added %s %s", d.Name, shownVersion(d.After))
	case d.After == nil:
		return fmt.Sprintf("removed %s %s", d.Name, shownVersion(d.Before))
	case d.Before.Version != "" && d.After.Version != "" && d.Before.Version != d.After.Version:
		return fmt.Sprintf("%s %s → %s", d.Name, d.Before.Version, d.After.Version)
	case d.Before.Spec != d.After.Spec:
		return fmt.Sprintf("%s %s → %s in package.json", d.Name, d.Before.Spec, d.After.Spec)
	default:
		return fmt.Sprintf("%s moved in package.json", d.Name)
	}
}

// shownVersion is the locked version, or what package.json asks for.
func shownVersion(d *action.DependencyInfo) string {
	if d.Version == "" {
		return d.Spec
	}
	return d.Version
}

func fileLine(f action.FileChange) string {
	line := f.Path
	switch f.Change {
	case action.FileAdded, action.FileRemoved:
		line = f.Change + " " + line
	case action.Unkept:
		line += " is not kept by one of the two, for its size"
	}
	if f.Added > 0 {
		line += fmt.Sprintf(" +%d", f.Added)
	}
	if f.Removed > 0 {
		line += fmt.Sprintf(" -%d", f.Removed)
	}
	if f.Unreadable {
		line += ", which cannot be read"
	}
	return line
}

// rollback reads [NAME] [N]. A number alone is N; where a profile is called so
// as well, nobody can know which of the two is meant.
func (p *profileRun) rollback() error {
	opts := action.RollbackOptions{To: p.cli.Int("to"), DryRun: p.cli.Bool("dry-run"), Back: 1}
	if p.cli.IsSet("to") && opts.To < 1 {
		return fault.Errorf(fault.Other, "--to takes the id of a saved state, a number from 1")
	}
	back, err := p.changesBack()
	if err != nil {
		return err
	}
	if back != 0 {
		opts.Back = back
		if opts.To != 0 {
			return fault.Errorf(fault.Other, "--to names the state, and %d is how many changes to go back: give one of them", back)
		}
	}
	home, err := p.homeOnly()
	if err != nil {
		return err
	}
	progress := p.installing()
	defer progress.Stop()
	var done *action.RolledBack
	if home {
		done, err = action.RollbackHome(p.ctx, p.env, opts)
	} else {
		var name profile.Name
		if name, err = p.named(); err == nil {
			err = p.done()
		}
		if err != nil {
			return err
		}
		opts.PluginOptions = p.pluginOptions(name, progress)
		done, err = action.Rollback(p.ctx, p.env, opts)
	}
	progress.Stop()
	if err != nil {
		return err
	}
	return p.rolledBack(done)
}

// changesBack takes N off the end of the arguments, 0 if it is not there.
func (p *profileRun) changesBack() (int, error) {
	last := len(p.args) - 1
	if last < 0 {
		return 0, nil
	}
	text := p.args[last]
	n, err := strconv.Atoi(text)
	alone := last == 0 && p.invocation.Implied && !p.cli.Bool("home")
	switch {
	case err != nil && last == 0, n < 1 && alone && p.isProfile(text):
		return 0, nil // a name
	case err != nil || n < 1:
		return 0, fault.WithHint(fault.Errorf(fault.Other, "profile rollback takes a number of changes from 1, and got %q", text),
			"the number comes last: dsh profile rollback [NAME] [N]")
	case alone && p.isProfile(text):
		return 0, fault.WithHint(fault.Errorf(fault.Other, "%s is both a number of changes and a profile", text),
			"for the profile: dsh profile rollback --profile %s; for the number: dsh profile rollback --profile %s %s",
			fault.ShellWord(text), fault.ShellWord(p.invocation.Profile), text)
	}
	p.args = p.args[:last]
	return n, nil
}

// isProfile says whether a word is the name of a profile that is, or was, there.
func (p *profileRun) isProfile(word string) bool {
	name, err := profile.ParseName(word)
	return err == nil && action.Known(p.env, name)
}

func (p *profileRun) rolledBack(done *action.RolledBack) error {
	for _, w := range done.Warnings {
		p.ui.Warn(w)
	}
	if done.Replaced != "" {
		p.ui.Say("node_modules was made by %s and has been made anew", done.Replaced)
	}
	if err := p.ui.Result(done, func(w io.Writer) { printRollback(w, done) }); err != nil {
		return err
	}
	if done.Changed && done.Saved != 0 && !done.Removed {
		p.ui.Say("to undo this: %s", rollbackCommand(done.Profile))
	}
	return nil
}

func printRollback(w io.Writer, done *action.RolledBack) {
	subject := ui.Clean(subjectOf(done.Profile))
	to := fmt.Sprintf("generation %d of %s (%s)", done.To.ID, localTime(done.To.Saved), ui.Clean(madeBy(done.To)))
	switch {
	case !done.Changed && !done.DryRun, done.DryRun && done.Changes.Empty() && !done.Removed:
		fmt.Fprintf(w, "%s is as %s already; nothing was changed\n", subject, to)
		return
	case done.DryRun:
		fmt.Fprintf(w, "%s would go back to %s\n", subject, to)
	case done.Removed:
		fmt.Fprintf(w, "%s is back, as %s\n", subject, to)
	default:
		fmt.Fprintf(w, "%s is back at %s\n", subject, to)
	}
	if !done.Removed {
		printChanges(w, "  ", done.Changes)
	}
	if len(done.Missing) > 0 {
		verb := "fetched"
		if done.DryRun {
			verb = "to be fetched"
		}
		fmt.Fprintf(w, "  %s: %s\n", verb, ui.Clean(someOf(done.Missing)))
	}
	printBuilds(w, done.Profile, done.Builds)
	if done.DryRun {
		fmt.Fprintln(w, "nothing was changed")
	}
}

// someOf is a list for people: all of a few, the first of many.
func someOf(list []string) string {
	const most = 5
	if len(list) <= most {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%d packages: %s, …", len(list), strings.Join(list[:most], ", "))
}

func (p *profileRun) pin() error {
	if len(p.args) == 0 {
		return fault.WithHint(fault.Errorf(fault.Other, "profile pin needs the id of a saved state"), "dsh profile history shows the ids")
	}
	id, err := strconv.Atoi(p.args[0])
	if err != nil || id < 1 {
		return fault.WithHint(fault.Errorf(fault.Other, "%q is no id of a saved state", p.args[0]), "the id comes first: dsh profile pin ID [NAME]")
	}
	p.args = p.args[1:]
	home, err := p.homeOnly()
	if err != nil {
		return err
	}
	pinned := !p.cli.Bool("unpin")
	var done *action.Pinned
	if home {
		done, err = action.PinHomeGeneration(p.ctx, p.env, id, pinned)
	} else {
		var name profile.Name
		if name, err = p.named(); err == nil {
			err = p.done()
		}
		if err != nil {
			return err
		}
		done, err = action.PinGeneration(p.ctx, p.env, name, id, pinned)
	}
	if err != nil {
		return err
	}
	return p.ui.Result(done, func(w io.Writer) {
		state := "kept until it is unpinned"
		if !pinned {
			state = "kept like any other"
		}
		if !done.Changed {
			state += " already"
		}
		fmt.Fprintf(w, "generation %d of %s is %s\n", id, ui.Clean(subjectOf(done.Profile)), state)
	})
}

func (p *profileRun) undelete() error {
	if len(p.args) == 0 && p.invocation.Implied {
		return fault.WithHint(fault.Errorf(fault.Other, "profile undelete needs the name of a profile"), "dsh profile list --removed shows the removed ones")
	}
	name, err := p.named()
	if err == nil {
		err = p.done()
	}
	if err != nil {
		return err
	}
	progress := p.installing()
	defer progress.Stop()
	done, err := action.Undelete(p.ctx, p.env, p.pluginOptions(name, progress))
	progress.Stop()
	if err != nil {
		return err
	}
	return p.rolledBack(done)
}
