package registry

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"dsh/internal/fault"
)

func TestOpenTarball(t *testing.T) {
	content := bytes.Repeat([]byte("archive "), 1000)
	client, server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Accept-Encoding"); got != "identity" {
			t.Errorf("Accept-Encoding: %q", got)
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(content)))
		_, _ = w.Write(content)
	})
	body, size, err := client.OpenTarball(t.Context(), Dist{Tarball: server.URL + "/x.tgz"})
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	got, err := io.ReadAll(body)
	if err != nil || size != int64(len(content)) || !bytes.Equal(got, content) {
		t.Errorf("%d of %d bytes, announced %d: %v", len(got), len(content), size, err)
	}
}

// A transfer that breaks off is taken up where it stood, by range or by
// passing over what is there already.
func TestTarballResumes(t *testing.T) {
	content := make([]byte, 10_000)
	for i := range content {
		content[i] = byte(i * 7 / 3)
	}
	for name, ranges := range map[string]bool{"with ranges": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				client := newClient(t, mustLoad(t, nil, "fetch-retries=3"), Options{Transport: transport(func(r *http.Request) (*http.Response, error) {
					asked++
					start := 0
					resp := answer(200, nil)
					if header := r.Header.Get("Range"); header != "" && ranges {
						if _, err := fmt.Sscanf(header, "bytes=%d-", &start); err != nil {
							t.Errorf("Range: %q", header)
						}
						resp = answer(206, nil, "Content-Range", fmt.Sprintf("bytes %d-%d/%d", start, len(content)-1, len(content)))
					}
					resp.Request, resp.ContentLength = r, int64(len(content)-start)
					end := min(asked*4000, len(content))
					rest := io.Reader(bytes.NewReader(content[start:end]))
					if end < len(content) {
						rest = io.MultiReader(rest, iotest.ErrReader(io.ErrUnexpectedEOF))
					}
					resp.Body = io.NopCloser(rest)
					return resp, nil
				})})
				body, size, err := client.OpenTarball(t.Context(), Dist{Tarball: "https://registry.npmjs.org/x.tgz"})
				if err != nil {
					t.Fatal(err)
				}
				defer body.Close()
				got, err := io.ReadAll(body)
				if err != nil || size != int64(len(content)) || sha256.Sum256(got) != sha256.Sum256(content) || asked != 3 {
					t.Errorf("%d of %d bytes, announced %d, in %d answers: %v", len(got), len(content), size, asked, err)
				}
			})
		})
	}
}

// A transfer that breaks off more often than there are retries goes on as long as
// it gets on, and one that does not get on ends.
func TestTarballGetsOn(t *testing.T) {
	content := make([]byte, 5*LeastResumed)
	for piece, whole := range map[int]bool{LeastResumed: true, LeastResumed / 4: false} {
		t.Run(strconv.Itoa(piece), func(t *testing.T) {
			client, server := serve(t, func(w http.ResponseWriter, r *http.Request) {
				start := 0
				if _, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &start); err == nil {
					w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", start, len(content)-1, len(content)))
					w.WriteHeader(206)
				}
				w.Write(content[start:min(start+piece, len(content))])
				w.(http.Flusher).Flush()
				if start+piece < len(content) {
					panic(http.ErrAbortHandler)
				}
			})
			client.config.FetchRetries = 1
			body, _, err := client.OpenTarball(t.Context(), Dist{Tarball: server.URL + "/x.tgz"})
			if err != nil {
				t.Fatal(err)
			}
			defer body.Close()
			got, err := io.ReadAll(body)
			if (err == nil) != whole || whole && len(got) != len(content) {
				t.Errorf("%d bytes of %d: %v", len(got), len(content), err)
			}
		})
	}
}

func TestTarballErrors(t *testing.T) {
	for name, tt := range map[string]struct {
		path, want string
		class      fault.Class
		partly     int // bytes that come before the error
	}{
		"missing":       {"/missing?sig=secret", "download http://HOST/missing: there is nothing at this address", fault.Package, 0},
		"forbidden":     {"/forbidden?sig=secret", "download forbidden: http://HOST/forbidden answered HTTP 403: it wants a token", fault.Package, 0},
		"truncated":     {"/truncated?sig=secret", "download truncated from HOST: the connection ended early", fault.Network, 5},
		"announced big": {"/announced", "download http://HOST/announced: the archive is larger than 1000 bytes", fault.Policy, 0},
		"endless":       {"/endless", "download http://HOST/endless: the archive is larger than 1000 bytes", fault.Policy, -1},
	} {
		t.Run(name, func(t *testing.T) {
			client, server := serve(t, func(w http.ResponseWriter, r *http.Request) {
				switch r.URL.Path {
				case "/missing":
					w.WriteHeader(404)
				case "/forbidden":
					w.WriteHeader(403)
				case "/truncated":
					w.Header().Set("Content-Length", "100")
					fmt.Fprint(w, "first")
				case "/announced":
					w.Header().Set("Content-Length", "1001")
				case "/endless":
					for {
						if _, err := w.Write(make([]byte, 100)); err != nil {
							return
						}
						w.(http.Flusher).Flush()
					}
				}
			})
			client.maxTarball = 1000
			body, _, err := client.OpenTarball(t.Context(), Dist{Tarball: server.URL + tt.path})
			n := 0
			if err == nil {
				var got []byte
				got, err = io.ReadAll(body)
				n = len(got)
				body.Close()
			}
			if err == nil {
				t.Fatal("no error")
			}
			if got := strings.ReplaceAll(err.Error(), server.Listener.Addr().String(), "HOST"); got != tt.want {
				t.Errorf("error %q, want %q", got, tt.want)
			}
			if class := fault.ClassOf(err); class != tt.class {
				t.Errorf("class %v, want %v", class, tt.class)
			}
			if hint := fault.Hint(err); (name == "missing") != strings.HasPrefix(hint, "--fresh asks the registry") {
				t.Errorf("hint %q", hint)
			}
			if tt.partly >= 0 && n != tt.partly {
				t.Errorf("%d bytes came, want %d", n, tt.partly)
			}
			if text := fmt.Sprintf("%+v %#v %v", err, err, errors.Unwrap(err)); strings.Contains(text, "secret") {
				t.Errorf("the address's secret shows: %s", text)
			}
		})
	}
	client, _ := serve(t, func(http.ResponseWriter, *http.Request) {})
	for _, address := range []string{"", "file:///etc/passwd", "git+ssh://x/y", "x.tgz", "https:///x", "http://[::1"} {
		if _, _, err := client.OpenTarball(t.Context(), Dist{Tarball: address}); fault.ClassOf(err) != fault.Package {
			t.Errorf("%q: %v", address, err)
		}
	}
}

func FuzzContentRange(f *testing.F) {
	f.Add("bytes 5-9/10")
	f.Add("bytes */10")
	f.Fuzz(func(t *testing.T, header string) {
		if start, total := contentRange(header); start < -1 || total < -1 {
			t.Errorf("%q: %d, %d", header, start, total)
		}
	})
}
