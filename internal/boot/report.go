package boot

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"dsh/internal/boot/host"
	"dsh/internal/boot/plugins"
	"dsh/internal/fault"
	"dsh/internal/staging"
)

// StartupError is a profile of which rows that it needs did not become active.
type StartupError struct {
	Profile string
	Rows    []*RowError // all that did not, in the order of the tree
	Total   int
	Report  string // the file with the full diagnostics, "" where it could not be written
}

func (e *StartupError) Error() string {
	var b strings.Builder
	entries := "entries"
	if len(e.Rows) == 1 {
		entries = "entry"
	}
	fmt.Fprintf(&b, "profile %q did not start: %d %s of its %d did not activate", e.Profile, len(e.Rows), entries, e.Total)
	for _, row := range e.Rows {
		b.WriteString("\n\t" + row.Error())
	}
	if e.Report != "" {
		b.WriteString("\n\tfull diagnostics: " + e.Report)
	}
	return b.String()
}

// Hint is that of the first row that has one.
func (e *StartupError) Hint() string {
	for _, row := range e.Rows {
		if hint := fault.Hint(row.Err); hint != "" {
			return hint
		}
	}
	return ""
}

// RowError is a row that is not active, and why.
type RowError struct {
	Path, Plugin, Layer string
	Err                 error  // of a failed row
	Waits               string // what another one waits for, in words
}

func (e *RowError) Error() string {
	what := e.Waits
	if e.Err != nil {
		what = e.Err.Error()
	}
	return fmt.Sprintf("%s: %s (from %s): %s", e.Path, e.Plugin, e.Layer, what)
}

func (e *RowError) Unwrap() error { return e.Err }

// rowFailure is why a row is not active.
func rowFailure(s host.Status) *RowError {
	e := &RowError{Path: s.Path, Plugin: s.Name, Layer: s.Origin, Err: s.Err}
	if e.Plugin == "" {
		e.Plugin = "(no plugin name)"
	}
	switch {
	case s.Err != nil:
	case s.Why != "":
		e.Waits = s.Why
	case len(s.Missing) > 0:
		e.Waits = "pending (waiting for services: " + strings.Join(s.Missing, ", ") + ")"
	default:
		e.Waits = s.State.String()
	}
	return e
}

// isRequired says whether the profile cannot do without a row.
func (r *run) isRequired(row host.RowSpec) bool {
	return slices.Contains(required, row.ID) || r.isProgram(row.Name)
}

// isProgram says whether a plugin is the program of a package.
func (r *run) isProgram(name string) bool {
	_, compiledIn := plugins.Lookup(name)
	return !compiledIn && r.current.Load().programs.has(name)
}

// audit looks at the rows after the start. Where one that is required is not
// active, or none is, the start has failed; of the others it warns.
func (r *run) audit() error {
	rows := r.host.Rows()
	var inactive []*RowError
	fatal := true // nothing runs
	for _, s := range rows {
		switch s.State {
		case host.Off:
		case host.Active:
			fatal = false
		default:
			inactive = append(inactive, rowFailure(s))
		}
	}
	for _, s := range rows {
		fatal = fatal || s.State != host.Active && s.State != host.Off && r.isRequired(s.RowSpec)
	}
	if fatal {
		report, err := r.writeReport(rows)
		if err != nil {
			r.log.Warn(fmt.Sprintf("the full diagnostics could not be written: %v", err))
		}
		return &StartupError{Profile: r.profile.Name, Rows: inactive, Total: len(rows), Report: report}
	}
	for _, e := range inactive {
		r.log.Warn(e.Error())
	}
	return nil
}

// writeReport writes what there is to know about a start that failed. It holds
// states, errors and logs of the rows and no config and no value of a variable.
func (r *run) writeReport(rows []host.Status) (path string, err error) {
	now := time.Now().UTC()
	id := make([]byte, 4)
	rand.Read(id)
	path = r.req.Env.Home.Path("logs", fmt.Sprintf("startup-%s-%x.log", now.Format("2006-01-02T15-04-05.000Z"), id))
	var b bytes.Buffer
	fmt.Fprintf(&b, "dsh %s, %s/%s, %s\nprofile %s in %s\nstarted in %s\n\nlayers, lowest first:\n",
		r.req.Version, runtime.GOOS, runtime.GOARCH, now.Format(time.RFC3339), r.profile.Name, r.profile.Dir, r.profile.Cwd)
	c := r.current.Load()
	for _, e := range c.Stack.Entries {
		fmt.Fprintf(&b, "  %s (%s, %s)\n", e.Label, e.Kind, e.State)
		if e.Err != nil {
			fmt.Fprintf(&b, "    %v\n", e.Err)
		}
	}
	for _, text := range slices.Concat(c.Notices, c.Warnings) {
		fmt.Fprintf(&b, "  %s\n", text)
	}
	b.WriteString("\nrows:\n")
	for _, s := range rows {
		fmt.Fprintf(&b, "  %s: %s (from %s): %s\n", s.Path, s.Name, s.Origin, s.State)
		if len(s.Provides) > 0 {
			fmt.Fprintf(&b, "    provides %s\n", strings.Join(s.Provides, ", "))
		}
		if s.State != host.Active && s.State != host.Off {
			fmt.Fprintf(&b, "    %s\n", rowFailure(s).Error())
		}
		for _, line := range r.host.Log(s.Path) {
			fmt.Fprintf(&b, "    %s %s\n", line.Time.UTC().Format("15:04:05.000"), line.Text)
		}
	}
	logs := r.req.Env.Home.Path("logs")
	if err := staging.MkdirAll(logs); err != nil {
		return "", err
	}
	if err := staging.WriteFile(path, []byte(fault.Discreet(b.String())), 0o600); err != nil {
		return "", err
	}
	// Their names sort by time.
	if old, err := filepath.Glob(filepath.Join(logs, "startup-*.log")); err == nil && len(old) > keptReports {
		for _, file := range old[:len(old)-keptReports] {
			if err := staging.RemoveAll(file); err != nil {
				return path, nil // the next one tries again
			}
		}
	}
	return path, nil
}

// keptReports is how many reports of starts stay.
const keptReports = 20
