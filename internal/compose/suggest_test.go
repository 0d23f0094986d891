package compose

import "testing"

func TestClosest(t *testing.T) {
	ids := []string{
		"webserver", "web-startup", "@deepseek-ai/dsh-mcp-client", "scope", "llm", "llm-retry", "session", "tools", "id", "Proxy",
		"host-frontend-static", "a", "ünlü", "persistence",
	}
	for _, c := range []struct{ word, want string }{
		{"", ""},
		{"---", ""},
		{"webserver", ""}, // it is there: nothing else is meant
		{"web-server", "webserver"},
		{"web_server", "webserver"},
		{"WebServer", "webserver"},
		{"@scope/webserver", "webserver"},
		{"wbeserver", "webserver"},
		{"webservr", "webserver"},
		{"weebserver", "webserver"},
		{"webxerxex", "webserver"},
		{"xxxxerver", ""},
		{"proxy", "Proxy"},
		{"PROXI", "Proxy"},
		{"scoep", "scope"},
		{"scpoe", "scope"},
		{"sxxpe", "scope"},
		{"sxxxe", ""},
		{"lml", "llm"},
		{"lmm", "llm"},
		{"lxx", ""},
		{"tool", "tools"},
		{"di", "id"},
		{"ix", ""}, // of words of two letters most are one mistake apart
		{"iid", ""},
		{"ID", "id"},
		{"@scope/id", "id"},
		{"b", ""}, // one letter: every other would do
		{"A", "a"},
		{"unlu", ""},
		{"ünlu", "ünlü"},
		{"mcp-client", "@deepseek-ai/dsh-mcp-client"},
		{"mcpclient", "@deepseek-ai/dsh-mcp-client"},
		{"dsh-mcp-client", "@deepseek-ai/dsh-mcp-client"},
		{"frontend-static", "host-frontend-static"},
		{"host", "host-frontend-static"},
		{"frontend", ""}, // in the middle
		{"startup", "web-startup"},
		{"llm-retry-policy", "llm"},
		{"session-persistence", "session"},
		{"retry", "llm-retry"},
		{"completely-different", ""},
	} {
		if got := Closest(c.word, ids); got != c.want {
			t.Errorf("Closest(%q) is %q, want %q", c.word, got, c.want)
		}
	}
	if got := Closest("x", nil); got != "" {
		t.Errorf("among nothing: %q", got)
	}
	// The nearest wins, of equally near ones the first.
	if got := Closest("prot", []string{"pro", "port", "pot"}); got != "pro" {
		t.Errorf("of equals: %q", got)
	}
	if got := Closest("transprot", []string{"transform", "transport"}); got != "transport" {
		t.Errorf("the nearer: %q", got)
	}
}

func FuzzClosest(f *testing.F) {
	f.Add("webserver", "web-server")
	f.Add("ab", "ba")
	f.Add("a\xff", "a\xfe")
	f.Fuzz(func(t *testing.T, a, b string) {
		x, _ := plainWord(a)
		y, _ := plainWord(b)
		far := len(x) + len(y)
		d := distance(x, y, far)
		if d != distance(y, x, far) || d > max(len(x), len(y)) || (d == 0) != (string(x) == string(y)) {
			t.Errorf("%q and %q are %d apart", a, b, d)
		}
		for limit := range d + 2 {
			if got := distance(x, y, limit); (got <= limit) != (d <= limit) || got <= limit && got != d {
				t.Errorf("%q and %q are %d apart, within %d: %d", a, b, d, limit, got)
			}
		}
		if got := Closest(a, []string{b}); got != "" && got != b {
			t.Errorf("%q suggests %q", a, got)
		}
	})
}
