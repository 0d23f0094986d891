package startup

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dsh/internal/compose"
)

var update = flag.Bool("update", false, "write the help texts anew")

// TestHelp holds the texts that people read against testdata.
func TestHelp(t *testing.T) {
	for _, app := range Apps() {
		for _, args := range [][]string{{"--help"}, {"-h"}, {"--wrong", "--help"}, {"word", "-h", "--port"}} {
			_, exit := app.Parse(nil, args)
			if exit == nil || exit.Code != 0 {
				t.Fatalf("%s %q: %+v", app.Name, args, exit)
			}
			file := filepath.Join("testdata", app.service+".txt")
			if *update {
				if err := os.WriteFile(file, []byte(exit.Text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), exit.Text); diff != "" {
				t.Errorf("%s (-want +got):\n%s", app.Name, diff)
			}
			for line := range strings.Lines(exit.Text) {
				if len(line) > columns+1 {
					t.Errorf("%s: a long line: %s", app.Name, line)
				}
			}
		}
	}
}

func TestWeb(t *testing.T) {
	port := func(n int) *int { return &n }
	for words, want := range map[string]Web{
		"":                                {OpenBrowser: true},
		"--no-open":                       {},
		"--host ::1 --port 0":             {Host: "::1", Port: port(0), OpenBrowser: true},
		"--host=10.0.0.7 --port=8080":     {Host: "10.0.0.7", Port: port(8080), OpenBrowser: true},
		"--port 1 --port 65535":           {Port: port(65535), OpenBrowser: true},
		"--port 0080":                     {Port: port(80), OpenBrowser: true},
		"--trusted-host a b:1 --host ::1": {Host: "::1", OpenBrowser: true, TrustedHosts: []string{"a", "b:1"}},
		"--trusted-host a --no-open --trusted-host=b": {TrustedHosts: []string{"a", "b"}},
		"--trusted-host [::1]:80 --":                  {OpenBrowser: true, TrustedHosts: []string{"[::1]:80"}},
	} {
		if want.TrustedHosts == nil {
			want.TrustedHosts = []string{}
		}
		got, exit := webApp.Parse(nil, strings.Fields(words))
		if exit != nil {
			t.Errorf("%s: %s", words, exit.Text)
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", words, diff)
		}
	}
}

func TestWrong(t *testing.T) {
	for _, c := range []struct {
		app  App
		args []string
		want string // the first lines
	}{
		{webApp, []string{"--host", "0.0.0.0"}, "error: option '--host <host>' argument '0.0.0.0' is invalid: host 0.0.0.0 stands for every address of this machine"},
		{webApp, []string{"--host=::"}, "error: option '--host <host>' argument '::' is invalid: host :: stands for every"},
		{webApp, []string{"--host", "*"}, "error: option '--host <host>' argument '*' is invalid: host * stands for every"},
		{webApp, []string{"--host="}, "error: option '--host <host>' argument '' is invalid: host \"\" is no address"},
		{webApp, []string{"--host", "example.org"}, "error: option '--host <host>' argument 'example.org' is invalid: host \"example.org\" is no address"},
		{webApp, []string{"--host"}, "error: option '--host <host>' argument missing"},
		{webApp, []string{"--host", "--port"}, "error: option '--host <host>' argument missing"},
		{webApp, []string{"--port", "http"}, "error: option '--port <n>' argument 'http' is invalid: a port is a number from 0 to 65535"},
		{webApp, []string{"--port", "65536"}, "error: option '--port <n>' argument '65536' is invalid"},
		{webApp, []string{"--port", "+80"}, "error: option '--port <n>' argument '+80' is invalid"},
		{webApp, []string{"--port="}, "error: option '--port <n>' argument '' is invalid"},
		{webApp, []string{"--port", "-1"}, "error: option '--port <n>' argument missing"},
		{webApp, []string{"--port", "8 0"}, "error: option '--port <n>' argument '8 0' is invalid"},
		{webApp, []string{"--prot", "80"}, "error: unknown option '--prot'\n(Did you mean --port?)"},
		{webApp, []string{"--\x1b[31mred"}, "error: unknown option '--\ufffd[31mred'"},
		{webApp, []string{"-p"}, "error: unknown option '-p'"},
		{webApp, []string{"--no-open=yes"}, "error: option '--no-open' takes no value"},
		{webApp, []string{"--trusted-host", "http://a"}, "error: option '--trusted-host <authority...>' argument 'http://a' is invalid"},
		{webApp, []string{"--trusted-host", "*"}, "error: option '--trusted-host <authority...>' argument '*' is invalid"},
		{webApp, []string{"page", "a", "b", "c"}, "error: there may be options only, but 'page' 'a' 'b' … is none"},
		{webApp, []string{"--", "--help"}, "error: there may be options only, but '--help' is none"},
		{headlessApp, nil, "error: a task is required"},
		{headlessApp, []string{" ", "\t"}, "error: a task is required"},
		{headlessApp, []string{"--fix", "it"}, "error: unknown option '--fix'\n(Words that begin with a dash go behind --"},
		{sdkApp, []string{"--port", "1"}, "error: unknown option '--port'"},
		{acpApp, []string{"file"}, "error: there may be options only, but 'file' is none"},
	} {
		value, exit := c.app.Parse(nil, c.args)
		if exit == nil {
			t.Errorf("%s %q: %+v", c.app.service, c.args, value)
		} else if exit.Code != 1 || !strings.HasPrefix(exit.Text, c.want) || !strings.HasSuffix(exit.Text, "--help tells what can be given.\n") {
			t.Errorf("%s %q: %d %s", c.app.service, c.args, exit.Code, exit.Text)
		}
	}
}

func TestHeadless(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"say", "which tests fail"}, "say which tests fail"},
		{[]string{"-"}, "-"},
		{[]string{"--", "--fix", "it"}, "--fix it"},
		{[]string{"a", "--", "-h"}, "a -h"},
	} {
		got, exit := headlessApp.Parse(nil, c.args)
		if exit != nil || got != (Headless{c.want}) {
			t.Errorf("%q: %v %+v", c.args, got, exit)
		}
	}
}

func TestSDKNamesItsProfile(t *testing.T) {
	config := new(compose.Map)
	config.Set("profile", "my sdk")
	if _, exit := sdkApp.Parse(config, []string{"-h"}); exit == nil || !strings.HasPrefix(exit.Text, "Usage: dsh --profile 'my sdk' [options]\n") {
		t.Errorf("got %+v", exit)
	}
}

// FuzzParse has every command line give a value or words, and nothing else.
func FuzzParse(f *testing.F) {
	for _, words := range []string{"", "--help", "--port\n0", "--trusted-host\na\n--\nb", "--host=::", "-\n--", "do\nit"} {
		f.Add(words)
	}
	f.Fuzz(func(t *testing.T, words string) {
		args := strings.Split(words, "\n")
		for _, app := range Apps() {
			kept := slices.Clone(args)
			value, exit := app.Parse(nil, args)
			if !slices.Equal(kept, args) {
				t.Errorf("%q became %q", kept, args)
			}
			if exit == nil {
				if value == nil {
					t.Errorf("%s %q: nothing", app.service, args)
				}
			} else if value != nil || exit.Code > 1 || !strings.HasSuffix(exit.Text, "\n") || (exit.Code == 1) != strings.HasPrefix(exit.Text, "error: ") {
				t.Errorf("%s %q: %v %+v", app.service, args, value, exit)
			}
		}
	})
}
