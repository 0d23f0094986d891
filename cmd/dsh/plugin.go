package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"dsh/internal/action"
	"dsh/internal/fault"
	"dsh/internal/install"
	"dsh/internal/profile"
)

// pluginCommand is `dsh plugin`: the package commands that people know from
// pnpm, with its names for verbs and flags.
func (r *runner) pluginCommand() *cli.Command {
	return &cli.Command{
		Name:      "plugin",
		Usage:     "add, remove, update and list the packages of a profile",
		ArgsUsage: " ",
		Description: "Packages that declare a layer become layers of the profile. Scripts of packages run\n" +
			"only when you approved them. --json prints one JSON document.",
		Flags:           []cli.Flag{profileFlag()},
		HideHelpCommand: true,
		OnUsageError:    r.badFlag,
		Subcommands: []*cli.Command{
			r.verb("add", nil, "install packages and make the bundles among them layers", "<package>...", r.pluginAdd,
				kindFlags(), saveFlags(), changeFlags(), networkFlags(), expectFlags(), []cli.Flag{forceFlag(), catalogFlag()}, agentPluginFlags()),
			r.verb("remove", []string{"rm", "uninstall", "un"}, "take packages and their layers out", "<name>...", r.pluginRemove,
				changeFlags(), networkFlags(), []cli.Flag{forceFlag(),
					&cli.BoolFlag{DisableDefaultText: true, Name: "strict", Usage: "fail for names that the profile does not depend on"},
					&cli.BoolFlag{DisableDefaultText: true, Name: "purge", Usage: "delete the data of Agent Plugins, too"}}),
			r.verb("install", []string{"i"}, "install what package.json and the lockfile say", " ", r.pluginInstall,
				kindFlags(), saveFlags(), changeFlags(), networkFlags(), []cli.Flag{
					&cli.BoolFlag{DisableDefaultText: true, Name: "frozen-lockfile", Aliases: []string{"frozen"}, Usage: "fail instead of changing the lockfile"},
					&cli.BoolFlag{DisableDefaultText: true, Name: "force", Usage: "lay out everything anew, fetch damaged packages again, and go on though the profile would not start"}}),
			r.verb("update", []string{"up", "upgrade"}, "resolve packages anew: the named ones, or all", "[<name>...]", r.pluginUpdate,
				changeFlags(), networkFlags(), []cli.Flag{forceFlag(),
					&cli.BoolFlag{DisableDefaultText: true, Name: "latest", Aliases: []string{"L"}, Usage: "take the newest release and change package.json"}}),
			r.verb("dedupe", []string{"ddp"}, "use fewer versions where one is enough", " ", r.pluginDedupe,
				changeFlags(), networkFlags(), []cli.Flag{forceFlag()}),
			r.verb("outdated", nil, "show which packages have newer versions, and why those are not taken", "[<name>...]", r.pluginOutdated,
				networkFlags(), []cli.Flag{&cli.BoolFlag{DisableDefaultText: true, Name: "exit-code", Usage: "exit with 1 if there are newer versions"}}),
			r.verb("info", nil, "say what a package is and would do, before it is installed", "<package>", r.pluginInfo,
				networkFlags(), []cli.Flag{expectRepoFlag()}),
			r.verb("search", []string{"find"}, "look for plugins in the registry and in catalogues", "<word>...", r.pluginSearch, searchFlags()),
			r.verb("audit", nil, "ask what is known against the packages of the profile", " ", r.pluginAudit, auditFlags()),
			r.verb("why", nil, "show who asks for a package", "<package>[@<version>]", r.pluginWhy, localFlags()),
			r.verb("policy", nil, "show the policy, and whether the profile keeps it", " ", r.pluginPolicy, networkFlags()),
			r.verb("list", []string{"ls"}, "list the packages and layers of the profile", " ", r.pluginList, localFlags(), []cli.Flag{
				&cli.BoolFlag{DisableDefaultText: true, Name: "tree", Usage: "list what they depend on as well"},
				&cli.IntFlag{Name: "depth", Usage: "list this many levels of it", DefaultText: "all"}}),
			r.verb("copy", nil, "copy packages of another profile, in the versions that it has", "[<name>...]", r.pluginCopy,
				networkFlags(), []cli.Flag{
					&cli.StringFlag{Name: "from", Usage: "the profile that has them"},
					&cli.BoolFlag{DisableDefaultText: true, Name: "update", Usage: "take the other profile's version of what is there already"},
					&cli.BoolFlag{DisableDefaultText: true, Name: "dry-run", Usage: "say what would be copied, and change nothing"}, forceFlag()}),
			r.scriptsVerb(),
			r.approveVerb(),
			r.verb("pack", nil, "write all packages of the profile into one file, for machines without a network", " ", r.pluginPack, packFlags()),
			r.exemptionVerb("version-exemptions", "print the bundles that are let through with another harness version", " ", r.versionExemptions),
			r.exemptionVerb("allow-version", "let a bundle through with a harness version that its peers exclude", "<package@version>", r.allowVersion,
				harnessFlag(), &cli.BoolFlag{DisableDefaultText: true, Name: "accept-risk", Usage: "say that the bundle may break the harness, or be broken by it"}),
			r.exemptionVerb("revoke-version", "take such an exemption back", "<package@version>", r.revokeVersion, harnessFlag()),
		},
		Action: r.otherPluginVerb,
	}
}

func profileFlag() cli.Flag {
	return &cli.StringFlag{Name: "profile", Usage: "the profile to act on, instead of $DSH_PROFILE, the one of profile use, or default"}
}

func kindFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{DisableDefaultText: true, Name: "save-prod", Aliases: []string{"P"}, Usage: "save under dependencies (where layers come from)"},
		&cli.BoolFlag{DisableDefaultText: true, Name: "save-dev", Aliases: []string{"D"}, Usage: "save under devDependencies"},
		&cli.BoolFlag{DisableDefaultText: true, Name: "save-optional", Aliases: []string{"O"}, Usage: "save under optionalDependencies"},
	}
}

func saveFlags() []cli.Flag {
	return []cli.Flag{&cli.BoolFlag{DisableDefaultText: true, Name: "save-exact", Aliases: []string{"E", "exact"}, Usage: "save exact versions"}}
}

// changeFlags are those of the verbs that resolve and lay out packages.
func changeFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{DisableDefaultText: true, Name: "dry-run", Usage: "print the whole plan, and write nothing"},
		&cli.StringFlag{Name: "host-packages", Usage: "what becomes of packages of the harness that plugins depend on: warn, omit or allow"},
		&cli.BoolFlag{DisableDefaultText: true, Name: "ignore-scripts", Usage: "run no scripts, not even those that you approved"},
		&cli.BoolFlag{DisableDefaultText: true, Name: "copy", Usage: "copy files out of the store and never link them, from now on in this profile"},
	}
}

// networkFlags are those of the verbs that ask registries.
func networkFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{DisableDefaultText: true, Name: "offline", Usage: "use nothing but the store and what is known of packages already"},
		&cli.BoolFlag{DisableDefaultText: true, Name: "prefer-offline", Usage: "ask registries only about what is not known yet, however old that is"},
		&cli.BoolFlag{DisableDefaultText: true, Name: "fresh", Usage: "ask registries about everything"},
		&cli.StringFlag{Name: "registry", Usage: "the npm registry to ask, instead of .npmrc's"},
		&cli.StringFlag{Name: "before", Usage: "leave out versions published after this day or time (2026-11-30, 2026-11-30T12:00:00Z)"},
		&cli.StringFlag{Name: "min-release-age", Usage: "leave out versions younger than this (3d, 12h; 0 for none)"},
	}
}

// localFlags are accepted where no registry is asked anyway.
func localFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "offline", Hidden: true},
		&cli.BoolFlag{Name: "prefer-offline", Hidden: true},
		&cli.StringFlag{Name: "registry", Hidden: true},
	}
}

// ignoredFlags are pnpm's flags that are accepted because scripts pass them,
// and why each changes nothing here.
var ignoredFlags = []struct {
	name  string
	value bool
	note  string // "" is not worth a word: it asks for what dsh always does
}{
	{"ignore-scripts", false, ""},
	{"no-optional", false, "optional packages are installed where they run"},
	{"workspace-root", false, ""},
	{"w", false, ""},
	{"ignore-workspace", false, ""},
	{"silent", false, ""},
	{"s", false, ""},
	{"reporter", true, "use --json for output that programs read"},
	{"recursive", false, "a profile is no workspace"},
	{"r", false, "a profile is no workspace"},
}

// verb is one package command with its flags and those that all of them take.
func (r *runner) verb(name string, aliases []string, usage, args string, do func(*pluginRun) error, kinds ...[]cli.Flag) *cli.Command {
	flags := slices.Concat(kinds...)
	for _, f := range ignoredFlags {
		if slices.ContainsFunc(flags, func(known cli.Flag) bool { return slices.Contains(known.Names(), f.name) }) {
			continue // it means something to this verb
		}
		if f.value {
			flags = append(flags, &cli.StringFlag{Name: f.name, Hidden: true})
		} else {
			flags = append(flags, &cli.BoolFlag{Name: f.name, Hidden: true})
		}
	}
	c := r.leaf(name, usage, args, flags, r.pluginAction(do))
	c.Aliases = aliases
	return c
}

// pluginRun is one package command under way.
type pluginRun struct {
	*runner
	cli      *cli.Context
	ctx      context.Context
	env      action.Env
	opts     action.PluginOptions
	progress *installProgress
}

func (r *runner) pluginRun(c *cli.Context) (*pluginRun, error) {
	env, err := r.place(r.invocation.Global)
	if err != nil {
		return nil, err
	}
	name, err := r.profileName()
	if err == nil {
		env, err = env.On(name)
	}
	if err != nil {
		return nil, err
	}
	for _, f := range ignoredFlags {
		if f.note != "" && c.IsSet(f.name) {
			r.ui.Say("%s changes nothing here: %s", dashed(f.name), f.note)
		}
	}
	run := &pluginRun{runner: r, cli: c, ctx: c.Context, env: env, progress: r.installing()}
	run.opts = action.PluginOptions{
		Name: name, Offline: c.Bool("offline"), Registry: c.String("registry"), Force: c.Bool("force"), Events: run.progress.events(),
		Copy: c.Bool("copy"), IgnoreScripts: c.Bool("ignore-scripts"), DryRun: c.Bool("dry-run"),
	}
	if err := readChoices(c, &run.opts); err != nil {
		return nil, err
	}
	return run, nil
}

// shellProfile is the profile's name for commands to paste.
func (p *pluginRun) shellProfile() string { return fault.ShellWord(p.opts.Name.String()) }

func (r *runner) pluginAdd(p *pluginRun) error {
	args := p.cli.Args().Slice()
	if len(args) == 0 {
		return fault.WithHint(fault.Errorf(fault.Other, "plugin add needs a package"),
			"name one: dsh plugin --profile %s add PACKAGE, where PACKAGE is a name from the npm registry, an address or ./folder", p.shellProfile())
	}
	if p.cli.Bool("frozen-lockfile") {
		return fault.Errorf(fault.Other, "--frozen-lockfile goes with install alone: adding a package changes the lockfile")
	}
	if err := readExpect(p); err != nil {
		return err
	}
	specs, err := p.toAdd(args)
	if err != nil {
		return err
	}
	if set := setAmong(specs); set != "" {
		return p.addSet(set, specs)
	}
	kind := profile.DependencyKind("")
	chosen := 0
	for flag, k := range map[string]profile.DependencyKind{
		"save-prod": profile.Dependencies, "save-dev": profile.DevDependencies, "save-optional": profile.OptionalDependencies,
	} {
		if p.cli.Bool(flag) {
			kind = k
			chosen++
		}
	}
	if chosen > 1 {
		return fault.Errorf(fault.Other, "--save-prod, --save-dev and --save-optional exclude each other")
	}
	report, err := action.Add(p.ctx, p.env, p.opts, specs, install.AddOptions{
		Kind: kind, Exact: p.cli.Bool("save-exact"), AgentPlugin: p.cli.Bool("agent-plugin"), As: p.cli.String("as"),
	})
	if err == nil {
		p.progress.Set("looking for newer versions")
		report.There = action.Newer(p.ctx, p.env, p.opts, report, specs)
	}
	return p.report(report, err)
}

// toAdd is the packages that arguments of add name.
func (p *pluginRun) toAdd(args []string) ([]install.Spec, error) {
	if p.cli.IsSet("catalog") {
		return p.fromCatalog(args)
	}
	specs := make([]install.Spec, len(args))
	for i, arg := range args {
		spec, err := install.ParseSpec(arg, p.env.Dir)
		if err != nil {
			return nil, err
		}
		specs[i] = spec
	}
	return specs, nil
}

func (r *runner) pluginRemove(p *pluginRun) error {
	names := p.cli.Args().Slice()
	if len(names) == 0 {
		return fault.WithHint(fault.Errorf(fault.Other, "plugin remove needs the name of a package"), "dsh plugin --profile %s list shows the names", p.shellProfile())
	}
	if err := p.namesOnly(names); err != nil {
		return err
	}
	p.opts.Purge = p.cli.Bool("purge")
	report, err := action.Remove(p.ctx, p.env, p.opts, names, p.cli.Bool("strict"))
	said := p.report(report, err)
	if err == nil && len(report.Changes) > 0 && report.Plan == nil {
		p.ui.Say("to undo this: %s", rollbackCommand(p.opts.Name.String()))
	}
	return said
}

func (r *runner) pluginInstall(p *pluginRun) error {
	if p.cli.Args().Present() {
		return r.pluginAdd(p) // pnpm's install with a package is add
	}
	for _, flag := range []string{"save-prod", "save-dev", "save-optional", "save-exact"} {
		if p.cli.Bool(flag) {
			return fault.Errorf(fault.Other, "--%s goes with a package to add", flag)
		}
	}
	report, err := action.Install(p.ctx, p.env, p.opts, install.InstallOptions{
		Frozen: p.cli.Bool("frozen-lockfile"), Force: p.cli.Bool("force"),
	})
	return p.report(report, err)
}

func (r *runner) pluginUpdate(p *pluginRun) error {
	for _, arg := range p.cli.Args().Slice() {
		if strings.LastIndexByte(arg, '@') > 0 {
			return fault.WithHint(fault.Errorf(fault.Other, "plugin update takes names, and %q is more than a name", arg),
				"dsh plugin --profile %s add %s", p.shellProfile(), fault.ShellWord(arg))
		}
	}
	report, err := action.Update(p.ctx, p.env, p.opts, p.cli.Args().Slice(), p.cli.Bool("latest"))
	return p.report(report, err)
}

func (r *runner) pluginCopy(p *pluginRun) error {
	if p.cli.String("from") == "" {
		return fault.WithHint(fault.Errorf(fault.Other, "plugin copy needs --from, the profile that has the packages"), "dsh profile list shows the profiles")
	}
	from, err := profile.ParseName(p.cli.String("from"))
	if err != nil {
		return err
	}
	opts := action.CopyPluginsOptions{
		PluginOptions: p.opts, From: from, Names: p.cli.Args().Slice(), Update: p.cli.Bool("update"), DryRun: p.cli.Bool("dry-run"),
	}
	done, err := action.CopyPlugins(p.ctx, p.env, opts)
	p.progress.Stop()
	if err != nil {
		return err
	}
	for _, s := range done.Skipped {
		p.ui.Say("left alone %s: %s", s.Name, s.Reason)
	}
	for _, s := range done.Settings {
		p.ui.Say("not copied: the settings of row %s in %s:%d", s.Row, s.File, s.Line)
	}
	p.said(&done.Report)
	return p.ui.Result(done, func(w io.Writer) {
		switch {
		case len(done.Copied) == 0:
			fmt.Fprintf(w, "there is nothing to copy from profile %s to profile %s\n", done.From, done.Profile)
		case opts.DryRun:
			for _, c := range done.Copied {
				fmt.Fprintf(w, "would copy %s %s as %s\n", c.Name, c.Version, c.Spec)
			}
			fmt.Fprintln(w, "nothing was changed")
		default:
			printReport(w, &done.Report)
		}
	})
}

func (r *runner) pluginList(p *pluginRun) error {
	if p.cli.Args().Present() {
		return fault.WithHint(fault.Errorf(fault.Other, "plugin list takes no names; it lists everything that the profile depends on"),
			"dsh plugin --profile %s why %s shows one", p.shellProfile(), fault.ShellWord(p.cli.Args().First()))
	}
	if p.cli.Bool("tree") || p.cli.IsSet("depth") {
		return p.listTree()
	}
	listing, err := action.List(p.ctx, p.env, p.opts.Name)
	if err != nil {
		return ended(p.ctx, err)
	}
	for _, w := range listing.Warnings {
		p.ui.Warn(w)
	}
	return p.ui.Result(listing, func(w io.Writer) {
		fmt.Fprintf(w, "profile %s (%s)\n", listing.Profile, listing.Dir)
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, d := range listing.Dependencies {
			version, layer := d.Version, ""
			if d.Kind != string(profile.Dependencies) {
				layer = d.Kind
			}
			if version == "" {
				version = "not installed"
			}
			if d.Layer > 0 {
				layer = fmt.Sprintf("layer %d", d.Layer)
			}
			fmt.Fprintln(t, strings.TrimRight(strings.Join([]string{d.Name, version, cmp.Or(d.Written, d.Spec), layer}, "\t"), "\t"))
		}
		t.Flush()
	})
}

func forceFlag() cli.Flag {
	return &cli.BoolFlag{DisableDefaultText: true, Name: "force", Usage: "go on though the profile would not start afterwards"}
}

// pluginAction runs do with what all package commands need.
func (r *runner) pluginAction(do func(*pluginRun) error) cli.ActionFunc {
	return func(c *cli.Context) error {
		run, err := r.pluginRun(c)
		if err != nil {
			return err
		}
		defer run.progress.Stop()
		return ended(run.ctx, do(run))
	}
}

// closestVerb is the verb that a mistyped one is one letter away from.
func (r *runner) closestVerb(c *cli.Context, typed string) string {
	for _, verb := range c.Command.Subcommands {
		if oneLetterApart(typed, verb.Name) {
			return verb.Name
		}
	}
	return ""
}

// oneLetterApart reports whether adding, dropping, changing or swapping one
// letter makes a of b.
func oneLetterApart(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(b)-len(a) > 1 || a == b {
		return false
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	if len(a) < len(b) {
		return a[i:] == b[i+1:]
	}
	swapped := i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
	return swapped || a[i+1:] == b[i+1:]
}

// otherPluginVerb refuses pnpm's other verbs with the command that runs them.
func (r *runner) otherPluginVerb(c *cli.Context) error {
	args := c.Args().Slice()
	env, err := r.env(r.invocation.Global)
	if err != nil {
		return err
	}
	name, err := r.profileName()
	if err != nil {
		return err
	}
	var verbs []string
	for _, verb := range c.Command.Subcommands {
		verbs = append(verbs, verb.Name)
	}
	last := len(verbs) - 1
	unknown := fault.Errorf(fault.Other, "dsh plugin has no verb %q; it knows %s and %s", args[0], strings.Join(verbs[:last], ", "), verbs[last])
	if meant := r.closestVerb(c, args[0]); meant != "" {
		return fault.WithHint(unknown, "did you mean: dsh plugin --profile %s %s", fault.ShellWord(name.String()), fault.ShellWords(append([]string{meant}, args[1:]...)...))
	}
	return fault.WithHint(unknown,
		"run pnpm in the profile for everything else: cd %s && pnpm %s", fault.ShellWord(env.Home.ProfileDir(name)), fault.ShellWords(args...))
}
