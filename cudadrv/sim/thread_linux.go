package sim

import "syscall"

// currentThread returns the operating system's number of the calling thread.
func currentThread() int { return syscall.Gettid() }
