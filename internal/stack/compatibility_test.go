package stack

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dsh/internal/fault"
	"dsh/internal/npmrange"
)

func TestReadExemptions(t *testing.T) {
	for text, want := range map[string]Exemptions{
		`{}`: {},
		`{"a@1.0.0": ["0.1.7", "0.1.8"], "@s/b@2.0.0": []}`: {"a@1.0.0": {"0.1.7", "0.1.8"}, "@s/b@2.0.0": {}},
		``: nil, `null`: nil, `[]`: nil, `{"a@1.0.0": "0.1.7"}`: nil, `{"a@1.0.0": [1]}`: nil, `{`: nil,
	} {
		dir := t.TempDir()
		file := filepath.Join(dir, ExemptionsFile)
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		got, read, err := ReadExemptions(dir)
		if want == nil {
			if fault.ClassOf(err) != fault.Composition || string(read) != text {
				t.Errorf("%s: %v, %v", text, got, err)
			}
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" || err != nil || string(read) != text {
			t.Errorf("%s: %v (-want +got)\n%s", text, err, diff)
		}
	}
	if got, text, err := ReadExemptions(t.TempDir()); err != nil || text != nil || got == nil || got.Allows("a", "1.0.0", "0.1.7") {
		t.Errorf("no file: %v, %q, %v", got, text, err)
	}
}

func TestUnmetPeers(t *testing.T) {
	harness, err := npmrange.ParseVersion("0.1.8-rc.1")
	if err != nil {
		t.Fatal(err)
	}
	got := UnmetPeers(map[string]string{
		"@deepseek-ai/dsh": "^0.1.0-rc.6", "@deepseek-ai/dsh-any": "*", "@deepseek-ai/dsh-own": "workspace:^",
		"@deepseek-ai/dsh-late": ">=0.1.8", "@deepseek-ai/dsh-blank": " ", "@deepseek-ai/dsh-odd": "latest",
		"@deepseek-ai/cordis": "^9.0.0", "other": "^9.0.0",
	}, harness)
	want := []Peer{{"@deepseek-ai/dsh-blank", " "}, {"@deepseek-ai/dsh-late", ">=0.1.8"}, {"@deepseek-ai/dsh-odd", "latest"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
