package compose

import (
	"fmt"
	"strings"
	"testing"
)

func TestErrorsShowNoSecrets(t *testing.T) {
	for _, line := range []string{
		"token: *hunter2", "token: !hunter2", "token: @hunter2", "token: `hunter2", "token: |hunter2", "token: >hunter2",
		"token: a: hunter2", "token: !!int hunter2", "'api_key' : %hunter2", "{a: 1, token: *hunter2}", "token: \"hunter2", "token: hunter2\n      token: hunter2",
	} {
		_, err := ParsePatches(Source{File: "f", Dir: "/"}, []byte("- id: x\n  config:\n      "+line+"\n"))
		if err == nil {
			continue // it is a value, and shown by nobody
		}
		if shown := fmt.Sprintf("%v %+v", err, err); strings.Contains(shown, "hunter2") {
			t.Errorf("%s: %s", line, shown)
		}
	}
	_, err := ParsePatches(Source{File: "f", Dir: "/"}, []byte("- id: @scope/x\n"))
	if err == nil || !strings.Contains(err.(*SyntaxError).Remedy, "@scope/x") {
		t.Errorf("what is no secret is hidden: %v", err)
	}
}
