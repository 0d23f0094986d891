package environ

import (
	"bufio"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// recorded is what util.parseEnv made of a text; testdata/dotenv.mjs wrote it.
type recorded struct {
	Text string
	Want map[string]string
}

func readRecorded(t testing.TB, path string) []recorded {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var list []recorded
	scanner := bufio.NewScanner(file)
	for scanner.Scan() {
		var r recorded
		if err := json.Unmarshal(scanner.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		// Node.js keeps a variable without a name, which no environment can.
		delete(r.Want, "")
		list = append(list, r)
	}
	if err := scanner.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

func parsed(text string) map[string]string {
	values := map[string]string{}
	for _, p := range parseDotenv(text) {
		values[p.name] = p.value
	}
	return values
}

func TestParseDotenvAsNode24(t *testing.T) {
	cases := readRecorded(t, "testdata/node24.jsonl")
	if len(cases) < 1000 {
		t.Fatalf("only %d texts", len(cases))
	}
	for _, c := range cases {
		if diff := cmp.Diff(c.Want, parsed(c.Text)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.Text, diff)
		}
	}
}

// Node.js 20, which is too old for the reference launcher, reads these texts
// differently, and all others as we do.
func TestParseDotenvAsNode20(t *testing.T) {
	different := []string{
		// A comment after blanks or without a line end sets a variable.
		"# a=b", "A=1\n  # b=c\nC=2", "\uFEFF# c\nA=1", "A=\"x\n # c\nB=1",
		// Tabs and line ends are no blanks; a line without "=" joins the next one.
		"\tA\t=\tb\t", "A=1\t\n\tB=2\t", "\t\nA=1", "A=x\t# c", "A=1\n \n B=2", "A\nB=1", "A\n=x", "A=1\nB\nC=2", "A=1\n B\n C=2", "export \nA=1",
		// A value of blanks alone is empty.
		"A= \nB=1", "A=  \n\n  B=1", "A=\t\nB=1",
		// A line without a name, or an unclosed quote on the last line, ends the file.
		"=x\nA=1", "=A=1", " =x\nB=1", "A=1\n= y\nB=2", "A='x", `A="`,
		// "export " is always taken away, but not the blanks behind it.
		"export A=", "export A=\nB=1", "export  A  =  1",
	}
	cases := readRecorded(t, "testdata/node20.jsonl")
	if len(cases) < 100 {
		t.Fatalf("only %d texts", len(cases))
	}
	for _, c := range cases {
		if same := cmp.Equal(c.Want, parsed(c.Text)); same == slices.Contains(different, c.Text) {
			t.Errorf("%q: the same as Node.js 20 is %v\n node %q\n dsh  %q", c.Text, same, c.Want, parsed(c.Text))
		}
	}
}

func TestParseDotenvOrder(t *testing.T) {
	want := []pair{{"B", "3"}, {"A", "2"}, {"10", "x"}}
	got := parseDotenv("B=1\nA=2\nB=3\n10=x\n")
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(pair{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func FuzzParseDotenv(f *testing.F) {
	for _, c := range readRecorded(f, "testdata/node20.jsonl") {
		f.Add(c.Text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		seen := map[string]bool{}
		for _, p := range parseDotenv(text) {
			if p.name == "" || strings.ContainsAny(p.name, "=\r\n") || seen[p.name] {
				t.Errorf("name %q", p.name)
			}
			if !strings.Contains(strings.ReplaceAll(text, "\r", ""), p.name) {
				t.Errorf("name %q is not in the text", p.name)
			}
			if strings.Contains(p.value, "\r") || len(p.value) > len(text) {
				t.Errorf("value %q", p.value)
			}
			seen[p.name] = true
		}
	})
}

func BenchmarkParseDotenv(b *testing.B) {
	text := strings.Repeat("# a comment\nSOME_NAME_A=some value # why\nexport OTHER=\"quoted \\n value\"\n\n", 25)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if len(parseDotenv(text)) != 2 {
			b.Fatal("wrong")
		}
	}
}
