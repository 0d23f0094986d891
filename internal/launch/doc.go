// Package launch is the command line: argv in, one typed command out. It is
// pure, and its rules are those of the reference launcher, with the options
// and commands of our own fitted in where the reference has only errors.
//
// It is not where commands are defined or run, and it never looks whether a
// profile, a file or a directory exists.
//
// # How argv is read
//
// Launcher options come first. The first word that is none of them starts the
// app's arguments, which stay as they were written; one "--" at that place is
// taken away. A first word without a leading dash names the profile, or is one
// of our commands (see [IsCommand]). Options of our own are recognised only
// until the profile is named, so that a command line that the reference
// understands means the same here.
//
// Arguments of our own commands are different: there a flag counts wherever it
// stands, and a negative number is no flag. Which flags take values is known to
// the program that defines the commands, so it passes a [Syntax] to
// [Own.Arrange].
package launch
