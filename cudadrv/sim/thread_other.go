//go:build !linux

package sim

// currentThread returns the same for all threads: this system has no number of them that is cheap to ask for.
func currentThread() int { return 0 }
