// Package inspect is the facts on disk about a composed profile: whether the
// packages and files that its rows and configs name are there, and whether
// packages of the harness stand in it that belong to the installation.
//
// It is not the check of the layers themselves, and it writes nothing.
package inspect
