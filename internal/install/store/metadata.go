package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"dsh/internal/staging"
)

// MetadataAge is how long what registries said is kept without being asked for
// again.
const MetadataAge = 30 * 24 * time.Hour

// Metadata counts the files that say what registries know of packages.
type Metadata struct {
	Files int
	Bytes int64
}

// MetadataIn counts all below a directory, which need not be there.
func MetadataIn(dir string) (Metadata, error) {
	return walkMetadata(dir, func(string, fs.FileInfo) (bool, error) { return true, nil })
}

// PruneMetadata removes the files below a directory, which need not be there,
// that were written before a time, and what dead processes left. A dry run only
// counts them.
func PruneMetadata(dir string, before time.Time, dryRun bool) (removed Metadata, err error) {
	return walkMetadata(dir, func(path string, info fs.FileInfo) (bool, error) {
		switch {
		case info.IsDir() && !dryRun:
			return false, staging.SweepTemp(path)
		case info.IsDir() || !info.ModTime().Before(before):
			return false, nil
		case dryRun:
			return true, nil
		}
		return true, staging.OS.Remove(path)
	})
}

// walkMetadata calls f with directories, before what is in them, and files, and
// counts the files of which it says so. What is gone meanwhile does not matter.
func walkMetadata(dir string, f func(path string, info fs.FileInfo) (bool, error)) (m Metadata, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		var info fs.FileInfo
		if err == nil {
			info, err = d.Info()
		}
		if err == nil && !info.IsDir() && !info.Mode().IsRegular() {
			return nil
		}
		counts := false
		if err == nil {
			counts, err = f(path, info)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && counts && !info.IsDir() {
			m.Files++
			m.Bytes += info.Size()
		}
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		return m, fmt.Errorf("look through the metadata of packages: %w", err)
	}
	return m, nil
}
