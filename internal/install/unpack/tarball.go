package unpack

import (
	"archive/tar"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"time"
)

// WriteTarball writes an archive as registries have them, with "package/" in
// front of every name. The same members in the same order give the same bytes,
// for ever: nothing is compressed, for what a compressor makes changes with its
// version, and the archive is pinned by its hash. each calls add for every file,
// with as many bytes as the member says; other members are refused.
func WriteTarball(ctx context.Context, w io.Writer, each func(add func(Member, io.Reader) error) error) error {
	zw := newStored(w)
	tw := tar.NewWriter(zw)
	err := each(func(m Member, content io.Reader) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if m.Type != File {
			return fmt.Errorf("write archive: %q is no file", m.Name)
		}
		mode := int64(0o644)
		if m.Executable {
			mode = 0o755
		}
		h := &tar.Header{Typeflag: tar.TypeReg, Name: "package/" + m.Name, Size: m.Size, Mode: mode, ModTime: packedAt}
		if err := tw.WriteHeader(h); err != nil {
			return fmt.Errorf("write archive: %s: %w", m.Name, err)
		}
		if n, err := io.Copy(tw, content); err != nil || n != m.Size {
			return fmt.Errorf("write archive: %s: %w", m.Name, errors.Join(err, sizeError(n, m.Size)))
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := errors.Join(tw.Close(), zw.close()); err != nil {
		return fmt.Errorf("write archive: %w", err)
	}
	return nil
}

// packedAt is the time of all files in archives that npm makes.
var packedAt = time.Date(1985, 10, 26, 8, 15, 0, 0, time.UTC)

func sizeError(got, want int64) error {
	if got == want {
		return nil
	}
	return fmt.Errorf("it has %d bytes, and not %d", got, want)
}

// stored writes a gzip file (RFC 1952) of blocks that are not compressed
// (RFC 1951, 3.2.4).
type stored struct {
	w    io.Writer
	buf  []byte
	sum  uint32
	size uint32
	err  error
}

const storedMost = 1<<16 - 1 // bytes of a block

func newStored(w io.Writer) *stored {
	s := &stored{w: w, buf: make([]byte, 0, storedMost)}
	_, s.err = w.Write([]byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255}) // no name, no time, any system
	return s
}

func (s *stored) Write(p []byte) (int, error) {
	s.sum = crc32.Update(s.sum, crc32.IEEETable, p)
	s.size += uint32(len(p))
	total := len(p)
	for len(p) > 0 && s.err == nil {
		if len(s.buf) == storedMost {
			s.block(false)
		}
		n := min(len(p), storedMost-len(s.buf))
		s.buf, p = append(s.buf, p[:n]...), p[n:]
	}
	if s.err != nil {
		return 0, s.err
	}
	return total, nil
}

func (s *stored) block(last bool) {
	head := []byte{0, 0, 0, 0, 0}
	if last {
		head[0] = 1
	}
	binary.LittleEndian.PutUint16(head[1:], uint16(len(s.buf)))
	binary.LittleEndian.PutUint16(head[3:], ^uint16(len(s.buf)))
	_, err := s.w.Write(head)
	if err == nil {
		_, err = s.w.Write(s.buf)
	}
	s.buf, s.err = s.buf[:0], errors.Join(s.err, err)
}

func (s *stored) close() error {
	if s.err != nil {
		return s.err
	}
	s.block(true)
	end := binary.LittleEndian.AppendUint32(nil, s.sum)
	_, err := s.w.Write(binary.LittleEndian.AppendUint32(end, s.size))
	return errors.Join(s.err, err)
}
