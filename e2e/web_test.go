package e2e

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// ask [-anonymous] FILE METHOD PATH STATUS [HEADER...] sends a request to the
// server whose address with the token is a line of FILE, and checks the status
// of the answer. The answer's text is then in the file answer, its headers in
// the file answer.headers. -anonymous shows no token; HEADER is "Name: value".
// It waits for the address.
func ask(ts *testscript.TestScript, neg bool, args []string) {
	anonymous := len(args) > 0 && args[0] == "-anonymous"
	if anonymous {
		args = args[1:]
	}
	if len(args) < 4 || neg {
		ts.Fatalf("usage: ask [-anonymous] FILE METHOD PATH STATUS [HEADER...]")
	}
	base, token := served(ts, args[0])
	request, err := http.NewRequest(args[1], base, nil)
	ts.Check(err)
	// The path as it is written, dots and all.
	request.URL.Path, request.URL.RawQuery, _ = strings.Cut(args[2], "?")
	if !anonymous {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	for _, header := range args[4:] {
		name, value, _ := strings.Cut(header, ": ")
		if value = strings.ReplaceAll(value, "ADDRESS", base); name == "Host" {
			request.Host = value
		} else {
			request.Header.Set(name, value)
		}
	}
	client := &http.Client{
		Timeout:       time.Minute,
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	response, err := client.Do(request)
	ts.Check(err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	ts.Check(err)
	var headers strings.Builder
	ts.Check(response.Header.Write(&headers))
	ts.Check(os.WriteFile(ts.MkAbs("answer"), text, 0o644))
	ts.Check(os.WriteFile(ts.MkAbs("answer.headers"), []byte(strings.ReplaceAll(headers.String(), "\r", "")), 0o644))
	if fmt.Sprint(response.StatusCode) != args[3] {
		ts.Fatalf("%s %s: %s\n%s%s", args[1], args[2], response.Status, headers.String(), text)
	}
}

// served is the address, and the token, that a server has printed in a file.
func served(ts *testscript.TestScript, file string) (base, token string) {
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(time.Millisecond) {
		text, err := os.ReadFile(ts.MkAbs(file))
		ts.Check(err)
		for line := range strings.Lines(string(text)) {
			if base, token, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "/?token="); ok && strings.HasPrefix(base, "http://") && strings.HasSuffix(line, "\n") {
				return base, token
			}
		}
		if time.Now().After(deadline) {
			ts.Fatalf("no address is in %s: %q", file, text)
		}
	}
}
