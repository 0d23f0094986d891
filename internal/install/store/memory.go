package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/semaphore"

	"dsh/internal/install/manifest"
	"dsh/internal/install/store/inflate"
	"dsh/internal/install/unpack"
	"dsh/internal/staging"
)

// Archives are unpacked from memory where they are small enough. What all
// together take is bounded: packed ones by the budget, unpacked ones by the
// number of unpackers.
const (
	maxPacked   = 16 << 20 // of one archive in memory
	packedTotal = 48 << 20 // of all, and one more may grow beyond it
	maxInMemory = 32 << 20 // of one unpacked archive in memory
	maxOwn      = 4 << 20  // of the same, in the memory that an unpacker has to itself
	maxLarge    = 2        // unpacked archives in memory that are larger
)

// packedSizes are the sizes of the buffers that archives are read into.
var packedSizes = [...]int{64 << 10, 256 << 10, 1 << 20, 4 << 20, maxPacked}

var (
	packedPools  [len(packedSizes)]sync.Pool
	packedBudget = semaphore.NewWeighted(packedTotal)
	packedBeyond = semaphore.NewWeighted(1) // the one that grows beyond the budget
)

// packed is an archive in memory.
type packed struct {
	data   []byte
	buffer *[]byte
	class  int // of the buffer's size
	weight int64
	beyond bool
}

// take gives the archive a buffer of a class in place of the one that it has,
// when there is memory for it. The first buffer is waited for. A larger one is
// only taken when it is there, or by one archive at a time: archives that hold
// memory and wait for each other would wait for ever.
func (p *packed) take(ctx context.Context, class int) error {
	size := int64(packedSizes[class])
	switch more := size - p.weight; {
	case p.beyond:
	case p.buffer == nil:
		if err := packedBudget.Acquire(ctx, size); err != nil {
			return err
		}
		p.weight = size
	case packedBudget.TryAcquire(more):
		p.weight = size
	default:
		if err := packedBeyond.Acquire(ctx, 1); err != nil {
			return err
		}
		p.beyond = true
	}
	buffer, _ := packedPools[class].Get().(*[]byte)
	if buffer == nil {
		made := make([]byte, size)
		buffer = &made
	}
	n := copy(*buffer, p.data)
	if p.buffer != nil {
		packedPools[p.class].Put(p.buffer)
	}
	p.buffer, p.class, p.data = buffer, class, (*buffer)[:n]
	return nil
}

func (p *packed) free() {
	if p.buffer != nil {
		packedPools[p.class].Put(p.buffer)
	}
	packedBudget.Release(p.weight)
	if p.beyond {
		packedBeyond.Release(1)
	}
	*p = packed{}
}

// readArchive reads an archive into memory. It reports false where that is not
// the whole of it; the rest is still in the reader.
func readArchive(ctx context.Context, archive io.Reader) (p *packed, whole bool, err error) {
	p = new(packed)
	defer func() {
		if err != nil {
			p.free()
		}
	}()
	class := 0
	if sized, ok := archive.(interface{ Len() int }); ok {
		for class < len(packedSizes)-1 && sized.Len() >= packedSizes[class] { // one more byte tells the end
			class++
		}
	}
	for ; class < len(packedSizes); class++ {
		if err := p.take(ctx, class); err != nil {
			return p, false, err
		}
		for len(p.data) < len(*p.buffer) {
			if err := ctx.Err(); err != nil {
				return p, false, err
			}
			n, err := archive.Read((*p.buffer)[len(p.data):])
			p.data = (*p.buffer)[:len(p.data)+n]
			if err == io.EOF {
				return p, true, nil
			}
			if err != nil {
				return p, false, err
			}
		}
	}
	return p, false, nil
}

// unpacker unpacks one archive at a time, with memory that it keeps.
type unpacker struct {
	own     []byte // for an unpacked archive of usual size
	large   []byte // for a larger one, while it is unpacked
	inflate inflate.Decoder
	members []member
	files   []fileInMemory
	rules   unpack.Rules
	list    listingBuilder
}

// fileInMemory is a file that is to be written.
type fileInMemory struct {
	name       string
	executable bool
	data       []byte
}

// unpackers are as many as there are processors, since each keeps one busy.
var unpackers = sync.OnceValue(func() chan *unpacker {
	count := runtime.GOMAXPROCS(0)
	all := make(chan *unpacker, count)
	for range count {
		all <- new(unpacker)
	}
	return all
})

// large is the memory for unpacked archives that are large. It is made when it is
// needed, and kept: commands run without collecting garbage.
var large = func() chan []byte {
	all := make(chan []byte, maxLarge)
	for range maxLarge {
		all <- nil
	}
	return all
}()

func takeUnpacker(ctx context.Context) (*unpacker, error) {
	select {
	case u := <-unpackers():
		return u, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (u *unpacker) giveBack() {
	u.free()
	unpackers() <- u
}

func (u *unpacker) free() {
	clear(u.members) // their names
	clear(u.files)
	if u.large != nil {
		large <- u.large
		u.large = nil
	}
}

// unpack writes the files of an archive into an empty directory and lists them.
// Whatever is wrong with the archive, or rare, is found before anything is
// written, and is left to unpackStream, which says it in its words.
//
// All files are written without [os.Root]: the directory is new and nobody else
// knows of it, there is no link in it, since only files and directories are
// made, and the names have passed the rules.
func (u *unpacker) unpack(ctx context.Context, archive []byte, limits unpack.Limits, dir *staging.Dir) (listing, error) {
	out, ok := u.gunzip(ctx, archive)
	if ok = ok && !limits.TooDense(int64(len(out)), int64(len(archive))); ok {
		u.members, ok = walkTar(out, u.members[:0])
	}
	if !ok {
		return unpackStream(ctx, bytes.NewReader(archive), limits, dir)
	}
	known, err := u.plan(limits)
	if err != nil {
		return listing{}, err
	}
	u.list.begin(u.rules.Dirs())
	for _, made := range u.list.dirs {
		if err := dir.Mkdir(made); err != nil {
			return listing{}, fmt.Errorf("unpack %s: %w", made, err)
		}
	}
	for i := range u.files {
		if err := ctx.Err(); err != nil {
			return listing{}, err
		}
		f := &u.files[i]
		if err := dir.WriteFile(f.name, f.data, fileMode(f.executable)); err != nil {
			return listing{}, fmt.Errorf("unpack %s: %w", f.name, err)
		}
		u.list.add(f.name, int64(len(f.data)), f.executable, sha256.Sum256(f.data))
	}
	return u.list.done(known), nil
}

// plan applies the rules to the members and sorts the files.
func (u *unpacker) plan(limits unpack.Limits) (known facts, err error) {
	u.rules.Reset(unpack.Options{Limits: limits, Strip: true})
	u.files = u.files[:0]
	var text []byte
	for _, m := range u.members {
		name, again, err := u.rules.Admit(m.unpack())
		if err != nil {
			return facts{}, err
		}
		if name == "" {
			continue
		}
		if again {
			i := slices.IndexFunc(u.files, func(f fileInMemory) bool { return f.name == name })
			if !bytes.Equal(u.files[i].data, m.data) {
				return facts{}, unpack.ErrTwice(m.unpack())
			}
			continue
		}
		switch {
		case name == packageFile && m.size <= manifest.MaxSize:
			text = m.data
		case name == bindingFile:
			known.traits |= hasScripts
		}
		u.files = append(u.files, fileInMemory{name, m.executable, m.data})
	}
	programs, more := read(text)
	if len(programs) > 0 {
		for i := range u.files {
			f := &u.files[i]
			f.executable = f.executable || programs[f.name]
		}
	}
	slices.SortFunc(u.files, func(a, b fileInMemory) int { return strings.Compare(a.name, b.name) })
	known.traits |= more.traits | traitsKnown
	known.pkg = more.pkg
	return known, nil
}

// gunzip unpacks into the unpacker's own memory. It reports false for what is
// too large, or not one whole gzip member.
func (u *unpacker) gunzip(ctx context.Context, archive []byte) (out []byte, ok bool) {
	const trailer = 8 // checksum and size
	packed, ok := cutGzipHeader(archive)
	if !ok || len(packed) < trailer {
		return nil, false
	}
	end := packed[len(packed)-trailer:]
	size := int64(binary.LittleEndian.Uint32(end[4:]))
	if size > maxInMemory {
		return nil, false
	}
	memory, ok := u.memory(ctx, size)
	if !ok {
		return nil, false
	}
	n, read, err := u.inflate.Inflate(memory, packed)
	out = memory[:n]
	return out, err == nil && read == len(packed)-trailer && int64(n) == size && crc32.ChecksumIEEE(out) == binary.LittleEndian.Uint32(end)
}

// memory is room for an unpacked archive. Who has the memory for a large one
// waits for nobody else.
func (u *unpacker) memory(ctx context.Context, size int64) ([]byte, bool) {
	if size <= maxOwn {
		if size > int64(len(u.own)) {
			u.own = make([]byte, min(max(2*size, 1<<20), maxOwn))
		}
		return u.own, true
	}
	select {
	case u.large = <-large:
	case <-ctx.Done():
		return nil, false
	}
	if u.large == nil {
		u.large = make([]byte, maxInMemory)
	}
	return u.large, true
}

// cutGzipHeader takes the header off a gzip member (RFC 1952).
func cutGzipHeader(data []byte) (rest []byte, ok bool) {
	const (
		size                                = 10
		headerSum, extra, fileName, comment = 1 << 1, 1 << 2, 1 << 3, 1 << 4
	)
	if len(data) < size || data[0] != 0x1f || data[1] != 0x8b || data[2] != 8 {
		return nil, false
	}
	flags := data[3]
	if flags&headerSum != 0 {
		return nil, false // nobody writes it
	}
	data = data[size:]
	if flags&extra != 0 {
		if len(data) < 2 {
			return nil, false
		}
		n := 2 + int(binary.LittleEndian.Uint16(data))
		if len(data) < n {
			return nil, false
		}
		data = data[n:]
	}
	for _, text := range []byte{fileName, comment} {
		if flags&text != 0 {
			i := bytes.IndexByte(data, 0)
			if i < 0 {
				return nil, false
			}
			data = data[i+1:]
		}
	}
	return data, true
}
