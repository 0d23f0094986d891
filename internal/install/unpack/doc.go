// Package unpack reads archives of packages: tar, plain or compressed with gzip,
// bzip2, xz or zstd, and zip. What may be in one is said once, by [Rules], which
// also judge the members of trees and folders that come from elsewhere.
//
// It does not write: what is done with a member is the caller's affair, who gets
// a clean path from the rules.
package unpack
