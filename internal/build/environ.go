package build

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"dsh/internal/fault"
)

// homeIn and tmpIn are the directories that scripts take for the user's and for
// the system's temporary one; binIn has the node-gyp that they call.
func homeIn(temp string) string { return filepath.Join(temp, "home") }
func tmpIn(temp string) string  { return filepath.Join(temp, "tmp") }
func binIn(temp string) string  { return filepath.Join(temp, "bin") }

// Node is the Node.js that scripts run with. The zero Node is none.
type Node struct {
	Program string // its real path, which links and version managers lead to
	Version string // "v24.1.0"
	Modules string // the version of its interface to native modules, "137"
	Arch    string // "x64", "arm64"
}

// FindNode is the Node.js that PATH leads to, the zero Node where there is none.
// It is asked where it is: what PATH has may be a program that chooses one.
func FindNode(ctx context.Context, getenv func(string) string) (Node, error) {
	program := lookPath("node", getenv)
	if program == "" {
		return Node{}, nil
	}
	const ask = "JSON.stringify({Program: process.execPath, Version: process.version, Modules: process.versions.modules, Arch: process.arch})"
	cmd := exec.CommandContext(ctx, program, "-p", ask)
	cmd.Env = append(os.Environ(), "NODE_OPTIONS=")
	cmd.WaitDelay = time.Second
	said, err := cmd.Output()
	var n Node
	if err == nil {
		err = json.Unmarshal(said, &n)
	}
	if err == nil && !filepath.IsAbs(n.Program) {
		err = fmt.Errorf("it says that it is at %q", n.Program)
	}
	if err != nil {
		return Node{}, fault.Errorf(fault.Environment, "asking %s for its version: %w", program, err)
	}
	if real, err := filepath.EvalSymlinks(n.Program); err == nil {
		n.Program = real
	}
	return n, nil
}

// prefix is the directory of the installation, which has lib/node_modules.
func (n Node) prefix() string {
	if runtime.GOOS == "windows" {
		return filepath.Dir(n.Program)
	}
	return filepath.Dir(filepath.Dir(n.Program)) // <prefix>/bin/node
}

// headers is the prefix for native modules where the installation has its
// headers, "" where node-gyp would have to download them.
func (n Node) headers() string {
	if n.Program == "" || !isFile(filepath.Join(n.prefix(), "include", "node", "node.h")) {
		return ""
	}
	return n.prefix()
}

// gyp is the node-gyp that npm brings, "" where there is none.
func (n Node) gyp() string {
	if n.Program == "" {
		return ""
	}
	for _, modules := range []string{
		filepath.Join(n.prefix(), "lib", "node_modules", "npm", "node_modules"),
		filepath.Join(n.prefix(), "node_modules", "npm", "node_modules"), // Windows
		filepath.Join(n.prefix(), "share", "nodejs"),                     // Debian
	} {
		if script := filepath.Join(modules, "node-gyp", "bin", "node-gyp.js"); isFile(script) {
			return script
		}
	}
	return ""
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// environ is the whole environment of a script. Nothing of dsh's own comes along
// but PATH, and what Windows cannot start a program without.
func (q Request) environ(s Script, shell string) []string {
	n := q.Node
	temp := tmpIn(q.Temp)
	env := []string{
		"PATH=" + q.path(),
		"HOME=" + homeIn(q.Temp),
		"TMPDIR=" + temp,
		"LANG=C.UTF-8",
		"SHELL=" + shell,
		"INIT_CWD=" + q.Dir,
		"npm_lifecycle_event=" + s.Event,
		"npm_lifecycle_script=" + s.Text,
		"npm_package_name=" + q.Name,
		"npm_package_version=" + q.Version,
		"npm_package_json=" + filepath.Join(q.Dir, "package.json"),
		"npm_command=install",
		"npm_execpath=",
		"npm_config_user_agent=dsh node/" + n.Version + " " + runtime.GOOS + " " + n.Arch,
		"npm_config_cache=" + filepath.Join(temp, "npm"),
		// Others are not fetched for a script that calls one of these.
		"npm_config_update_notifier=false",
		"pnpm_config_manage_package_manager_versions=false",
		"COREPACK_ENABLE_PROJECT_SPEC=0",
	}
	if !q.Network {
		// npm would try for more than a minute.
		env = append(env, "npm_config_fetch_retries=0")
	}
	if n.Program != "" {
		env = append(env, "NODE="+n.Program, "npm_node_execpath="+n.Program)
	}
	if dir := n.headers(); dir != "" {
		env = append(env, "npm_config_nodedir="+dir)
	}
	if script := n.gyp(); script != "" {
		env = append(env, "npm_config_node_gyp="+script)
	}
	if runtime.GOOS == "windows" {
		env = append(env, "TEMP="+temp, "TMP="+temp, "USERPROFILE="+homeIn(q.Temp), "APPDATA="+homeIn(q.Temp), "LOCALAPPDATA="+homeIn(q.Temp))
		for _, name := range []string{
			"SystemRoot", "SystemDrive", "ComSpec", "PATHEXT", "windir", "ProgramFiles", "ProgramFiles(x86)", "ProgramData",
			"CommonProgramFiles", "NUMBER_OF_PROCESSORS", "PROCESSOR_ARCHITECTURE", "OS",
		} {
			if value := q.Getenv(name); value != "" {
				env = append(env, name+"="+value)
			}
		}
	}
	return append(env, q.Env...)
}

// path is where scripts look for programs: what the package needs, Node.js, and
// those directories of dsh's own PATH that a confined script can read.
func (q Request) path() string {
	list := append(slices.Clone(q.Bin), binIn(q.Temp))
	if q.Node.Program != "" {
		list = append(list, filepath.Dir(q.Node.Program))
	}
	for _, dir := range filepath.SplitList(cmp.Or(q.Getenv("PATH"), defaultPath)) {
		if filepath.IsAbs(dir) && mayLookInto(dir) {
			list = append(list, dir)
		}
	}
	return strings.Join(list, string(filepath.ListSeparator))
}

// lookPath is the program of a name that PATH leads to, "" where there is none.
// What PATH has of relative directories is passed over: they are the project's
// where dsh happens to be started.
func lookPath(name string, getenv func(string) string) string {
	for _, dir := range filepath.SplitList(cmp.Or(getenv("PATH"), defaultPath)) {
		if !filepath.IsAbs(dir) {
			continue
		}
		for _, suffix := range programSuffixes {
			path := filepath.Join(dir, name+suffix)
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && (runtime.GOOS == "windows" || info.Mode()&0o111 != 0) {
				return path
			}
		}
	}
	return ""
}
