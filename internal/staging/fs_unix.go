//go:build unix

package staging

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// ephemeral is true for what passes when somebody else lets go: a program that
// is being written or run, a name that a network filesystem keeps busy. That
// of a mount point does not pass, and the wait for it is short.
func ephemeral(err error) bool {
	return errors.Is(err, syscall.EBUSY) || errors.Is(err, syscall.ETXTBSY)
}

// syncDir syncs a directory. Filesystems that cannot, say so in several ways,
// and there is nothing to be done about it.
func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) || errors.Is(err, syscall.EBADF) {
		err = nil
	}
	return errors.Join(err, d.Close())
}

// cannotLink tells the refusals that mean "no hard link here" from failures.
func cannotLink(err error) bool {
	for _, no := range []syscall.Errno{
		syscall.EXDEV, syscall.EPERM, syscall.EMLINK, syscall.ENOTSUP, syscall.EOPNOTSUPP, syscall.ENOSYS,
	} {
		if errors.Is(err, no) {
			return true
		}
	}
	return false
}

// otherFilesystem is true when a rename was refused for that reason.
func otherFilesystem(err error) bool { return errors.Is(err, syscall.EXDEV) }

// otherDevice says whether a directory is on another device than the one above.
func otherDevice(path string) (bool, error) {
	var here, above syscall.Stat_t
	if err := syscall.Lstat(path, &here); err != nil {
		return false, &os.PathError{Op: "lstat", Path: path, Err: err}
	}
	if err := syscall.Lstat(filepath.Dir(path), &above); err != nil {
		return false, &os.PathError{Op: "lstat", Path: path, Err: err}
	}
	return here.Dev != above.Dev, nil
}
