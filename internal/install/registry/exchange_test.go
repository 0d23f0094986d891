package registry

import (
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"dsh/internal/fault"
)

func TestExchange(t *testing.T) {
	busy := 2
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch r.URL.Path {
		case "/echo":
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = z.Write([]byte(`{"method":"` + r.Method + `","body":"` + strings.Trim(string(body), `"`) + `","token":"` + r.Header.Get("Authorization") + `"}`))
			_ = z.Close()
		case "/busy":
			if busy--; busy >= 0 {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			_, _ = w.Write(body)
		case "/private":
			w.WriteHeader(http.StatusUnauthorized)
		case "/page":
			_, _ = w.Write([]byte("<html>"))
		case "/method":
			w.WriteHeader(http.StatusMethodNotAllowed)
		case "/large":
			_, _ = w.Write([]byte(`{"x":"` + strings.Repeat("x", 2000) + `"}`))
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http:")
	config, err := LoadConfig(func(string) ([]byte, error) {
		return []byte("registry=" + server.URL + "\n" + host + "/:_authToken=SESAME\nfetch-retries=2\nfetch-retry-mintimeout=1\nfetch-retry-maxtimeout=2\n"), nil
	}, func(string) string { return "" }, "npmrc")
	if err != nil {
		t.Fatal(err)
	}
	client, err := New(config, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	client.maxDocument = 1000
	for path, want := range map[string]string{"/echo": `{"method":"POST","body":"x","token":"Bearer SESAME"}`, "/busy": `{"x":1}`} {
		body := map[string]string{"/echo": `"x"`, "/busy": `{"x":1}`}[path]
		if got, err := client.Exchange(t.Context(), "ask", server.URL+path, []byte(body)); err != nil || string(got) != want {
			t.Errorf("%s: %s, %v", path, got, err)
		}
	}
	if got, err := client.Exchange(t.Context(), "ask", server.URL+"/echo", nil); err != nil || !strings.Contains(string(got), `"GET"`) {
		t.Errorf("%s, %v", got, err)
	}
	for _, path := range []string{"/none", "/method"} {
		_, err := client.Exchange(t.Context(), "ask", server.URL+path, []byte("{}"))
		if _, none := errors.AsType[*NotOfferedError](err); !none || fault.ClassOf(err) != fault.Network {
			t.Errorf("%s: %v", path, err)
		}
	}
	_, err = client.Exchange(t.Context(), "ask", server.URL+"/private", nil)
	if _, ok := errors.AsType[*AuthError](err); !ok || strings.Contains(err.Error(), "SESAME") {
		t.Errorf("private: %v", err)
	}
	for path, cause := range map[string]string{"/page": "no JSON object", "/large": "longer than 1000 bytes"} {
		if _, err := client.Exchange(t.Context(), "ask", server.URL+path, nil); fault.ClassOf(err) != fault.Network || !strings.Contains(err.Error(), cause) {
			t.Errorf("%s: %v", path, err)
		}
	}
	client.mode = Offline
	if _, err := client.Exchange(t.Context(), "ask", server.URL+"/echo", nil); fault.ClassOf(err) != fault.Network {
		t.Errorf("offline: %v", err)
	}
}
