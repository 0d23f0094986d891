package advisory

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"dsh/internal/fault"
)

// maxDocument is how many bytes one document of a copy may have.
const maxDocument = 16 << 20

const copyHint = "give the npm/all.zip of OSV, or a folder of its documents"

// ReadCopy reads a copy of OSV's data, the all.zip of an ecosystem or a folder of
// documents, with all folders in it. keep says of which packages. unreadable counts
// the documents that could not be read, of which why tells about one.
func ReadCopy(path string, keep func(name string) bool) (list []Advisory, unreadable int, why error, err error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil, fault.WithHint(fault.Errorf(fault.Other, "%s: there is no such file or folder", path), copyHint)
	}
	if err != nil {
		return nil, 0, nil, fmt.Errorf("read the copy of advisories: %w", err)
	}
	var files fs.FS
	if info.IsDir() {
		files = os.DirFS(path)
	} else {
		archive, err := zip.OpenReader(path)
		if errors.Is(err, zip.ErrFormat) {
			return nil, 0, nil, fault.WithHint(fault.Errorf(fault.Other, "%s is neither a folder nor a zip archive", path), copyHint)
		}
		if err != nil {
			return nil, 0, nil, fmt.Errorf("read the copy of advisories: %w", err)
		}
		defer archive.Close()
		return readAll(zipDocuments(archive), path, keep)
	}
	return readAll(folderDocuments(files), path, keep)
}

// documents calls visit with a function that opens each document.
type documents func(visit func(name string, open func() (io.ReadCloser, error)) error) error

func zipDocuments(archive *zip.ReadCloser) documents {
	return func(visit func(string, func() (io.ReadCloser, error)) error) error {
		for _, f := range archive.File {
			if strings.HasSuffix(f.Name, ".json") {
				if err := visit(f.Name, f.Open); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

func folderDocuments(files fs.FS) documents {
	return func(visit func(string, func() (io.ReadCloser, error)) error) error {
		return fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() || !strings.HasSuffix(name, ".json") {
				return err
			}
			return visit(name, func() (io.ReadCloser, error) { return files.Open(name) })
		})
	}
}

func readAll(all documents, path string, keep func(name string) bool) (list []Advisory, unreadable int, why error, err error) {
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	count := 0
	err = all(func(name string, open func() (io.ReadCloser, error)) error {
		count++
		group.Go(func() error {
			text, err := readDocument(open)
			if err != nil {
				return fmt.Errorf("read %s in %s: %w", name, path, err)
			}
			found, err := ParseOSV(text, "copy")
			found = slices.DeleteFunc(found, func(a Advisory) bool { return !keep(a.Package) })
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				if unreadable++; why == nil {
					why = fmt.Errorf("%s: %w", name, err)
				}
			}
			list = append(list, found...)
			return nil
		})
		return nil
	})
	if err := errors.Join(err, group.Wait()); err != nil {
		return nil, 0, nil, err
	}
	if count == 0 || count == unreadable {
		return nil, 0, nil, fault.WithHint(fault.Errorf(fault.Other, "%s holds no advisories", path), "give the npm/all.zip of OSV, or a folder of its documents")
	}
	slices.SortFunc(list, func(a, b Advisory) int { return strings.Compare(a.Package+"\x00"+a.ID, b.Package+"\x00"+b.ID) })
	return list, unreadable, why, nil
}

func readDocument(open func() (io.ReadCloser, error)) ([]byte, error) {
	f, err := open()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxDocument+1))
	if err == nil && len(text) > maxDocument {
		err = errors.New("it is too large")
	}
	return text, err
}
