package unpack

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWriteTarball(t *testing.T) {
	long := strings.Repeat("0123456789", 20_000)
	members := []Member{
		{Name: "package.json", Size: 2}, {Name: "bin/run", Executable: true, Size: 3},
		{Name: strings.Repeat("deep/", 60) + "ünï", Size: int64(len(long))}, {Name: "empty"},
	}
	bodies := []string{"{}", "#!\n", long, ""}
	write := func() []byte {
		var b bytes.Buffer
		err := WriteTarball(t.Context(), &b, func(add func(Member, io.Reader) error) error {
			for i, m := range members {
				if err := add(m, inPieces{strings.NewReader(bodies[i])}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	archive := write()
	if !bytes.Equal(archive, write()) {
		t.Error("it is another one the second time")
	}
	// Archives that profiles keep are pinned by their hash: it may never change.
	const pinned = "8994acec9431a3b8666d305694331544f87e36f3fa697e165be92c68e77bc2e4"
	sum := sha256.Sum256(archive)
	if got := hex.EncodeToString(sum[:]); got != pinned {
		t.Errorf("the archive has the hash %s", got)
	}
	i := 0
	err := WalkGzip(t.Context(), bytes.NewReader(archive), Limits{}, func(m Member, r io.Reader) error {
		want := members[i]
		want.Name = "package/" + want.Name
		body, err := io.ReadAll(r)
		if diff := cmp.Diff(want, m); diff != "" || string(body) != bodies[i] {
			t.Error(diff)
		}
		i++
		return err
	})
	if err != nil || i != len(members) {
		t.Errorf("%d members, %v", i, err)
	}
}

// inPieces reads in pieces of odd sizes, which must not show.
type inPieces struct{ r io.Reader }

func (o inPieces) Read(p []byte) (int, error) { return o.r.Read(p[:min(len(p), 7001)]) }

func TestWriteTarballRefuses(t *testing.T) {
	for name, m := range map[string]Member{"a link": {Name: "l", Type: Link, Link: "x"}, "too much": {Name: "a", Size: 1}, "too little": {Name: "a", Size: 3}} {
		err := WriteTarball(t.Context(), io.Discard, func(add func(Member, io.Reader) error) error { return add(m, strings.NewReader("xy")) })
		if err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}
