//go:build !windows

package fault

import "syscall"

// environmentErrors are what the system says when only the user can help.
var environmentErrors = []error{
	syscall.ENOSPC, syscall.EROFS, syscall.EBUSY, syscall.EDQUOT, syscall.EIO,
}
