package trust

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Approval is that the user lets the scripts of a package run.
type Approval struct {
	Name    string    `json:"name"`
	Version string    `json:"version"`
	Content string    `json:"content"`           // integrity of what was shown, as the lockfile writes it
	Scripts string    `json:"scripts,omitempty"` // digest of their text
	Since   time.Time `json:"since"`
}

// check refuses an approval that would hold for more than one content.
func (a Approval) check() error {
	switch {
	case a.Name == "":
		return errors.New("the package has no name")
	case a.Content == "":
		return errors.New("nothing says which content is meant")
	}
	return nil
}

// is says whether the approval is for a package with exactly that content. The
// content decides: a version of a repository's package says nothing.
func (a Approval) is(name, content string) bool { return a.Name == name && a.Content == content }

// Approvals are the packages whose scripts may run, kept in one file.
type Approvals struct{ record record[Approval] }

// OpenApprovals is the approvals in a file, which need not exist: then nothing is
// approved. Nothing is read yet.
func OpenApprovals(file string) *Approvals {
	return &Approvals{record[Approval]{
		file: file, what: "the approved scripts", none: "nothing approved",
		list:  func(d *document) *[]Approval { return &d.Approvals },
		whole: Approval.check,
		order: func(a, b Approval) int {
			return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Content, b.Content))
		},
	}}
}

// Approved says whether by a list of approvals the scripts of a package may run: only
// if it was approved by this name with exactly this content. A new version, commit or
// content was not.
func Approved(list []Approval, name, content string) bool {
	return content != "" && slices.ContainsFunc(list, func(p Approval) bool { return p.is(name, content) })
}

// List is every approval, sorted by name and version.
func (a *Approvals) List() ([]Approval, error) { return a.record.read() }

// Approve records an approval, in place of an older one of the same content. It
// waits until ctx ends for others that write the file.
func (a *Approvals) Approve(ctx context.Context, p Approval) error {
	err := p.check()
	if err == nil {
		err = a.record.update(ctx, "dsh plugin approve", func(list []Approval) []Approval {
			others := slices.DeleteFunc(list, func(old Approval) bool { return old.is(p.Name, p.Content) })
			return append(others, p)
		})
	}
	if err != nil {
		return fmt.Errorf("approving %s: %w", p.Name, err)
	}
	return nil
}

// Revoke takes the approvals of a package back, of one version or with "" of all,
// and says which there were. What was built stays built. It waits until ctx ends
// for others that write the file.
func (a *Approvals) Revoke(ctx context.Context, name, version string) ([]Approval, error) {
	meant := func(p Approval) bool { return p.Name == name && (version == "" || p.Version == version) }
	list, err := a.record.read()
	var revoked []Approval
	if err == nil && slices.ContainsFunc(list, meant) {
		err = a.record.update(ctx, "dsh plugin approve --revoke", func(list []Approval) []Approval {
			left := list[:0:0]
			for _, p := range list {
				if meant(p) {
					revoked = append(revoked, p)
				} else {
					left = append(left, p)
				}
			}
			return left
		})
	}
	if err != nil {
		return nil, fmt.Errorf("revoking the approval of %s: %w", name, err)
	}
	return revoked, nil
}

// Exposed is why others than the user may approve scripts here, "" if they may
// not: the file, or the directory that it is in, can be written by them.
func (a *Approvals) Exposed() string {
	if why := exposed(a.record.file); why != "" {
		return why + ", who may have let scripts run: look at what is approved"
	}
	return ""
}
