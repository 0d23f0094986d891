// Package git reads commits of repositories, near and far, with the system's
// git: which commit a branch, a tag or a range of versions names, and the files
// of a commit or of a folder in it.
//
// It knows nothing of packages, and it never checks anything out: contents are
// read as git keeps them, so that no hook, filter, attribute or setting of the
// user, the machine or the repository has a say in what they are.
package git
