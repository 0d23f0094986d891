//go:build !linux

package trust

import (
	"os"
	"testing"
)

// needsPermissions skips where the system refuses this process nothing.
func needsPermissions(t *testing.T) {
	t.Helper()
	if os.Geteuid() <= 0 {
		t.Skip("no permission is refused to root, nor by the modes of Windows")
	}
}
