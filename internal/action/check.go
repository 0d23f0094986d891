package action

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"dsh/bundles"
	"dsh/internal/check"
	"dsh/internal/compose"
	"dsh/internal/fault"
	"dsh/internal/inspect"
	"dsh/internal/profile"
	"dsh/internal/stack"
	"dsh/internal/staging"
)

// CheckOptions say how to check a profile.
type CheckOptions struct {
	ShowSecrets bool // values that look like secrets are shown
}

// CheckReport is what was found in a profile.
type CheckReport struct {
	Profile  string          `json:"profile"`
	Layers   int             `json:"layers"`
	Rows     int             `json:"rows"`
	Findings []check.Finding `json:"findings"`
	Counts   CheckCounts     `json:"counts"`
	Warnings []string        `json:"-"`
}

// CheckCounts is how many findings there are, by severity.
type CheckCounts struct {
	Errors   int `json:"errors"`
	Warnings int `json:"warnings"`
	Infos    int `json:"infos"`
}

// Passed says whether nothing is wrong; strict takes warnings for wrong too.
func (c CheckCounts) Passed(strict bool) bool {
	return c.Errors == 0 && (!strict || c.Warnings == 0)
}

func count(findings []check.Finding) CheckCounts {
	var c CheckCounts
	for _, f := range findings {
		switch f.Severity {
		case check.Error:
			c.Errors++
		case check.Warning:
			c.Warnings++
		default:
			c.Infos++
		}
	}
	return c
}

// Check looks for mistakes in a profile: in its list of bundles, in its layers,
// in what they compose to, and in what rows name on the disk. It writes nothing
// and asks no server.
func Check(ctx context.Context, env Env, layers Layers, opts CheckOptions) (*CheckReport, error) {
	composed, warnings, err := reading(ctx, env, layers.Name, func(v staging.View) (*Composed, error) {
		p, err := readOrTemplate(v, env.Home, layers.Name)
		if err != nil {
			return nil, err
		}
		return composeProfile(env, p, layers, true)
	})
	if broken, ok := errors.AsType[*profile.ManifestError](err); ok {
		report := &CheckReport{Profile: layers.Name.String(), Findings: []check.Finding{brokenManifest(broken, fault.Hint(err))}, Warnings: warnings}
		report.Counts = count(report.Findings)
		return report, nil
	}
	if err != nil {
		return nil, err
	}
	rules := checkOptions(env, composed, opts.ShowSecrets)
	findings := layerFindings(composed, rules)
	findings = append(findings, manifestFindings(composed)...)
	findings = append(findings, inspected(ctx, env, composed, false)...)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	report := &CheckReport{
		Profile: layers.Name.String(), Layers: len(composed.Stack.Layers),
		Findings: sortByStack(composed.Stack, findings), Warnings: warnings,
	}
	for range composed.Tree.All() {
		report.Rows++
	}
	report.Counts = count(report.Findings)
	return report, nil
}

// brokenManifest is the finding about a package.json without which nothing of a
// profile can be read.
func brokenManifest(err *profile.ManifestError, hint string) check.Finding {
	return check.Finding{
		Code: check.Unreadable, Severity: check.Error, File: err.Path, Line: err.Line, Column: err.Column, Blocks: true,
		Message: "the profile's package.json cannot be read: " + err.Problem,
		Remedy:  hint + "; all else of the profile can only be looked at then",
	}
}

// inspected is what a composed profile lacks on the disk or has too much there.
func inspected(ctx context.Context, env Env, c *Composed, rowsOnly bool) []check.Finding {
	return inspect.Profile(ctx, inspect.Options{
		Profile: c.Profile, Stack: c.Stack, Tree: c.Tree, Installation: env.Installation, Rules: c.Rules, BuiltIn: builtIn(env), RowsOnly: rowsOnly,
	})
}

// Findings is what is wrong with a composed profile, the disk left aside: what
// a change of the profile is held against before it is made.
func Findings(env Env, composed *Composed) []check.Finding {
	return sortByStack(composed.Stack, layerFindings(composed, checkOptions(env, composed, false)))
}

// layerFindings is what the layers show, and why there are not more of them.
func layerFindings(c *Composed, opts check.Options) []check.Finding {
	findings := append(append([]check.Finding{}, entryFindings(c)...), check.Tree(c.Tree, opts)...)
	for i := range findings {
		if f := &findings[i]; f.Code == check.BundleTwice {
			c.listed(f, "bundles", 2)
		}
	}
	return findings
}

func checkOptions(env Env, composed *Composed, showSecrets bool) check.Options {
	return check.Options{
		Profile: composed.Profile.Name.String(), Schema: knownSchemas(env), Rules: composed.Rules, ShowSecrets: showSecrets,
		Disabled: composed.disabledBundle,
	}
}

// knownSchemas is the config schemas of the plugins that are compiled in. The
// plugins of a directory installation are others, also where they have the
// names of ours.
func knownSchemas(env Env) func(plugin string) ([]byte, bool) {
	if _, harness := env.Installation.Version(); harness {
		return nil
	}
	return bundles.Schema
}

// builtIn says which plugins need no package, nil where all do.
func builtIn(env Env) func(plugin string) bool {
	if _, harness := env.Installation.Version(); harness {
		return nil
	}
	return BuiltIn
}

// BuiltIn says whether dsh itself has the plugin of a name, so that no package
// needs to bring it.
func BuiltIn(plugin string) bool {
	names, err := inBoxPlugins()
	return err == nil && slices.Contains(names, plugin)
}

// sortByStack puts findings in the order of the layers that they are in, and
// those that are in none behind them. What is found twice in one place, because
// a bundle is listed twice, is told once.
func sortByStack(s *stack.Stack, findings []check.Finding) []check.Finding {
	order := map[string]int{}
	for i, e := range s.Entries {
		if _, ok := order[e.Label]; !ok {
			order[e.Label] = i
		}
	}
	at := func(f check.Finding) int {
		if i, ok := order[f.Layer]; ok {
			return i
		}
		return len(order) + 1
	}
	slices.SortStableFunc(findings, func(a, b check.Finding) int {
		return cmp.Or(
			cmp.Compare(at(a), at(b)), cmp.Compare(a.Layer, b.Layer), cmp.Compare(a.File, b.File),
			cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column),
		)
	})
	return slices.CompactFunc(findings, func(a, b check.Finding) bool {
		return a.Line > 0 && a.Place() == b.Place() && a.Code == b.Code && a.Layer == b.Layer && a.Message == b.Message
	})
}

// entryFindings is what is wrong with the bundles and files of a stack that are
// no layers.
func entryFindings(c *Composed) []check.Finding {
	var findings []check.Finding
	for _, e := range c.Stack.Entries {
		switch {
		case e.State == stack.Disabled:
			findings = append(findings, c.disabledFinding(e))
		case e.State == stack.Untrusted:
			findings = append(findings, check.Finding{
				Code: check.Untrusted, Severity: check.Warning, Layer: e.Label, File: e.Label,
				Message: e.Err.Error(), Remedy: fault.Hint(e.Err),
			})
		case e.State == stack.Broken && e.Kind == compose.BundleLayer:
			findings = append(findings, c.brokenBundle(e))
		case e.State == stack.Broken:
			findings = append(findings, check.LayerError(e.Kind, e.Label, e.Err))
		}
	}
	return findings
}

// disabledFinding is the finding about a bundle that is switched off.
func (c *Composed) disabledFinding(e stack.Entry) check.Finding {
	f := check.Finding{
		Code: check.BundleDisabled, Severity: check.Info, Layer: e.Label, Message: e.Label + " is switched off",
		Remedy: c.configCommand("enable", e.Label),
	}
	if e.Err != nil {
		f.Message += ", and cannot be found"
		if _, _, wanted := c.Profile.Manifest.Dependency(e.Label); wanted {
			f.Remedy = c.pluginCommand("install") + " installs it"
		} else {
			f.Remedy = c.pluginCommand("add", e.Label) + " installs it; to forget it: " + c.configCommand("disable", e.Label)
		}
	}
	c.listed(&f, "disabledBundles", 1)
	return f
}

// configCommand is a `dsh config` command for the profile that can be pasted.
func (c *Composed) configCommand(words ...string) string {
	return fault.ShellWords(slices.Concat([]string{"dsh", "config"}, words, []string{"--profile", c.Profile.Name.String()})...)
}

// pluginCommand is the same of `dsh plugin`.
func (c *Composed) pluginCommand(words ...string) string {
	return fault.ShellWords(append([]string{"dsh", "plugin", "--profile", c.Profile.Name.String()}, words...)...)
}

// brokenBundle is the finding about a listed bundle that has no layer.
func (c *Composed) brokenBundle(e stack.Entry) check.Finding {
	out := c.configCommand("disable", e.Label)
	if c.Tree.FindText(e.Label) != nil {
		out = c.configCommand("disable", e.Label, "--bundle") // a row has this name too
	}
	f := check.Finding{
		Code: check.BundleBroken, Severity: check.Error, Layer: e.Label, Blocks: true, Subject: e.Label,
		Message: fmt.Sprintf("%s cannot be used: %v", e.Label, e.Err),
		Remedy:  "mend the package or take the bundle out: " + out,
	}
	c.listed(&f, "bundles", 1)
	if missing, ok := errors.AsType[*stack.MissingError](e.Err); ok {
		f.Code = check.BundleMissing
		f.Message = fmt.Sprintf("the listed bundle %s is not installed", e.Label)
		_, _, wanted := c.Profile.Manifest.Dependency(e.Label)
		switch {
		case missing.Link != "":
			f.Message = fmt.Sprintf("the listed bundle %s is %v", e.Label, missing)
			f.Remedy = "put the folder back, or take the bundle out: " + out
		case wanted:
			f.Remedy = c.pluginCommand("install") + " installs it; to take the bundle out: " + out
		default:
			f.Remedy = c.pluginCommand("add", e.Label) + " installs it; to take the bundle out: " + out
		}
		return f
	}
	if _, ok := errors.AsType[*stack.NoLayerError](e.Err); ok {
		f.Code = check.BundleNoLayer
		f.Message = fmt.Sprintf("the listed package %s declares no dsh.bundle in its package.json, so it has no layer", e.Label)
		f.Remedy = "take it out of the list: " + out
		return f
	}
	if refused, ok := errors.AsType[*stack.PeersError](e.Err); ok {
		f.Code, f.Severity, f.Blocks = check.BundleRefused, check.Warning, false
		f.Message = fmt.Sprintf("%s is left out: %v", e.Label, e.Err)
		f.Remedy = "update the bundle, or let this pair through: " + c.pluginCommand("allow-version", refused.Name+"@"+refused.Version,
			"--dsh-version", refused.Harness.String(), "--accept-risk")
		return f
	}
	if file := missingFile(e); file != "" {
		f.Code = check.FileMissing
		f.Message = fmt.Sprintf("%s names the patch file %s, which is not there", e.Label, file)
		f.Remedy = fmt.Sprintf("install the package anew (%s), or take the bundle out: %s", c.pluginCommand("install"), out)
		return f
	}
	if layer := check.LayerError(e.Kind, e.Label, e.Err); layer.Code != check.Unreadable {
		layer.Remedy = strings.TrimPrefix(layer.Remedy+"; or take the bundle out: "+out, "; or ")
		return layer
	}
	return f
}

// missingFile is the first patch file of a broken bundle that is not there, ""
// if all are.
func missingFile(e stack.Entry) string {
	if !errors.Is(e.Err, fs.ErrNotExist) {
		return ""
	}
	for _, file := range e.Files {
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
			return file
		}
	}
	return ""
}

// listed gives a finding about a bundle its place in the profile's
// package.json: the nth mention below a key.
func (c *Composed) listed(f *check.Finding, key string, nth int) {
	f.File = c.Profile.Manifest.Path()
	text := c.Profile.Manifest.Bytes()
	at := bytes.Index(text, []byte(strconv.Quote(key)))
	word := []byte(strconv.Quote(f.Layer))
	for ; at >= 0 && nth > 0; nth-- {
		next := bytes.Index(text[at+1:], word)
		if next < 0 {
			return
		}
		at += 1 + next
	}
	if at >= 0 {
		f.Line = 1 + bytes.Count(text[:at], []byte("\n"))
		f.Column = 1 + utf8.RuneCount(text[bytes.LastIndexByte(text[:at], '\n')+1:at])
	}
}

// manifestFindings is what is wrong with the profile's package.json, and with
// its exemptions.
func manifestFindings(c *Composed) []check.Finding {
	var findings []check.Finding
	if _, _, err := stack.ReadExemptions(c.Profile.Dir); err != nil {
		findings = append(findings, check.Finding{
			Code: check.Unreadable, Severity: check.Warning, File: filepath.Join(c.Profile.Dir, stack.ExemptionsFile),
			Message: err.Error(), Remedy: fault.Hint(repairable(err)),
		})
	}
	file := c.Profile.Manifest.Path()
	text, err := profile.ReadFile(file)
	if err != nil || !bytes.HasPrefix(text, []byte("\ufeff")) {
		return findings
	}
	return append(findings, check.Finding{
		Code: check.ByteOrderMark, Severity: check.Warning, File: file, Line: 1, Column: 1,
		Message: "the file begins with a byte-order mark, which the reference launcher and npm stop at",
		Remedy:  "save it as UTF-8 without one; whatever dsh writes has none",
	})
}
