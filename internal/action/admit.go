package action

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"dsh/internal/advisory"
	"dsh/internal/fault"
	"dsh/internal/install"
	"dsh/internal/trust"
)

// MaliciousError refuses packages that are made to do harm. Nothing was changed.
type MaliciousError struct {
	Packages []MaliciousPackage
	File     string // the advisories that say so
}

// MaliciousPackage is one of them.
type MaliciousPackage struct {
	Name, Version string
	ID            string // of the advisory
	Summary       string
	Chain         string // from the profile to it
}

func (e *MaliciousError) Error() string {
	var b strings.Builder
	b.WriteString("malicious packages are not installed")
	for _, p := range e.Packages {
		fmt.Fprintf(&b, "\n\t%s@%s: %s", p.Name, p.Version, p.ID)
		if p.Summary != "" {
			fmt.Fprintf(&b, " (%s)", p.Summary)
		}
		fmt.Fprintf(&b, "\n\tasked for by: %s", p.Chain)
	}
	return b.String()
}

// Class is Policy.
func (e *MaliciousError) Class() fault.Class { return fault.Policy }

// Hint says where that is known from.
func (e *MaliciousError) Hint() string {
	return "what is known of malicious packages is kept in " + e.File + "; dsh plugin audit --save brings it up to date"
}

// admit refuses packages that the advisories which are kept call malicious, unless
// the policy says to warn of them or exempts them. Other advisories are for audit.
// Where none are kept, this costs one look for the file.
func (env Env) admit(job *install.Job, list []install.Newcomer) (warnings []string, err error) {
	path := env.advisoriesPath()
	kept, err := advisory.OpenKept(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, kept.Close()) }()
	refused := &MaliciousError{File: path}
	for _, n := range list {
		if !isKnown(job.Registry, n.Name) || job.Policy.IsExempt(trust.MalwareRule, n.Name, n.Version) {
			continue
		}
		found, err := kept.Find(n.Name)
		if err != nil {
			return nil, err
		}
		for i := range found {
			if one := &found[i]; one.Malicious() && one.Affects(n.Version) {
				refused.Packages = append(refused.Packages, MaliciousPackage{n.Name, n.Version, one.ID, one.Summary, n.Chain()})
			}
		}
	}
	if len(refused.Packages) > 0 && job.Policy.RefusesMalware() {
		return nil, refused
	}
	for _, p := range refused.Packages {
		warnings = append(warnings, fmt.Sprintf("%s@%s is malicious: %s (%s)", p.Name, p.Version, p.ID, p.Chain))
	}
	return warnings, nil
}
