package e2e

import (
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// ask [-anonymous] [-body FILE] [-until REGEXP] FILE METHOD PATH STATUS [HEADER...]
// sends a request to the server whose address with the token is a line of FILE,
// and checks the status of the answer. The answer's text is then in the file
// answer, its headers in the file answer.headers. -anonymous shows no token;
// -body sends a file as a change of the profile; -until asks again until the text
// matches; HEADER is "Name: value". It waits for the address.
func ask(ts *testscript.TestScript, neg bool, args []string) {
	flags := flag.NewFlagSet("ask", flag.ContinueOnError)
	anonymous, body, until := flags.Bool("anonymous", false, ""), flags.String("body", "", ""), flags.String("until", "", "")
	if err := flags.Parse(args); err != nil || flags.NArg() < 4 || neg {
		ts.Fatalf("usage: ask [-anonymous] [-body FILE] [-until REGEXP] FILE METHOD PATH STATUS [HEADER...]")
	}
	args = flags.Args()
	base, token := served(ts, args[0])
	wanted := regexp.MustCompile(*until)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		request, err := http.NewRequest(args[1], base, nil)
		ts.Check(err)
		if *body != "" {
			request.Body = io.NopCloser(strings.NewReader(ts.ReadFile(*body)))
			request.Header.Set("Content-Type", "application/json")
			request.Header.Set("X-Dsh", "1")
		}
		// The path as it is written, dots and all.
		request.URL.Path, request.URL.RawQuery, _ = strings.Cut(args[2], "?")
		if !*anonymous {
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
		status, text := send(ts, request)
		if fmt.Sprint(status) != args[3] {
			ts.Fatalf("%s %s: %d\n%s%s", args[1], args[2], status, ts.ReadFile("answer.headers"), text)
		}
		if wanted.Match(text) {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%s %s never answers %q: %s", args[1], args[2], *until, text)
		}
	}
}

// send sends a request, and leaves the answer in files.
func send(ts *testscript.TestScript, request *http.Request) (status int, text []byte) {
	client := &http.Client{
		Timeout:       time.Minute,
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	response, err := client.Do(request)
	ts.Check(err)
	defer response.Body.Close()
	text, err = io.ReadAll(response.Body)
	ts.Check(err)
	var headers strings.Builder
	ts.Check(response.Header.Write(&headers))
	ts.Check(os.WriteFile(ts.MkAbs("answer"), text, 0o644))
	ts.Check(os.WriteFile(ts.MkAbs("answer.headers"), []byte(strings.ReplaceAll(headers.String(), "\r", "")), 0o644))
	return response.StatusCode, text
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
