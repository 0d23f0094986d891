package webruntime

import (
	"fmt"
	"os/exec"
	"runtime"
	"time"

	"dsh/internal/fault"
)

// opener is the program that opens an address as the user's desktop does.
func opener(system string) []string {
	switch system {
	case "windows":
		return []string{"rundll32", "url.dll,FileProtocolHandler"}
	case "darwin":
		return []string{"open"}
	default:
		return []string{"xdg-open"}
	}
}

// startTime is how long an opener has to say that it fails. Some stay for as
// long as the browser.
const startTime = 3 * time.Second

// OpenBrowser opens an address in the user's browser, with dir as the working
// directory of what starts it. The browser outlives dsh.
func OpenBrowser(address, dir string) error { return open(opener(runtime.GOOS), address, dir) }

func open(opener []string, address, dir string) error {
	program, err := exec.LookPath(opener[0])
	if err != nil {
		return fault.Errorf(fault.MissingProgram, "%s is not there: %w", opener[0], err)
	}
	cmd := exec.Command(program, append(opener[1:], address)...)
	cmd.Dir = dir
	detach(cmd)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", opener[0], err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			return fmt.Errorf("%s: %w", opener[0], err)
		}
	case <-time.After(startTime):
	}
	return nil
}
