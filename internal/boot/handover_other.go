//go:build unix && !linux

package boot

// endBySignals does nothing here: a signal in the moment in which the process
// becomes the launcher can be lost.
func endBySignals() {}
