package webserver

import "syscall"

// addressInUse is WSAEADDRINUSE, which is not what package syscall calls
// EADDRINUSE.
const addressInUse = syscall.Errno(10048)
