package fault

import "syscall"

// environmentErrors are what the system says when only the user can help.
var environmentErrors = []error{
	syscall.Errno(32),  // ERROR_SHARING_VIOLATION: a file in use
	syscall.Errno(33),  // ERROR_LOCK_VIOLATION
	syscall.Errno(39),  // ERROR_HANDLE_DISK_FULL
	syscall.Errno(112), // ERROR_DISK_FULL
	syscall.Errno(19),  // ERROR_WRITE_PROTECT
}
