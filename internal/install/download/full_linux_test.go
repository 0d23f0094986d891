package download

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"dsh/internal/fault"
)

// A disk that is full is no fault of the network, so that nobody tries again.
func TestDiskFull(t *testing.T) {
	asked := 0
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked++
		w.Write(content)
	})
	dir := t.TempDir()
	if err := os.Symlink("/dev/full", filepath.Join(dir, "archive")); err != nil {
		t.Fatal(err)
	}
	_, err := Get(t.Context(), Options{Client: http.DefaultClient, Temp: dir, Retries: 3}, address+"/x.tgz")
	if !errors.Is(err, syscall.ENOSPC) || fault.ClassOf(err) != fault.Environment || asked != 1 {
		t.Errorf("asked %d times: %v (class %v)", asked, err, fault.ClassOf(err))
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
