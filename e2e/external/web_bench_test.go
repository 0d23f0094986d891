//go:build external && linux

package external

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// BenchmarkWebBesideReference starts the web profile in turn with dsh, in its own host, and with the reference launcher. It reports medians
// of the time from the start of the process to the first answered request, of the resident memory of all its processes a second later, and of
// the quotients pair by pair.
//
//	e2e/external/run -run XXX -bench Web -benchtime 10x
func BenchmarkWebBesideReference(b *testing.B) {
	script := filepath.Join(programs.reference, "node_modules", "@deepseek-ai", "dsh", "lib", "bin.js")
	ourHome, theirHome := b.TempDir(), b.TempDir()
	var ours, theirs, ourMemory, theirMemory, faster, smaller []float64
	for b.Loop() {
		ourTime, ourSize := firstAnswer(b, ourHome, programs.dsh, "web")
		theirTime, theirSize := firstAnswer(b, theirHome, filepath.Join(programs.node, "node"), script, "--profile", "web")
		ours, theirs, faster = append(ours, ourTime), append(theirs, theirTime), append(faster, theirTime/ourTime)
		ourMemory, theirMemory, smaller = append(ourMemory, ourSize), append(theirMemory, theirSize), append(smaller, theirSize/ourSize)
	}
	b.ReportMetric(median(ours), "dsh-ms")
	b.ReportMetric(median(theirs), "reference-ms")
	b.ReportMetric(median(faster), "times-faster")
	b.ReportMetric(median(ourMemory), "dsh-MiB")
	b.ReportMetric(median(theirMemory), "reference-MiB")
	b.ReportMetric(median(smaller), "times-smaller")
}

// firstAnswer starts a web profile on a free port, and stops it again.
func firstAnswer(b *testing.B, home, program string, args ...string) (milliseconds, mebibytes float64) {
	b.Helper()
	address := freeAddress(b)
	_, port, _ := strings.Cut(address, ":")
	cmd := exec.Command(program, append(args, "--no-open", "--port", port)...)
	cmd.Dir = home
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "DSH_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "DSH_HOME="+home)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		resp, err := http.Get("http://" + address + "/")
		if err == nil {
			resp.Body.Close() // a page, or the question for the token: it is answered
			break
		}
		select {
		case err := <-ended:
			b.Fatalf("%s %q ended: %v", program, args, err)
		case <-time.After(time.Millisecond):
		}
		if time.Since(began) > 2*time.Minute {
			syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			b.Fatalf("%s %q answers nothing", program, args)
		}
	}
	took := time.Since(began)
	time.Sleep(time.Second) // what is kept, and not what the start took
	memory := resident(b, cmd.Process.Pid)
	syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
	<-ended
	return float64(took.Microseconds()) / 1e3, memory
}

// resident is the memory of all processes of a group, in MiB.
func resident(b *testing.B, group int) (mebibytes float64) {
	b.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		b.Fatal(err)
	}
	for _, file := range files {
		stat, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		// Behind the name, which is in parentheses: state, parent, group, …; the 24th field of all is the resident pages.
		_, rest, _ := strings.Cut(string(stat), ") ")
		fields := strings.Fields(rest)
		if len(fields) < 22 || fields[2] != fmt.Sprint(group) {
			continue
		}
		pages, err := strconv.Atoi(fields[21])
		if err != nil {
			b.Fatal(err)
		}
		mebibytes += float64(pages*os.Getpagesize()) / (1 << 20)
	}
	return mebibytes
}
