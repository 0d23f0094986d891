package compose

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestIsSecretKey(t *testing.T) {
	for _, key := range []string{
		"token", "Token", "TOKEN", "accessToken", "access_token", "access-token", "access.token", "accesstoken", "oauth2Token",
		"GITHUB_TOKEN", "githubToken2", "token1", "tokens", "apiTokens", "auth_tokens", "idToken", "_authToken",
		"secret", "secrets", "clientSecret", "client_secret", "clientsecret", "secretAccessKey", "secretKey", "jwtSecret",
		"password", "passwords", "dbPassword", "userpassword", "passWord", "passwd", "passphrase", "pwd", "PWD", "passcode",
		"pass", "SMTP_PASS", "credential", "credentials", "authorization", "Authorization", "Proxy-Authorization", "auth", "_auth",
		"cookie", "cookies", "setCookie", "Set-Cookie", "bearer", "bearerAuth", "pin",
		"apiKey", "apikey", "APIKey", "API_KEY", "api key", "X-Api-Key", "openaiApiKey", "OpenAIAPIKey", "api_keys",
		"privateKey", "private-key", "accessKey", "AWS_ACCESS_KEY", "signingKey", "sessionKey", "encryptionKey",
	} {
		if !IsSecretKey(key) {
			t.Errorf("%s: not secret", key)
		}
	}
	for _, key := range []string{
		"", "-", "1", "port", "key", "keys", "keyboard", "publicKey", "primaryKey", "monkey", "tokenizer", "tokenize", "secretary",
		"author", "authority", "authenticate", "noAuth", "basicAuth", "authMode", "oauth", "compass", "passThrough", "bypass", "passed",
		"pinned", "pinVersion", "spin", "cookbook",
		"tokenEnv", "apiKeyEnv", "api_key_env", "API_KEY_FILE", "api_key_file", "apiKeyPath", "secretsDir", "tokenUrl", "token_uri",
		"tokenEndpoint", "secretName", "accessKeyId", "AWS_ACCESS_KEY_ID", "tokenType", "authorizationHeader", "passwordVar", "cookieName",
		"maxTokens", "max_tokens", "MAX_TOKENS", "retainTokens", "maxOutputTokens", "inputTokens", "tokens_per_minute_limit", "tokenCount",
		"tokenBudget", "tokenLimit", "tokenTtl",
	} {
		if IsSecretKey(key) {
			t.Errorf("%s: secret", key)
		}
	}
}

func TestRedact(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{"nothing", "{a: 1, b: [x, null, true], c: {d: .nan}}", "{a: 1, b: [x, null, true], c: {d: .nan}}"},
		{"a text", "{apiKey: abc, port: 80}", `{apiKey: "***", port: 80}`},
		{"an empty text shows that it is", "{apiKey: ''}", `{apiKey: ""}`},
		{"a number", "{password: 1234, pin: 1, token: 5, dbSecret: 7, pass: 8}", `{password: "***", pin: "***", token: "***", dbSecret: "***", pass: "***"}`},
		{"a number that is none", "{apiKey: 1, auth: 2, cookie: 3, tokens: 4096, maxTokens: 100}", "{apiKey: 1, auth: 2, cookie: 3, tokens: 4096, maxTokens: 100}"},
		{"a long number", "{apiKey: 12345678, cookie: -123456, tokens: 200000, auth: 99999, port: 1234567}", `{apiKey: "***", cookie: "***", tokens: 200000, auth: 99999, port: 1234567}`},
		{"a value beside a name", "{env: [{name: API_TOKEN, value: a}, {name: HOME, value: b}], headers: [{Key: Authorization, Value: c, on: true}, {header: x, value: d}]}",
			`{env: [{name: API_TOKEN, value: "***"}, {name: HOME, value: b}], headers: [{Key: Authorization, Value: "***", on: true}, {header: x, value: d}]}`},
		{"values beside a name", "{name: dbPassword, value: {a: 1, b: [x]}, other: y}", `{name: dbPassword, value: {a: "***", b: ["***"]}, other: y}`},
		{"switches and nothing", "{password: true, token: null, auth: false}", "{password: true, token: null, auth: false}"},
		{"a mapping", "{auth: {type: basic, user: x, port: 80, on: true, n: null, more: {a: [b, 1]}}}",
			`{auth: {type: "***", user: "***", port: "***", on: true, n: null, more: {a: ["***", "***"]}}}`},
		{"a list", "{tokens: [a, 1, {b: c}], cookies: []}", `{tokens: ["***", "***", {b: "***"}], cookies: []}`},
		{"deep", "{servers: [{env: {API_KEY: x, HOME: /root}}]}", `{servers: [{env: {API_KEY: "***", HOME: /root}}]}`},
		{"where it is kept", "{apiKeyEnv: OPENAI, api_key_file: /k, tokenUrl: 'https://x/token'}", `{apiKeyEnv: OPENAI, api_key_file: /k, tokenUrl: "https://x/token"}`},
		{"aliases", "{a: &x {k: v}, token: *x}", `{a: {k: v}, token: {k: "***"}}`},

		{"user in a URL", "[https://user:pass@host/x, https://tok@host, git+ssh://git@host/a, 'see https://a:b@c and http://d:e@f.']",
			`["https://***@host/x", "https://***@host", "git+ssh://***@host/a", "see https://***@c and http://***@f."]`},
		{"an @ in the password", "['https://user:p@ss@host/x']", `["https://***@host/x"]`},
		{"no user in a URL", "['https://host:80/@scope/x', 'https://host?q=a@b', 'a@b.c', 'https://host/#a@b']",
			`["https://host:80/@scope/x", "https://host?q=a@b", "a@b.c", "https://host/#a@b"]`},
		{"a key in a query", "['https://h/?key=abc&b=2#key=x', 'see https://h/x?a=1;Sig=a/b= and ?key=b', 'https://h/?monkey=abc']",
			`["https://h/?key=***&b=2#key=x", "see https://h/x?a=1;Sig=*** and ?key=b", "https://h/?monkey=abc"]`},
		{"a key in a query in an expression", `{a: !!js "'https://h/?key=abc&v=' + x"}`, `{a: !!js "'https://h/?key=***&v=' + x"}`},
		{"in a query", "['https://h/?a=1&access_token=abc&b=2#x', 'https://h/?apiKey=abc']",
			`["https://h/?a=1&access_token=***&b=2#x", "https://h/?apiKey=***"]`},

		{"options", "[--token=abc, --port=80, '--api-key=a b', --token-file=/x]", `["--token=***", "--port=80", "--api-key=*** b", "--token-file=/x"]`},
		{"options and values", "[--token, abc, --port, '80', -password, 1234, --token, --verbose, --api-key-env, NAME]",
			`["--token", "***", "--port", "80", "-password", "***", "--token", "--verbose", "--api-key-env", NAME]`},
		{"a word that is no option", "[token, abc]", "[token, abc]"},
		{"options in a text", "['run --token abc --port 80', 'run --password \"a b\" x', 'run -secret=abc x']",
			`["run --token *** --port 80", "run --password *** x", "run -secret=*** x"]`},
		{"variables", "[run, -e, GITHUB_TOKEN=ghp_x, -e, HOME=/root, 'A_SECRET=''b c'' x']",
			`[run, "-e", "GITHUB_TOKEN=***", "-e", "HOME=/root", "A_SECRET=*** x"]`},
		{"headers", "['Authorization: Basic abc', 'X-Api-Key: a b', 'Accept: text/html', 'a: token: b']",
			`["Authorization: ***", "X-Api-Key: ***", "Accept: text/html", "a: token: b"]`},
		{"bearer", "[Bearer abc.def-ghi, 'x: bearer  abc, y', forbearer abc]", `["Bearer ***", "x: bearer  ***, y", "forbearer abc"]`},

		{"expressions under a secret key", `{token: !!js "process.env.TOKEN ?? 'ghp_0123456789'"}`, `{token: !!js "process.env.TOKEN ?? '***'"}`},
		{"other expressions", `{a: !!js "process.env.TOKEN ?? 'ghp_0123456789'"}`, `{a: !!js "process.env.TOKEN ?? 'ghp_0123456789'"}`},
		{"a URL in an expression", `{a: !!js "x + 'https://user:pass@host'"}`, `{a: !!js "x + 'https://***@host'"}`},
	} {
		v := valueOf(t, c.value)
		before := flow(v)
		if diff := cmp.Diff(c.want, flow(Redact(v))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
		if after := flow(v); after != before {
			t.Errorf("%s: the value became %s", c.name, after)
		}
	}
}

func TestRedactAt(t *testing.T) {
	for _, c := range []struct {
		value Value
		keys  []string
		want  Value
	}{
		{"abc", nil, "abc"},
		{"abc", []string{"port"}, "abc"},
		{"abc", []string{"apiKey"}, "***"},
		{1.0, []string{"apiKey"}, 1.0},
		{1.0, []string{"token"}, "***"},
		{1.0, []string{"auth", "port"}, "***"},
		{"/x", []string{"tokenFile"}, "/x"},
		{"abc", []string{"env", "API_KEY"}, "***"},
		{"abc", []string{"tokens", "0"}, "***"},
		{nil, []string{"token"}, nil},
	} {
		if got := RedactAt(c.value, c.keys...); got != c.want {
			t.Errorf("%v at %v is %v, want %v", c.value, c.keys, got, c.want)
		}
	}
}

// TestEndless has a row that is in its own config.
func TestEndless(t *testing.T) {
	tree := Apply(parseLayers(t, "- insert: [&g {id: g, group: true, config: []}, {id: a, config: {b: [1]}}]\n- {id: g, insert: [*g]}"), nil)
	g, a := tree.FindText("g"), tree.FindText("a")
	if !Endless(g) || Endless(a) || Endless(nil) || Endless("x") || Endless((*Map)(nil)) {
		t.Errorf("g is endless: %v, a: %v", Endless(g), Endless(a))
	}
	if got := Redact(g); got != "(too large to be written out)" {
		t.Errorf("redacted: %v", got)
	}
	if _, err := g.MarshalJSON(); err == nil || err.Error() != "the value is too large to be written out" {
		t.Errorf("as JSON: %v", err)
	}
	if text, err := a.MarshalJSON(); err != nil || string(text) != `{"id":"a","config":{"b":[1]}}` {
		t.Errorf("as JSON: %s, %v", text, err)
	}
}

func FuzzRedact(f *testing.F) {
	for _, text := range []string{"--token=abc", "https://a:b@c", "Bearer x", "A: b", "--password 'x", `TOKEN="`, "***", "https://***@x"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v := &List{Items: []Value{text, newMap([]pair{{"password", text}, {"x", Expr{text}}, {"token", Expr{text}}}), "--token", text}}
		once := Redact(v)
		if twice := Redact(once); !Equal(once, twice) {
			t.Errorf("%s\nredacted again is\n%s", flow(once), flow(twice))
		}
		password, _ := once.(*List).Items[1].(*Map).Get("password")
		if last := once.(*List).Items[3]; text != "" && (password != mask || !strings.HasPrefix(text, "--") && last != mask) {
			t.Errorf("%s shows %q", flow(once), text)
		}
	})
}
