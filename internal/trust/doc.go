// Package trust is the user's word on which directories may add a layer to a
// profile and which packages may run scripts: it finds the directory, seals what
// the word covers, keeps the records, and reads what settings for pnpm say.
// It also reads the policy of a team, and holds packages against it.
//
// It is not the reader of layers: callers say which bytes they parsed and which
// files these name, and decide what to do with a directory that is not trusted.
// Nor does it run scripts.
package trust
