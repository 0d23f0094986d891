// Package mcp is a client of MCP servers: it starts a server that is a program,
// or reaches one by its address, asks it for its tools and calls them, and takes
// the whole process group of a program down again. The protocol itself is that of
// the official SDK.
//
// It is not a supervisor: a connection that is lost stays lost, see
// boot/plugins/mcpclient.
//
// # What a program gets
//
// Its environment is made from nothing: of dsh's own variables those of
// [BaseEnvironment], over them those of its configuration. It has a working
// directory of its own, a process group of its own on Unix (a job on Windows),
// standard input and output for the protocol, and what it writes to standard
// error is kept, bounded, for messages.
//
// # What a server behind an address gets
//
// Configured headers go only to the scheme, host and port that were configured,
// whatever a redirect or an endpoint event says, and never in place of those that
// the protocol sets itself.
package mcp
