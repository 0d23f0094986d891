package ui

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"dsh/internal/fault"
)

// Listen names where [UI.Ask] reads answers.
func (u *UI) Listen(in io.Reader) {
	f, ok := in.(*os.File)
	u.in, u.answers = in, ok && term.IsTerminal(int(f.Fd()))
}

// Ask asks a question that is answered with yes or no; what is no yes is a no,
// and so is the end of the input. Where nobody can see the question or answer
// it, and with --json, that is an error, whose hint is the flag --yes. The end
// of ctx is an error with its cause.
func (u *UI) Ask(ctx context.Context, question string) (bool, error) {
	if !u.answers || !u.errTerminal || u.JSON {
		return false, fault.WithHint(fault.Errorf(fault.Other, "nobody can be asked here: %s", clean(question)), "add --yes to say yes")
	}
	u.news("dsh: %s [y/N] ", clean(question))
	// A read from a terminal cannot be taken back; it is left behind when ctx ends.
	type answer struct {
		line string
		err  error
	}
	read := make(chan answer, 1)
	go func() {
		line, err := bufio.NewReader(u.in).ReadString('\n')
		read <- answer{line, err}
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(u.Err)
		return false, context.Cause(ctx)
	case a := <-read:
		if a.err != nil && a.err != io.EOF {
			return false, fmt.Errorf("reading the answer: %w", a.err)
		}
		if a.err != nil {
			fmt.Fprintln(u.Err)
		}
		word := strings.ToLower(strings.TrimSpace(a.line))
		return word == "y" || word == "yes", nil
	}
}
