// Package pkgpath is two kinds of paths inside of a package: [PackagePath], which
// says where a file lives, and [RelativePath], which an author wrote.
//
// A PackagePath is made only from the fixed locations and, with
// [PackagePath.Child], from the names that a listing has. A RelativePath is made
// only by [Parse]; who holds one holds the proof that it begins with ./ and that
// no .. in it leads above the root, read from left to right.
//
// That proof is of the text alone. It is necessary and not sufficient: a link on
// the way can lead anywhere, so that whether a path stays inside is asked of what
// holds the package. This package touches no disk.
package pkgpath
