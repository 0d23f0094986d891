package trust

import "syscall"

// impossible is what the system says of a path at which nothing can be: with a
// zero byte, a forbidden character, or too long.
var impossible = []error{
	syscall.EINVAL,
	syscall.Errno(123), // ERROR_INVALID_NAME
	syscall.Errno(161), // ERROR_BAD_PATHNAME
	syscall.Errno(206), // ERROR_FILENAME_EXCED_RANGE
}
