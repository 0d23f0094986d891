package registry

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"dsh/internal/fault"
	"dsh/internal/npmrange"
	"dsh/internal/staging"
)

// Signature is what a registry signed a version with.
type Signature struct {
	Key   string // the name of the key
	Value string // ECDSA over P-256 and SHA-256, in ASN.1
}

// maxSignature is how many bytes a signature may have; those of P-256 have 72.
const maxSignature = 255

// Signed is a version, and what its registry says with which signatures.
type Signed struct {
	Registry, Name, Version string
	Integrity               string // of dist, as it is written
	Published               time.Time
	Signatures              []Signature
}

// SignedOf is what a manifest says that its registry signed.
func (c *Client) SignedOf(m *Manifest) Signed {
	return Signed{
		Registry: c.RegistryFor(m.Name), Name: m.Name, Version: m.Version,
		Integrity: m.Dist.Integrity, Published: m.Published, Signatures: m.Dist.Signatures,
	}
}

// Signed is what the registry signed of one exact version. A document that was
// kept by a dsh which kept no signatures is asked for again.
func (c *Client) Signed(ctx context.Context, name, version string) (Signed, error) {
	v, err := npmrange.ParseVersion(version)
	if err != nil {
		return Signed{}, fault.Errorf(fault.Package, "%s@%s: %w", name, version, err)
	}
	m, err := c.Version(ctx, name, v)
	if err != nil {
		return Signed{}, err
	}
	if !m.Dist.signed && c.mode != Offline {
		d := document{name: name, version: m.Version, registry: c.RegistryFor(name), again: true}
		p, err := c.documents.do(ctx, d, func() (*Packument, error) { return c.load(ctx, d) })
		if errors.Is(err, errGone) || errors.Is(err, errStatus) {
			p, err = c.packument(ctx, document{name: name, again: true})
		}
		if err != nil {
			return Signed{}, err
		}
		if m, err = p.exact(m.Version); err != nil {
			return Signed{}, err
		}
	}
	return c.SignedOf(m), nil
}

// SignatureState is what is known of the signatures of a version.
type SignatureState string

// The states.
const (
	SignatureGood    SignatureState = "verified"
	SignatureMissing SignatureState = "unsigned"    // the registry signs, and not this version
	SignatureNoKeys  SignatureState = "no keys"     // the registry has no keys, so that nothing can be checked
	SignatureUnknown SignatureState = "unknown key" // the registry has keys, and none that made a signature
	SignatureUnasked SignatureState = "unasked"     // the keys could not be had
	SignatureWrong   SignatureState = "wrong"
	SignatureExpired SignatureState = "expired key" // it had expired when the version was published
)

// Verdict says what the signatures of a version are worth.
type Verdict struct {
	State SignatureState `json:"state"`
	Key   string         `json:"key,omitempty"`
	Why   string         `json:"why,omitempty"` // for messages
}

// Refused reports whether something speaks against the version, as opposed to
// nothing speaking for it.
func (v Verdict) Refused() bool { return v.State == SignatureWrong || v.State == SignatureExpired }

// Verify holds the signatures of a version against the keys of its registry. Any
// signature by one of its keys that is wrong counts, and one that is right is
// enough beside those of keys that nobody knows.
//
// A key that has expired may have signed what was published before, as in npm.
// Where the document does not say when that was, it counts as before, as in npm,
// too: the time is no part of what is signed.
func (c *Client) Verify(ctx context.Context, s Signed) (Verdict, error) {
	if len(s.Signatures) == 0 && c.mode == Offline {
		return Verdict{State: SignatureMissing, Why: "nothing that is kept of it has a signature"}, nil
	}
	ring, err := c.keysOf(ctx, s.Registry, "")
	if err != nil {
		return Verdict{State: SignatureUnasked, Why: "the keys of " + ShownAddress(s.Registry) + " could not be had"}, err
	}
	for _, signature := range s.Signatures {
		if ring.keys[signature.Key] == nil && len(ring.keys) > 0 {
			// Keys come and go; what is kept of them may be of yesterday.
			if ring, err = c.keysOf(ctx, s.Registry, signature.Key); err != nil {
				return Verdict{State: SignatureUnasked, Why: "the keys of " + ShownAddress(s.Registry) + " could not be had"}, err
			}
			break
		}
	}
	return ring.verify(s), nil
}

func (r *keyring) verify(s Signed) Verdict {
	from := ShownAddress(s.Registry)
	switch {
	case len(r.keys) == 0:
		return Verdict{State: SignatureNoKeys, Why: from + " gave no keys to check signatures with (not every registry or mirror has them)"}
	case len(s.Signatures) == 0:
		return Verdict{State: SignatureMissing, Why: from + " has no signature of it"}
	}
	hash := sha256.Sum256([]byte(s.Name + "@" + s.Version + ":" + s.Integrity))
	verdict := Verdict{State: SignatureUnknown, Key: s.Signatures[0].Key, Why: from + " has no such key as its signature is made with"}
	for _, signature := range s.Signatures {
		k := r.keys[signature.Key]
		switch {
		case k == nil:
			continue
		case !ecdsa.VerifyASN1(k.public, hash[:], []byte(signature.Value)):
			return Verdict{State: SignatureWrong, Key: signature.Key, Why: "its signature by the key " + signature.Key + " of " + from + " is wrong: the package or what is said of it was changed"}
		case !k.expires.IsZero() && !s.Published.IsZero() && !s.Published.Before(k.expires):
			return Verdict{State: SignatureExpired, Key: signature.Key, Why: fmt.Sprintf("it is signed with the key %s of %s, which had expired when it was published", signature.Key, from)}
		}
		verdict = Verdict{State: SignatureGood, Key: signature.Key}
	}
	return verdict
}

// keyring is the keys of a registry.
type keyring struct {
	keys  map[string]*publicKey // by name; empty where it has none
	asked time.Time
}

type publicKey struct {
	public  *ecdsa.PublicKey
	expires time.Time // zero: never
}

const (
	keysPath = "-/npm/v1/keys"
	maxKeys  = 1 << 20 // bytes of the document
	// keysTime is how long keys, or that there are none, are believed.
	keysTime = 24 * time.Hour
	// keysWait is how long the answer may take. A server that does not know the
	// question must not hold up all archives.
	keysWait = 20 * time.Second
)

// parseKeys reads the answer of a registry. Keys of a kind that is not known are
// left out.
func parseKeys(text []byte, asked time.Time) (*keyring, error) {
	var document struct {
		Keys []struct {
			Expires *string `json:"expires"`
			KeyID   string  `json:"keyid"`
			KeyType string  `json:"keytype"`
			Key     string  `json:"key"`
		} `json:"keys"`
	}
	if err := json.Unmarshal(text, &document); err != nil {
		return nil, err
	}
	r := &keyring{keys: map[string]*publicKey{}, asked: asked}
	for _, k := range document.Keys {
		der, err := base64.StdEncoding.DecodeString(k.Key)
		if err != nil || k.KeyType != "" && k.KeyType != "ecdsa-sha2-nistp256" {
			continue
		}
		public, err := x509.ParsePKIXPublicKey(der)
		if err != nil {
			continue
		}
		key, ok := public.(*ecdsa.PublicKey)
		if !ok || key.Curve != elliptic.P256() {
			continue
		}
		known := &publicKey{public: key}
		if k.Expires != nil {
			if known.expires, err = time.Parse(time.RFC3339, *k.Expires); err != nil {
				continue // whether it still holds cannot be told
			}
		}
		r.keys[k.KeyID] = known
	}
	return r, nil
}

// keysQuestion is that for the keys of a registry: for those at hand, or for
// newer ones because one of that name is missing.
type keysQuestion struct{ registry, missing string }

// Keys asks for the keys of a registry, so that they are at hand when signatures
// are looked at.
func (c *Client) Keys(ctx context.Context, registry string) { _, _ = c.keysOf(ctx, registry, "") }

// keysOf is the keys of a registry, kept for a day. With the name of a key that
// is not among them they are asked for again, unless that was just done.
func (c *Client) keysOf(ctx context.Context, registry, missing string) (*keyring, error) {
	return c.keyrings.do(ctx, keysQuestion{registry, missing}, func() (*keyring, error) {
		if missing != "" {
			r, err := c.keysOf(ctx, registry, "")
			if err != nil || c.mode == Offline || c.now.Sub(r.asked) < freshTime {
				return r, err
			}
			return c.askKeys(ctx, registry)
		}
		kept := c.cache.loadKeys(registry)
		switch {
		case kept != nil && (c.mode == Offline || c.mode == PreferOffline):
			return kept, nil
		case c.mode == Offline:
			return nil, fault.Errorf(fault.Network, "get the keys of %s: nothing is kept of them, and --offline asks no registry", ShownAddress(registry))
		case kept != nil && c.mode == UseCache && kept.asked.Before(c.now.Add(freshTime)) && c.now.Sub(kept.asked) < keysTime:
			return kept, nil
		}
		return c.askKeys(ctx, registry)
	})
}

// askKeys asks a registry for its keys. Most registries but the public one do not
// know the question, and have none then, whatever they answer.
func (c *Client) askKeys(ctx context.Context, registry string) (*keyring, error) {
	x := exchange{doing: "get the keys of " + ShownAddress(registry), address: registry + keysPath, header: http.Header{"Accept": {"application/json"}}}
	within, cancel := context.WithTimeoutCause(ctx, keysWait, errSlow)
	defer cancel()
	var text []byte
	var ring *keyring
	err := c.retry(within, func() error {
		resp, err := c.open(within, x)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if text, err = io.ReadAll(io.LimitReader(resp.Body, maxKeys+1)); err != nil {
			return c.failed(within, x, err)
		}
		if len(text) > maxKeys {
			return errTooLong
		}
		ring, err = parseKeys(text, time.Now())
		return err
	})
	_, refused := errors.AsType[*AuthError](err)
	_, noJSON := errors.AsType[*json.SyntaxError](err)
	_, otherJSON := errors.AsType[*json.UnmarshalTypeError](err)
	switch {
	case errors.Is(err, errGone) || errors.Is(err, errStatus) || refused || noJSON || otherJSON || errors.Is(err, errTooLong):
		ring, text = &keyring{asked: time.Now()}, nil
	case err != nil && ctx.Err() == nil:
		return nil, c.late(within, x, err)
	case err != nil:
		return nil, ctx.Err()
	}
	c.cache.saveKeys(registry, ring.asked, text)
	return ring, nil
}

// keysMagic begins the file in which the keys of a registry are kept: when they
// were asked for, in milliseconds since 1970, and the answer as it came, or nothing
// where there was none.
const keysMagic = "dsh-keys1 "

func (c *cache) keysFile(registry string) string { return filepath.Join(c.place(registry), "keys") }

// loadKeys is the keys that are kept of a registry, or nil.
func (c *cache) loadKeys(registry string) *keyring {
	if c == nil {
		return nil
	}
	data, err := os.ReadFile(c.keysFile(registry))
	if err != nil {
		return nil
	}
	head, text, _ := strings.Cut(string(data), "\n")
	at, ok := strings.CutPrefix(head, keysMagic)
	ms, err := strconv.ParseInt(at, 10, 64)
	if !ok || err != nil {
		return nil
	}
	asked := time.UnixMilli(ms)
	if text == "" {
		return &keyring{asked: asked}
	}
	ring, err := parseKeys([]byte(text), asked)
	if err != nil {
		return nil
	}
	return ring
}

// saveKeys keeps an answer. What cannot be written is not kept.
func (c *cache) saveKeys(registry string, asked time.Time, text []byte) {
	if c == nil || c.readOnly {
		return
	}
	file := c.keysFile(registry)
	if staging.MkdirAll(filepath.Dir(file)) == nil {
		_ = staging.WriteDerived(file, append(strconv.AppendInt([]byte(keysMagic), asked.UnixMilli(), 10), "\n"+string(text)...), 0o600)
	}
}
