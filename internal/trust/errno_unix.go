//go:build !windows

package trust

import "syscall"

// impossible is what the system says of a path at which nothing can be: below a
// file, with a zero byte, or too long.
var impossible = []error{syscall.ENOTDIR, syscall.EINVAL, syscall.ENAMETOOLONG}
