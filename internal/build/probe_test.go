package build

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// The test binary is the Node.js of the tests, so that they need none: scripts
// call it as "$NODE", with what to try in a variable of the environment.
const probeEnv = "DSH_TEST_PROBE"

func init() {
	what, with, _ := strings.Cut(os.Getenv(probeEnv), " ")
	if what == "" {
		return
	}
	if err := probe(what, with); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}

func probe(what, with string) error {
	switch what {
	case "tcp", "udp", "unix":
		conn, err := net.Dial(what, with)
		if err == nil {
			_, err = conn.Write([]byte("x"))
		}
		return err
	case "listen":
		network, address, _ := strings.Cut(with, " ")
		_, err := net.Listen(network, address)
		return err
	case "resolve":
		_, err := net.LookupHost(with)
		return err
	case "truncate":
		return os.Truncate(with, 0)
	case "spawn":
		out, err := exec.Command("/bin/sh", "-c", "echo child").CombinedOutput()
		fmt.Printf("%s", out)
		return err
	case "arguments":
		fmt.Printf("%q\n", os.Args[1:])
		return nil
	}
	return fmt.Errorf("there is no probe %q", what)
}

func testNode(t *testing.T) Node {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Node{Program: program, Version: "v1.2.3", Modules: "1", Arch: "x64"}
}
