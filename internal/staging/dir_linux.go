package staging

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

const openDirFlags = unix.O_PATH

// shareBlocks makes an empty file a copy of another without copying. Tests put
// another call here, for few filesystems know it.
var shareBlocks = func(out, in *os.File) error {
	for {
		err := unix.IoctlFileClone(int(out.Fd()), int(in.Fd()))
		if err != unix.EINTR {
			return err
		}
	}
}

// cannotShare tells the refusals that mean "not here" from failures.
func cannotShare(err error) bool {
	for _, no := range []error{unix.EOPNOTSUPP, unix.ENOTTY, unix.EINVAL, unix.EXDEV, unix.ENOSYS, unix.EPERM} {
		if errors.Is(err, no) {
			return true
		}
	}
	return false
}
