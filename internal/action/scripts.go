package action

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"dsh/internal/fault"
	"dsh/internal/install"
	"dsh/internal/install/store"
	"dsh/internal/profile"
	"dsh/internal/staging"
	"dsh/internal/trust"
)

// approvalsFile is where it is recorded whose scripts may run.
func (env Env) approvalsFile() string { return env.Home.Path("approvals.json") }

// buildsName is the directory in a profile's state with what scripts printed.
const buildsName = "builds"

// Builds is what a change did about the scripts of packages.
type Builds struct {
	// Built are packages that stand as their scripts made them, and Pending those
	// that were installed and whose scripts nobody approved.
	Built   []install.Built   `json:"built,omitempty"`
	Pending []install.Pending `json:"pending,omitempty"`
}

func buildsOf(result *install.Result) Builds { return Builds{result.Built, result.Pending} }

// approver says by whose word the scripts of packages may run: the user's, for
// exactly the content that was shown, or pnpm's settings of the profile.
type approver struct {
	list  func() ([]trust.Approval, error)
	rules func() (trust.PnpmRules, error)
}

// approver is that of a profile whose files are in dir. Nothing is read before
// somebody asks.
func (env Env) approver(dir func() string, m *profile.Manifest) approver {
	return approver{
		sync.OnceValues(trust.OpenApprovals(env.approvalsFile()).List),
		sync.OnceValues(func() (trust.PnpmRules, error) {
			text, err := readOr(filepath.Join(dir(), install.WorkspaceName))
			if err != nil {
				return nil, err
			}
			var manifest []byte
			if m != nil {
				manifest = m.Bytes()
			}
			if !mentionsBuilds(text) && !mentionsBuilds(manifest) {
				return nil, nil // to read YAML takes longer than all else that an install does where nothing changes
			}
			return trust.PnpmApprovals(text, manifest)
		}),
	}
}

// mentionsBuilds is false of a text that says nothing of scripts to pnpm.
func mentionsBuilds(text []byte) bool {
	return slices.ContainsFunc(trust.PnpmSettings(), func(key string) bool { return bytes.Contains(text, []byte(key)) })
}

// asked implements install.Job's Approved.
func (a approver) asked(s install.Scripted) (by string, err error) {
	list, err := a.list()
	if err != nil {
		return "", err
	}
	if !s.Content.IsZero() && trust.Approved(list, s.Name, s.Content.String()) {
		return install.ByUser, nil
	}
	rules, err := a.rules()
	if err != nil || len(rules) == 0 {
		return "", err
	}
	if verdict, _ := rules.Verdict(asPnpmKnows(s)); verdict == trust.Allowed {
		return install.ByPnpm, nil
	}
	return "", nil
}

// asPnpmKnows is a package in the words of pnpm's settings.
func asPnpmKnows(s install.Scripted) trust.Built {
	b := trust.Built{Name: s.Name, Version: s.Version}
	switch s.Origin.Kind {
	case install.Registry:
	case install.URL, install.Git:
		b.Source = s.Origin.Place
	default:
		b.Source = "file:" + s.Origin.Place
	}
	return b
}

// placeholders tells of what pnpm, or somebody, wrote where a decision belongs:
// pnpm refuses to do anything in such a profile.
func (a approver) placeholders(name profile.Name) (warnings []string) {
	rules, err := a.rules()
	if err != nil {
		return nil // who reads the file for more says it
	}
	for _, r := range rules {
		if r.Placeholder != "" {
			warnings = append(warnings, fmt.Sprintf("%s: allowBuilds says %q of %s, which is no decision; %s takes it out, and %s decides",
				ruleAt(r), r.Placeholder, r.Package, fault.ShellWords("dsh", "profile", "repair", name.String()),
				fault.ShellWords("dsh", "plugin", "--profile", name.String(), "approve", r.Package)))
		}
	}
	return warnings
}

// unfit tells of rules that fit no package, for dsh and pnpm alike, though somebody
// meant something by them.
func (a approver) unfit() (warnings []string) {
	rules, err := a.rules()
	if err != nil {
		return nil // who reads the file for more says it
	}
	told := map[string]bool{} // what stands there twice is told of once
	for _, r := range rules {
		key := r.Setting + "\x00" + r.Package + "\x00" + r.Invalid
		if r.Invalid == "" || told[key] {
			continue
		}
		told[key] = true
		warnings = append(warnings, fmt.Sprintf("%s: %s names %s, and that counts for no package: %s", ruleAt(r), r.Setting, r.Package, r.Invalid))
	}
	return warnings
}

func ruleAt(r trust.PnpmRule) string {
	if r.Line > 0 {
		return fmt.Sprintf("%s:%d", r.File, r.Line)
	}
	return r.File
}

// ScriptState is what becomes of the scripts of a package.
type ScriptState string

// The states of scripts.
const (
	ScriptsPending  ScriptState = "pending"  // nobody approved them
	ScriptsDenied   ScriptState = "denied"   // pnpm's settings say that they do not run
	ScriptsApproved ScriptState = "approved" // the next install runs them
	ScriptsRan      ScriptState = "built"    // the package stands as they made it
	// They may not run any more, and the package, which is nothing without them,
	// stands as they made it until it is laid out anew.
	ScriptsRevoked ScriptState = "revoked"
)

// PackageScripts is a package of a profile that has scripts.
type PackageScripts struct {
	install.Pending
	State ScriptState `json:"state"`
	By    string      `json:"by"`   // whose word it is: dsh, pnpm or ""
	Rule  string      `json:"rule"` // of pnpm, as it is written, with its file and line; "" for none
}

// ScriptsReport is the scripts of a profile's packages.
type ScriptsReport struct {
	Profile  string           `json:"profile"`
	Dir      string           `json:"dir"`
	Packages []PackageScripts `json:"packages"`
	Logs     string           `json:"logs"` // the directory with what they printed
	Warnings []string         `json:"-"`
}

// Scripts lists which packages of a profile have scripts, and what becomes of
// them. It changes nothing.
func Scripts(ctx context.Context, env Env, name profile.Name) (*ScriptsReport, error) {
	report, warnings, err := reading(ctx, env, name, func(v staging.View) (*ScriptsReport, error) {
		p, lock, err := env.lockedProfile(v, name)
		if err != nil {
			return nil, err
		}
		report := &ScriptsReport{Profile: name.String(), Dir: p.Dir, Packages: []PackageScripts{}, Logs: env.buildLogs(name)}
		a := env.approver(func() string { return p.Dir }, p.Manifest)
		report.Warnings = slices.Concat(a.placeholders(name), a.unfit())
		if lock == nil {
			return report, nil
		}
		list, err := env.withScripts(p.Dir, lock)
		if err != nil {
			return nil, err
		}
		for _, s := range list {
			said, err := a.say(s)
			if err != nil {
				return nil, err
			}
			report.Packages = append(report.Packages, said)
		}
		return report, nil
	})
	if err != nil {
		return nil, err
	}
	report.Warnings = slices.Concat(warnings, report.Warnings)
	if why := trust.OpenApprovals(env.approvalsFile()).Exposed(); why != "" {
		report.Warnings = append(report.Warnings, why)
	}
	return report, nil
}

func (env Env) buildLogs(name profile.Name) string {
	return filepath.Join(env.Home.Place(name).State, buildsName)
}

// withScripts lists the packages with scripts of a lockfile.
func (env Env) withScripts(dir string, lock *install.Lock) (list []install.WithScripts, err error) {
	packages := store.Open(env.Home.StoreDir())
	defer func() { err = errors.Join(err, packages.Close()) }()
	return install.ScriptsIn(dir, lock, packages)
}

// say is what becomes of a package's scripts.
func (a approver) say(s install.WithScripts) (PackageScripts, error) {
	said := PackageScripts{Pending: s.Pending, State: ScriptsPending}
	by, err := a.asked(s.Scripted)
	if err != nil {
		return said, err
	}
	rules, err := a.rules()
	if err != nil {
		return said, err
	}
	verdict, rule := rules.Verdict(asPnpmKnows(s.Scripted))
	if verdict != trust.Undecided {
		said.Rule = fmt.Sprintf("%s of %s (%s)", rule.Package, rule.Setting, ruleAt(rule))
	}
	switch said.By = by; {
	case by != "" && s.Built:
		said.State = ScriptsRan
	case by != "":
		said.State = ScriptsApproved
	case s.Built && s.Incomplete():
		said.State = ScriptsRevoked
	case verdict == trust.Denied:
		said.State, said.By = ScriptsDenied, install.ByPnpm
	}
	return said, nil
}

// ToApprove is what a word after approve means.
type ToApprove struct {
	Profile string
	// Packages are those that are meant, each content once.
	Packages []PackageScripts
	// Inside says that the profile has them, so that approving builds them.
	Inside bool
	// Other is the name of a dependency of the profile that is another content of
	// the same package, "" for none.
	Other string
}

// FindAllScripts finds what several words after approve mean together, which are
// packages of the profile then; one may be another, as [FindScripts] has it.
func FindAllScripts(ctx context.Context, env Env, opts PluginOptions, words []string) (*ToApprove, error) {
	all, err := FindScripts(ctx, env, opts, words[0])
	if err != nil {
		return nil, err
	}
	for _, word := range words[1:] {
		found, err := FindScripts(ctx, env, opts, word)
		if err != nil {
			return nil, err
		}
		if !all.Inside || !found.Inside {
			return nil, fault.Errorf(fault.Other, "packages that are not in profile %s yet are approved one by one", opts.Name)
		}
		for _, p := range found.Packages {
			if !slices.ContainsFunc(all.Packages, func(known PackageScripts) bool { return known.Name == p.Name && known.Content == p.Content }) {
				all.Packages = append(all.Packages, p)
			}
		}
	}
	return all, nil
}

// FindScripts finds what a word after approve means: a package of the profile, by
// its name or as name@version, or what add takes. What is not in the profile yet
// is fetched into the store; nothing else changes.
func FindScripts(ctx context.Context, env Env, opts PluginOptions, word string) (*ToApprove, error) {
	report, err := Scripts(ctx, env, opts.Name)
	if missing, ok := errors.AsType[*profile.MissingError](err); err != nil && (!ok || missing.Lost) {
		return nil, err
	}
	found := &ToApprove{Profile: opts.Name.String(), Inside: true}
	var names []string
	if report != nil {
		for _, p := range report.Packages {
			if word == p.Name || word == p.Name+"@"+p.Version || word == p.Spec {
				found.Packages = append(found.Packages, p)
			}
			names = append(names, p.Name)
		}
	}
	if len(found.Packages) > 0 {
		return found, nil
	}
	spec, err := install.ParseSpec(word, env.Dir)
	if err != nil {
		return nil, err
	}
	if spec.Kind == install.Registry && spec.Wanted == "" {
		err := fault.Errorf(fault.Package, "profile %s has no package %s with scripts", opts.Name, word)
		if len(names) > 0 {
			return nil, fault.WithHint(err, "it has %s", strings.Join(slices.Compact(names), ", "))
		}
		return nil, fault.WithHint(err, "%s says which version of a package is meant that is not in the profile yet",
			fault.ShellWords("dsh", "plugin", "--profile", opts.Name.String(), "approve", word+"@VERSION"))
	}
	if report != nil && spec.Kind == install.Registry {
		if err := elsewhere(report.Dir, opts.Name, spec); err != nil {
			return nil, err
		}
	}
	p, err := env.look(ctx, opts, spec)
	if err != nil {
		return nil, err
	}
	found.Inside = false
	if len(p.Scripts) == 0 {
		return nil, fault.Errorf(fault.Package, "%s@%s has no scripts that an installation would run", p.Name, p.Version)
	}
	if report != nil {
		if m, err := profile.Read(env.Home, opts.Name); err == nil {
			if wanted, _, ok := m.Manifest.Dependency(p.Name); ok && wanted != word {
				found.Other = p.Name
			}
		}
	}
	a := env.approver(func() string { return env.Home.ProfileDir(opts.Name) }, nil)
	said, err := a.say(*p)
	found.Packages = []PackageScripts{said}
	return found, err
}

// elsewhere refuses the name of a registry's package where the profile has that
// name from somewhere else: whose scripts it would show is not who is meant.
func elsewhere(dir string, name profile.Name, spec install.Spec) error {
	lock, err := lockIn(dir)
	if err != nil || lock == nil {
		return err
	}
	for _, n := range lock.Nodes {
		if n.Name != spec.Target {
			continue
		}
		switch n.Origin.Kind {
		case install.Registry, install.Link:
		default:
			err := fault.Errorf(fault.Package, "profile %s has %s %s from %s; what a registry has by that name is another package", name, n.Name, n.Version, install.ShownSpec(n.Origin.Place))
			return fault.WithHint(err, "%s shows the scripts of the one that is there",
				fault.ShellWords("dsh", "plugin", "--profile", name.String(), "approve", n.Name))
		}
	}
	return nil
}

// knows reports whether a lockfile in a directory has a package of that name.
func knows(dir, name string) (bool, error) {
	lock, err := lockIn(dir)
	if err != nil || lock == nil {
		return false, err
	}
	for _, n := range lock.Nodes {
		if n.Name == name {
			return true, nil
		}
	}
	return false, nil
}

// look finds a package that is not in the profile.
func (env Env) look(ctx context.Context, opts PluginOptions, spec install.Spec) (found *install.WithScripts, err error) {
	err = env.try(ctx, opts, true, true, func(t *trial) (err error) {
		found, err = t.job().Look(ctx, spec)
		return err
	})
	return found, err
}

// ApprovedScripts says what approving did.
type ApprovedScripts struct {
	Profile  string           `json:"profile"`
	Packages []PackageScripts `json:"packages"`
	// Report is of the install that built them, nil where they are not in the
	// profile yet.
	Report *Report `json:"install,omitempty"`
	// Add is the command that takes what is approved and not in the profile.
	Add      string   `json:"add,omitempty"`
	Warnings []string `json:"-"`
}

// ApproveScripts records that the scripts of packages may run, and installs, so
// that they do. Only exactly what they are now is approved.
func ApproveScripts(ctx context.Context, env Env, opts PluginOptions, what *ToApprove, word string, now time.Time) (*ApprovedScripts, error) {
	approvals := trust.OpenApprovals(env.approvalsFile())
	exposed := approvals.Exposed() // what is written next mends it
	for _, p := range what.Packages {
		err := approvals.Approve(ctx, trust.Approval{Name: p.Name, Version: p.Version, Content: p.Content, Since: now})
		if err != nil {
			return nil, err
		}
	}
	done := &ApprovedScripts{Profile: what.Profile, Packages: what.Packages}
	if exposed != "" {
		done.Warnings = append(done.Warnings, exposed)
	}
	told, err := env.tellPnpm(ctx, opts.Name, what.Packages)
	if err != nil {
		return nil, fmt.Errorf("approved for dsh, and not for pnpm: %w", err)
	}
	done.Warnings = append(done.Warnings, told...)
	if !what.Inside {
		done.Add = fault.ShellWords("dsh", "plugin", "--profile", what.Profile, "add", word)
		if what.Other != "" {
			done.Add = fault.ShellWords("dsh", "plugin", "--profile", what.Profile, "update", what.Other)
		}
		return done, nil
	}
	if maker := install.Maker(env.Home.ProfileDir(opts.Name)); install.IsManager(maker) {
		done.Warnings = append(done.Warnings, fmt.Sprintf("%s laid out node_modules, so that dsh builds nothing in it; %s takes the profile over",
			maker, fault.ShellWords("dsh", "profile", "adopt", what.Profile)))
		return done, nil
	}
	opts.mustBuild = func(s install.Scripted) bool {
		return slices.ContainsFunc(what.Packages, func(p PackageScripts) bool { return p.Content == s.Content.String() })
	}
	report, err := Install(ctx, env, opts, install.InstallOptions{})
	if fault.ClassOf(err) == fault.Interrupted {
		return nil, fault.Errorf(fault.Interrupted, "interrupted: approved, but not built; the profile was not changed")
	}
	if err != nil {
		return nil, fmt.Errorf("approved, but not built: %w", err)
	}
	done.Report = report
	for i, p := range done.Packages {
		if slices.ContainsFunc(report.Built, func(b install.Built) bool { return b.Name == p.Name && b.Version == p.Version }) {
			done.Packages[i].State = ScriptsRan
		} else {
			done.Packages[i].State = ScriptsApproved
		}
		done.Packages[i].By = install.ByUser
	}
	return done, nil
}

// RevokedScripts says which approvals were taken back.
type RevokedScripts struct {
	Package string           `json:"package"`
	Revoked []trust.Approval `json:"revoked"`
	// Rules are what the profile's settings for pnpm still let run of it, which
	// counts here too.
	Rules []string `json:"rules"`
	// Standing are packages of the profile that are nothing without these scripts,
	// and stand as they made them.
	Standing []Standing `json:"standing"`
	Warnings []string   `json:"-"`
}

// Standing is a package whose scripts made it what it is, and may not run again.
type Standing struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Content string `json:"content"`
	// Approve and Remove are the commands after one of which it can be laid out
	// anew, or need not be.
	Approve string `json:"approve"`
	Remove  string `json:"remove"`
}

// RevokeScripts takes the approvals of a package back, of one version or of all:
// word is name or name@version. What was built stays until the next install.
func RevokeScripts(ctx context.Context, env Env, profileName profile.Name, word string) (*RevokedScripts, error) {
	name, version := word, ""
	if i := strings.LastIndexByte(word, '@'); i > 0 {
		name, version = word[:i], word[i+1:]
	}
	revoked, err := trust.OpenApprovals(env.approvalsFile()).Revoke(ctx, name, version)
	if err != nil {
		return nil, err
	}
	done := &RevokedScripts{Package: word, Revoked: append([]trust.Approval{}, revoked...), Rules: []string{}, Standing: []Standing{}}
	if done.Warnings, err = env.untellPnpm(ctx, profileName, name); err != nil {
		return nil, fmt.Errorf("revoked for dsh, and not for pnpm: %w", err)
	}
	unknown := fault.WithHint(fault.Errorf(fault.Package, "nothing of %s was approved, and profile %s has no such package", word, profileName),
		"%s shows which have scripts", fault.ShellWords("dsh", "plugin", "--profile", profileName.String(), "scripts"))
	p, err := profile.Read(env.Home, profileName)
	if err != nil {
		if len(revoked) == 0 {
			return nil, unknown
		}
		return done, nil // without a profile nothing else is said
	}
	a := env.approver(func() string { return p.Dir }, p.Manifest)
	rules, err := a.rules()
	if err != nil {
		return nil, err
	}
	if done.Standing, err = env.standing(p, a, name); err != nil {
		return nil, err
	}
	for _, r := range rules {
		if r.Allowed && (r.Package == "*" || r.Package == name || strings.HasPrefix(r.Package, name+"@")) {
			done.Rules = append(done.Rules, fmt.Sprintf("%s of %s (%s)", r.Package, r.Setting, ruleAt(r)))
		}
	}
	if len(revoked)+len(done.Rules)+len(done.Standing) == 0 {
		if known, err := knows(p.Dir, name); err != nil || !known {
			return nil, cmp.Or(err, unknown)
		}
	}
	return done, nil
}

// standing lists the packages of a name in a profile whose scripts are revoked and
// without which they are nothing.
func (env Env) standing(p *profile.Profile, a approver, name string) ([]Standing, error) {
	list := []Standing{}
	lock := readableLock(filepath.Join(p.Dir, install.LockName))
	if lock == nil {
		return list, nil // whoever reads it for more says what is wrong
	}
	all, err := env.withScripts(p.Dir, lock)
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		if s.Name != name {
			continue
		}
		said, err := a.say(s)
		if err != nil {
			return nil, err
		}
		if said.State != ScriptsRevoked {
			continue
		}
		one := Standing{Name: s.Name, Version: s.Version, Content: s.Content}
		command := func(verb, what string) string {
			return fault.ShellWords("dsh", "plugin", "--profile", p.Name.String(), verb, what)
		}
		one.Approve = command("approve", s.Name)
		if len(s.Chain) > 0 {
			direct := s.Chain[0]
			if i := strings.LastIndexByte(direct, '@'); i > 0 {
				direct = direct[:i]
			}
			one.Remove = command("remove", direct)
		}
		list = append(list, one)
	}
	return list, nil
}
