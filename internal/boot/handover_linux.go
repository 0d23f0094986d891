package boot

import (
	"os/signal"
	"syscall"
	"unsafe"
)

// endBySignals has the kernel end the process by the signals that ask for its
// end, unless it was started with them ignored. The runtime cannot: its handler
// stays, and what it has not yet told anybody is lost when the process becomes
// another program.
//
// The call is made on all threads: one that is just about to handle a signal
// comes to it after that.
func endBySignals() {
	// struct sigaction of the kernel, with room to spare: all zero is SIG_DFL, no
	// flags and an empty mask. The mask has 64 bits.
	byDefault := new([64]byte)
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			// It fails for no signal that can be caught.
			_, _, errno := syscall.AllThreadsSyscall6(syscall.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(byDefault)), 0, 8, 0, 0)
			if errno == syscall.ENOTSUP { // a build with C in it, where this thread has to do
				_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(byDefault)), 0, 8, 0, 0)
			}
		}
	}
}
