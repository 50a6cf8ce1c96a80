package sim

import "syscall"

// currentThread is the operating system's number of the calling thread.
func currentThread() int { return syscall.Gettid() }
