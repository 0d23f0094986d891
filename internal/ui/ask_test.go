package ui

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"dsh/internal/fault"
)

func TestAsk(t *testing.T) {
	for input, want := range map[string]bool{
		"y\n": true, "Yes\n": true, " YES \r\n": true, "y": true,
		"": false, "\n": false, "n\n": false, "no\n": false, "yep\n": false, "what\ny\n": false,
	} {
		u, out, errs := pair()
		u.in, u.answers, u.errTerminal = strings.NewReader(input), true, true
		got, err := u.Ask(context.Background(), "remove \"a\x1b\"?")
		if got != want || err != nil {
			t.Errorf("%q: %v, %v", input, got, err)
		}
		if diff := cmp.Diff("dsh: remove \"a\\u001b\"? [y/N] ", strings.TrimSuffix(errs.String(), "\n")); diff != "" || out.Len() != 0 {
			t.Errorf("%q: %s%s", input, out, diff)
		}
	}
}

func TestAskNobody(t *testing.T) {
	yes := func() io.Reader { return strings.NewReader("y\n") }
	for name, set := range map[string]func(*UI){
		"input is no terminal":     func(u *UI) { u.Listen(yes()); u.errTerminal = true },
		"the question is not seen": func(u *UI) { u.in, u.answers = yes(), true },
		"JSON":                     func(u *UI) { u.in, u.answers, u.errTerminal, u.JSON = yes(), true, true, true },
	} {
		u, _, errs := pair()
		set(u)
		got, err := u.Ask(context.Background(), "really?")
		if got || err == nil || fault.Hint(err) != "add --yes to say yes" || errs.Len() != 0 {
			t.Errorf("%s: %v, %v, %q", name, got, err, errs)
		}
	}
}

func TestAskFails(t *testing.T) {
	u, _, _ := pair()
	broken := errors.New("broken")
	u.in, u.answers, u.errTerminal = iotest.ErrReader(broken), true, true
	if _, err := u.Ask(context.Background(), "really?"); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	cause := errors.New("interrupted")
	cancel(cause)
	in, w := io.Pipe()
	defer w.Close()
	u.in = in
	if yes, err := u.Ask(ctx, "really?"); yes || err != cause {
		t.Errorf("%v, error %v", yes, err)
	}
}
