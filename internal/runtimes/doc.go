// Package runtimes is the Node.js harnesses that dsh installed: what is known of
// releases of the launcher, which Node.js runs one, what is in the home, and
// which of them the user chose.
//
// It does not install, and it does not start anything but `node --version`.
package runtimes
