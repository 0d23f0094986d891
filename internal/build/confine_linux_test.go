package build

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"dsh/internal/fault"
)

func run(t *testing.T, q Request) *Result {
	t.Helper()
	r, err := Run(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// landlocked says whether this system can hold all that scripts are kept from:
// with Landlock ABI 6, of Linux 6.12.
func landlocked() bool {
	abi, _ := landlockABI()
	return abi >= 6
}

func TestConfinementIsTold(t *testing.T) {
	abi, _ := landlockABI()
	writes := "writes NOT confined: "
	if abi >= 3 {
		writes = fmt.Sprintf("writes confined (Landlock ABI %d); ", abi)
	}
	q := request(t, "true")
	if r := run(t, q); r.Writes.Held != (abi >= 3) || !r.Network.Held || !strings.HasPrefix(r.Confined(), writes) || !strings.HasSuffix(r.Confined(), "; no network (seccomp)") {
		t.Errorf("%+v: %s", r, r.Confined())
	}
	q.Network = true
	if r := run(t, q); r.Writes.Held != (abi >= 3) || r.Network.Held || !strings.HasSuffix(r.Confined(), "network open: it was allowed") {
		t.Errorf("%+v: %s", r, r.Confined())
	}
}

func TestWritesOutside(t *testing.T) {
	if !landlocked() {
		return
	}
	q := request(t, "")
	sibling := write(t, filepath.Join(q.Root, "node_modules", "sibling", "index.js"), "old\n")
	outs := map[string]string{}
	out := func(name string) string {
		outs[name] = t.TempDir()
		write(t, filepath.Join(outs[name], "old"), "old\n")
		return outs[name]
	}
	for name, text := range map[string]string{
		"a new file":               `echo x > "$OUT/new"`,
		"an old file":              `echo x > "$OUT/old"`,
		"appending":                `echo x >> "$OUT/old"`,
		"emptying":                 `: > "$OUT/old"`,
		"truncating":               `DSH_TEST_PROBE="truncate $OUT/old" "$NODE"`,
		"removing":                 `rm -f "$OUT/old"`,
		"a directory":              `mkdir "$OUT/dir"`,
		"renaming":                 `mv "$OUT/old" "$OUT/new"`,
		"taking away":              `mv "$OUT/old" .`,
		"putting there":            `echo x > new; mv new "$OUT/new"`,
		"a link there":             `ln -s x "$OUT/new"`,
		"through a link":           `ln -s "$OUT" out; echo x > out/new`,
		"a hard link":              `ln "$OUT/old" old; echo x > old`,
		"a hard link to a sibling": `ln ../../sibling/index.js mine; echo x > mine`,
		"a sibling":                `echo x > ../../sibling/index.js`,
		"the root of the build":    `echo x > ../../../new`,
		"in the background":        `setsid sh -c 'echo x > "$OUT/new"' & wait`,
		"by mounting":              `mount --bind "$OUT" . ; unshare -Urm mount --bind "$OUT" . ; echo x > old`,
	} {
		q.Scripts[0].Text += fmt.Sprintf("mkdir work%[1]d; (cd work%[1]d; OUT=%[2]s; export OUT; %[3]s); ", len(outs), out(name), text)
	}
	q.Scripts[0].Text += "true"
	run(t, q)
	for name, dir := range outs {
		if text, err := os.ReadFile(filepath.Join(dir, "old")); string(text) != "old\n" {
			t.Errorf("%s: %q %v", name, text, err)
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
			t.Errorf("%s: there are %v, %v", name, entries, err)
		}
	}
	if text, err := os.ReadFile(sibling); string(text) != "old\n" {
		t.Errorf("the sibling: %q %v", text, err)
	}
	if entries, err := os.ReadDir(q.Root); err != nil || len(entries) != 1 {
		t.Errorf("at the root there are %v, %v", entries, err)
	}
}

func TestWritesInside(t *testing.T) {
	q := request(t, strings.Join([]string{
		"set -e", `mkdir -p a/b`, `echo x > a/b/c`, `mv a/b/c c`, `ln c d`, `ln -s d e`, `rm d`, `chmod +x c`,
		`echo x > "$HOME/x"`, `mv "$HOME/x" x`, `mktemp > /dev/null`, `echo out > /dev/stdout`, `echo err > /dev/stderr`, `mkfifo p`,
		`DSH_TEST_PROBE=spawn "$NODE"`,
	}, "\n"))
	r := run(t, q)
	for _, name := range []string{"a/b", "c", "x", "p"} {
		if _, err := os.Stat(filepath.Join(q.Dir, name)); err != nil {
			t.Error(err)
		}
	}
	for _, want := range []string{"out\n", "err\n", "child"} {
		if !strings.Contains(r.Output, want) {
			t.Errorf("no %q in %q", want, r.Output)
		}
	}
}

func TestReads(t *testing.T) {
	if !landlocked() {
		return
	}
	secret := write(t, filepath.Join(t.TempDir(), ".npmrc"), "token")
	var script string
	var want []string
	for text, works := range map[string]bool{
		"cat " + fault.ShellWord(secret):                 false,
		"ls " + fault.ShellWord(filepath.Dir(secret)):    false,
		"cat ../other/index.js":                          true,
		"cat /etc/passwd":                                true,
		"cat /proc/self/status":                          true,
		fmt.Sprintf("cat /proc/%d/environ", os.Getpid()): false,
		"cat /proc/$PPID/environ":                        false,
		"cat /dev/vda /dev/mem /dev/kmsg /dev/pts/0":     false,
		"mknod disk b 254 0":                             false,
	} {
		script += fmt.Sprintf("if %s; then echo can: %s; fi; ", text, fault.ShellWord(text))
		if works {
			want = append(want, text)
		}
	}
	q := request(t, script)
	write(t, filepath.Join(q.Root, "node_modules", "other", "index.js"), "1\n")
	var log bytes.Buffer
	q.Log = &log
	run(t, q)
	var got []string
	for line := range strings.Lines(log.String()) {
		if text, ok := strings.CutPrefix(line, "can: "); ok {
			got = append(got, strings.TrimSpace(text))
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("a script can %q, not %q", got, want)
	}
}

func TestNetwork(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	reached := make(chan bool, 100)
	accept := func(l net.Listener) {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			reached <- true
			conn.Close()
		}
	}
	go accept(listener)
	packets, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer packets.Close()
	tcp := "tcp " + listener.Addr().String()

	q := request(t, `"$NODE"`)
	q.Env, q.Network = []string{probeEnv + "=" + tcp}, true
	run(t, q)
	if !<-reached {
		t.Fatal("the script that may did not connect")
	}

	q.Network = false
	daemon, err := net.Listen("unix", filepath.Join(q.Temp, "s")) // a path that is not too long
	if err != nil {
		t.Fatal(err)
	}
	defer daemon.Close()
	go accept(daemon)
	q.Scripts[0].Text = ""
	q.Env = nil
	for _, what := range []string{
		tcp, "udp " + packets.LocalAddr().String(), "unix " + filepath.Join(q.Temp, "s"), "resolve host.example", "listen tcp 127.0.0.1:0",
		"listen unixgram " + filepath.Join(q.Temp, "d"),
	} {
		q.Scripts[0].Text += fmt.Sprintf("if DSH_TEST_PROBE=%[1]s \"$NODE\"; then echo could %[1]s; fi; ", fault.ShellWord(what))
	}
	if r := run(t, q); strings.Contains(r.Output, "\ncould ") {
		t.Error(r.Output)
	}
	if len(reached) > 0 {
		t.Error("a server was reached")
	}
	// Programs that listen for their own children are not disturbed.
	q.Env = []string{probeEnv + "=listen unix " + filepath.Join(q.Temp, "own")}
	run(t, q)
}

// gone says whether the process whose number a script wrote is no more.
func gone(t *testing.T, q Request) bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(q.Dir, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}

// fork leaves a process that leads its own session, whose parent has ended.
const fork = `(setsid sh -c 'trap "" TERM HUP INT; echo $$ > pid.new; mv pid.new pid; while :; do sleep 100; done' &); while ! [ -e pid ]; do :; done;`

func TestNothingIsLeft(t *testing.T) {
	q := request(t, fork)
	if r := run(t, q); !gone(t, q) || r.Left < 1 {
		t.Errorf("it lives; %d were left", r.Left)
	}
	q = request(t, fork+"exit 4")
	_, err := Run(t.Context(), q)
	if e, ok := errors.AsType[*ScriptError](err); !ok || e.Code != 4 || !gone(t, q) {
		t.Error(err)
	}
}

func TestTimeout(t *testing.T) {
	q := request(t, `trap "" TERM INT HUP; `+fork+`echo waiting; while :; do sleep 100; done`)
	q.Timeout = time.Second
	r, err := Run(t.Context(), q)
	e, ok := errors.AsType[*ScriptError](err)
	if !ok || e.Timeout != time.Second || !strings.Contains(err.Error(), "not done after 1s") || fault.ClassOf(err) != fault.Package {
		t.Fatal(err)
	}
	if !gone(t, q) || !r.Writes.Held || !strings.Contains(r.Output, "waiting") {
		t.Errorf("it lives, or %+v", r)
	}
}

// waker calls a function when a script has written something.
type waker struct {
	text string
	wake func()
}

func (w *waker) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(w.text)) {
		w.wake()
	}
	return len(p), nil
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	q := request(t, `trap "" TERM INT HUP; `+fork+`printf 're''ady\n'; while :; do sleep 100; done`)
	q.Log = &waker{"ready", cancel}
	_, err := Run(ctx, q)
	if !errors.Is(err, context.Canceled) || fault.ClassOf(err) != fault.Interrupted || !gone(t, q) {
		t.Error(err)
	}
	if _, err := Run(ctx, q); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestScriptCannotReachItsKeeper(t *testing.T) {
	if !landlocked() {
		return
	}
	q := request(t, fmt.Sprintf(`kill -9 $PPID; kill -9 %d; echo still here`, os.Getpid()))
	if r := run(t, q); !strings.Contains(r.Output, "still here") {
		t.Errorf("%+v", r)
	}
	q = request(t, `kill -9 $$`)
	_, err := Run(t.Context(), q)
	if e, ok := errors.AsType[*ScriptError](err); !ok || e.Signal != "SIGKILL" {
		t.Error(err)
	}
}

func TestPrivileges(t *testing.T) {
	file, err := os.Open(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	leaked, err := syscall.Dup(int(file.Fd())) // without close-on-exec, as a shell may leave one
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(leaked)
	r := run(t, request(t, `grep -E 'CapEff|CapBnd|NoNewPrivs|^Seccomp:' /proc/self/status; ulimit -c; umask; echo fds:; for f in /proc/$$/fd/*; do echo "${f##*/}"; done`))
	for _, want := range []string{"CapEff:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2", "\n0\n0022\nfds:\n0\n1\n2"} {
		if !strings.Contains(r.Output, want) {
			t.Errorf("no %q in\n%s", want, r.Output)
		}
	}
	if os.Geteuid() == 0 && !strings.Contains(r.Output, "CapBnd:\t0000000000000000") {
		t.Error(r.Output)
	}
	if strings.Contains(r.Output, strconv.Itoa(leaked)+"\n") && leaked > 3 {
		t.Errorf("%d is open: %s", leaked, r.Output)
	}
}

func TestKilledProgramTakesScriptsAlong(t *testing.T) {
	// What the kernel does with a program that is killed: its end of the pipe closes.
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	reports, reportsEnd, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	q := request(t, "")
	cmd := childCommand(supervisor, r, reportsEnd)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r.Close()
	reportsEnd.Close()
	fmt.Fprintf(w, `{"Shell": "/bin/sh", "Text": %q, "Dir": %q, "Env": ["PATH=/usr/bin:/bin"], "Read": ["/"], "Write": [%q]}`,
		fork+`while :; do sleep 100; done`, q.Dir, q.Dir)
	for {
		if _, err := os.Stat(filepath.Join(q.Dir, "pid")); err == nil {
			break
		}
	}
	w.Close()
	if err := cmd.Wait(); err != nil || !gone(t, q) {
		t.Error(err)
	}
	reports.Close()
}
