// Package slot has the names and the types of the services that a boot provides
// before it mounts any row.
//
// It makes none of them: boot does, and tests of plugins do.
package slot

import (
	"context"
	"slices"

	"dsh/internal/action"
	"dsh/internal/boot/environ"
	"dsh/internal/boot/host"
)

// The names of the services. Rows cannot provide them.
const (
	CommandLine = "cmdlineArgs"       // Args
	Exit        = "appExit"           // ExitFunc
	Environment = "launchEnvironment" // LaunchEnvironment
	Ready       = "appReady"          // Readiness
	HomePath    = "dshHomePath"       // HomePathFunc
	Profile     = "profileContext"    // *ProfileContext
	Host        = "dshHost"           // Rows
	Say         = "dshSay"            // SayFunc
	Warn        = "dshWarn"           // WarnFunc
	Reloads     = "dshReloads"        // what follows the files; for the plugin that provides Live
	Keeping     = "dshKept"           // *Kept
)

// Live is the name of the service of the plugin that follows the profile's
// files; it is no slot, for a tree may have no such row.
const Live = "liveLayers"

// LaunchEnvironment is what the service Environment is.
type LaunchEnvironment = environ.Snapshot

// Args are the arguments of the app: all that follows the launcher's own.
type Args struct{ args []string }

// NewArgs copies args.
func NewArgs(args []string) Args { return Args{slices.Clone(args)} }

// Get returns the arguments word for word, in a copy that is the caller's.
func (a Args) Get() []string { return append([]string{}, a.args...) }

// ExitFunc asks for the end of the run with a code, and returns at once: the
// rows are stopped as after a signal. The first call counts.
type ExitFunc func(code int)

// Readiness tells when all rows have settled and the start has not failed.
type Readiness struct{ done <-chan struct{} }

// NewReadiness is ready when done is closed.
func NewReadiness(done <-chan struct{}) Readiness { return Readiness{done} }

// Done is closed when the start is over and went well.
func (r Readiness) Done() <-chan struct{} { return r.done }

// SayFunc prints a line on standard output.
type SayFunc func(line string)

// WarnFunc prints a warning of one line on standard error.
type WarnFunc func(line string)

// HomePathFunc joins path parts below the home; with none it is the home.
type HomePathFunc func(parts ...string) string

// ProfileContext is the profile that runs. Expressions see its paths.
type ProfileContext struct {
	Name      string
	Dir       string // of the profile
	PatchPath string // the profile's own patch file, there or not
	HomeDir   string
	Cwd       string   // where dsh was started
	Overlays  []string // the labels of the patches of this run, lowest first
	Version   string   // of dsh

	Env    action.Env
	Layers action.Layers // as at the start: the texts of the overlays are in them
}

// Expression is what expressions see.
func (p *ProfileContext) Expression() any {
	return map[string]any{
		"name": p.Name, "dir": p.Dir, "patchPath": p.PatchPath, "home": p.HomeDir, "cwd": p.Cwd,
		"overlays": append([]string{}, p.Overlays...),
	}
}

// Rows is what plugins may ask and want of the host that runs them.
type Rows interface {
	Rows() []host.Status
	Log(path string) []host.Line
	Restart(ctx context.Context, path string) error
	// Subscribe calls f for every event of every row, one at a time and in order,
	// until cancel is called. f may call Rows and Log, and nothing that waits.
	Subscribe(f func(host.Event)) (cancel func())
}

// LiveLayers is the service of Live.
type LiveLayers interface {
	// Reload composes the profile anew and applies what is different, at once.
	Reload(ctx context.Context) error
	// Last says how the newest reload ended.
	Last() Reload
	// Subscribe calls f after every reload, one at a time, until cancel is called.
	Subscribe(f func(Reload)) (cancel func())
}

// Reload is how one reload ended.
type Reload struct {
	Count   int      // reloads since the start; 0: the tree is the one of the start
	Changed []string // the ids of the rows that differ from before
	Err     error    // why the tree stayed as it was
}
