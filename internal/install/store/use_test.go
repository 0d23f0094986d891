package store

import (
	"path/filepath"
	"testing"

	"dsh/internal/staging"
)

// A store that is in use, by reading or by adding, holds a share of its lock,
// and gives it back.
func TestStoreInUse(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	taken := func() bool {
		t.Helper()
		lock, err := staging.TryAcquire(filepath.Join(dir, useName), "test")
		if err == nil {
			err = lock.Release()
			if err != nil {
				t.Fatal(err)
			}
			return false
		}
		return true
	}
	archive := someArchive(t)
	first, second := Open(dir), Open(dir)
	if _, ok := second.Get(sumOf(archive)); ok {
		t.Error("there is something in no store")
	}
	if _, err := add(t, first, archive, Integrity{}); err != nil {
		t.Fatal(err)
	}
	if !taken() {
		t.Error("a store to which something is added is not in use")
	}
	if _, ok := second.Get(sumOf(archive)); !ok {
		t.Error("the entry is not there")
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if !taken() {
		t.Error("a store from which something is read is not in use")
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	if taken() {
		t.Error("a closed store is in use")
	}
}
