// Package install brings packages into a profile: it reads specs, resolves
// whole dependency trees, fetches and unpacks what is missing, lays out
// node_modules, and keeps the manifest, the lockfile and the bundle list in
// step, all in one transaction.
//
// It does not compose layers, does not know templates or installations, and
// never runs anything that it downloads.
package install
