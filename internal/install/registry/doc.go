// Package registry is the client of npm registries: which registry a package
// comes from and with which credentials, what the registry knows about it,
// which version a spec picks, and the bytes of its archive.
//
// It is not the resolver and not the store: it follows no dependencies, checks
// no content against its hash, and writes nothing to disk.
package registry
