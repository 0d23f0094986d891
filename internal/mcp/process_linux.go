package mcp

import "syscall"

// endWithParent makes the system end a program whose dsh was killed.
func endWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
