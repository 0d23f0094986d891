package inspect

import (
	"context"
	"strings"

	"dsh/internal/check"
	"dsh/internal/compose"
	"dsh/internal/fault"
	"dsh/internal/installation"
	"dsh/internal/profile"
	"dsh/internal/stack"
)

// The codes of this package's findings.
const (
	RowUnresolved  check.Code = "row-unresolved"    // a row names a package or file that is not there
	RowNoEntry     check.Code = "row-without-entry" // the package is there, and what the row means in it is not
	ProgramRefused check.Code = "program-refused"   // what dsh.plugin.exec of a row's package names cannot be run
	ProgramTwice   check.Code = "program-twice"     // a second row is a program
	HostCopy       check.Code = "host-copy"         // a package of the harness stands in the profile
	HostDependency check.Code = "host-dependency"   // the profile itself depends on one
	PeerUnmet      check.Code = "peer-unmet"        // the installation is not what a package wants beside it
	PathMissing    check.Code = "path-missing"      // a path in a config leads nowhere
)

// Options say what to look at.
type Options struct {
	Profile      *profile.Profile
	Stack        *stack.Stack
	Tree         *compose.Tree // of the stack
	Installation installation.Installation
	// Rules are the path rules that the tree was composed with; nil has none.
	Rules compose.PathRules
	// BuiltIn says whether a plugin needs no package because it is compiled
	// in; nil for an installation whose plugins are packages.
	BuiltIn func(plugin string) bool
	// RowsOnly leaves out packages of the harness that stand in the profile,
	// for which all of node_modules is walked.
	RowsOnly bool
}

// Profile finds what is missing from the disk, or too much on it, for a profile
// to run. The findings about rows come in the order of the tree, then those
// about packages, sorted. It stops early when ctx ends.
func Profile(ctx context.Context, opts Options) []check.Finding {
	i := &inspection{Options: opts, births: births(opts.Tree), configs: configBirths(opts.Tree), packages: map[string]bool{}}
	for row := range opts.Tree.Mounted() {
		if ctx.Err() != nil {
			return i.findings
		}
		if row.Entry == nil {
			continue
		}
		i.name(row)
		i.paths(row)
	}
	i.programs()
	if !i.RowsOnly {
		i.hosts()
	}
	i.peers()
	return i.findings
}

// inspection is one look at a profile.
type inspection struct {
	Options
	births   map[*compose.Map]birth
	configs  map[*compose.Map]birth // of those that overrides wrote
	places   compose.Places
	packages map[string]bool // whether a package is to be had in a wider sense; see reachable
	walked   bool            // packages is filled
	findings []check.Finding
}

func (i *inspection) add(f check.Finding) { i.findings = append(i.findings, f) }

// command is a dsh plugin command on the profile that can be pasted.
func (i *inspection) command(words ...string) string {
	return fault.ShellWords(append([]string{"dsh", "plugin", "--profile", i.Options.Profile.Name.String()}, words...)...)
}

// IsHost says whether a package is part of the harness, so that a second copy
// of it is a second harness to the plugins that find it. The schema library is
// made to be there more than once.
func IsHost(name string) bool {
	return name == "cordis" || name == "@deepseek-ai/dsh" ||
		strings.HasPrefix(name, "@deepseek-ai/dsh-") || strings.HasPrefix(name, "@deepseek-ai/cordis")
}
