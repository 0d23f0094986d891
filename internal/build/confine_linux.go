package build

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// confine takes from this thread, and from what it will execute, what a script
// does not need: to write outside of its directories, to read the user's files,
// the network, privileges, and other files that are open.
//
// Landlock keeps the files. It does not cover permissions, owners and times of
// files, which a script may change wherever the user may, nor names and sizes,
// which it may see.
//
// The network is kept by seccomp, which lets make no sockets but those that stay
// in the machine, and connects these to nothing. That holds for names, UDP and the
// sockets of daemons like Docker's too, which Landlock (before Linux 7) and a
// network namespace leave open, and also in containers and systems that let nobody
// make namespaces.
func confine(t task) (writes, network Confinement, err error) {
	unix.Umask(0o022)
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}) // lowering it is always allowed
	if err := closeOthers(); err != nil {
		return writes, network, fmt.Errorf("closing files: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return writes, network, fmt.Errorf("giving up new privileges: %w", err)
	}
	if writes, err = restrictFiles(t); err != nil {
		return writes, network, fmt.Errorf("confining with Landlock: %w", err)
	}
	if err := dropPrivileges(); err != nil {
		return writes, network, fmt.Errorf("giving up privileges: %w", err)
	}
	if t.Network {
		return writes, Confinement{Why: "it was allowed"}, nil
	}
	return writes, restrictNetwork(), nil
}

// closeOthers makes every open file but the three first close when the shell
// begins: dsh may have inherited some.
func closeOthers() error {
	err := unix.CloseRange(3, ^uint(0)>>1, unix.CLOSE_RANGE_CLOEXEC)
	if err == nil {
		return nil
	}
	// Before Linux 5.11.
	dir, err := os.Open("/proc/self/fd")
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	names, err := dir.Readdirnames(-1)
	for _, name := range names {
		if fd, err := strconv.Atoi(name); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
	return err
}

// dropPrivileges makes root a user like others, also after executing a program.
func dropPrivileges() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var has [2]unix.CapUserData
	if err := unix.Capget(&header, &has[0]); err != nil {
		return err
	}
	if has[0].Effective&(1<<unix.CAP_SETPCAP) != 0 {
		for c := range uintptr(64) {
			if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); errors.Is(err, unix.EINVAL) {
				break // the kernel has no more
			} else if err != nil {
				return err
			}
		}
	}
	var none [2]unix.CapUserData
	return unix.Capset(&header, &none[0])
}

// Rights of Landlock, by what they are good for.
const (
	landlockRead = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	landlockMake = unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_SYM
	landlockDevices = unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK // nobody gets these
	landlockWrite   = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
)

// landlockABI is the version of Landlock that the system has, 0 for none; why says
// why there is none.
func landlockABI() (abi int, why string) {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	switch {
	case errno == unix.EOPNOTSUPP:
		return 0, "Landlock is turned off on this system"
	case errno != 0:
		return 0, "this system has no Landlock"
	}
	return int(version), ""
}

// restrictFiles lets this thread read and write below some directories only.
func restrictFiles(t task) (Confinement, error) {
	abi, why := landlockABI()
	if abi == 0 {
		return Confinement{Why: why}, nil
	}
	attr := unix.LandlockRulesetAttr{Handled_access_fs: landlockRead | landlockMake | landlockDevices | unix.LANDLOCK_ACCESS_FS_WRITE_FILE}
	// A kernel refuses what it does not know.
	if abi >= 2 {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if abi >= 3 {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if abi >= 5 {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	size := unsafe.Sizeof(attr.Handled_access_fs)
	if abi >= 6 {
		attr.Scoped = unix.LANDLOCK_SCOPE_SIGNAL | unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
		size = unsafe.Offsetof(attr.Scoped) + unsafe.Sizeof(attr.Scoped)
	}
	ruleset, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0)
	if errno != 0 {
		return Confinement{}, errno
	}
	allow := func(path string, access uint64) error {
		err := landlockAllow(int(ruleset), path, access&attr.Handled_access_fs)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return nil
	}
	var errs []error
	for _, path := range t.Read {
		errs = append(errs, allow(path, landlockRead))
	}
	for _, path := range t.Write {
		errs = append(errs, allow(path, landlockRead|landlockMake|landlockWrite|unix.LANDLOCK_ACCESS_FS_REFER))
	}
	for _, device := range []string{"/dev/null", "/dev/zero", "/dev/full"} {
		errs = append(errs, allow(device, unix.LANDLOCK_ACCESS_FS_READ_FILE|landlockWrite))
	}
	for _, device := range []string{"/dev/random", "/dev/urandom"} {
		errs = append(errs, allow(device, unix.LANDLOCK_ACCESS_FS_READ_FILE))
	}
	if err := errors.Join(errs...); err != nil {
		return Confinement{}, err
	}
	switch _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, ruleset, 0, 0); errno {
	case 0:
	case unix.E2BIG:
		return Confinement{Why: "dsh itself runs in as many layers of Landlock as there can be"}, nil
	default:
		return Confinement{}, errno
	}
	if abi < 3 {
		return Confinement{Why: fmt.Sprintf("this system's Landlock (ABI %d) lets files be emptied everywhere", abi)}, nil
	}
	return Confinement{true, fmt.Sprintf("Landlock ABI %d", abi)}, nil
}

// landlockAllow adds a rule for a file, or for what is below a directory. Of what
// is not there nothing has to be allowed.
func landlockAllow(ruleset int, path string, access uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.EACCES) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return err
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		access &= unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | landlockWrite
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: access, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// auditArch is how seccomp names the machine that a system call is of.
var auditArch = map[string]uint32{
	"amd64":   unix.AUDIT_ARCH_X86_64,
	"arm64":   unix.AUDIT_ARCH_AARCH64,
	"riscv64": unix.AUDIT_ARCH_RISCV64,
}

// Offsets in what a filter of seccomp sees of a call (struct seccomp_data): its
// number, its machine, and the lower halves of its first two arguments.
const (
	atNumber = 0
	atArch   = 4
	atFirst  = 16
	atSecond = 24
)

// restrictNetwork keeps this thread from the network.
func restrictNetwork() Confinement {
	arch, ok := auditArch[runtime.GOARCH]
	if !ok {
		return Confinement{Why: "dsh cannot keep programs of this kind of machine from it"}
	}
	program := networkFilter(arch)
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&prog)), 0, 0)
	runtime.KeepAlive(program)
	if err != nil {
		return Confinement{Why: "this system has no seccomp"}
	}
	return Confinement{true, "seccomp"}
}

// networkFilter is a program for seccomp. Of sockets it allows streams within the
// machine, for programs that talk to their own children, and lets none connect:
// what listens outside was not started by the script.
func networkFilter(arch uint32) []unix.SockFilter {
	const (
		load   = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equal  = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		least  = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
		and    = unix.BPF_ALU | unix.BPF_AND | unix.BPF_K
		result = unix.BPF_RET | unix.BPF_K

		refused = unix.SECCOMP_RET_ERRNO | uint32(unix.EACCES)
		missing = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)

		x32         = 0x40000000 // calls of another kind on the same machine begin here
		typeOfFlags = 0xf
	)
	return []unix.SockFilter{
		{Code: load, K: atArch},
		{Code: equal, K: arch, Jt: 1},
		{Code: result, K: missing},
		{Code: load, K: atNumber},
		{Code: least, K: x32, Jt: 12},
		{Code: equal, K: unix.SYS_IO_URING_SETUP, Jt: 11}, // it makes sockets past this filter
		{Code: equal, K: unix.SYS_CONNECT, Jt: 9},
		{Code: equal, K: unix.SYS_SOCKET, Jt: 2},
		{Code: equal, K: unix.SYS_SOCKETPAIR, Jt: 1},
		{Code: result, K: unix.SECCOMP_RET_ALLOW},
		{Code: load, K: atFirst},
		{Code: equal, K: unix.AF_UNIX, Jf: 4},
		{Code: load, K: atSecond},
		{Code: and, K: typeOfFlags},
		{Code: equal, K: unix.SOCK_STREAM, Jf: 1},
		{Code: result, K: unix.SECCOMP_RET_ALLOW},
		{Code: result, K: refused},
		{Code: result, K: missing},
	}
}
