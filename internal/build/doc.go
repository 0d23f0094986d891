// Package build is running the scripts of a package: in an environment made from
// nothing, for a limited time, with their output kept, and confined as far as the
// system can.
//
// It is not who decides that scripts may run, nor where what they built goes.
package build
