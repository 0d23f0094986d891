// Package advisory is what is known against versions of npm packages: security
// advisories and reports of malicious packages, as a registry, OSV or a copy of
// OSV's data tell of them.
//
// It is not what a profile has, nor what becomes of a finding: it is asked about
// names and versions, and it has no network of its own.
package advisory
