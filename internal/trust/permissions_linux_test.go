package trust

import (
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// needsPermissions makes the system refuse this test what permissions refuse,
// also if it is root's: its thread, which is not that of subtests, gives up the
// capabilities to pass over them.
func needsPermissions(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	const passOver = 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_DAC_READ_SEARCH
	runtime.LockOSThread()
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var had [2]unix.CapUserData // of both halves of the set
	if err := unix.Capget(&header, &had[0]); err != nil {
		t.Fatal(err)
	}
	less := had
	less[0].Effective &^= passOver
	if err := unix.Capset(&header, &less[0]); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Capset(&header, &had[0]); err != nil {
			t.Error(err)
		}
		runtime.UnlockOSThread()
	})
}
