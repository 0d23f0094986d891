package staging

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"dsh/internal/fault"
)

// helperLock makes the test program a process that takes the lock it names,
// says so, and holds it until it is killed.
const helperLock = "DSH_STAGING_TEST_LOCK"

func TestMain(m *testing.M) {
	if path := os.Getenv(helperLock); path != "" {
		if _, err := TryAcquire(path, "dsh helper"); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		for range 3 { // nothing refers to the lock, and yet it is held
			collected := make(chan struct{})
			runtime.SetFinalizer(new([64]byte), func(*[64]byte) { close(collected) })
			runtime.GC()
			<-collected
		}
		fmt.Println("locked")
		_, _ = io.Copy(io.Discard, os.Stdin) // until it is killed
		os.Exit(1)
	}
	os.Exit(inMemory(m.Run))
}

// inMemory runs the tests with their files in memory where the system has a
// place for that: they sync thousands of small files, and a disk makes a minute
// out of seconds.
func inMemory(run func() int) int {
	debug.SetGCPercent(800) // each makes much that is soon of no use
	const memory = "/dev/shm"
	if os.Getenv("TMPDIR") == "" {
		if dir, err := os.MkdirTemp(memory, "dsh-staging-"); err == nil {
			defer os.RemoveAll(dir)
			os.Setenv("TMPDIR", dir)
		}
	}
	return run()
}

func TestLockExcludes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "lock")
	var wg sync.WaitGroup
	counter := 0 // no atomic: the race detector sees whether the lock works
	for range 4 {
		wg.Go(func() {
			for range 5 {
				lock, err := Acquire(t.Context(), path, "test", nil)
				if err != nil {
					t.Error(err)
					return
				}
				counter++
				if err := errors.Join(lock.Release(), lock.Release()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if counter != 20 {
		t.Errorf("counted %d, want 20", counter)
	}
}

func TestLockNamesHolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	long := "dsh plugin add " + strings.Repeat("\x01package ", 1000)
	for _, command := range []string{"dsh plugin add x", `it's "quoted" 日本`, "", long} {
		lock, err := TryAcquire(path, command)
		if err != nil {
			t.Fatal(err)
		}
		_, err = TryAcquire(path, "second")
		held, ok := errors.AsType[*HeldError](err)
		if !ok {
			t.Fatalf("the second lock gives %v", err)
		}
		if held.Holder.PID != os.Getpid() || !strings.HasPrefix(command, held.Holder.Command) ||
			len(command) < 100 && held.Holder.Command != command {
			t.Errorf("the holder of %.40q is %+v", command, held.Holder)
		}
		if fault.ClassOf(err) != fault.Environment || !strings.Contains(err.Error(), fmt.Sprint(os.Getpid())) || fault.Hint(err) == "" {
			t.Errorf("the error is %v", err)
		}
		if err := lock.Release(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLockWaits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := TryAcquire(path, "first")
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	second, err := Acquire(t.Context(), path, "second", func(h Holder) {
		calls++
		if h.Command != "first" {
			t.Errorf("waiting for %v", h)
		}
		if err := first.Release(); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer second.Release()
	if calls != 1 {
		t.Errorf("%d calls of waiting, want 1", calls)
	}

	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err = Acquire(ctx, path, "third", nil)
	if held, ok := errors.AsType[*HeldError](err); !ok || held.Holder.Command != "second" {
		t.Errorf("after the deadline: %v", err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	_, err = Acquire(ctx, path, "fourth", func(Holder) { cancel() })
	if fault.ClassOf(err) != fault.Interrupted {
		t.Errorf("after the cancel: %v", err)
	}
}

func TestLockOfDeadProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	other := exec.Command(exe)
	other.Env = append(os.Environ(), helperLock+"="+path)
	out, err := other.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.StdinPipe(); err != nil { // open until Wait
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if line != "locked\n" {
		t.Fatal(line, err)
	}
	_, err = TryAcquire(path, "us")
	if held, ok := errors.AsType[*HeldError](err); !ok || held.Holder.PID != other.Process.Pid || held.Holder.Command != "dsh helper" {
		t.Errorf("while it lives: %v", err)
	}
	if err := other.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = other.Wait() // it was killed
	lock, err := TryAcquire(path, "us")
	if err != nil {
		t.Fatalf("after its death: %v", err)
	}
	if err := lock.Release(); err != nil {
		t.Error(err)
	}
}

func TestLockUnreadableRecord(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	put(t, path, "old rubbish", 0o644)
	unlock, err := OS.TryLock(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unlock(); err != nil {
			t.Error(err)
		}
	}()
	_, err = TryAcquire(path, "us")
	if want := "locking " + path + ": it is held by another process"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestLockShared(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := AcquireShared(t.Context(), path, "first", nil)
	if err != nil {
		t.Fatal(err)
	}
	second, err := AcquireShared(t.Context(), path, "second", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = TryAcquire(path, "alone")
	if held, ok := errors.AsType[*HeldError](err); !ok || held.Holder.Command != "second" {
		t.Errorf("while two share it: %v", err)
	}
	if err := errors.Join(first.Release(), first.Release()); err != nil {
		t.Fatal(err)
	}
	if _, err := TryAcquire(path, "alone"); err == nil {
		t.Error("one who shares it is not noticed")
	}
	if err := second.Release(); err != nil {
		t.Fatal(err)
	}
	alone, err := TryAcquire(path, "alone")
	if err != nil {
		t.Fatal(err)
	}
	third, err := AcquireShared(t.Context(), path, "third", func(h Holder) {
		if h.Command != "alone" {
			t.Errorf("waiting for %v", h)
		}
		if err := alone.Release(); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := third.Release(); err != nil {
		t.Error(err)
	}
}

// Who is ready to wait only for so long is told who was in the way.
func TestBeginTimesOut(t *testing.T) {
	home := newHome(t)
	first := begin(t, home, nil)
	_, err := Begin(t.Context(), placeIn(home), Options{Command: "second", Wait: 20 * time.Millisecond})
	held, ok := errors.AsType[*HeldError](err)
	if !ok || held.Waited != 20*time.Millisecond || held.Holder.Command != "test" || !strings.Contains(err.Error(), "after 20ms it is still held by \"test\"") || fault.Hint(err) == "" {
		t.Errorf("got %v", err)
	}
	if err := first.Rollback(); err != nil {
		t.Fatal(err)
	}
	second, err := Begin(t.Context(), placeIn(home), Options{Wait: time.Minute})
	must(t, err, second.Rollback())
}
