package advisory

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"dsh/internal/fault"
	"dsh/internal/staging"
)

// Kept is the advisories that are kept on this machine, in one file: a line that
// says what it is, and a line for each advisory in order of the package's name,
// "NAME<tab>JSON". A name is found by bisection, so that an install which looks up
// a few names reads a few blocks of a file of many megabytes.
type Kept struct {
	// Whole is when a copy of all that OSV has was made; zero where there was none.
	Whole time.Time
	// Asked is when servers were asked last; what they said is of the packages of
	// the profiles that asked.
	Asked time.Time

	file   *os.File
	size   int64
	start  int64 // of the first advisory
	blocks map[int64][]byte
}

const (
	keptMagic = "dsh-advisories 1"
	blockSize = 64 << 10
	maxLine   = 4 << 20 // bytes of one advisory
)

// record is an advisory as the file has it.
type record struct {
	IDs      []string   `json:"ids"`
	Summary  string     `json:"summary,omitempty"`
	Severity Severity   `json:"severity"`
	Address  string     `json:"address,omitempty"`
	Affected []affected `json:"affected"`
}

// OpenKept opens the file. The error is fs.ErrNotExist where nothing is kept.
func OpenKept(path string) (*Kept, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	k := &Kept{file: f, blocks: map[int64][]byte{}}
	if err := k.open(); err != nil {
		return nil, errors.Join(fault.WithHint(fmt.Errorf("read the advisories that are kept: %s: %w", path, err),
			"%s makes room for a new copy", fault.ShellWords("rm", path)), f.Close())
	}
	return k, nil
}

func (k *Kept) open() error {
	info, err := k.file.Stat()
	if err != nil {
		return err
	}
	k.size = info.Size()
	head, next, err := k.line(0)
	if err != nil {
		return err
	}
	fields := strings.Fields(strings.TrimPrefix(string(head), keptMagic))
	if !strings.HasPrefix(string(head), keptMagic+" ") || len(fields) != 2 {
		return errors.New("this is no file of advisories, or one of another dsh")
	}
	k.start = next
	for i, at := range []*time.Time{&k.Whole, &k.Asked} {
		if fields[i] == "-" {
			continue
		}
		if *at, err = time.Parse(time.RFC3339, fields[i]); err != nil {
			return err
		}
	}
	return nil
}

// Close closes the file.
func (k *Kept) Close() error { return k.file.Close() }

// block is one block of the file, read once.
func (k *Kept) block(n int64) ([]byte, error) {
	if b, ok := k.blocks[n]; ok {
		return b, nil
	}
	b := make([]byte, min(blockSize, k.size-n*blockSize))
	if _, err := k.file.ReadAt(b, n*blockSize); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	k.blocks[n] = b
	return b, nil
}

// line is the line that begins at an offset, without its end, and where the next
// begins.
func (k *Kept) line(at int64) (text []byte, next int64, err error) {
	for at < k.size {
		b, err := k.block(at / blockSize)
		if err != nil {
			return nil, 0, err
		}
		b = b[at%blockSize:]
		if end := bytes.IndexByte(b, '\n'); end >= 0 {
			if text == nil {
				return b[:end], at + int64(end) + 1, nil
			}
			return append(text, b[:end]...), at + int64(end) + 1, nil
		}
		text = append(text[:len(text):len(text)], b...)
		at += int64(len(b))
		if len(text) > maxLine {
			return nil, 0, errors.New("a line of it has no end")
		}
	}
	return nil, 0, io.ErrUnexpectedEOF
}

// lineAfter is where the first line begins that does so at an offset or behind it.
func (k *Kept) lineAfter(at int64) (int64, error) {
	if at <= k.start {
		return k.start, nil
	}
	for at--; at < k.size; { // a line that begins right here counts
		b, err := k.block(at / blockSize)
		if err != nil {
			return 0, err
		}
		b = b[at%blockSize:]
		if end := bytes.IndexByte(b, '\n'); end >= 0 {
			return at + int64(end) + 1, nil
		}
		at += int64(len(b))
	}
	return k.size, nil
}

// Find is what is kept against a package.
func (k *Kept) Find(name string) ([]Advisory, error) {
	low, high := k.start, k.size // the first line of the name begins in [low, high]
	for low < high {
		middle := low + (high-low)/2
		at, err := k.lineAfter(middle)
		if err != nil {
			return nil, err
		}
		if at >= high {
			high = middle
			continue
		}
		text, next, err := k.line(at)
		if err != nil {
			return nil, err
		}
		if nameOf(text) < name {
			low = next
		} else {
			high = middle
		}
	}
	var list []Advisory
	at, err := k.lineAfter(low)
	for err == nil && at < k.size {
		var text []byte
		if text, at, err = k.line(at); err != nil || nameOf(text) != name {
			break
		}
		a, err := parseLine(text)
		if err != nil {
			return nil, err
		}
		list = append(list, a)
	}
	return list, err
}

func nameOf(line []byte) string {
	name, _, _ := bytes.Cut(line, []byte("\t"))
	return string(name)
}

func parseLine(line []byte) (Advisory, error) {
	name, text, _ := bytes.Cut(line, []byte("\t"))
	var r record
	if err := json.Unmarshal(text, &r); err != nil {
		return Advisory{}, fmt.Errorf("read what is kept of %s: %w", name, err)
	}
	a := Advisory{Package: string(name), Summary: r.Summary, Severity: r.Severity, Address: r.Address, Sources: []string{"kept"}, affected: r.Affected}
	a.setIDs(r.IDs)
	return a, nil
}

func (a *Advisory) line() (string, error) {
	text, err := json.Marshal(record{a.ids(), a.Summary, a.Severity, a.Address, a.affected})
	return a.Package + "\t" + string(text) + "\n", err
}

// SaveWhole keeps a copy of all that there is, in place of what was kept.
func SaveWhole(path string, list []Advisory, now time.Time) error {
	return save(path, now, time.Time{}, nil, list)
}

// SaveAsked keeps what servers said of packages, beside what was kept of others.
// names are all that were asked about.
func SaveAsked(path string, names []string, list []Advisory, now time.Time) error {
	asked := make(map[string]bool, len(names))
	for _, name := range names {
		asked[name] = true
	}
	k, err := OpenKept(path)
	if errors.Is(err, fs.ErrNotExist) {
		return save(path, time.Time{}, now, nil, list)
	}
	if err != nil {
		return err
	}
	others, err := k.others(asked)
	if err := errors.Join(err, k.Close()); err != nil {
		return err
	}
	return save(path, k.Whole, now, others, list)
}

// others are the lines of packages that nobody asked about.
func (k *Kept) others(asked map[string]bool) ([]string, error) {
	var lines []string
	for at := k.start; at < k.size; {
		text, next, err := k.line(at)
		if err != nil {
			return nil, err
		}
		if !asked[nameOf(text)] {
			lines = append(lines, string(text)+"\n")
		}
		at = next
	}
	return lines, nil
}

func save(path string, whole, asked time.Time, lines []string, list []Advisory) error {
	for i := range list {
		line, err := list[i].line()
		if err != nil {
			return err
		}
		lines = append(lines, line)
	}
	slices.SortFunc(lines, func(a, b string) int {
		nameA, restA, _ := strings.Cut(a, "\t")
		nameB, restB, _ := strings.Cut(b, "\t")
		if by := strings.Compare(nameA, nameB); by != 0 {
			return by
		}
		return strings.Compare(restA, restB)
	})
	moment := func(t time.Time) string {
		if t.IsZero() {
			return "-"
		}
		return t.UTC().Format(time.RFC3339)
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "%s %s %s\n", keptMagic, moment(whole), moment(asked))
	for _, line := range slices.Compact(lines) {
		text.WriteString(line)
	}
	return staging.WriteFile(path, text.Bytes(), 0o644)
}
