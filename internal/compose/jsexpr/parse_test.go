package jsexpr

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// kind is what Parse makes of a text.
func kind(text string) string {
	e, err := Parse(text)
	switch {
	case err != nil:
		return "error"
	case e.Statement:
		return "statement"
	default:
		return "expression"
	}
}

// TestParseAgreesWithEval compares with what Node.js's eval makes of each text
// in a function that is not strict. A text that is a statement by how it begins
// is one here, whatever else it could be.
func TestParseAgreesWithEval(t *testing.T) {
	data, err := os.ReadFile("testdata/eval.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Scan() {
		var want struct{ Text, Is string }
		if err := json.Unmarshal(lines.Bytes(), &want); err != nil {
			t.Fatal(err)
		}
		if got := kind(want.Text); got != want.Is {
			_, err := Parse(want.Text)
			t.Errorf("%q: got %s (%v), eval says %s", want.Text, got, err, want.Is)
		}
	}
}

func TestRealExpressionsParse(t *testing.T) {
	data, err := os.ReadFile("testdata/real.json")
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	if err := json.Unmarshal(data, &texts); err != nil {
		t.Fatal(err)
	}
	if len(texts) < 40 {
		t.Fatalf("%d texts", len(texts))
	}
	for _, text := range texts {
		if got := kind(text); got != "expression" {
			t.Errorf("%q: got %s", text, got)
		}
	}
}

func TestParseFindsWhatIsRead(t *testing.T) {
	tests := []struct {
		text string
		want Expression
	}{
		{"1", Expression{}},
		{"process.env.A", Expression{Env: []string{"A"}}},
		{`process.env["A"] ?? process.env['B'] ?? process.env[` + "`C`" + `]`, Expression{Env: []string{"A", "B", "C"}}},
		{"process.env?.A ?? process?.env?.['B']", Expression{Env: []string{"A", "B"}}},
		{"(process.env).B + process.env.A + process.env.B", Expression{Env: []string{"A", "B"}}},
		{"(process.env ?? {}).A", Expression{Env: []string{"A"}}},
		{"globalThis.process.env.A", Expression{Env: []string{"A"}}},
		{`process.env.\u0041`, Expression{Env: []string{"A"}}},
		{"'A' in process.env", Expression{Env: []string{"A"}}},
		{"process.env[name]", Expression{Services: []string{"name"}}},
		{"process.platform === 'win32'", Expression{}},
		{"`${process.env.A}/x`", Expression{Env: []string{"A"}}},
		{"const {A, B: b = 1, ['C']: c} = process.env; A + b", Expression{Env: []string{"A", "B", "C"}, Statement: true}},
		{"const env = process.env; env.A", Expression{Env: []string{"A"}, Statement: true}},
		{"const {env: {A}} = process; A", Expression{Env: []string{"A"}, Statement: true}},
		{"(() => { const {env} = process; return env.A })()", Expression{Env: []string{"A"}}},
		{"(() => { let A; ({A} = process.env); return A })()", Expression{Env: []string{"A"}}},
		{"((env = process.env) => env.A)()", Expression{Env: []string{"A"}}},
		{"(process => process.env.A)(x)", Expression{Services: []string{"x"}}},
		{"dshHomePath('x')", Expression{Services: []string{"dshHomePath"}}},
		{"ctx.webStartup.port ?? 3080", Expression{Services: []string{"webStartup"}}},
		{"ctx['webStartup']?.port", Expression{Services: []string{"webStartup"}}},
		{"!ctx.get('profileContext')", Expression{Services: []string{"profileContext"}}},
		{"ctx.get(name)", Expression{Services: []string{"get", "name"}}},
		{"const {webStartup: {port}, baseUrl} = ctx; port", Expression{Services: []string{"baseUrl", "webStartup"}, Statement: true}},
		{"[...ctx.loader.entries()].some(e => e.options.name === 'x')", Expression{Services: []string{"loader"}, ReadsTree: true}},
		{"loader?.entries()", Expression{Services: []string{"loader"}, ReadsTree: true}},
		{"ctx.get('loader')['entries']()", Expression{Services: []string{"loader"}, ReadsTree: true}},
		{"const {entries} = ctx.loader; 1", Expression{Services: []string{"loader"}, Statement: true, ReadsTree: true}},
		{"ctx.other.entries()", Expression{Services: []string{"other"}}},
		{"Object.entries(JSON.parse(a)).map(([k, v]) => k + v)", Expression{Services: []string{"a"}}},
		{"({a, b: c, [d]: 1, e() { return f }})", Expression{Services: []string{"a", "c", "d", "f"}}},
		{"(class { [a] = b; [c]() { return this.#d } #d })", Expression{Services: []string{"a", "b", "c"}}},
		{"typeof a === 'undefined' ? undefined : new URL('x', b)", Expression{Services: []string{"a", "b"}}},
		{"{a: 1}", Expression{Statement: true}},
	}
	for _, test := range tests {
		got, err := Parse(test.text)
		if err != nil {
			t.Errorf("%s: %v", test.text, err)
			continue
		}
		got.Asked, got.Globals, got.Process = nil, nil, nil // see TestParseGlobals
		if diff := cmp.Diff(&test.want, got); diff != "" {
			t.Errorf("%s:\n%s", test.text, diff)
		}
	}
}

func TestParseGlobals(t *testing.T) {
	for text, want := range map[string]Expression{
		"process.env.A ?? Math.max(1, 2)":           {Globals: []string{"Math", "process"}, Process: []string{"env"}},
		"const {argv, env: {A}} = process; argv":    {Globals: []string{"process"}, Process: []string{"argv", "env"}},
		"globalThis.process['exit'](fetch)":         {Globals: []string{"fetch", "globalThis"}, Process: []string{"exit"}},
		"ctx.get('a') ?? ctx.get('b') ?? b":         {Asked: []string{"a"}},
		"ctx.get('a')?.fetch":                       {Asked: []string{"a"}},
		"'a' in ctx && ctx.get('a')":                {},
		"(fetch => fetch)(1)":                       {},
		"({process: 1, Math() {}, [URL]: 2}).fetch": {Globals: []string{"URL"}},
	} {
		e, err := Parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if diff := cmp.Diff(want, Expression{Asked: e.Asked, Globals: e.Globals, Process: e.Process}); diff != "" {
			t.Errorf("%s:\n%s", text, diff)
		}
	}
}

func TestParseSaysWhatIsWrong(t *testing.T) {
	tests := []struct {
		text string
		want SyntaxError
	}{
		{"", SyntaxError{1, 1, "there is no expression"}},
		{"// c", SyntaxError{1, 1, "there is no expression"}},
		{"a ?? ", SyntaxError{1, 6, "unexpected end"}},
		{"a) + (b", SyntaxError{1, 2, "unexpected )"}},
		{"process.env.A ?? 'sk-secret' 'more'", SyntaxError{1, 30, "unexpected text in quotes"}},
		{"Bearer secret12345", SyntaxError{1, 8, "unexpected name"}},
		{"a\n  + ä b", SyntaxError{2, 7, "unexpected name"}},
		{"f(a", SyntaxError{1, 4, "expected , or ) instead of end"}},
		{"f('a'\n  'b')", SyntaxError{2, 3, "expected , or ) instead of text in quotes"}},
		{"a + 'b", SyntaxError{1, 5, "a text has no closing quote"}},
		{"['a' 'b']", SyntaxError{1, 6, "a comma or an operator is missing before text in quotes"}},
		{"a @ b", SyntaxError{1, 3, "unexpected character '@'"}},
		{"{a: 1, b: 2}", SyntaxError{1, 9, "unexpected :; what begins with { is a block here: put it in parentheses"}},
		{"dshHomePath('C:\\users')", SyntaxError{1, 13, `a text holds a \ with something behind it that is no escape; write \\ for a backslash`}},
		{"a +\nawait b", SyntaxError{2, 1, "await works in async functions only"}},
		{"'x' = process.env.A", SyntaxError{1, 1, "what stands before = cannot be assigned to; write === to compare"}},
		{"\xff", SyntaxError{1, 1, "it is no UTF-8"}},
		{strings.Repeat("a,", maxBytes/2) + "a", SyntaxError{1, 1, "it is longer than 16384 bytes"}},
		{"[\n" + strings.Repeat("(", 2_000), SyntaxError{2, 100, "brackets are nested more than 100 levels deep"}},
	}
	for _, test := range tests {
		_, err := Parse(test.text)
		var got *SyntaxError
		if !errors.As(err, &got) {
			t.Errorf("%.40q: got %v", test.text, err)
			continue
		}
		if diff := cmp.Diff(&test.want, got); diff != "" {
			t.Errorf("%.40q:\n%s", test.text, diff)
		}
	}
}

// TestParseOfDeepTexts shows that nesting of every kind ends in an error or a
// result, not in an overflow of the stack.
func TestParseOfDeepTexts(t *testing.T) {
	for _, part := range []string{
		"(", "[", "{", "a(", "a[", "`${", "!", "-", "- ", "typeof ", "new ", "a=>", "(a)=>", "async a=>", "a?b:", "a?", "a.b", ".a", "a+", "a**", "a=",
		"if(a)", "for(;;)", "while(a)", "do ", "a:", "else ", "class A extends ", "let [", "let {a:", "({a:", "[a=", "function f(){", "...", "await ", "yield ",
	} {
		text := strings.Repeat(part, maxBytes/len(part))
		Parse(text)
		Parse(text[:min(len(text), 4_000)])
		MaskLiterals(text)
	}
	flat := "[" + strings.Repeat("'a', ", 2_000) + "]"
	if _, err := Parse(flat); err != nil {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	data, err := os.ReadFile("testdata/eval.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		var seed struct{ Text string }
		if err := json.Unmarshal([]byte(line), &seed); err != nil {
			f.Fatal(err)
		}
		f.Add(seed.Text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := Parse(text)
		if err == nil {
			// A comment behind it changes nothing.
			again, err := Parse(text + "\n// c")
			if err != nil {
				t.Fatalf("%q parses, and not with a comment behind it: %v", text, err)
			}
			if diff := cmp.Diff(e, again); diff != "" {
				t.Fatalf("%q: a comment behind it changes what is read:\n%s", text, diff)
			}
		}
		masked := MaskLiterals(text)
		if err == nil && kind(masked) == "error" {
			t.Fatalf("%q parses, and masked it does not: %q", text, masked)
		}
		if again := MaskLiterals(masked); again != masked {
			t.Fatalf("%q: masked %q, masked again %q", text, masked, again)
		}
	})
}
