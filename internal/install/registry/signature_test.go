package registry

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dsh/internal/fault"
)

// signer is a key of a registry.
type signer struct {
	id      string
	expires string // "" for never
	private *ecdsa.PrivateKey
}

func newSigner(t testing.TB, id, expires string) signer {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return signer{id, expires, private}
}

func (s signer) sign(t testing.TB, text string) Signature {
	t.Helper()
	hash := sha256.Sum256([]byte(text))
	value, err := ecdsa.SignASN1(rand.Reader, s.private, hash[:])
	if err != nil {
		t.Fatal(err)
	}
	return Signature{Key: s.id, Value: string(value)}
}

// keysDocument is what a registry answers that has these keys.
func keysDocument(t testing.TB, signers ...signer) string {
	t.Helper()
	keys := []map[string]any{}
	for _, s := range signers {
		der, err := x509.MarshalPKIXPublicKey(&s.private.PublicKey)
		if err != nil {
			t.Fatal(err)
		}
		key := map[string]any{"keyid": s.id, "keytype": "ecdsa-sha2-nistp256", "scheme": "ecdsa-sha2-nistp256", "key": base64.StdEncoding.EncodeToString(der), "expires": nil}
		if s.expires != "" {
			key["expires"] = s.expires
		}
		keys = append(keys, key)
	}
	text, err := json.Marshal(map[string]any{"keys": keys})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// signedPackument is a document about x@1.0.0 with signatures.
func signedPackument(signatures ...Signature) string {
	list := []map[string]any{}
	for _, s := range signatures {
		list = append(list, map[string]any{"keyid": s.Key, "sig": base64.StdEncoding.EncodeToString([]byte(s.Value))})
	}
	text, _ := json.Marshal(list)
	return `{"name":"x","dist-tags":{"latest":"1.0.0"},"versions":{"1.0.0":{"name":"x","version":"1.0.0","dist":{"integrity":"` + soundHash + `","signatures":` + string(text) + `}}}}`
}

func TestSignaturesAreKept(t *testing.T) {
	a, b := Signature{"SHA256:one", strings.Repeat("s", 72)}, Signature{"SHA256:two", "\x00\xff"}
	for name, tt := range map[string]struct {
		text string
		want []Signature
	}{
		"none":             {signedPackument(), nil},
		"one":              {signedPackument(a), []Signature{a}},
		"two":              {signedPackument(a, b), []Signature{a, b}},
		"too many":         {signedPackument(slices.Repeat([]Signature{a}, 20)...), slices.Repeat([]Signature{a}, maxSignatures)},
		"too long":         {signedPackument(Signature{"k", strings.Repeat("s", 256)}, b), []Signature{{"k", ""}, b}},
		"no base64":        {strings.Replace(signedPackument(a), `"sig":"`, `"sig":"*`, 1), []Signature{{a.Key, ""}}},
		"no text":          {strings.Replace(signedPackument(), "[]", `[{"keyid":3,"sig":{}},7,{"other":[1]}]`, 1), []Signature{{}, {}}},
		"no list":          {strings.Replace(signedPackument(), "[]", `{"keyid":"a"}`, 1), nil},
		"null":             {strings.Replace(signedPackument(), "[]", `null`, 1), nil},
		"the last dist":    {strings.Replace(signedPackument(a), `"dist"`, `"dist":{"signatures":[{"keyid":"z","sig":"AAAA"}]},"dist"`, 1), []Signature{a}},
		"of the last dist": {strings.Replace(signedPackument(a), `]}}}}`, `]},"dist":{}}}}`, 1), nil},
	} {
		p, err := ParsePackument("x", DefaultRegistry, tt.text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		m, err := p.Manifest("1.0.0")
		if err != nil || !reflect.DeepEqual(m.Dist.Signatures, tt.want) || !m.Dist.signed {
			t.Errorf("%s: got %q, %v", name, m.Dist.Signatures, err)
		}
	}
}

// Signatures come out of a document whose memory is given back.
func TestSignaturesOfLentDocument(t *testing.T) {
	one := Signature{"SHA256:one", strings.Repeat("s", 72)}
	f := &fake{answer: func(r *http.Request) (int, string, []string) {
		return 200, strings.ReplaceAll(signedPackument(one), `"x"`, `"`+strings.TrimPrefix(r.URL.Path, "/")+`"`), nil
	}}
	dir := t.TempDir()
	find := func(c *Client) error {
		choice, err := c.Find(context.Background(), "x", "^1.0.0", PickOptions{})
		if err != nil {
			return err
		}
		if _, err := c.Find(context.Background(), "yy", "^1.0.0", PickOptions{}); err != nil {
			return err
		}
		if got := choice.Dist.Signatures; !reflect.DeepEqual(got, []Signature{one}) {
			t.Errorf("got %q", got)
		}
		return nil
	}
	for range 2 {
		if err := get(t, f, Options{CacheDir: dir}, find); err != nil {
			t.Fatal(err)
		}
	}
	if asked := f.take(); asked != "/x, /yy" {
		t.Errorf("asked %q", asked)
	}
}

func TestVerify(t *testing.T) {
	now, old, stranger := newSigner(t, "now", ""), newSigner(t, "old", "2025-01-29T00:00:00.000Z"), newSigner(t, "stranger", "")
	const message = "x@1.0.0:" + soundHash
	before, after := time.Date(2025, 1, 28, 0, 0, 0, 0, time.UTC), time.Date(2025, 1, 29, 0, 0, 0, 0, time.UTC)
	good := now.sign(t, message)
	changed := good
	changed.Value = good.Value[:len(good.Value)-1] + string([]byte{good.Value[len(good.Value)-1] ^ 1})
	keys := keysDocument(t, now, old)
	for name, tt := range map[string]struct {
		signatures []Signature
		published  time.Time
		keys       string
		status     int
		want       SignatureState
	}{
		"right":                                {[]Signature{good}, time.Time{}, keys, 200, SignatureGood},
		"of another version":                   {[]Signature{now.sign(t, "x@1.0.1:"+soundHash)}, time.Time{}, keys, 200, SignatureWrong},
		"of another name":                      {[]Signature{now.sign(t, "y@1.0.0:"+soundHash)}, time.Time{}, keys, 200, SignatureWrong},
		"of another content":                   {[]Signature{now.sign(t, "x@1.0.0:sha512-x")}, time.Time{}, keys, 200, SignatureWrong},
		"changed":                              {[]Signature{changed}, time.Time{}, keys, 200, SignatureWrong},
		"empty":                                {[]Signature{{"now", ""}}, time.Time{}, keys, 200, SignatureWrong},
		"by another under its name":            {[]Signature{{"now", stranger.sign(t, message).Value}}, time.Time{}, keys, 200, SignatureWrong},
		"by a stranger":                        {[]Signature{stranger.sign(t, message)}, time.Time{}, keys, 200, SignatureUnknown},
		"by a stranger as well":                {[]Signature{stranger.sign(t, message), good}, time.Time{}, keys, 200, SignatureGood},
		"right and wrong":                      {[]Signature{good, {"old", "x"}}, time.Time{}, keys, 200, SignatureWrong},
		"published before its key expired":     {[]Signature{old.sign(t, message)}, before, keys, 200, SignatureGood},
		"published when its key had expired":   {[]Signature{old.sign(t, message)}, after, keys, 200, SignatureExpired},
		"nobody knows when":                    {[]Signature{old.sign(t, message)}, time.Time{}, keys, 200, SignatureGood},
		"none":                                 {nil, time.Time{}, keys, 200, SignatureMissing},
		"no keys":                              {[]Signature{good}, time.Time{}, `{"error":"not found"}`, 404, SignatureNoKeys},
		"an empty list of keys":                {[]Signature{good}, time.Time{}, `{"keys":[]}`, 200, SignatureNoKeys},
		"a page in place of keys":              {[]Signature{good}, time.Time{}, `<html>`, 200, SignatureNoKeys},
		"a list in place of keys":              {[]Signature{good}, time.Time{}, `{"keys":{"a":1}}`, 200, SignatureNoKeys},
		"who may not ask":                      {[]Signature{good}, time.Time{}, ``, 401, SignatureNoKeys},
		"a question that is not understood":    {[]Signature{good}, time.Time{}, ``, 405, SignatureNoKeys},
		"too long an answer":                   {[]Signature{good}, time.Time{}, strings.Repeat(" ", maxKeys+2), 200, SignatureNoKeys},
		"a server that fails":                  {[]Signature{good}, time.Time{}, ``, 500, SignatureUnasked},
		"keys that cannot be read, among them": {[]Signature{good}, time.Time{}, strings.Replace(keys, `"keys":[`, `"keys":[{"keyid":"now","key":"%"},{"keyid":"b","keytype":"rsa"},{"keyid":"c","key":"AAAA"},`, 1), 200, SignatureGood},
		"a key with an odd end":                {[]Signature{good}, time.Time{}, strings.Replace(keysDocument(t, now), `"expires":null`, `"expires":"soon"`, 1), 200, SignatureNoKeys},
	} {
		f := &fake{answer: func(r *http.Request) (int, string, []string) { return tt.status, tt.keys, nil }}
		err := get(t, f, Options{}, func(c *Client) error {
			signed := Signed{Registry: "https://r/", Name: "x", Version: "1.0.0", Integrity: soundHash, Published: tt.published, Signatures: tt.signatures}
			if _, err := c.Verify(context.Background(), signed); err != nil && tt.want != SignatureUnasked {
				t.Errorf("%s: %v", name, err)
			}
			got, err := c.Verify(context.Background(), signed)
			if got.State != tt.want || (got.State == SignatureGood) != (got.Why == "") || (err != nil) != (tt.want == SignatureUnasked) {
				t.Errorf("%s: %+v, %v", name, got, err)
			}
			if got.Refused() != (got.State == SignatureWrong || got.State == SignatureExpired) {
				t.Errorf("%s: refused: %t", name, got.Refused())
			}
			if err != nil && fault.ClassOf(err) != fault.Network {
				t.Errorf("%s: %v", name, err)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		if asked := f.take(); asked != "/-/npm/v1/keys" {
			t.Errorf("%s: asked %q", name, asked)
		}
	}
}

func TestKeysAreKept(t *testing.T) {
	now, next := newSigner(t, "now", ""), newSigner(t, "next", "")
	const message = "x@1.0.0:" + soundHash
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		status, keys := 200, keysDocument(t, now)
		f := &fake{answer: func(*http.Request) (int, string, []string) { return status, keys, nil }}
		step := func(after time.Duration, mode CacheMode, by signer, want SignatureState, asked string) {
			t.Helper()
			time.Sleep(after)
			err := get(t, f, Options{CacheDir: dir, Mode: mode}, func(c *Client) error {
				for range 2 {
					got, err := c.Verify(context.Background(), Signed{Registry: "https://r/", Name: "x", Version: "1.0.0", Integrity: soundHash, Signatures: []Signature{by.sign(t, message)}})
					if got.State != want || err != nil && want != SignatureUnasked {
						t.Errorf("got %+v, %v, want %s", got, err, want)
					}
				}
				return nil
			})
			if got := f.take(); err != nil || got != asked {
				t.Errorf("asked %q, want %q; %v", got, asked, err)
			}
		}
		const once = "/-/npm/v1/keys"
		step(0, Offline, now, SignatureUnasked, "")
		step(0, UseCache, now, SignatureGood, once)
		step(time.Hour, UseCache, now, SignatureGood, "")
		step(0, Fresh, now, SignatureGood, once)
		// A key that is not kept is asked for, unless that was just done.
		step(time.Minute, UseCache, next, SignatureUnknown, "")
		step(time.Hour, UseCache, next, SignatureUnknown, once)
		keys = keysDocument(t, now, next)
		step(time.Hour, UseCache, next, SignatureGood, once)
		step(25*time.Hour, PreferOffline, now, SignatureGood, "")
		step(0, Offline, now, SignatureGood, "")
		step(0, UseCache, now, SignatureGood, once)
		// That there are none is kept, too.
		status, keys = 404, ""
		step(25*time.Hour, UseCache, now, SignatureNoKeys, once)
		step(23*time.Hour, UseCache, now, SignatureNoKeys, "")
		step(2*time.Hour, UseCache, now, SignatureNoKeys, once)
		// A failure is not.
		status = 403
		step(25*time.Hour, UseCache, now, SignatureNoKeys, once)
		for _, file := range files(t, dir) {
			if filepath.Base(file) == "keys" {
				if err := os.WriteFile(file, []byte("dsh-keys1 x\n{}"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		status, keys = 200, keysDocument(t, now)
		step(0, UseCache, now, SignatureGood, once)
	})
}

// What was kept by a dsh that kept no signatures is asked for again by who needs
// them, and by nobody else.
func TestSignedAsksAgain(t *testing.T) {
	one := Signature{"SHA256:one", strings.Repeat("s", 72)}
	single := strings.TrimSuffix(strings.SplitAfterN(signedPackument(one), `"1.0.0":`, 2)[1], "}}")
	f := &fake{answer: func(r *http.Request) (int, string, []string) {
		if r.URL.Path == "/x" {
			return 200, signedPackument(one), nil
		}
		return 200, single, nil
	}}
	dir := t.TempDir()
	if err := get(t, f, Options{CacheDir: dir}, packument("x")); err != nil {
		t.Fatal(err)
	}
	for _, file := range files(t, dir) {
		d := document{registry: DefaultRegistry, name: "x"}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		k := parseKept(d, string(data))
		if k == nil {
			t.Fatal("it does not read")
		}
		without := []byte(k.data)
		without[12] &^= flagSigned
		k.data = string(without)
		if err := os.WriteFile(file, k.append(nil), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f.take()
	if err := get(t, f, Options{CacheDir: dir}, packument("x")); err != nil || f.take() != "" {
		t.Errorf("an old document is of no use to anybody: %v", err)
	}
	for _, want := range []string{"/x/1.0.0", ""} {
		err := get(t, f, Options{CacheDir: dir}, func(c *Client) error {
			got, err := c.Signed(context.Background(), "x", "1.0.0")
			if err != nil || !reflect.DeepEqual(got.Signatures, []Signature{one}) || got.Integrity != soundHash {
				t.Errorf("got %+v, %v", got, err)
			}
			return nil
		})
		if asked := f.take(); err != nil || want != "" && asked != want {
			t.Errorf("asked %q, want %q; %v", asked, want, err)
		}
	}
	err := get(t, f, Options{CacheDir: dir, Mode: Offline}, func(c *Client) error {
		_, err := c.Signed(context.Background(), "x", "1.0.0")
		return err
	})
	if err != nil {
		t.Error(err)
	}
	err = get(t, f, Options{}, func(c *Client) error {
		_, err := c.Signed(context.Background(), "x", "what")
		return err
	})
	if fault.ClassOf(err) != fault.Package || errors.Is(err, errGone) {
		t.Error(err)
	}
}

func TestPublished(t *testing.T) {
	day := func(n int) time.Time { return time.Date(2026, 1, n, 0, 0, 0, 0, time.UTC) }
	const short = `{"name":"x","dist-tags":{"latest":"1.1.0"},"modified":"2026-01-20T00:00:00.000Z","versions":{"1.0.0":{},"1.1.0":{}}}`
	const full = `{"name":"x","dist-tags":{"latest":"1.1.0"},"time":{"1.0.0":"2026-01-10T00:00:00.000Z"},"versions":{"1.0.0":{},"1.1.0":{}}}`
	f := &fake{answer: func(r *http.Request) (int, string, []string) {
		if strings.Contains(r.Header.Get("Accept"), "install-v1") {
			return 200, short, nil
		}
		return 200, full, nil
	}}
	dir := t.TempDir()
	for _, step := range []struct {
		version string
		before  time.Time
		want    time.Time
		asked   string
	}{
		{"1.0.0", day(25), day(20), "/x"},   // before the last change, which is enough
		{"1.1.0", day(20), day(20), ""},     // as kept
		{"1.0.0", day(19), day(10), "/x"},   // the long form says it exactly
		{"1.0.0", day(5), day(10), ""},      // as kept
		{"1.1.0", day(15), time.Time{}, ""}, // which nobody says
		{"2.0.0", day(25), time.Time{}, ""},
	} {
		err := get(t, f, Options{CacheDir: dir}, func(c *Client) error {
			got, err := c.Published(context.Background(), "x", step.version, step.before)
			if !got.Equal(step.want) {
				t.Errorf("%s before %s: got %s, want %s", step.version, step.before, got, step.want)
			}
			return err
		})
		if asked := f.take(); err != nil || asked != step.asked {
			t.Errorf("%s before %s: asked %q, want %q; %v", step.version, step.before, asked, step.asked, err)
		}
	}
	err := get(t, f, Options{Mode: Offline}, func(c *Client) error {
		_, err := c.Published(context.Background(), "x", "1.0.0", day(1))
		return err
	})
	if fault.ClassOf(err) != fault.Network {
		t.Errorf("offline: %v", err)
	}
}

func FuzzKeys(f *testing.F) {
	f.Add([]byte(`{"keys":[{"keyid":"a","keytype":"ecdsa-sha2-nistp256","key":"AAAA","expires":null}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		ring, err := parseKeys(text, time.Now())
		if err != nil {
			return
		}
		ring.verify(Signed{Name: "x", Version: "1.0.0", Signatures: []Signature{{"a", string(text)}}})
	})
}

func BenchmarkVerify(b *testing.B) {
	key := newSigner(b, "now", "")
	ring, err := parseKeys([]byte(keysDocument(b, key)), time.Now())
	if err != nil {
		b.Fatal(err)
	}
	signed := Signed{Registry: "https://r/", Name: "x", Version: "1.0.0", Integrity: soundHash, Signatures: []Signature{key.sign(b, "x@1.0.0:"+soundHash)}}
	for b.Loop() {
		if v := ring.verify(signed); v.State != SignatureGood {
			b.Fatal(v)
		}
	}
}
