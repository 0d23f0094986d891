package store

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/gzip"
)

// corpus is as many archives as the largest of the trees that we measure, of the
// same size: 1,300 packages, 38,000 files, 190 MB. DSH_TARBALLS names a
// directory of real ones to take in their place.
var corpus = sync.OnceValue(func() [][]byte {
	if dir := os.Getenv("DSH_TARBALLS"); dir != "" {
		return realArchives(dir)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	words := strings.Fields("const let var function return if else for while of in new this => === !== && || exports module require value index length name type node path error options result callback context default import from class extends")
	var archives [][]byte
	for range 1300 {
		var buf bytes.Buffer
		zw := gzip.NewWriter(&buf)
		tw := tar.NewWriter(zw)
		for f := range 29 {
			var text bytes.Buffer
			for size := rnd.IntN(10_000); text.Len() < size; {
				fmt.Fprintf(&text, "%s %s%d", words[rnd.IntN(len(words))], words[rnd.IntN(len(words))], rnd.IntN(500))
				text.WriteString([]string{" ", "\n", "(", ");\n  ", ", ", "."}[rnd.IntN(6)])
			}
			name := fmt.Sprintf("package/%s%s-%d.js", strings.Repeat("lib/", f%3), words[f%9], f)
			if err := tw.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(text.Len())}); err != nil {
				panic(err)
			}
			if _, err := tw.Write(text.Bytes()); err != nil {
				panic(err)
			}
		}
		if err := tw.Close(); err != nil {
			panic(err)
		}
		if err := zw.Close(); err != nil {
			panic(err)
		}
		archives = append(archives, buf.Bytes())
	}
	return archives
})

func realArchives(dir string) (archives [][]byte) {
	files, err := os.ReadDir(dir)
	if err != nil {
		panic(err)
	}
	for _, f := range files {
		data, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			panic(err)
		}
		archives = append(archives, data)
	}
	slices.SortFunc(archives, func(a, b []byte) int { return len(b) - len(a) })
	return archives
}

// each calls f with the numbers below n, on as many goroutines as processors.
func each(n int, f func(i int)) {
	var group sync.WaitGroup
	numbers := make(chan int, n)
	for i := range n {
		numbers <- i
	}
	close(numbers)
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for i := range numbers {
				f(i)
			}
		})
	}
	group.Wait()
}

// addAll unpacks the corpus.
func addAll(b *testing.B, s *Store) []Entry {
	entries := make([]Entry, len(corpus()))
	each(len(entries), func(i int) {
		archive := corpus()[i]
		e, err := s.AddTarball(context.Background(), bytes.NewReader(archive), sumOf(archive))
		if err != nil {
			b.Error(err)
		}
		entries[i] = e
	})
	return entries
}

func BenchmarkUnpack(b *testing.B) {
	size := int64(0)
	for _, archive := range corpus() {
		size += int64(len(archive))
	}
	b.SetBytes(size)
	for b.Loop() {
		b.StopTimer()
		s := Open(filepath.Join(b.TempDir(), "store"))
		b.StartTimer()
		addAll(b, s)
		b.StopTimer()
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		if err := os.RemoveAll(s.Dir()); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// BenchmarkLink lays out all packages, as a frozen install does.
func BenchmarkLink(b *testing.B) {
	s := Open(filepath.Join(b.TempDir(), "store"))
	defer s.Close()
	entries := addAll(b, s)
	for b.Loop() {
		b.StopTimer()
		dir := b.TempDir()
		b.StartTimer()
		each(len(entries), func(i int) {
			if err := entries[i].Link(filepath.Join(dir, fmt.Sprint(i)), Auto, nil); err != nil {
				b.Error(err)
			}
		})
		b.StopTimer()
		if err := os.RemoveAll(dir); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// BenchmarkClosure reads the listing of all packages.
func BenchmarkClosure(b *testing.B) {
	s := Open(filepath.Join(b.TempDir(), "store"))
	defer s.Close()
	data := FormatClosure(addAll(b, s))
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if entries, err := s.ParseClosure(data); err != nil || len(entries) == 0 {
			b.Fatal(err)
		}
	}
}
