package registry

import (
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"dsh/internal/fault"
)

// load reads files given as texts, in order, and an environment.
func load(env map[string]string, texts ...string) (Config, error) {
	var names []string
	files := map[string]string{"/home/me/ca.pem": env["test ca.pem"]}
	for i, text := range texts {
		name := fmt.Sprintf("/home/me/%d/.npmrc", i)
		names = append(names, name)
		files[name] = text
	}
	read := func(name string) ([]byte, error) {
		if text, ok := files[filepath.ToSlash(name)]; ok {
			return []byte(text), nil
		}
		return nil, fs.ErrNotExist
	}
	return LoadConfig(read, func(name string) string { return env[name] }, append(names, "/nowhere/.npmrc")...)
}

func mustLoad(t *testing.T, env map[string]string, texts ...string) Config {
	t.Helper()
	c, err := load(env, texts...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestParseNpmrc(t *testing.T) {
	const text = "\ufeff" + `; comment
# comment
a=1
 b = two words ; and a comment
c="quoted ; text\n"
d='single # text'
e=a\;b\#c\\d\e
f
g=
h[]=one
h[]=two
h=three
i=1
i=2
"j k"=x
${KEY}=y
v1=${SET}/x
v2=${UNSET}/x
v3=${UNSET?}/x
v4=\${SET} \\${SET}
v5=${SET
v6=${}$${SET}
=nothing
[section]
a=other
`
	env := map[string]string{"SET": "value", "KEY": "key"}
	got := map[string]string{}
	for key, s := range parseNpmrc(strings.ReplaceAll(text, "\n", "\r\n"), func(name string) string { return env[name] }) {
		got[key] = strings.Join(s.values, "|")
		if s.missing != "" {
			got[key] += " lacks " + s.missing
		}
	}
	want := map[string]string{
		"a": "1", "b": "two words", "c": "quoted ; text\n", "d": "single # text", "e": `a;b#c\d\e`, "f": "true", "g": "",
		"h": "one|two|three", "i": "2", "j k": "x", "key": "y",
		// An unquoted backslash pair is one already before variables are looked for.
		"v1": "value/x", "v2": "${UNSET}/x lacks UNSET", "v3": "/x", "v4": "${SET} ${SET}", "v5": "${SET", "v6": "${}$value",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	if text, missing := expand(`\\${SET}`, func(string) string { return "v" }); text != `\v` || missing != "" {
		t.Errorf("two backslashes: %q, %q", text, missing)
	}
}

func FuzzParseNpmrc(f *testing.F) {
	f.Add("a=${B}\n//h/:_authToken='x'\n")
	f.Add("k[]=\"\\u0041\"\n${\\${X?}=1")
	f.Fuzz(func(t *testing.T, text string) {
		for key, s := range parseNpmrc(text, func(string) string { return "v" }) {
			if len(s.values) == 0 || s.missing != "" {
				t.Errorf("%q: %+v", key, s)
			}
		}
	})
}

func TestLoadConfig(t *testing.T) {
	c := mustLoad(t, nil)
	if c.Registry != DefaultRegistry || c.FetchRetries != 2 || c.FetchTimeout != time.Minute || c.MaxSockets != 16 || !c.StrictSSL {
		t.Errorf("defaults: %+v", c)
	}
	c = mustLoad(t, map[string]string{"npm_config_fetch_retries": "5", "NPM_CONFIG_MAXSOCKETS": "99", "npm_config_strict_ssl": ""},
		"registry=https://project.example/npm\n@a:registry=https://a.example/x//\nfetch-timeout=nonsense",
		"registry=https://user.example\n@a:registry=https://no.example\n@b:registry=http://b.example:4873\nstrict-ssl=false\nfetch-timeout=2500\nfetch-retries=9")
	want := Config{
		Registry:     "https://project.example/npm/",
		Scopes:       map[string]string{"@a": "https://a.example/x/", "@b": "http://b.example:4873/"},
		FetchRetries: 5, RetryMinWait: 500 * time.Millisecond, RetryMaxWait: time.Minute, FetchTimeout: time.Minute, MaxSockets: 16,
	}
	if diff := cmp.Diff(want, c, cmpopts.IgnoreUnexported(Config{})); diff != "" {
		t.Errorf("config (-want +got):\n%s", diff)
	}
	for name, want := range map[string]string{"x": c.Registry, "@a/x": c.Scopes["@a"], "@b/x": c.Scopes["@b"], "@c/x": c.Registry, "@a": c.Registry} {
		if got := c.RegistryFor(name); got != want {
			t.Errorf("registry of %s: %s, want %s", name, got, want)
		}
	}
	if c = mustLoad(t, map[string]string{"NPM_CONFIG_REGISTRY": "https://env.example/"}, "registry=https://file.example/"); c.Registry != "https://env.example/" {
		t.Errorf("the environment counts most: %s", c.Registry)
	}
	if err := c.SetRegistry("http://flag.example:1"); err != nil || c.Registry != "http://flag.example:1/" {
		t.Errorf("SetRegistry: %s, %v", c.Registry, err)
	}
}

func TestLoadConfigErrors(t *testing.T) {
	for text, want := range map[string]string{
		"registry=ftp://x/":                              `/home/me/0/.npmrc: registry ftp://x/: it is no http or https address`,
		"registry=nonsense":                              `/home/me/0/.npmrc: registry "nonsense": it is no http or https address`,
		"registry=${MIRROR}":                             `/home/me/0/.npmrc: registry "${MIRROR}": the variable MIRROR is not set`,
		"@a:registry=ssh://me:secret@host/?token=secret": `/home/me/0/.npmrc: registry ssh://host/: it is no http or https address`,
		"registry=me:secret@host":                        `/home/me/0/.npmrc: registry (an address that cannot be read): it is no http or https address`,
		"proxy=ftp://me:secret@proxy":                    `/home/me/0/.npmrc: a proxy is reached by http, https or socks5, not "ftp"`,
		"https-proxy=http://me:secret@:1%zz":             `/home/me/0/.npmrc: the proxy's address cannot be read`,
		"ca=nonsense":                                    `/home/me/0/.npmrc: ca holds no certificate in PEM form`,
		"cafile=missing.pem":                             `read the cafile that /home/me/0/.npmrc names: file does not exist`,
	} {
		config, err := load(nil, text)
		if err == nil {
			// What only connections need is read with the first of them.
			_, err = newClient(t, config, Options{}).Packument(t.Context(), "x")
			if _, asked := errors.AsType[*NetworkError](err); asked {
				t.Errorf("%q: %v", text, err)
			}
		}
		if err == nil {
			t.Errorf("%q is accepted", text)
			continue
		}
		if diff := cmp.Diff(want, filepath.ToSlash(err.Error())); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
	_, err := LoadConfig(func(string) ([]byte, error) { return nil, fs.ErrPermission }, func(string) string { return "" }, ".npmrc")
	if fault.ClassOf(err) != fault.Environment || !errors.Is(err, fs.ErrPermission) {
		t.Errorf("an unreadable file: %v", err)
	}
}

func TestCredentials(t *testing.T) {
	c := mustLoad(t, map[string]string{"TOKEN": "from-env", "npm_config_//plain.example:4873/:_authToken": "plain"},
		"//r.example/:_authToken=project\n@p:registry=http://plain.example:4873/",
		`//r.example/:_authToken=user
//r.example/deep/path/:_auth=ZGVlcA==
//R.example:8443/:username=me
//R.example:8443/:_password=c2VjcmV0
//env.example/:_authToken=${TOKEN}
//unset.example/:_authToken=${NO_SUCH}
//noslash.example/npm:_authToken=noslash
registry=https://me:pw@userinfo.example/npm/
_authToken=unscoped
`)
	if c.Registry != "https://userinfo.example/npm/" {
		t.Errorf("the registry keeps its user: %s", c.Registry)
	}
	for address, want := range map[string]string{
		"https://r.example/x":               "Bearer project",
		"https://R.EXAMPLE:443/x":           "Bearer project",
		"https://r.example":                 "Bearer project",
		"https://r.example/deep/x":          "Bearer project",
		"https://r.example/deep/path":       "Basic ZGVlcA==",
		"https://r.example/deep/path/x/y":   "Basic ZGVlcA==",
		"https://r.example/deep/pathology":  "Bearer project",
		"https://r.example:8443/x":          "Basic bWU6c2VjcmV0",
		"https://env.example/x":             "Bearer from-env",
		"https://unset.example/x":           "",
		"https://noslash.example/npm/x":     "Bearer noslash",
		"https://noslash.example/npmx":      "",
		"https://sub.r.example/x":           "",
		"https://r.example.evil.example/":   "",
		"https://r.example:444/":            "",
		"https://other.example/":            "",
		"https://userinfo.example/npm/x":    "Basic bWU6cHc=",
		"https://userinfo.example/other":    "",
		"http://plain.example:4873/x":       "Bearer plain",
		"http://r.example/x":                "", // the key is for https: nothing here uses http
		"http://r.example:443/x":            "",
		"https://user@r.example/x":          "Bearer project",
		"https://r.example/deep/path%2fx/y": "Bearer project",
		"https://evil.example/r.example/x":  "",
		"https://evil.example//r.example/x": "",
		"ftp://r.example/x":                 "",
	} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		if cred, _ := c.credentials.find(u); cred.header != want {
			t.Errorf("%s: %q, want %q", address, cred.header, want)
		}
	}
	for _, text := range []string{fmt.Sprintf("%v", c), fmt.Sprintf("%+v", c), fmt.Sprintf("%#v", c), fmt.Sprint(&c)} {
		for _, secret := range []string{"project", "ZGVlcA", "bWU6", "from-env", "plain\"", "pw"} {
			if strings.Contains(text, secret) {
				t.Errorf("printing the configuration shows %q: %s", secret, text)
			}
		}
	}
}

func TestProxies(t *testing.T) {
	for _, tt := range []struct {
		env     map[string]string
		npmrc   string
		address string
		want    string
	}{
		{nil, "", "https://r.example/", ""},
		{nil, "proxy=http://p:1", "http://r.example/", "http://p:1"},
		{nil, "proxy=http://p:1", "https://r.example/", "http://p:1"},
		{nil, "proxy=http://p:1\nhttps-proxy=p:2", "https://r.example/", "http://p:2"},
		{map[string]string{"HTTPS_PROXY": "http://e:3"}, "", "https://r.example/", "http://e:3"},
		{map[string]string{"https_proxy": "http://e:4"}, "https-proxy=null", "https://r.example/", "http://e:4"},
		{map[string]string{"HTTPS_PROXY": "http://e:3"}, "https-proxy=false", "https://r.example/", ""},
		{map[string]string{"HTTPS_PROXY": "http://e:3"}, "", "http://r.example/", ""},
		{map[string]string{"HTTPS_PROXY": "http://e:3"}, "", "https://localhost:1/", ""},
		{map[string]string{"HTTPS_PROXY": "http://e:3"}, "", "https://127.0.0.9/", ""},
		{map[string]string{"HTTPS_PROXY": "http://e:3"}, "", "https://[::1]/", ""},
		{map[string]string{"HTTPS_PROXY": "http://e:3", "NO_PROXY": "a.example, .r.example"}, "", "https://r.example/", ""},
		{map[string]string{"HTTPS_PROXY": "http://e:3", "NO_PROXY": "r.example"}, "", "https://sub.R.example/", ""},
		{map[string]string{"HTTPS_PROXY": "http://e:3", "NO_PROXY": "r.example"}, "", "https://other-r.example/", "http://e:3"},
		{map[string]string{"HTTPS_PROXY": "http://e:3", "NO_PROXY": "r.example:8443"}, "", "https://r.example/", "http://e:3"},
		{map[string]string{"HTTPS_PROXY": "http://e:3", "NO_PROXY": "r.example:8443"}, "", "https://r.example:8443/", ""},
		{map[string]string{"HTTPS_PROXY": "http://e:3", "NO_PROXY": "10.0.0.0/8"}, "", "https://10.1.2.3/", ""},
		{map[string]string{"HTTPS_PROXY": "http://e:3", "NO_PROXY": "10.0.0.0/8"}, "", "https://11.1.2.3/", "http://e:3"},
		{map[string]string{"HTTPS_PROXY": "http://e:3", "NO_PROXY": "*"}, "", "https://r.example/", ""},
		{map[string]string{"HTTPS_PROXY": "http://e:3", "NO_PROXY": "*"}, "noproxy=a.example", "https://r.example/", "http://e:3"},
		{map[string]string{"HTTPS_PROXY": "http://e:3"}, "noproxy[]=a.example\nnoproxy[]=r.example", "https://r.example/", ""},
	} {
		c := mustLoad(t, tt.env, tt.npmrc)
		u, err := url.Parse(tt.address)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if p := c.proxies.proxyFor(u); p != nil {
			got = p.String()
		}
		if got != tt.want {
			t.Errorf("%v %q: %s through %q, want %q", tt.env, tt.npmrc, tt.address, got, tt.want)
		}
	}
}

// A server with a certificate of its own authority is reached with ca, with
// cafile, and without checking; else the error says what is wrong.
func TestCertificates(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"versions":{"1.0.0":{}}}`)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // it complains about the refused handshakes
	server.StartTLS()
	defer server.Close()
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	env := map[string]string{"test ca.pem": ca, "HOME": "/home/me"}
	for npmrc, want := range map[string]string{
		"":                 "get the versions of x from " + strings.TrimPrefix(server.URL, "https://") + ": its certificate is signed by an authority that is not trusted here (cafile in .npmrc names others)",
		"strict-ssl=false": "",
		"cafile=../ca.pem": "",
		"cafile=~/ca.pem":  "",
		`ca="` + strings.ReplaceAll(ca, "\n", `\n`) + `"`: "",
	} {
		c := mustLoad(t, env, npmrc+"\nfetch-retries=0\nregistry="+server.URL)
		client := newClient(t, c, Options{})
		_, err := client.Packument(t.Context(), "x")
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%.20q: %q, want %q", npmrc, got, want)
		}
		if err != nil && fault.ClassOf(err) != fault.Network {
			t.Errorf("%.20q: class %v", npmrc, fault.ClassOf(err))
		}
	}
}

func newClient(t *testing.T, c Config, opts Options) *Client {
	t.Helper()
	client, err := New(c, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}
