package inflate

import (
	"bytes"
	"compress/flate"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// deflate is text, compressed by package flate.
func deflate(t testing.TB, text []byte, level int) []byte {
	t.Helper()
	var buf bytes.Buffer
	w, err := flate.NewWriter(&buf, level)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// texts are of every kind: none, short, of one byte, of few, random, of words, of
// repeats at every distance, with codes of every length.
func texts() map[string][]byte {
	rnd := rand.New(rand.NewPCG(3, 4))
	noise := make([]byte, 200_000)
	for i := range noise {
		noise[i] = byte(rnd.Uint32())
	}
	var words, skewed bytes.Buffer
	for range 30_000 {
		fmt.Fprintf(&words, "%s(%d); ", []string{"const", "return", "this", "exports", "=>"}[rnd.IntN(5)], rnd.IntN(2000))
		skewed.WriteByte(byte(min(rnd.ExpFloat64()*6, 255)))
	}
	all := map[string][]byte{
		"nothing": nil, "one": []byte("a"), "two": []byte("ab"), "noise": noise, "words": words.Bytes(), "skewed": skewed.Bytes(),
		"zeros": make([]byte, 300_000), "far": append(append(bytes.Clone(noise[:32<<10]), noise[:1000]...), noise[:32<<10]...),
	}
	for distance := 1; distance < 20; distance++ {
		all[fmt.Sprint("every ", distance)] = bytes.Repeat(noise[:distance], 1000)
	}
	return all
}

func TestInflate(t *testing.T) {
	var d Decoder
	for name, text := range texts() {
		for level := flate.HuffmanOnly; level <= flate.BestCompression; level++ {
			packed := deflate(t, text, level)
			for _, room := range []int{0, 1, 100, 1000} { // memory that is left over
				dst := make([]byte, len(text)+room)
				n, read, err := d.Inflate(dst, append(packed[:len(packed):len(packed)], "more"...))
				if err != nil || read != len(packed) || !bytes.Equal(dst[:n], text) {
					t.Fatalf("%s at level %d with room for %d: %d bytes from %d of %d, %v", name, level, room, n, read, len(packed), err)
				}
			}
			if len(text) > 0 {
				if _, _, err := d.Inflate(make([]byte, len(text)-1), packed); !errors.Is(err, ErrLarge) {
					t.Errorf("%s at level %d with too little memory: %v", name, level, err)
				}
			}
			for _, cut := range []int{0, 1, len(packed) / 2, len(packed) - 1} {
				if _, _, err := d.Inflate(make([]byte, len(text)+300), packed[:cut]); err == nil {
					t.Errorf("%s at level %d: %d bytes of %d are enough", name, level, cut, len(packed))
				}
			}
		}
	}
}

func TestCorrupt(t *testing.T) {
	var d Decoder
	for name, data := range map[string]string{
		"a block of no kind":       "\x07",
		"a stored block's length":  "\x01\x05\x00\x00\x00hello",
		"a distance before all":    "\x03\x02\x00\x00",
		"no codes":                 "\x05\x00" + strings.Repeat("\x00", 40),
		"too many codes":           "\xfd\xff" + strings.Repeat("\xff", 40),
		"a code of no fixed block": "\x1b\x03\x00\x00",
	} {
		if n, _, err := d.Inflate(make([]byte, 1000), []byte(data)); err == nil {
			t.Errorf("%s gives %d bytes", name, n)
		}
		if _, err := io.ReadAll(flate.NewReader(strings.NewReader(data))); err == nil {
			t.Errorf("%s is right", name)
		}
	}
}

// TestInflateOfChanged holds the decoder against package flate, on data of which
// some bits are other ones.
func TestInflateOfChanged(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	all := texts()
	var d Decoder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		text := all[name][:min(len(all[name]), 1500)]
		for _, level := range []int{1, 6, flate.HuffmanOnly} {
			packed := deflate(t, text, level)
			for range 60 {
				changed := bytes.Clone(packed)
				for range 1 + rnd.IntN(3) {
					changed[rnd.IntN(min(len(changed), 1+rnd.IntN(len(changed))))] ^= 1 << rnd.IntN(8)
				}
				compare(t, &d, changed)
			}
		}
	}
}

// compare fails where package flate, which is slow and right, unpacks data to
// something else.
func compare(t *testing.T, d *Decoder, data []byte) {
	t.Helper()
	const most = 1 << 15
	source := bytes.NewReader(data)
	want, wantErr := io.ReadAll(io.LimitReader(flate.NewReader(source), most+1))
	dst := make([]byte, min(len(want), most))
	n, read, err := d.Inflate(dst, data)
	if len(want) > most {
		if err == nil {
			t.Error("more than there is memory for")
		}
		return
	}
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("got %v, want %v for %x", err, wantErr, data)
	}
	if err == nil && (!bytes.Equal(dst[:n], want) || read != len(data)-source.Len()) {
		t.Errorf("%d bytes from %d, want %d from %d", n, read, len(want), len(data)-source.Len())
	}
	// With much room another loop does the work.
	wide := make([]byte, len(want)+1000)
	if m, _, err := d.Inflate(wide, append(data[:len(data):len(data)], make([]byte, 100)...)); wantErr == nil && (err != nil || !bytes.Equal(wide[:m], want)) {
		t.Errorf("with room: %d bytes, %v", m, err)
	}
}

func FuzzInflate(f *testing.F) {
	for _, text := range texts() {
		text = text[:min(len(text), 3000)]
		for _, level := range []int{0, 1, 9, flate.HuffmanOnly} {
			f.Add(deflate(f, text, level))
		}
	}
	f.Add([]byte("\x05\x00" + strings.Repeat("\x00", 40)))
	var d Decoder
	f.Fuzz(func(t *testing.T, data []byte) { compare(t, &d, data) })
}
