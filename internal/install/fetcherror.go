package install

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// FetchError says which package could not be brought into the store, from where
// that was tried, and who asks for it.
type FetchError struct {
	Package string   // name@version
	Host    string   // that was asked, "" for none
	Chain   []string // from the profile to the package, each as name@version
	Err     error
}

func (e *FetchError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %v", e.Package, e.Err)
	if e.Host != "" && !strings.Contains(b.String(), e.Host) {
		fmt.Fprintf(&b, "\n\tfrom:   %s", e.Host)
	}
	if len(e.Chain) > 1 {
		fmt.Fprintf(&b, "\n\tasked for by: %s", fromProfile(e.Chain...))
	}
	return b.String()
}

func (e *FetchError) Unwrap() error { return e.Err }

// wrapFetch adds to the error of a download for which package of a lock it was,
// the host that was asked, and the shortest chain that leads there.
func wrapFetch(lock *Lock, at string, err error, host string) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	var shortest []string
	for _, name := range sortedKeys(lock.Wanted) {
		lock.reach(name, func(reached string, chain func() []string) {
			if reached != at {
				return
			}
			if found := chain(); shortest == nil || len(found) < len(shortest) {
				shortest = found
			}
		})
	}
	return &FetchError{Package: lock.Nodes[at].describe(), Host: host, Chain: shortest, Err: err}
}
