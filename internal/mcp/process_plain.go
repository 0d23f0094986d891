//go:build unix && !linux

package mcp

import "syscall"

// endWithParent does nothing: a program whose dsh was killed sees the end of its
// input.
func endWithParent(*syscall.SysProcAttr) {}
