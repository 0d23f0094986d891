package staging

import (
	"errors"
	"path/filepath"
	"strconv"
	"testing"
)

func BenchmarkWriteFile(b *testing.B) {
	path := filepath.Join(b.TempDir(), "f")
	for i := 0; b.Loop(); i++ {
		must(b, WriteFile(path, []byte(strconv.Itoa(i)), 0o644))
	}
}

// A transaction as a small update makes it: two small files and a package.
func BenchmarkTx(b *testing.B) {
	home := b.TempDir()
	fullProfile(b, home)
	for i := 0; b.Loop(); i++ {
		tx, err := Begin(b.Context(), placeIn(home), Options{})
		must(b, err)
		must(b, errors.Join(
			tx.WriteFile("package.json", []byte(strconv.Itoa(i)), 0o644),
			tx.WriteFile("dsh-lock.yaml", []byte(strconv.Itoa(i)), 0o644),
			tx.Replace("node_modules/a", stagePackage(b, tx, "a", strconv.Itoa(i))),
			tx.Commit()))
	}
}

// What a command pays that finds nothing to recover.
func BenchmarkRecoverHealthy(b *testing.B) {
	home := b.TempDir()
	fullProfile(b, home)
	for b.Loop() {
		must(b, Recover(b.Context(), placeIn(home)))
	}
}
