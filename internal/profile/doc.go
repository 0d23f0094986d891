// Package profile is the dsh home and the profiles in it: where things are,
// what a profile may be called, its manifest and the edits of it, and how a
// profile comes to be.
//
// It is not the installer and not the composer: it reads no bundle and knows
// no package but the names in the manifest's lists.
package profile
