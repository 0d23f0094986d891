package archive

import (
	"archive/tar"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/klauspost/compress/gzip"

	"dsh/internal/fault"
)

// Content is a member with its content. Size and SHA256 need not be set.
type Content struct {
	Member
	// Open gives the content, the same each time.
	Open func() (io.ReadCloser, error)
}

// Write writes an archive. What h says of format and members is filled in. Each
// content is read twice; one that changes meanwhile, or that [Read] would
// refuse, is an error.
func Write(w io.Writer, h Header, contents []Content) error {
	contents = slices.Clone(contents)
	slices.SortFunc(contents, func(a, b Content) int { return cmp.Compare(a.Path, b.Path) })
	h.Format, h.Members = Format, []Member{}
	for i := range contents {
		c := &contents[i]
		var err error
		if c.Size, c.SHA256, err = c.copyTo(io.Discard); err != nil {
			return err
		}
		h.Members = append(h.Members, c.Member)
	}
	if err := h.check(); err != nil {
		return fmt.Errorf("write the archive: %w", err)
	}
	text, err := json.MarshalIndent(h, "", "  ")
	if err != nil {
		return err
	}
	text = append(text, '\n')

	zw := gzip.NewWriter(w) // whose header has neither name nor time
	tw := tar.NewWriter(zw)
	if err := tw.WriteHeader(entry(headerName, int64(len(text)), false)); err != nil {
		return err
	}
	if _, err := tw.Write(text); err != nil {
		return err
	}
	for _, c := range contents {
		if err := tw.WriteHeader(entry(c.Path, c.Size, c.Executable)); err != nil {
			return fmt.Errorf("write the archive: %w", err)
		}
		size, sum, err := c.copyTo(tw)
		if err == nil && (size != c.Size || sum != c.SHA256) || err == tar.ErrWriteTooLong {
			err = fault.Errorf(fault.Environment, "%s changed while it was read", c.Path)
		}
		if err != nil {
			return err
		}
	}
	if err := tw.Close(); err != nil {
		return err
	}
	return zw.Close()
}

// copyTo copies the content and measures it.
func (c *Content) copyTo(w io.Writer) (size int64, sum string, err error) {
	r, err := c.Open()
	if err != nil {
		return 0, "", err
	}
	defer r.Close()
	hash := sha256.New()
	size, err = io.Copy(io.MultiWriter(w, hash), r)
	return size, hex.EncodeToString(hash.Sum(nil)), err
}

// entry is the tar header of a file: nothing of its machine, its owner or its
// time.
func entry(path string, size int64, executable bool) *tar.Header {
	mode := int64(0o644)
	if executable {
		mode = 0o755
	}
	return &tar.Header{Typeflag: tar.TypeReg, Name: path, Size: size, Mode: mode, ModTime: time.Unix(0, 0)}
}
