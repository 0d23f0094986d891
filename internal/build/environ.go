package build

import (
	"cmp"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// homeIn and tmpIn are the directories of a job that scripts take for the user's
// and for the system's temporary one.
func homeIn(temp string) string { return filepath.Join(temp, "home") }
func tmpIn(temp string) string  { return filepath.Join(temp, "tmp") }

// node is the Node.js that scripts run with.
type node struct {
	program string // "" where there is none
	real    string // program without links
	prefix  string // of the installation, which has lib/node_modules
}

func findNode(getenv func(string) string) node {
	program := lookPath("node", getenv)
	if program == "" {
		return node{}
	}
	real, err := filepath.EvalSymlinks(program)
	if err != nil {
		real = program
	}
	n := node{program: program, real: real, prefix: filepath.Dir(real)}
	if runtime.GOOS != "windows" {
		n.prefix = filepath.Dir(n.prefix) // <prefix>/bin/node
	}
	return n
}

// headers is the prefix for native modules where the installation has its
// headers, "" where node-gyp would have to download them.
func (n node) headers() string {
	if n.program == "" || !isFile(filepath.Join(n.prefix, "include", "node", "node.h")) {
		return ""
	}
	return n.prefix
}

// gyp is the node-gyp that npm brings, "" where there is none.
func (n node) gyp() string {
	if n.program == "" {
		return ""
	}
	for _, modules := range []string{
		filepath.Join(n.prefix, "lib", "node_modules", "npm", "node_modules"),
		filepath.Join(n.prefix, "node_modules", "npm", "node_modules"), // Windows
		filepath.Join(n.prefix, "share", "nodejs"),                     // Debian
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
func (q Request) environ(s Script, n node, shell string) []string {
	temp := tmpIn(q.Temp)
	env := []string{
		"PATH=" + q.path(n),
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
		"npm_config_user_agent=dsh node/? " + runtime.GOOS + " " + runtime.GOARCH,
		"npm_config_cache=" + filepath.Join(temp, "npm"),
		"npm_config_update_notifier=false",
	}
	if n.program != "" {
		env = append(env, "NODE="+n.program, "npm_node_execpath="+n.program)
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
func (q Request) path(n node) string {
	list := append([]string{}, q.Bin...)
	if n.program != "" {
		list = append(list, filepath.Dir(n.program))
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
