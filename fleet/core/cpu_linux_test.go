package core

import (
	"time"

	"golang.org/x/sys/unix"
)

// used returns the processor time of this thread.
func used() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now); err != nil {
		panic(err) // Linux has this clock
	}
	return time.Duration(now.Nano())
}
