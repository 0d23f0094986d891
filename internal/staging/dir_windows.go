package staging

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"
)

// dirHandle is the volume of a directory: calls are made by path here.
type dirHandle struct{ filesystem filesystem }

// filesystem is the name of a volume.
type filesystem string

func openHandle(path string) (dirHandle, error) {
	info, err := os.Stat(path)
	if err != nil {
		return dirHandle{}, err
	}
	if !info.IsDir() {
		return dirHandle{}, windows.ERROR_DIRECTORY
	}
	full, err := filepath.Abs(path)
	return dirHandle{filesystem(filepath.VolumeName(full))}, err
}

func (h dirHandle) close() error { return nil }

func (d *Dir) mkdir(rel string) error { return os.Mkdir(d.below(rel), 0o755) }

func (d *Dir) create(rel string, perm fs.FileMode) (*os.File, error) {
	return os.OpenFile(d.below(rel), os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
}

func (d *Dir) open(rel string) (*os.File, error) { return os.Open(d.below(rel)) }

func (d *Dir) write(rel string, data []byte, perm fs.FileMode) error {
	f, err := d.create(rel, perm)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

func (d *Dir) link(rel string, dst *Dir, dstRel string) error {
	return os.Link(d.below(rel), dst.below(dstRel))
}

func (d *Dir) symlink(target, rel string) error {
	err := os.Symlink(filepath.FromSlash(target), d.below(rel))
	if errors.Is(err, windows.ERROR_PRIVILEGE_NOT_HELD) {
		return errors.ErrUnsupported
	}
	return err
}

// shareBlocks is not offered here.
var shareBlocks = func(out, in *os.File) error { return errors.ErrUnsupported }

func cannotShare(err error) bool { return errors.Is(err, errors.ErrUnsupported) }

// neverLinks tells the refusals that hold for every file from those of one.
func neverLinks(err error) bool {
	return errors.Is(err, windows.ERROR_NOT_SAME_DEVICE) || errors.Is(err, windows.ERROR_NOT_SUPPORTED)
}
