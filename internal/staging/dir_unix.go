//go:build unix

package staging

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// dirHandle is the descriptor of a directory, and the filesystem it is on.
type dirHandle struct {
	fd         int
	filesystem filesystem
}

// filesystem is the number of a device.
type filesystem uint64

func openHandle(path string) (dirHandle, error) {
	fd, err := again(func() (int, error) { return unix.Open(path, openDirFlags|unix.O_DIRECTORY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return dirHandle{}, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return dirHandle{}, errors.Join(err, unix.Close(fd))
	}
	return dirHandle{fd, filesystem(st.Dev)}, nil
}

func (h dirHandle) close() error { return unix.Close(h.fd) }

func (d *Dir) mkdir(rel string) error { return unix.Mkdirat(d.handle.fd, rel, 0o755) }

func (d *Dir) openNew(rel string, perm fs.FileMode) (int, error) {
	return again(func() (int, error) {
		return unix.Openat(d.handle.fd, rel, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, uint32(perm.Perm()))
	})
}

func (d *Dir) create(rel string, perm fs.FileMode) (*os.File, error) {
	fd, err := d.openNew(rel, perm)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), d.below(rel)), nil
}

func (d *Dir) open(rel string) (*os.File, error) {
	fd, err := again(func() (int, error) { return unix.Openat(d.handle.fd, rel, unix.O_RDONLY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), d.below(rel)), nil
}

// write does without an os.File, whose registration with the poller and whose
// finalizer cost more than a small file.
func (d *Dir) write(rel string, data []byte, perm fs.FileMode) error {
	fd, err := d.openNew(rel, perm)
	if err != nil {
		return err
	}
	for len(data) > 0 && err == nil {
		const most = 1 << 30 // systems refuse, or cut, more than 2 GiB
		var n int
		n, err = again(func() (int, error) { return unix.Write(fd, data[:min(len(data), most)]) })
		data = data[max(n, 0):]
	}
	return errors.Join(err, unix.Close(fd))
}

func (d *Dir) link(rel string, dst *Dir, dstRel string) error {
	return unix.Linkat(d.handle.fd, rel, dst.handle.fd, dstRel, 0)
}

func (d *Dir) symlink(target, rel string) error {
	return unix.Symlinkat(target, d.handle.fd, rel)
}

// again calls f until no signal interrupts it.
func again(f func() (int, error)) (int, error) {
	for {
		n, err := f()
		if err != syscall.EINTR {
			return n, err
		}
	}
}

// neverLinks tells the refusals that hold for every file from those of one.
func neverLinks(err error) bool {
	return errors.Is(err, syscall.EXDEV) || errors.Is(err, syscall.ENOTSUP) || errors.Is(err, syscall.EOPNOTSUPP) || errors.Is(err, syscall.ENOSYS)
}
