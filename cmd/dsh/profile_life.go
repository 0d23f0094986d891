package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"dsh/internal/action"
	"dsh/internal/fault"
	"dsh/internal/launch"
	"dsh/internal/profile"
	"dsh/internal/ui"
)

// chosen is the profile that the user chose for command lines that name none.
func (r *runner) chosen() (string, error) {
	home, err := profile.ResolveHome("", r.getenv)
	if err != nil {
		return "", err
	}
	name, ok, err := profile.Chosen(home)
	if err != nil || !ok {
		return "", err
	}
	if _, err := profile.LookupTemplate(name.String()); err == nil {
		return name.String(), nil // it is made when it is first used
	}
	dir := home.ProfileDir(name)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		err := fault.Errorf(fault.Other, "profile %q, which %s names, does not exist", name, home.ChosenPath())
		if home.Kept(name) {
			return "", fault.WithHint(err, "dsh profile undelete %s brings it back; another is chosen with dsh profile use NAME, none with dsh profile use --unset",
				fault.ShellWord(name.String()))
		}
		return "", fault.WithHint(err, "choose another with dsh profile use NAME, or none with dsh profile use --unset")
	} else if err != nil {
		return "", fmt.Errorf("looking for the profile that %s names: %w", home.ChosenPath(), err)
	}
	return name.String(), nil
}

// profileName is the profile that a command of ours acts on: the one that
// --profile, the environment or the user's choice names, or the default.
func (r *runner) profileName() (profile.Name, error) {
	if r.invocation.Problem != nil {
		return profile.Name{}, r.invocation.Problem
	}
	return profile.ParseName(r.invocation.Profile)
}

// profileLifeVerbs make profiles, show them and take them away.
func (r *runner) profileLifeVerbs() []*cli.Command {
	offline := &cli.BoolFlag{DisableDefaultText: true, Name: "offline", Usage: "use nothing but the store"}
	registry := &cli.StringFlag{Name: "registry", Usage: "the npm registry to ask, instead of .npmrc's"}
	return []*cli.Command{
		r.profileVerb("list", "list the profiles, and which one is the default", " ", (*profileRun).list,
			&cli.BoolFlag{DisableDefaultText: true, Name: "removed", Usage: "also those that can be brought back"}),
		r.profileVerb("show", "show what a profile is made of", "[NAME]", (*profileRun).show),
		r.profileVerb("path", "print the directory of a profile", "[NAME]", (*profileRun).path),
		r.profileVerb("which", "say which home and which profile would be used, and why", "[NAME]", (*profileRun).which),
		r.profileVerb("use", "choose the profile for commands that name none", "NAME", (*profileRun).use,
			&cli.BoolFlag{DisableDefaultText: true, Name: "unset", Usage: "choose none, so that it is default again"}),
		r.profileVerb("create", "make a profile without starting it", "NAME", (*profileRun).create,
			&cli.StringFlag{Name: "template", Usage: "the shipped profile whose bundles it starts from"},
			&cli.StringSliceFlag{Name: "bundles", Usage: "its bundles, separated by commas: in-box ones, and packages to install"},
			&cli.BoolFlag{DisableDefaultText: true, Name: "force", Usage: "make it though it would not start"},
			offline, registry),
		r.profileVerb("copy", "make a profile that is the same as another", "FROM TO", (*profileRun).copy, offline, registry),
		r.profileVerb("rename", "give a profile another name", "FROM TO", (*profileRun).rename, offline, registry),
		r.profileVerb("remove", "take profiles away; they can be brought back", "NAME…", (*profileRun).remove,
			&cli.BoolFlag{DisableDefaultText: true, Name: "yes", Aliases: []string{"y"}, Usage: "do not ask"},
			&cli.BoolFlag{DisableDefaultText: true, Name: "if-exists", Usage: "a profile that is not there is no error"}),
		r.profileVerb("diff", "compare profiles or saved states, or a profile with the state before its last change", "A [B]", (*profileRun).diff,
			showSecretsFlag(), &cli.BoolFlag{DisableDefaultText: true, Name: "exit-code", Usage: "exit with 1 if they differ"}),
	}
}

// warn prints warnings.
func (p *profileRun) warn(warnings []string) {
	for _, w := range warnings {
		p.ui.Warn(w)
	}
}

// only is the profile of a verb that takes one and nothing else.
func (p *profileRun) only() (profile.Name, error) {
	name, err := p.named()
	if err == nil {
		err = p.done()
	}
	return name, err
}

// given is [profileRun.only] for a verb whose profile has to be named.
func (p *profileRun) given() (profile.Name, error) {
	if len(p.args) == 0 && p.invocation.Implied {
		return profile.Name{}, fault.Errorf(fault.Other, "profile %s needs the name of a profile", p.cli.Command.Name)
	}
	return p.only()
}

// pair is the two profiles of copy and rename. --profile may name the first.
func (p *profileRun) pair() (from, to profile.Name, err error) {
	texts := p.args
	if !p.invocation.Implied && (len(texts) == 1 || len(texts) > 0 && texts[0] != p.invocation.Profile) {
		texts = append([]string{p.invocation.Profile}, texts...)
	}
	if len(texts) != 2 {
		verb := p.cli.Command.Name
		return from, to, fault.WithHint(fault.Errorf(fault.Other, "profile %s takes two names, and got %d", verb, len(texts)), "dsh profile %s FROM TO", verb)
	}
	if from, err = profile.ParseName(texts[0]); err == nil {
		to, err = profile.ParseName(texts[1])
	}
	return from, to, err
}

func (p *profileRun) list() error {
	if err := p.done(); err != nil {
		return err
	}
	if p.invocation.Problem != nil {
		p.ui.Warn(p.invocation.Problem.Error() + "; " + fault.Hint(p.invocation.Problem))
	}
	list, err := action.ListProfiles(p.env, p.current(), p.cli.Bool("removed"))
	if err != nil {
		return err
	}
	p.warn(list.Warnings)
	return p.ui.Result(list, func(w io.Writer) { p.printList(w, list) })
}

// current is the profile that counts where none is named, "" where that cannot
// be told. A command line that names one does not say.
func (p *profileRun) current() string {
	if p.invocation.Implied {
		return p.invocation.Profile
	}
	if name := p.env.Getenv("DSH_PROFILE"); strings.TrimSpace(name) != "" {
		return name
	}
	name, err := p.chosen()
	if err != nil {
		return ""
	}
	return cmp.Or(name, launch.DefaultProfile)
}

func (p *profileRun) printList(w io.Writer, list *action.ProfileList) {
	lines := [][]string{{"  PROFILE", "STATE", "BUNDLES", "DEPENDENCIES", "LAST CHANGE"}}
	var dimmed []bool
	for _, info := range list.Profiles {
		mark, changed := "  ", ""
		if info.Default {
			mark = "* "
		}
		if info.Changed != nil {
			changed = localTime(*info.Changed)
		}
		line := []string{mark + ui.Clean(info.Name), info.State, "", "", changed}
		switch info.State {
		case action.ProfileOK, action.ProfileUnfinished:
			line[2], line[3] = strconv.Itoa(info.Bundles), strconv.Itoa(info.Dependencies)
		case action.ProfileNotMade:
			line[2] = strconv.Itoa(info.Bundles)
		}
		lines = append(lines, line)
		dimmed = append(dimmed, info.State == action.ProfileNotMade || info.State == action.ProfileRemoved)
	}
	var text strings.Builder
	table(&text, lines)
	n := -1 // the line of titles is no profile
	for line := range strings.Lines(text.String()) {
		line = strings.TrimSuffix(line, "\n")
		if n >= 0 && dimmed[n] {
			line = p.ui.Dim(line)
		}
		fmt.Fprintln(w, line)
		n++
	}
	if list.Removed > 0 && !p.cli.Bool("removed") {
		fmt.Fprintf(w, "\n%d more can be brought back: dsh profile list --removed\n", list.Removed)
	}
	for _, info := range list.Profiles {
		if info.Problem != "" {
			fmt.Fprintf(w, "\n%s: %s\n", p.ui.Red(ui.Clean(info.Name)), ui.Clean(info.Problem))
			fmt.Fprintf(w, "  hint: dsh profile repair %s\n", fault.ShellWord(info.Name))
		}
	}
}

func (p *profileRun) show() error {
	name, err := p.only()
	if err != nil {
		return err
	}
	d, err := action.ShowProfile(p.ctx, p.env, name, p.current())
	if err != nil {
		return err
	}
	p.warn(d.Warnings)
	return p.ui.Result(d, func(w io.Writer) { p.printDetails(w, d) })
}

func (p *profileRun) printDetails(w io.Writer, d *action.ProfileDetails) {
	used := ""
	if d.Default {
		used = ", and the one for commands that name none"
	}
	fmt.Fprintf(w, "%s: %s%s\n", p.ui.Bold("profile "+ui.Clean(d.Name)), d.State, used)
	if d.Problem != "" {
		fmt.Fprintf(w, "  %s\n", ui.Clean(d.Problem))
	}
	lines := [][]string{{"  directory", ui.Clean(d.Dir)}}
	if d.Installation != "" && d.ChosenBy != action.ByNobody {
		lines = append(lines, []string{"  runs on", ui.Clean(d.Installation)})
	}
	if d.Package != "" {
		lines = append(lines, []string{"  package", ui.Clean(d.Package)})
	}
	lines = append(lines,
		[]string{"  patch file", patchLine(d.Patch)},
		[]string{"  lockfile", cmp.Or(ui.Clean(d.Lockfile), "none")},
		[]string{"  node_modules", madeModules(d.NodeModules)},
		[]string{"  history", historyLine(d)},
		[]string{"  on the disk", diskLine(d)})
	for _, dir := range d.Kept {
		lines = append(lines, []string{"  kept", ui.Clean(dir)})
	}
	table(w, lines)
	if len(d.BundleList) > 0 {
		fmt.Fprintln(w, "\nbundles, the last one wins:")
		lines = nil
		for i, b := range d.BundleList {
			lines = append(lines, []string{fmt.Sprintf("  %d", i+1), ui.Clean(b.Name), ui.Clean(b.Version), b.State, ui.Clean(b.Source)})
		}
		table(w, lines)
	}
	if len(d.Depends) > 0 {
		fmt.Fprintln(w, "\ndependencies:")
		lines = nil
		for _, dep := range d.Depends {
			lines = append(lines, []string{"  " + ui.Clean(dep.Name), ui.Clean(dep.Spec), cmp.Or(ui.Clean(dep.Version), "not installed"), dep.Kind})
		}
		table(w, lines)
	}
}

func patchLine(patch action.PatchInfo) string {
	switch {
	case patch.Bytes < 0:
		return "none"
	case patch.Problem != "":
		return fmt.Sprintf("%s, which cannot be read: %s", ui.Bytes(patch.Bytes), ui.Clean(patch.Problem))
	case patch.Patches == 1:
		return ui.Bytes(patch.Bytes) + ", 1 patch"
	}
	return fmt.Sprintf("%s, %d patches", ui.Bytes(patch.Bytes), patch.Patches)
}

func madeModules(by string) string {
	if by == "" {
		return "none"
	}
	return "laid out by " + by
}

func historyLine(d *action.ProfileDetails) string {
	if d.Generations == 0 {
		return "none yet; it begins with the next change"
	}
	return fmt.Sprintf("%s, the newest is %d of %s", counted(d.Generations, "saved state"), d.Newest, localTime(*d.Changed))
}

func diskLine(d *action.ProfileDetails) string {
	shared := ""
	if d.NodeModules == "dsh" {
		shared = " (most of it shared with the store)"
	}
	return fmt.Sprintf("%s, node_modules %s%s, history and kept directories %s",
		ui.Bytes(d.Disk.Files), ui.Bytes(d.Disk.NodeModules), shared, ui.Bytes(d.Disk.State))
}

func (p *profileRun) path() error {
	name, err := p.only()
	if err != nil {
		return err
	}
	dir := p.env.Home.ProfileDir(name)
	return p.ui.Result(map[string]string{"profile": name.String(), "dir": dir}, func(w io.Writer) { fmt.Fprintln(w, dir) })
}

func (p *profileRun) which() error {
	name, err := p.named()
	if err == nil {
		err = p.done()
	}
	if err != nil {
		return err
	}
	source := "the command line"
	if p.invocation.Implied && name.String() == p.invocation.Profile && p.cli.NArg() == 0 {
		switch p.invocation.Source {
		case launch.FromEnvironment:
			source = "$DSH_PROFILE"
		case launch.FromChoice:
			source = "dsh profile use"
		default:
			source = "the default"
		}
	}
	found, err := action.WhichProfileIs(p.env, name, source)
	if err != nil {
		return err
	}
	p.warn(found.Warnings)
	return p.ui.Result(found, func(w io.Writer) {
		state := ""
		if !found.Profile.Exists {
			state = fmt.Sprintf("; it is not made yet, and would be made from the template %s", found.Profile.Made)
		}
		fmt.Fprintf(w, "home %s (%s)\n", ui.Clean(found.Home.Dir), found.Home.Source)
		fmt.Fprintf(w, "profile %s (%s), in %s%s\n", ui.Clean(found.Profile.Name), found.Profile.Source, ui.Clean(found.Profile.Dir), state)
	})
}

func (p *profileRun) use() error {
	if p.cli.Bool("unset") {
		if len(p.args) > 0 || !p.invocation.Implied {
			return fault.Errorf(fault.Other, "profile use takes a name or --unset")
		}
		was, err := action.UnchooseProfile(p.env)
		if err != nil {
			return err
		}
		return p.ui.Result(map[string]any{"chosen": "", "changed": was}, func(w io.Writer) {
			if was {
				fmt.Fprintf(w, "commands that name no profile act on %s again\n", launch.DefaultProfile)
			} else {
				fmt.Fprintln(w, "no profile was chosen")
			}
		})
	}
	name, err := p.given()
	if err != nil {
		return err
	}
	changed, err := action.ChooseProfile(p.env, name)
	if err != nil {
		return err
	}
	if by := p.env.Getenv("DSH_PROFILE"); strings.TrimSpace(by) != "" && by != name.String() {
		p.ui.Warn(fmt.Sprintf("$DSH_PROFILE names %s, and counts more", by))
	}
	return p.ui.Result(map[string]any{"chosen": name.String(), "changed": changed}, func(w io.Writer) {
		fmt.Fprintf(w, "commands that name no profile act on %s; a start still needs its name\n", ui.Clean(name.String()))
	})
}

func (p *profileRun) create() error {
	name, err := p.given()
	if err != nil {
		return err
	}
	var bundles []string
	for _, list := range p.cli.StringSlice("bundles") {
		for text := range strings.SplitSeq(list, ",") {
			if text = strings.TrimSpace(text); text == "" {
				return fault.Errorf(fault.Other, "--bundles has an empty name in %q", list)
			}
			bundles = append(bundles, text)
		}
	}
	progress := p.installing()
	opts := action.CreateOptions{PluginOptions: p.pluginOptions(name, progress), Template: p.cli.String("template"), Bundles: bundles}
	opts.Force = p.cli.Bool("force")
	if p.cli.IsSet("template") && opts.Template == "" {
		return fault.Errorf(fault.Other, "--template needs a name")
	}
	made, err := action.Create(p.ctx, p.env, opts)
	return p.made(name, progress, made, err)
}

func (p *profileRun) copy() error {
	from, to, err := p.pair()
	if err != nil {
		return err
	}
	progress := p.installing()
	made, err := action.CopyProfile(p.ctx, p.env, p.pluginOptions(to, progress), from)
	return p.made(to, progress, made, err)
}

// made prints what was made.
func (p *profileRun) made(name profile.Name, progress *installProgress, made *action.Made, err error) error {
	progress.Stop()
	if err != nil {
		return err
	}
	p.warn(made.Warnings)
	p.warnReserved(name)
	for _, note := range made.Notes {
		p.ui.Say("%s", note)
	}
	p.references(made.From, "that is still the directory of the other profile", made.References)
	return p.ui.Result(made, func(w io.Writer) {
		if made.From != "" {
			fmt.Fprintf(w, "made profile %s in %s, a copy of %s\n", ui.Clean(made.Profile), ui.Clean(made.Dir), ui.Clean(made.From))
		} else {
			fmt.Fprintf(w, "made profile %s in %s\n", ui.Clean(made.Profile), ui.Clean(made.Dir))
		}
		fmt.Fprintf(w, "bundles: %s\n", cmp.Or(ui.Clean(strings.Join(made.Bundles, ", ")), "none"))
		if made.Tree.Added > 0 {
			fmt.Fprintf(w, "packages: %d\n", made.Tree.Added)
		}
		printBuilds(w, made.Profile, made.Builds)
	})
}

// references warns of lines that name the directory of a profile.
func (p *profileRun) references(name, what string, references []action.Reference) {
	for _, r := range references {
		p.ui.Warn(fmt.Sprintf("%s names the directory of %s: %s", r, name, what))
	}
}

func (p *profileRun) rename() error {
	from, to, err := p.pair()
	if err != nil {
		return err
	}
	progress := p.installing()
	done, err := action.RenameProfile(p.ctx, p.env, p.pluginOptions(to, progress), from)
	progress.Stop()
	if err != nil {
		return err
	}
	p.warn(done.Warnings)
	p.warnReserved(to)
	for _, note := range done.Notes {
		p.ui.Say("%s", note)
	}
	p.references(done.From, "edit it, for that directory is gone", done.References)
	if by := p.env.Getenv("DSH_PROFILE"); by == done.From {
		p.ui.Warn(fmt.Sprintf("$DSH_PROFILE still names %s", by))
	}
	return p.ui.Result(done, func(w io.Writer) {
		fmt.Fprintf(w, "renamed profile %s to %s, now in %s\n", ui.Clean(done.From), ui.Clean(done.Profile), ui.Clean(done.Dir))
		if done.Chosen {
			fmt.Fprintln(w, "it is still the profile for commands that name none")
		}
	})
}

func (p *profileRun) remove() error {
	names, err := p.removable()
	if err != nil {
		return err
	}
	if len(names) > 0 && !p.cli.Bool("yes") {
		yes, err := p.ui.Ask(p.ctx, fmt.Sprintf("remove profile %s? dsh profile undelete brings a removed profile back.", joined(names)))
		if err != nil {
			return err
		}
		if !yes {
			p.ui.Say("nothing was removed")
			return &saidError{fault.Other}
		}
	}
	all := []*action.RemovedProfile{}
	for _, name := range names {
		gone, err := action.RemoveProfile(p.ctx, p.env, name)
		if err != nil {
			for _, done := range all {
				p.ui.Say("removed profile %s", done.Profile)
			}
			return err
		}
		p.warn(gone.Warnings)
		p.references(gone.Profile, "that directory is gone", gone.References)
		all = append(all, gone)
	}
	return p.ui.Result(all, func(w io.Writer) {
		for _, gone := range all {
			if !gone.Removed {
				fmt.Fprintf(w, "profile %s is not there\n", ui.Clean(gone.Profile))
				continue
			}
			fmt.Fprintf(w, "removed profile %s; to bring it back: dsh profile undelete %s\n", ui.Clean(gone.Profile), fault.ShellWord(gone.Profile))
			if gone.Chosen {
				fmt.Fprintf(w, "it was the profile for commands that name none; that is %s again\n", launch.DefaultProfile)
			}
		}
	})
}

// removable is the profiles to remove.
func (p *profileRun) removable() ([]profile.Name, error) {
	texts := p.args
	if !p.invocation.Implied && !slices.Contains(texts, p.invocation.Profile) {
		texts = append([]string{p.invocation.Profile}, texts...)
	}
	if len(texts) == 0 {
		return nil, fault.WithHint(fault.Errorf(fault.Other, "profile remove needs the name of a profile"), "dsh profile list shows them")
	}
	names := make([]profile.Name, len(texts))
	for i, text := range texts {
		var err error
		if names[i], err = profile.ParseName(text); err != nil {
			return nil, err
		}
	}
	there, err := action.CheckRemovable(p.env, names, p.cli.Bool("if-exists"))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if !slices.Contains(there, name) {
			p.ui.Say("profile %s is not there", name)
		}
	}
	return there, nil
}

// joined is names in one line.
func joined(names []profile.Name) string {
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = name.String()
	}
	return strings.Join(texts, ", ")
}

func (p *profileRun) diff() error {
	d, err := p.compared()
	if err != nil {
		return err
	}
	p.warn(d.Warnings)
	if err := p.ui.Result(d, func(w io.Writer) { p.printDiff(w, d) }); err != nil {
		return err
	}
	if d.Differ && p.cli.Bool("exit-code") {
		return &saidError{fault.Other}
	}
	return nil
}

func (p *profileRun) compared() (*action.ProfileDiff, error) {
	texts, secrets := p.args, p.cli.Bool("show-secrets")
	if len(texts) == 0 {
		name, err := p.profileName()
		if err != nil {
			return nil, err
		}
		texts = []string{name.String()}
	} else if !p.invocation.Implied {
		return nil, fault.WithHint(fault.Errorf(fault.Other, "profile diff takes names as words, and no --profile beside them"), "dsh profile diff A [B]")
	}
	if len(texts) > 2 {
		return nil, fault.WithHint(fault.Errorf(fault.Other, "profile diff compares two profiles, and got %d words", len(texts)),
			"dsh profile diff A [B], where A and B are profiles, or generations as NAME@ID")
	}
	sides := make([]action.StateSide, len(texts))
	for i, text := range texts {
		var err error
		if sides[i], err = action.ParseStateSide(p.env, text); err != nil {
			return nil, err
		}
	}
	switch {
	case len(sides) == 2:
		return action.DiffProfiles(p.ctx, p.env, sides[0], sides[1], secrets)
	case sides[0].Generation != 0: // what became of that state
		return action.DiffProfiles(p.ctx, p.env, sides[0], action.StateSide{Name: sides[0].Name}, secrets)
	}
	return action.DiffLastChange(p.ctx, p.env, sides[0].Name, secrets)
}

func (p *profileRun) printDiff(w io.Writer, d *action.ProfileDiff) {
	fmt.Fprintf(w, "from %s to %s\n", ui.Clean(d.A), ui.Clean(d.B))
	if !d.Differ {
		fmt.Fprintln(w, "no differences")
		return
	}
	printChanges(w, "  ", d.State)
	if d.Patch != "" {
		fmt.Fprintf(w, "\n%s", ui.Clean(d.Patch))
	}
	if d.Config != nil && d.Config.Differ {
		fmt.Fprintln(w, "\nwhat they compose to:")
		printRowsApart(w, d.Config)
	}
}
