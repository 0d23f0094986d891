// Package trust is the user's word on which directories may add a layer to a
// profile: it finds the directory, seals what the word covers, and keeps the
// record of it.
//
// It is not the reader of layers: callers say which bytes they parsed and which
// files these name, and decide what to do with a directory that is not trusted.
package trust
