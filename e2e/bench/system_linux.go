package main

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// peak is the largest memory of a process and of those that it waited for, in MiB.
func peak(state *os.ProcessState) float64 {
	usage, ok := state.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	return float64(usage.Maxrss) / 1024
}

// settle writes to the disk what others left to be written.
func settle() { unix.Sync() }

// filesystem names the filesystem of a directory.
func filesystem(dir string) string {
	var of unix.Statfs_t
	if err := unix.Statfs(dir, &of); err != nil {
		return "unknown"
	}
	switch int64(of.Type) {
	case unix.TMPFS_MAGIC:
		return "tmpfs"
	case unix.EXT4_SUPER_MAGIC:
		return "ext4"
	case unix.XFS_SUPER_MAGIC:
		return "xfs"
	case unix.BTRFS_SUPER_MAGIC:
		return "btrfs"
	case unix.OVERLAYFS_SUPER_MAGIC:
		return "overlayfs"
	}
	return "unknown"
}

// load is how busy the machine is, as the system tells it.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	return string(text)
}
