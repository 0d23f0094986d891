package staging

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/windows"
)

// ephemeral is true for the refusals that a scanner or indexer causes.
func ephemeral(err error) bool {
	return errors.Is(err, windows.ERROR_ACCESS_DENIED) ||
		errors.Is(err, windows.ERROR_SHARING_VIOLATION) ||
		errors.Is(err, windows.ERROR_LOCK_VIOLATION)
}

// syncDir does nothing: Windows has no such call, NTFS keeps a log of names.
func syncDir(string) error { return nil }

// cannotLink tells the refusals that mean "no hard link here" from failures.
func cannotLink(err error) bool {
	for _, no := range []syscall.Errno{
		windows.ERROR_NOT_SAME_DEVICE, windows.ERROR_TOO_MANY_LINKS,
		windows.ERROR_INVALID_FUNCTION, windows.ERROR_NOT_SUPPORTED, windows.ERROR_ACCESS_DENIED,
	} {
		if errors.Is(err, no) {
			return true
		}
	}
	return false
}

// otherFilesystem is true when a rename was refused for that reason.
func otherFilesystem(err error) bool { return errors.Is(err, windows.ERROR_NOT_SAME_DEVICE) }

// renameNoReplace has no counterpart that also takes long paths.
func renameNoReplace(oldpath, newpath string) error { return errors.ErrUnsupported }

// exchange has no counterpart.
func exchange(a, b string) error { return errors.ErrUnsupported }

// isMount does not find volumes that are mounted in a folder: their junction is a
// link to everything here.
func isMount(path string) (bool, error) {
	_, err := os.Lstat(path)
	return false, err
}

// bootID is when the system started, to ten minutes, for the clock is set and
// the two times are not read at once. Just at the turn of ten minutes one start
// looks like two: then something is checked that needed no check.
func bootID() string {
	const grain = 10 * time.Minute
	up := windows.DurationSinceBoot()
	return "started " + time.Now().Add(-up).Round(grain).UTC().Format(time.RFC3339)
}

// identity is the file index, which NTFS does not use twice, and the creation
// time for filesystems that do.
func identity(path string) (string, error) {
	fail := func(err error) (string, error) {
		return "", &os.PathError{Op: "identify", Path: path, Err: err}
	}
	// Lstat first: it accepts paths of any length and gives the usual errors.
	if _, err := os.Lstat(path); err != nil {
		return "", err
	}
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return fail(err)
	}
	const share = windows.FILE_SHARE_READ | windows.FILE_SHARE_WRITE | windows.FILE_SHARE_DELETE
	const flags = windows.FILE_FLAG_BACKUP_SEMANTICS | windows.FILE_FLAG_OPEN_REPARSE_POINT
	h, err := windows.CreateFile(name, 0, share, nil, windows.OPEN_EXISTING, flags, 0)
	if err != nil {
		return fail(err)
	}
	defer func() { _ = windows.CloseHandle(h) }()
	var info windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(h, &info); err != nil {
		return fail(err)
	}
	return fmt.Sprintf("file %x%08x born %d", info.FileIndexHigh, info.FileIndexLow, info.CreationTime.Nanoseconds()), nil
}
