//go:build !linux

package sim

// currentThread is the same for all threads: this system has no number of them that is cheap to ask for.
func currentThread() int { return 0 }
