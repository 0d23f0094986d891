package archive

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"

	"dsh/internal/fault"
)

// Read reads an archive that may come from anybody. The whole list is checked
// before visit sees the first member; then visit gets one after another, and
// its content, which it need not read to the end. What visit was told holds
// only when Read returns no error: the hash of a member is known when its
// content has been read, and that none is missing at the end.
//
// What is wrong with the archive is of class Package or Policy.
func Read(r io.Reader, visit func(*Header, Member, io.Reader) error) (*Header, error) {
	zr, err := gzip.NewReader(r)
	if err != nil {
		return nil, notOurs(err)
	}
	tr := tar.NewReader(zr)
	h, err := readHeader(tr)
	if err != nil {
		return nil, err
	}
	for _, m := range h.Members {
		if err := readMember(tr, h, m, visit); err != nil {
			return nil, err
		}
	}
	if found, err := tr.Next(); err == nil {
		return nil, fault.Errorf(fault.Package, "it holds %q, which its list does not have", found.Name)
	} else if !errors.Is(err, io.EOF) {
		return nil, broken(err)
	}
	// gzip checks its own sum at the very end; a little padding may be there.
	if _, err := io.CopyN(io.Discard, zr, 1<<20); !errors.Is(err, io.EOF) {
		return nil, broken(err)
	}
	return h, nil
}

// Is says whether what begins so is an archive of this package, as far as that
// can be told from its first member's name.
func Is(r io.Reader) bool {
	zr, err := gzip.NewReader(r)
	if err != nil {
		return false
	}
	first, err := tar.NewReader(zr).Next()
	return err == nil && first.Name == headerName
}

// ErrOther is what [Read] answers when a file is no archive of a profile at all.
var ErrOther = fault.Errorf(fault.Package, "it is no archive of a profile")

// notOurs is the error for a file that begins like no archive of a profile.
func notOurs(err error) error {
	if _, classed := errors.AsType[fault.Classed](err); classed {
		return err
	}
	return ErrOther
}

// broken is the error for an archive that cannot be read to its end.
func broken(err error) error {
	if _, classed := errors.AsType[fault.Classed](err); classed {
		return err
	}
	if err == nil {
		return fault.Errorf(fault.Package, "something follows its end")
	}
	return fault.Errorf(fault.Package, "it is damaged or cut off: %w", err)
}

func readHeader(tr *tar.Reader) (*Header, error) {
	first, err := tr.Next()
	if err != nil || first.Name != headerName || first.Typeflag != tar.TypeReg {
		return nil, notOurs(err)
	}
	if first.Size > maxHeader {
		return nil, fault.Errorf(fault.Policy, "its list is larger than this program allows, which is %d bytes", maxHeader)
	}
	text, err := io.ReadAll(io.LimitReader(tr, maxHeader+1))
	if err != nil {
		return nil, broken(err)
	}
	h := &Header{}
	if err := json.Unmarshal(text, h); err != nil {
		// What a later format says differently is no mistake of this one.
		var which struct {
			Format  int
			Version string `json:"dsh"`
		}
		if json.Unmarshal(text, &which) == nil && which.Format != Format {
			return nil, &FormatError{which.Format, which.Version}
		}
		return nil, fault.Errorf(fault.Package, "its list %s cannot be read: %w", headerName, err)
	}
	if h.Format != Format {
		return nil, &FormatError{h.Format, h.Version}
	}
	if err := h.check(); err != nil {
		return nil, err
	}
	return h, nil
}

func readMember(tr *tar.Reader, h *Header, m Member, visit func(*Header, Member, io.Reader) error) error {
	found, err := tr.Next()
	if errors.Is(err, io.EOF) {
		return fault.Errorf(fault.Package, "it lacks %q", m.Path)
	}
	if err != nil {
		return broken(err)
	}
	switch {
	case found.Typeflag == tar.TypeSymlink || found.Typeflag == tar.TypeLink:
		return fault.Errorf(fault.Policy, "%q is a link to %q, and an archive of a profile holds files only", found.Name, found.Linkname)
	case found.Typeflag != tar.TypeReg:
		return fault.Errorf(fault.Policy, "%q is no file, and an archive of a profile holds files only", found.Name)
	case found.Name != m.Path:
		return fault.Errorf(fault.Package, "it holds %q where its list has %q", found.Name, m.Path)
	case found.Size != m.Size:
		return fault.Errorf(fault.Package, "%q has %d bytes and its list says %d", m.Path, found.Size, m.Size)
	}
	hash := sha256.New()
	content := &memberReader{r: io.TeeReader(tr, hash)}
	err = visit(h, m, content)
	if content.err != nil {
		return broken(content.err)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", m.Path, err)
	}
	if _, err := io.Copy(io.Discard, content); err != nil {
		return broken(err)
	}
	if got := hex.EncodeToString(hash.Sum(nil)); got != m.SHA256 {
		return fault.Errorf(fault.Package, "%q is not what its list says\n\tlisted: %s\n\tfound:  %s", m.Path, m.SHA256, got)
	}
	return nil
}

// memberReader remembers that the archive, and not who reads it, failed.
type memberReader struct {
	r   io.Reader
	err error
}

func (m *memberReader) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		m.err = err
	}
	return n, err
}
