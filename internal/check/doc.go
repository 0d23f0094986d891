// Package check is what can be found wrong with layers and with what they
// compose to: a finding says what, where, and what to do about it.
//
// It is pure: it reads no files, and whether a finding stops a command is the
// command's business.
package check
