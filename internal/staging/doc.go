// Package staging is the one way in which dsh writes under its home: single
// files replaced atomically, transactions over a profile, and whole profiles
// exchanged, each so that a process that dies leaves the old state or the new.
//
// It is not where anything is decided: callers say which bytes go where, and
// staging knows nothing of manifests, packages or layers.
package staging
