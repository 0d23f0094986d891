// Package gittest is git repositories for tests: made from folders, and served
// over http and https by git's own program, which can be told to behave as other
// servers do: private, old, slow, silent.
//
// It is not part of the program.
package gittest
