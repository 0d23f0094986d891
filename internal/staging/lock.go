package staging

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"dsh/internal/fault"
)

// Lock is a lock between processes and between goroutines. The
// system releases it when the process dies. Its file stays for ever: removing
// it would let two processes lock two files of one name.
type Lock struct {
	unlock func() error
}

// Holder is who has a lock, as the lock's file tells. The zero Holder is
// somebody who could not be found out.
type Holder struct {
	PID     int       `json:"pid"`
	Command string    `json:"command"`
	Since   time.Time `json:"since"`
}

// String is for a message: "dsh plugin add x" (process 12, since 15:04:05).
func (h Holder) String() string {
	if h.PID == 0 {
		return "another process"
	}
	since := h.Since.Local().Format(time.TimeOnly)
	if h.Command == "" {
		return fmt.Sprintf("process %d, since %s", h.PID, since)
	}
	return fmt.Sprintf("%q (process %d, since %s)", h.Command, h.PID, since)
}

// HeldError is a lock that somebody else has, and kept for as long as the
// caller was ready to wait.
type HeldError struct {
	Path   string
	Holder Holder
	Waited time.Duration // by then somebody still had it; 0 if nobody waited
}

func (e *HeldError) Error() string {
	if e.Waited == 0 {
		return fmt.Sprintf("locking %s: it is held by %s", e.Path, e.Holder)
	}
	return fmt.Sprintf("locking %s: after %s it is still held by %s", e.Path, e.Waited, e.Holder)
}

// Class is Environment.
func (e *HeldError) Class() fault.Class { return fault.Environment }

// Hint says what to wait for.
func (e *HeldError) Hint() string {
	if e.Holder.PID == 0 {
		return "wait until the other command has finished, then try again"
	}
	return fmt.Sprintf("wait until process %d has finished, then try again", e.Holder.PID)
}

// Acquire takes the lock at path, and waits for it until ctx ends. Others are
// told command when they wait for us. When the lock is not free, waiting is
// called once with its holder; it may be nil. A deadline that passes is a
// [*HeldError], and a cancelled context is an error that wraps ctx.Err.
func Acquire(ctx context.Context, path, command string, waiting func(Holder)) (*Lock, error) {
	return disk{OS}.acquire(ctx, path, command, waiting)
}

// AcquireShared takes the lock at path with any number of others that share it,
// and waits, as [Acquire] does, while somebody has it alone. Who waits for all of
// them is told the command of the one who came last.
func AcquireShared(ctx context.Context, path, command string, waiting func(Holder)) (*Lock, error) {
	d := disk{OS}
	return d.waitFor(ctx, 0, waiting, func() (*Lock, error) { return d.tryWith(d.TryRLock, path, command) })
}

// TryAcquire is [Acquire] without waiting: a lock that is not free is a
// [*HeldError].
func TryAcquire(path, command string) (*Lock, error) {
	return disk{OS}.tryAcquire(path, command)
}

// Release gives the lock back; a second call does nothing.
func (l *Lock) Release() error {
	unlock := l.unlock
	l.unlock = nil
	if unlock == nil {
		return nil
	}
	return unlock()
}

// lockPlace takes the lock of a profile.
func (d disk) lockPlace(ctx context.Context, place Place, opts Options) (*Lock, error) {
	path := filepath.Join(place.State, "lock")
	return d.waitFor(ctx, opts.Wait, opts.Waiting, func() (*Lock, error) { return d.tryAcquire(path, opts.Command) })
}

func (d disk) acquire(ctx context.Context, path, command string, waiting func(Holder)) (*Lock, error) {
	return d.waitFor(ctx, 0, waiting, func() (*Lock, error) { return d.tryAcquire(path, command) })
}

// waitFor tries to take a lock until it is free, ctx ends, or so much time has
// passed; 0 is any time.
func (d disk) waitFor(ctx context.Context, longest time.Duration, waiting func(Holder), try func() (*Lock, error)) (*Lock, error) {
	var timeout <-chan time.Time
	wait, began := 5*time.Millisecond, time.Now()
	for {
		lock, err := try()
		var taken *HeldError
		if !errors.As(err, &taken) {
			return lock, err
		}
		if waiting != nil {
			waiting(taken.Holder)
			waiting = nil
		}
		if longest > 0 && timeout == nil {
			timeout = time.After(longest)
		}
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				taken.Waited = shown(time.Since(began))
				return nil, taken
			}
			return nil, fmt.Errorf("waiting for %s: %w", taken.Holder, ctx.Err())
		case <-timeout:
			taken.Waited = longest
			return nil, taken
		case <-time.After(wait):
			wait = min(2*wait, 100*time.Millisecond)
		}
	}
}

// shown is a time as a message shows it.
func shown(d time.Duration) time.Duration {
	if d < time.Second {
		return max(time.Millisecond, d.Round(time.Millisecond))
	}
	return d.Round(time.Second)
}

func (d disk) tryAcquire(path, command string) (*Lock, error) {
	return d.tryWith(d.TryLock, path, command)
}

func (d disk) tryWith(try func(path string, record []byte) (func() error, error), path, command string) (*Lock, error) {
	if err := d.mkdirAll(filepath.Dir(path)); err != nil {
		return nil, err
	}
	unlock, err := try(path, newRecord(command))
	switch {
	case errors.Is(err, ErrHeld):
		return nil, &HeldError{Path: path, Holder: d.holder(path)}
	case err != nil:
		return nil, fault.Errorf(fault.Environment, "locking %s: %w", path, err)
	}
	return &Lock{unlock}, nil
}

// newRecord is the record of this process, cut where it would not fit.
func newRecord(command string) []byte {
	for {
		record, err := json.Marshal(Holder{PID: os.Getpid(), Command: command, Since: time.Now()})
		if err != nil {
			return nil
		}
		if len(record) < recordSize {
			return record
		}
		command = command[:len(command)/2]
	}
}

// holder reads the record of a lock. It may be unreadable for many reasons,
// and none of them is worth more than a vaguer message.
func (d disk) holder(path string) Holder {
	f, err := d.Open(path)
	if err != nil {
		return Holder{}
	}
	record, err := io.ReadAll(io.NewSectionReader(f, recordOffset, recordSize))
	var h Holder
	if errors.Join(err, f.Close()) != nil || json.Unmarshal(bytes.TrimSpace(record), &h) != nil {
		return Holder{}
	}
	return h
}
