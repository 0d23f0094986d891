package npmtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"slices"
	"sync"
	"time"
)

// What the directive signature asks for, where the server signs.
const (
	SignatureGood     = "good"     // it is right; this is the default
	SignatureNone     = "none"     // there is none
	SignatureBad      = "bad"      // one bit of it is another
	SignatureReplaced = "replaced" // it is over the integrity of other content, as when somebody replaced the archive
	SignatureExpired  = "expired"  // it is by a key that expired before 2024
	SignatureUnknown  = "unknown"  // it is by a key that the registry does not publish
)

var signatureKinds = []string{SignatureGood, SignatureNone, SignatureBad, SignatureReplaced, SignatureExpired, SignatureUnknown}

// keyring is the keys of a registry, made when it starts.
type keyring struct {
	current, expired, unknown *signingKey

	mu   sync.Mutex
	made map[string][]map[string]string // by version and what it says, so that a document stays the same
}

type signingKey struct {
	id      string
	private *ecdsa.PrivateKey
}

func newKeyring() (*keyring, error) {
	made := make([]*signingKey, 3)
	for i := range made {
		private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return nil, err
		}
		der, err := x509.MarshalPKIXPublicKey(&private.PublicKey)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(der)
		made[i] = &signingKey{"SHA256:" + base64.RawStdEncoding.EncodeToString(sum[:]), private}
	}
	return &keyring{current: made[0], expired: made[1], unknown: made[2], made: map[string][]map[string]string{}}, nil
}

// expiry is when the expired key expired: before any version is published, unless it says otherwise.
var expiry = time.Date(2023, 12, 31, 0, 0, 0, 0, time.UTC)

// document is what the registry answers about its keys.
func (k *keyring) document() (map[string]any, error) {
	keys := []map[string]any{}
	for _, key := range []*signingKey{k.expired, k.current} {
		der, err := x509.MarshalPKIXPublicKey(&key.private.PublicKey)
		if err != nil {
			return nil, err
		}
		var expires any
		if key == k.expired {
			expires = stamp(expiry)
		}
		keys = append(keys, map[string]any{
			"keyid": key.id, "keytype": "ecdsa-sha2-nistp256", "scheme": "ecdsa-sha2-nistp256", "key": base64.StdEncoding.EncodeToString(der), "expires": expires,
		})
	}
	return map[string]any{"keys": keys}, nil
}

// signatures is dist.signatures of a version with an integrity.
func (k *keyring) signatures(r *release, integrity string) ([]map[string]string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	of := r.name + "@" + r.version + ":" + integrity + " " + r.directives.signature
	if made, ok := k.made[of]; ok {
		return made, nil
	}
	key := k.current
	switch r.directives.signature {
	case SignatureNone:
		return nil, nil
	case SignatureReplaced:
		integrity = otherIntegrity
	case SignatureExpired:
		key = k.expired
	case SignatureUnknown:
		key = k.unknown
	}
	hash := sha256.Sum256([]byte(r.name + "@" + r.version + ":" + integrity))
	value, err := ecdsa.SignASN1(rand.Reader, key.private, hash[:])
	if err != nil {
		return nil, err
	}
	if r.directives.signature == SignatureBad {
		value[len(value)-1] ^= 1
	}
	k.made[of] = []map[string]string{{"keyid": key.id, "sig": base64.StdEncoding.EncodeToString(value)}}
	return k.made[of], nil
}

// otherIntegrity is of content that no package has.
var otherIntegrity = "sha512-" + base64.StdEncoding.EncodeToString(slices.Repeat([]byte{7}, 64))

// Sign makes documents carry signatures, as the archives ask for, and the keys be there. Without it the registry has neither.
func (s *Server) Sign(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.signs = on
}

func checkSignature(kind string) error {
	if !slices.Contains(signatureKinds, kind) {
		return fmt.Errorf("is none of %v", signatureKinds)
	}
	return nil
}
