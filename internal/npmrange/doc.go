// Package npmrange is npm's versions and version ranges: which strings are
// one, how versions are ordered, and which versions a range admits.
//
// It is not a resolver: which of several admitted versions npm takes (tags,
// deprecations, engines) is for the caller to say.
//
// Versions of the plain form are read and ordered here, because a tree asks for
// thousands; what looks unusual is judged by Masterminds/semver, after npm's
// own trimming and limits, which is also what the tests compare with. Ranges are a grammar of this package: they are reduced
// to comparators as node-semver reduces them, because the range languages of
// the two differ where prereleases, wildcards and empty alternatives occur.
package npmrange
