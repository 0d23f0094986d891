package store

import (
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
)

// Integrity is the SHA-512 of a package's content: of the archive for what
// came as one, of a listing for a copied folder. The zero value means that
// nothing is known yet. Only the constructors make one, so holding a value
// that is not zero is proof of a well-formed hash.
type Integrity struct{ sum [sha512.Size]byte }

// ParseIntegrity reads a subresource integrity string ("sha512-<base64>") as
// registries and lockfiles hold it. Where it lists several hashes the SHA-512
// one counts; a string without one is an error, because weaker hashes do not
// prove content.
func ParseIntegrity(s string) (Integrity, error) {
	for _, field := range strings.Fields(s) {
		encoded, ok := strings.CutPrefix(field, "sha512-")
		if !ok {
			continue
		}
		encoded, _, _ = strings.Cut(encoded, "?") // options carry no meaning for sha512
		raw, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil || len(raw) != sha512.Size {
			return Integrity{}, fmt.Errorf("integrity %q is not a base64 SHA-512", field)
		}
		return Integrity{[sha512.Size]byte(raw)}, nil
	}
	return Integrity{}, fmt.Errorf("integrity %q holds no sha512 hash", s)
}

// IsZero reports whether no hash is known.
func (i Integrity) IsZero() bool { return i == Integrity{} }

// String is the subresource integrity form, "" for the zero value.
func (i Integrity) String() string {
	if i.IsZero() {
		return ""
	}
	return "sha512-" + base64.StdEncoding.EncodeToString(i.sum[:])
}

// hex names the entry's directory.
func (i Integrity) hex() string { return hex.EncodeToString(i.sum[:]) }
