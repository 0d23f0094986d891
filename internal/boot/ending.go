package boot

import (
	"context"
	"fmt"
	"os"
	"time"

	"dsh/internal/fault"
)

// grace is how long the rows may take to stop; then the program ends without
// them.
const grace = 5 * time.Second

// lastMoment is how long rows that are stopped by force may take to end their
// child processes.
const lastMoment = 250 * time.Millisecond

// reason is why a run ends.
type reason struct {
	code   int // the exit code after a clean stop
	forced int // the one where the rows did not stop
	signal bool
	err    error
}

// The reasons that are signals.
var (
	terminated  = reason{code: 0, forced: fault.Terminated.ExitCode(), signal: true}
	interrupted = reason{code: fault.Interrupted.ExitCode(), forced: fault.Interrupted.ExitCode(), signal: true}
)

// asked is the reason that a row ended the run with a code.
func asked(code int) reason { return reason{code: code, forced: max(code, fault.Other.ExitCode())} }

// failed is the reason that something went wrong.
func failed(err error) reason {
	return reason{code: fault.Other.ExitCode(), forced: fault.Other.ExitCode(), err: err}
}

// ending is how a run comes to its end: the first reason counts, the rows are
// stopped, and a signal meanwhile stops waiting for them.
type ending struct {
	signals <-chan os.Signal
	reasons chan reason // holds the first
	grace   time.Duration
	// ours says whether an interrupt is for dsh: one from the keyboard is for the
	// program that has the terminal.
	ours func() bool
}

func newEnding(signals <-chan os.Signal, ours func() bool) *ending {
	return &ending{signals: signals, reasons: make(chan reason, 1), grace: grace, ours: ours}
}

// ask gives a reason to end, and returns at once.
func (e *ending) ask(r reason) {
	select {
	case e.reasons <- r:
	default:
	}
}

// early is a context that ends with the first signal, for what comes before any
// row: it can be given up at once. A second signal kills the process. release
// ends that, and returns what the signal was, nil if none came.
func (e *ending) early(ctx context.Context, kill func(code int)) (early context.Context, release func() error) {
	early, cancel := context.WithCancelCause(ctx)
	released, done := make(chan struct{}), make(chan struct{})
	var cause error
	go func() {
		defer close(done)
		var first time.Time
		for {
			select {
			case <-released:
				return
			case s := <-e.signals:
				by := endedBy(s)
				if cause == nil {
					first = time.Now()
					cause = by
					cancel(cause)
				} else if time.Since(first) >= repeated {
					kill(codeOf(by))
				}
			}
		}
	}()
	return early, func() error {
		close(released)
		<-done
		cancel(nil)
		return cause
	}
}

// endedBy is the error of what a signal ended before any row.
func endedBy(s os.Signal) error {
	class, word := fault.Terminated, "terminated"
	if s == os.Interrupt {
		class, word = fault.Interrupted, "interrupted"
	}
	return fault.Errorf(class, "%s; nothing was changed", word)
}

// wait returns the first reason to end, or false when done is closed before.
func (e *ending) wait(ctx context.Context, done <-chan struct{}) (reason, bool) {
	for {
		select {
		case r := <-e.reasons:
			return r, true
		default:
		}
		select {
		case r := <-e.reasons:
			return r, true
		case s := <-e.signals:
			if r, ok := e.signal(s); ok {
				return r, true
			}
		case <-ctx.Done():
			return failed(context.Cause(ctx)), true
		case <-done:
			return reason{}, false
		}
	}
}

// signal is the reason that a signal is, unless it is not for dsh.
func (e *ending) signal(s os.Signal) (reason, bool) {
	switch {
	case s != os.Interrupt:
		return terminated, true
	case e.ours():
		return interrupted, true
	}
	return reason{}, false
}

// repeated is the time within which the same signal again is no second one:
// programs that end a whole process group signal twice in one go.
const repeated = 200 * time.Millisecond

// stop stops the rows, and returns the code to exit with. The error says what
// went wrong with stopping.
func (e *ending) stop(r reason, rows func(context.Context) error) (code int, err error) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), e.grace)
	defer cancel()
	stopped := make(chan error, 1)
	go func() { stopped <- rows(ctx) }()
	forced := func(code int, err error) (int, error) {
		cancel()
		select {
		case left := <-stopped: // names the rows that are left
			if err != nil && left != nil {
				err = fmt.Errorf("%w: %w", err, left)
			}
		case <-time.After(lastMoment):
		}
		return code, err
	}
	for {
		select {
		case err := <-stopped:
			if err != nil {
				return r.forced, err
			}
			return r.code, nil
		case s := <-e.signals:
			by, ok := e.signal(s)
			if !ok || r.signal && by.forced == r.forced && time.Since(began) < repeated {
				continue
			}
			return forced(by.forced, nil)
		case <-ctx.Done():
			return forced(r.forced, fault.Errorf(fault.Other, "the rows did not stop within %s", e.grace))
		}
	}
}
