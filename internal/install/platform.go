package install

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// Platform is the machine in npm's words, as the fields os, cpu and libc of a
// package.json use them (process.platform and process.arch of Node.js).
type Platform struct {
	OS, CPU string
	Libc    string // "glibc" or "musl" on Linux, else ""
}

// ThisPlatform is the machine that dsh runs on.
var ThisPlatform = sync.OnceValue(func() Platform {
	p := Platform{OS: runtime.GOOS, CPU: runtime.GOARCH}
	switch p.OS {
	case "windows":
		p.OS = "win32"
	case "solaris", "illumos":
		p.OS = "sunos"
	}
	switch p.CPU {
	case "amd64":
		p.CPU = "x64"
	case "386":
		p.CPU = "ia32"
	case "ppc64le":
		p.CPU = "ppc64"
	case "mipsle":
		p.CPU = "mipsel"
	}
	if p.OS == "linux" {
		p.Libc = "glibc"
		if musl, _ := filepath.Glob("/lib/ld-musl-*"); len(musl) > 0 {
			p.Libc = "musl"
		}
	}
	return p
})

// String is "linux-x64-glibc".
func (p Platform) String() string {
	return strings.Trim(p.OS+"-"+p.CPU+"-"+p.Libc, "-")
}

// runs reports whether a package limited to the given platforms runs here, by
// npm's rule: an entry with "!" excludes, any other list must name the machine.
func (p Platform) runs(pkg *Package) bool {
	return matches(p.OS, pkg.OS) && matches(p.CPU, pkg.CPU) && (p.Libc == "" || matches(p.Libc, pkg.Libc))
}

func matches(have string, list []string) bool {
	if len(list) == 0 || (len(list) == 1 && list[0] == "any") || slices.Contains(list, have) {
		return true
	}
	excluded := func(s string) bool { return strings.HasPrefix(s, "!") }
	return !slices.Contains(list, "!"+have) && !slices.ContainsFunc(list, func(s string) bool { return !excluded(s) })
}

func userHome() string {
	home, err := os.UserHomeDir()
	if err != nil {
		return "~"
	}
	return home
}
