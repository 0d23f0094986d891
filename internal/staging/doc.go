// Package staging is the one way in which dsh writes under its home: single
// files replaced atomically, transactions over a profile, whole profiles made,
// exchanged, moved and removed, each so that a process that dies leaves the old
// state or the new, and the generations to which a user can go back.
//
// It is not where anything is decided: callers say which bytes go where, and
// staging knows nothing of manifests, packages or layers.
package staging
