package boot

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"dsh/internal/fault"
)

// rows are rows that take a time to stop, or forever.
type rows struct {
	takes   time.Duration
	forever bool
	err     error
	cut     bool // they were told that there is no more time
}

func (r *rows) stop(ctx context.Context) error {
	var done <-chan time.Time
	if !r.forever {
		done = time.After(r.takes)
	}
	select {
	case <-done:
		return r.err
	case <-ctx.Done():
		r.cut = true
		return errors.New("row x is left")
	}
}

// The cases of a run that ends. Times are those of a clock of the test.
func TestEnding(t *testing.T) {
	type sent struct {
		after  time.Duration // the run began to stop
		signal os.Signal
	}
	failure := errors.New("a row broke")
	notOurs := func() bool { return false }
	tests := []struct {
		name   string
		first  os.Signal
		asked  *reason
		keys   func() bool // whether an interrupt is ours
		rows   rows
		then   []sent
		code   int
		takes  time.Duration
		cut    bool
		errHas string
	}{
		{name: "SIGTERM stops and is no failure", first: syscall.SIGTERM, rows: rows{takes: time.Second}, code: 0, takes: time.Second},
		{name: "SIGHUP as well", first: syscall.SIGHUP, code: 0},
		{name: "SIGINT has its own code", first: os.Interrupt, rows: rows{takes: time.Second}, code: 130, takes: time.Second},
		{name: "a row asks for a code", asked: new(asked(3)), rows: rows{takes: time.Second}, code: 3, takes: time.Second},
		{name: "a row asks for the end", asked: new(asked(0)), code: 0},
		{name: "a failure", asked: new(failed(failure)), code: 1},
		{name: "the grace is over", first: syscall.SIGTERM, rows: rows{forever: true}, code: 143, takes: 5 * time.Second, cut: true, errHas: "did not stop within 5s: row x is left"},
		{name: "the grace is over after SIGINT", first: os.Interrupt, rows: rows{forever: true}, code: 130, takes: 5 * time.Second, cut: true, errHas: "did not stop"},
		{name: "a second signal", first: syscall.SIGTERM, rows: rows{forever: true}, then: []sent{{time.Second, syscall.SIGTERM}}, code: 143, takes: time.Second, cut: true},
		{name: "another second signal", first: syscall.SIGTERM, rows: rows{forever: true}, then: []sent{{time.Second, os.Interrupt}}, code: 130, takes: time.Second, cut: true},
		{name: "the same signal twice in one go", first: syscall.SIGTERM, rows: rows{takes: time.Second}, then: []sent{{10 * time.Millisecond, syscall.SIGTERM}}, code: 0, takes: time.Second},
		{name: "another signal in one go", first: syscall.SIGTERM, rows: rows{forever: true}, then: []sent{{time.Millisecond, os.Interrupt}}, code: 130, takes: time.Millisecond, cut: true},
		{name: "a signal while a run ends by itself", asked: new(asked(0)), rows: rows{forever: true}, then: []sent{{10 * time.Millisecond, os.Interrupt}}, code: 130, takes: 10 * time.Millisecond, cut: true},
		{name: "rows that do not stop well", first: syscall.SIGTERM, rows: rows{err: failure}, code: 143, errHas: "a row broke"},
		{name: "rows that do not stop well at the end", asked: new(asked(0)), rows: rows{err: failure}, code: 1, errHas: "a row broke"},
		{name: "rows that do not stop well with a code", asked: new(asked(7)), rows: rows{err: failure}, code: 7, errHas: "a row broke"},
		{name: "Ctrl-C is for the program", first: os.Interrupt, asked: new(asked(5)), keys: notOurs, code: 5},
		{name: "Ctrl-C is for the program to the end", asked: new(asked(5)), keys: notOurs, rows: rows{takes: time.Second}, then: []sent{{time.Millisecond, os.Interrupt}}, code: 5, takes: time.Second},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				signals := make(chan os.Signal, 8)
				keys := test.keys
				if keys == nil {
					keys = func() bool { return true }
				}
				e := newEnding(signals, keys)
				if test.first != nil {
					signals <- test.first
				}
				if test.asked != nil {
					time.AfterFunc(time.Millisecond, func() { e.ask(*test.asked); e.ask(asked(99)) })
				}
				why, ended := e.wait(t.Context(), nil)
				if !ended {
					t.Fatal("not ended")
				}
				for _, s := range test.then {
					time.AfterFunc(s.after, func() { signals <- s.signal })
				}
				began := time.Now()
				code, err := e.stop(why, test.rows.stop)
				if took := time.Since(began); code != test.code || took != test.takes || test.rows.cut != test.cut {
					t.Errorf("code %d after %s, cut %v; want %d after %s, %v", code, took, test.rows.cut, test.code, test.takes, test.cut)
				}
				if (err != nil) != (test.errHas != "") || err != nil && !strings.Contains(err.Error(), test.errHas) {
					t.Errorf("error %v, want %q", err, test.errHas)
				}
			})
		})
	}
}

func TestTheStartIsOverBeforeAnythingEndsIt(t *testing.T) {
	settled := make(chan struct{})
	close(settled)
	e := newEnding(make(chan os.Signal), func() bool { return true })
	if why, ended := e.wait(t.Context(), settled); ended {
		t.Errorf("ended: %+v", why)
	}
	e.ask(asked(4))
	if why, ended := e.wait(t.Context(), settled); !ended || why.code != 4 {
		t.Errorf("what was asked for before the start was over is lost: %+v", why)
	}
}

func TestSignalsBeforeAnyRow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signals := make(chan os.Signal, 8)
		var killed []int
		e := newEnding(signals, func() bool { return true })
		ctx, release := e.early(t.Context(), func(code int) { killed = append(killed, code) })
		signals <- os.Interrupt
		<-ctx.Done()
		signals <- os.Interrupt
		synctest.Wait()
		if len(killed) > 0 {
			t.Error("the same signal in one go killed")
		}
		time.Sleep(repeated)
		signals <- syscall.SIGTERM
		synctest.Wait()
		if err := release(); fault.ClassOf(err) != fault.Interrupted || !errors.Is(context.Cause(ctx), err) || len(killed) != 1 || killed[0] != 143 {
			t.Errorf("got %v, cause %v, killed %v", err, context.Cause(ctx), killed)
		}

		// A signal that nobody has read yet is for what comes next.
		ctx, release = e.early(t.Context(), nil)
		if err := release(); err != nil || context.Cause(ctx) != context.Canceled {
			t.Errorf("got %v", err)
		}
		signals <- syscall.SIGTERM
		if why, _ := e.wait(t.Context(), nil); why.code != 0 || !why.signal {
			t.Errorf("got %+v", why)
		}
	})
}
