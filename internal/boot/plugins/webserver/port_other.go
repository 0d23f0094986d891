//go:build !windows

package webserver

import "syscall"

// addressInUse is what the system says of a port that somebody has.
const addressInUse = syscall.EADDRINUSE
