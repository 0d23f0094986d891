package jsexpr

import (
	"strings"
	"testing"
)

func TestMaskLiterals(t *testing.T) {
	tests := []struct{ text, want string }{
		{"process.env.X ?? 'sk-12345678'", "process.env.X ?? '***'"},
		{"process.env.X ?? 'short12'", "process.env.X ?? '***'"},
		{"process.platform === 'win32' ? 'never' : \"ask\"", "process.platform === '***' ? '***' : \"***\""},
		{"process.env['MY_VARIABLE'] ?? 'MY_VARIABLE'", "process.env['MY_VARIABLE'] ?? 'MY_VARIABLE'"},
		{"process.env['MY_VARIABLE'] ?? 'OTHER_VARIABLE'", "process.env['MY_VARIABLE'] ?? '***'"},
		{"process.env.U ?? 'https://api.example.com/v1'", "process.env.U ?? '***'"},
		{"'https://user:pw@api.example.com/v1'", "'***'"},
		{"'https://api.example.com/?token=abc'", "'***'"},
		{"`abcdefgh`", "`***`"},
		{"`abcdefgh${a}ijklmnop${b}qr`", "`***${a}***${b}***`"},
		{"`https://abc${a}`", "`***${a}`"},
		{"f('12345678', {'x-api-key': 'abcdefgh', k: ['ijklmnop']})", "f('***', {'x-api-key': '***', k: ['***']})"},
		{"({['a-long-key']: 1})", "({['***']: '***'})"},
		{`'1234\'5678'`, "'***'"},
		{"'äöüß1234' + 'äöüß123'", "'***' + '***'"},
		{"a / 'abcdefgh' / b", "a / '***' / b"},
		{"/'/.test(a) ? 'abcdefgh' : b", "/'/.test(a) ? '***' : b"},
		{"a // don't\n+ 'abcdefgh'", "a // don't\n+ '***'"},
		{"0755 + 'abcdefgh'", "'***' + '***'"},
		{"x => { return 'abcdefgh' }", "x => { return '***' }"},
		{"(class { ['abcdefgh'] = 'abcdefgh'; ['abcdefgh']() {} })", "(class { ['***'] = '***'; ['***']() {} })"},
		{"(class { static { f('abcdefgh') } })", "(class { static { f('***') } })"},
		{"(function ({a = 'abcdefgh'}, ...[b = 'abcdefgh']) {})", "(function ({a = '***'}, ...[b = '***']) {})"},
		{"switch (a) { case 'abcdefgh': b = 'abcdefgh' }", "switch (a) { case '***': b = '***' }"},
		{"f`abcdefgh`", "f`***`"},
		{"import('abcdefgh')", "import('***')"},
		{"new A('abcdefgh')?.['abcdefgh']('abcdefgh')", "new A('***')?.['***']('***')"},
		{"Bearer 'abc' ??", "Bearer '***"},
		{"'abcdefgh", "'***"},
		{"1234", "'***'"},
		{"f(-12.5e3, 0x1F)", "f(-'***', '***')"},
		{"a b", "a b"},
		{"'***'", "'***'"},
	}
	for _, test := range tests {
		if got := MaskLiterals(test.text); got != test.want {
			t.Errorf("%s: got %s, want %s", test.text, got, test.want)
		}
	}
}

// TestMaskLiteralsWhereverALiteralStands puts a secret in the place of every
// name of programs of all kinds.
func TestMaskLiteralsWhereverALiteralStands(t *testing.T) {
	const secret = "sk-0123456789"
	for _, program := range []string{
		"S + S", "S ? S : S", "[S, ...S]", "({a: S, ...S, [S]: S, m(a = S) { return S }, get g() { return S }})", "f(S, ...S)", "new F(S)", "S.a", "a[S]", "a?.[S]",
		"a?.(S)", "(S, S)", "!S", "typeof S", "a = S", "a ??= S", "`a${S}b${S}c`", "f`a${S}b`", "a => S", "(a = S) => S", "async a => await S", "({b = S}, [c = S]) => 1",
		"function* g() { yield S; yield* S }", "class A extends f(S) { static [S] = S; [S](a = S) { return S } static { S } }",
		"const a = S, {b = S, [S]: c} = S, [d = S] = S", "if (S) S; else S", "for (let a = S; S; S) S", "for (const a of S) S", "for (const a in S) S", "while (S) S",
		"do S\nwhile (S)", "switch (S) { case S: S; default: S }", "throw S", "try { S } catch ({a = S}) { S } finally { S }", "a: S", "with (S) S", "S; S", "S\nS",
		"(() => { return S })()", "delete a[S]", "S in S", "S instanceof S", "import(S)", "[a = S] = b", "({a = S, [S]: b} = c)",
	} {
		for _, literal := range []string{"'" + secret + "'", `"` + secret + `"`, "`" + secret + "`", "`${a}" + secret + "${b}`"} {
			text := strings.ReplaceAll(program, "S", literal)
			if _, err := Parse(text); err != nil {
				t.Errorf("%s: %v", text, err)
			}
			if masked := MaskLiterals(text); strings.Contains(masked, secret) {
				t.Errorf("%s: masked %s", text, masked)
			}
		}
	}
}
