package inflate

import (
	"bytes"
	"compress/flate"
	"testing"

	klauspost "github.com/klauspost/compress/flate"
)

func BenchmarkInflate(b *testing.B) {
	text := bytes.Repeat(texts()["words"], 2)
	packed := deflate(b, text, 6)
	dst := make([]byte, len(text))
	b.Run("here", func(b *testing.B) {
		var d Decoder
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			if n, _, err := d.Inflate(dst, packed); err != nil || n != len(text) {
				b.Fatal(err)
			}
		}
	})
	for name, r := range map[string]interface {
		flate.Resetter
		Read([]byte) (int, error)
	}{"standard": flate.NewReader(nil).(resetReader), "klauspost": klauspost.NewReader(nil).(resetReader)} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if err := r.Reset(bytes.NewReader(packed), nil); err != nil {
					b.Fatal(err)
				}
				for n := 0; n < len(text); {
					m, err := r.Read(dst[n:])
					if n += m; err != nil && n < len(text) {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

type resetReader interface {
	flate.Resetter
	Read([]byte) (int, error)
}
