package fault

import "testing"

func TestDiscreet(t *testing.T) {
	for text, want := range map[string]string{
		"nothing": "nothing",
		"get https://registry.npmjs.org/x: it answered HTTP 500":     "get https://registry.npmjs.org/x: it answered HTTP 500",
		"http://127.0.0.1:4873/x":                                    "http://127.0.0.1:4873/x",
		"at http://user:secret@host:80/x?token=secret#frag, twice":   "at http://host:80/x#frag, twice",
		"at http://secret@host/x":                                    "at http://host/x",
		"at http://user:se@cret@host/x":                              "at http://host/x",
		`"https://user:secret@host" and "https://host/?secret"`:      `"https://host" and "https://host/"`,
		`"https://user:secret" is no package name`:                   `"https://" is no package name`,
		"git+ssh://git@host/o/r.git":                                 "git+ssh://git@host/o/r.git",
		"git+ssh://git:secret@host/o/r.git":                          "git+ssh://host/o/r.git",
		"dsh plugin add 'x@https://user:secret@host/x.tgz?token=se'": "dsh plugin add 'x@https://host/x.tgz'",
		"s3::https://k:secret@h/b":                                   "s3::https://h/b",
		"mail a@b.example about https://h/x@1.0.0":                   "mail a@b.example about https://h/x@1.0.0",
		"is it https://h/x?":                                         "is it https://h/x",
		"two lines\nhttp://a:b@c/\nhttp://d:e@f/":                    "two lines\nhttp://c/\nhttp://f/",
	} {
		if got := Discreet(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
