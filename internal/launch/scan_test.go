package launch

import (
	"bufio"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"dsh/internal/fault"

	"github.com/google/go-cmp/cmp"
)

// testdata/commander.jsonl is what the parser library of the reference makes
// of random command lines; testdata/commander.mjs wrote it.
func TestScanAsCommander(t *testing.T) {
	file, err := os.Open("testdata/commander.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := 0
	for scanner := bufio.NewScanner(file); scanner.Scan(); lines++ {
		var want struct {
			Argv              []string
			Error             string
			Version           bool
			Profile, Template *string
			Patches           []string
			Dumps             []bool
			Args              []string
		}
		if err := json.Unmarshal(scanner.Bytes(), &want); err != nil {
			t.Fatal(err)
		}
		p := parser{getenv: noEnv}
		args, _, err := p.scan(want.Argv)
		switch {
		case want.Version:
			// commander prints the version where it meets the option; here an
			// option behind it that cannot be read is still an error.
			if err == nil && !p.version {
				t.Errorf("%q: no version", want.Argv)
			}
		case want.Error != "":
			if err == nil || err.Error() != want.Error {
				t.Errorf("%q: error %v, want %s", want.Argv, err, want.Error)
			}
		case err != nil:
			t.Errorf("%q: %v", want.Argv, err)
		default:
			state := []any{p.profile.given, p.profile.value, p.templateGiven, p.template, p.patches, p.dumps[:], args}
			wanted := []any{want.Profile != nil, value(want.Profile), want.Template != nil, value(want.Template), want.Patches, want.Dumps, want.Args}
			if diff := cmp.Diff(wanted, state, same); diff != "" {
				t.Errorf("%q (-want +got):\n%s", want.Argv, diff)
			}
		}
	}
	if lines < 1000 {
		t.Errorf("only %d command lines", lines)
	}
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"", "web\x00--help", "--patch\x00a\x00--profile=x\x00--\x00y", "--json\x00plugin\x00add\x00x\x00--profile\x00y", "x\x00--dump-config\x00\xff",
		"--set\x00a.b=1\x00x\x00--patch=-\x00--patch\x00-", "--set=a.b=1\x00config\x00--set\x00c=2\x00dump\x00row\x00--patch\x00-", "--set\x00a=1\x00plugin\x00add\x00x",
		"x\x00--dump-config\x00--set\x00a=1\x00--json\x00--patch\x00b", "config\x00set\x00row.n\x00-5\x00--home", "config\x00--json\x00--\x00set", "trust\x00-vl\x00--\x00-x"} {
		f.Add(seed, "mine")
	}
	f.Fuzz(func(t *testing.T, joined, profile string) {
		args := strings.Split(joined, "\x00")
		before := slices.Clone(args)
		cmd, err := parse(args, env("DSH_PROFILE", profile))
		if !slices.Equal(before, args) {
			t.Errorf("argv was changed to %q", args)
		}
		if (err == nil) == (cmd == nil) {
			t.Fatalf("command %v and error %v", cmd, err)
		}
		if _, line, ok := strings.Cut(fault.Hint(err), "name: dsh "); ok {
			if cmd, err := parse(strings.Split(line, " "), env("DSH_PROFILE", profile)); err != nil {
				t.Errorf("%q: the hint %q is %v, %v", args, line, cmd, err)
			}
		}
		switch cmd := cmd.(type) {
		case Boot:
			cut := len(args) - len(cmd.Args)
			if !slices.Equal(args[cut:], cmd.Args) {
				t.Errorf("%q is no tail of %q", cmd.Args, args)
			}
			checkLaunch(t, cmd.Launch)
		case Dump:
			checkLaunch(t, cmd.Launch)
		case Own:
			if !slices.Equal(args[len(args)-len(cmd.Args):], cmd.Args) || !IsCommand(cmd.Args[0]) {
				t.Errorf("%q of %q", cmd.Args, args)
			}
			inv, err := cmd.Arrange(testSyntax)
			if err == nil {
				checkInvocation(t, cmd, inv)
			}
			if !slices.Equal(before, args) {
				t.Errorf("argv was changed to %q", args)
			}
		}
	})
}

func checkLaunch(t *testing.T, l Launch) {
	t.Helper()
	if l.Profile == "" || slices.Contains(l.Patches, "") {
		t.Errorf("empty names in %#v", l)
	}
	if i := slices.Index(l.Patches, "-"); i >= 0 && slices.Contains(l.Patches[i+1:], "-") {
		t.Errorf("standard input is read twice in %#v", l)
	}
	for _, set := range l.Sets {
		if !strings.Contains(set, "=") {
			t.Errorf("%q is no assignment in %#v", set, l)
		}
	}
}

// checkInvocation checks that no --set got lost and that words which the
// commands understand are in order.
func checkInvocation(t *testing.T, own Own, inv Invocation) {
	t.Helper()
	if inv.Args[0] != own.Args[0] {
		t.Errorf("%q became %q", own.Args, inv.Args)
	}
	if findSyntax(testSyntax, own.Args[0]) == nil || asksHelp(inv.Args) {
		return
	}
	for _, set := range own.sets {
		if !slices.Contains(inv.Args, set) {
			t.Errorf("--set %q before %q is lost in %q", set, own.Args, inv.Args)
		}
	}
	ran, err := runCLI(inv.Args)
	if err != nil || own.Args[0] == "plugin" && slices.Contains(own.Args, "--") {
		return // a flag that nobody has; a verb of pnpm's behind "--"
	}
	if len(ran.Sets) < len(own.sets) || !slices.Equal(own.sets, ran.Sets[:len(own.sets)]) {
		t.Errorf("--set %q before %q became %q", own.sets, own.Args, ran.Sets)
	}
	again, err := Own{Global: own.Global, Args: inv.Args, implied: own.implied}.Arrange(testSyntax)
	if err != nil {
		t.Errorf("%q became %q: %v", own.Args, inv.Args, err)
		return
	}
	if diff := cmp.Diff(inv.Args, again.Args); diff != "" {
		t.Errorf("%q became %q and then (-first +second):\n%s", own.Args, inv.Args, diff)
	}
}

func BenchmarkParse(b *testing.B) {
	args := []string{"--installation", "d", "web", "--patch", "a.yml", "--port", "0"}
	for b.Loop() {
		if _, err := parse(args, noEnv); err != nil {
			b.Fatal(err)
		}
	}
}
