package boot

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
)

// handsOver is the variable that makes a process of this test hand over.
const handsOver = "DSH_TEST_HANDS_OVER"

func TestMain(m *testing.M) {
	if os.Getenv(handsOver) == "" {
		os.Exit(m.Run())
	}
	signals := make(chan os.Signal, 8)
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	fmt.Println("begins")
	code, err := (&handover{node: "/bin/sh", args: []string{"-c", "echo runs; exec sleep 60"}}).run(Request{Signals: signals})
	fmt.Fprintln(os.Stderr, err)
	os.Exit(code)
}

// handing is a process that is about to become another program.
func handing(t *testing.T, before string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", before+`exec "$0"`, os.Args[0])
	cmd.Env = append(os.Environ(), handsOver+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	read := bufio.NewReader(out)
	if line, err := read.ReadString('\n'); line != "begins\n" {
		t.Fatalf("%q, %v", line, err)
	}
	return cmd, read
}

// A signal that dsh was started to ignore is ignored by the launcher, too.
func TestIgnoredSignalsStaySoInTheHandOver(t *testing.T) {
	cmd, out := handing(t, "trap '' HUP; ")
	if line, err := out.ReadString('\n'); line != "runs\n" {
		t.Fatalf("%q, %v", line, err)
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, ignored, _ := strings.Cut(string(text), "SigIgn:\t")
	var mask uint64
	if _, err := fmt.Sscanf(ignored, "%x", &mask); err != nil || mask&0b1 == 0 || mask&(1<<14|1<<1) != 0 {
		t.Errorf("ignored are %x, %v", mask, err)
	}
}
