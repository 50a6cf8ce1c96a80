//go:build !linux

package core

import "time"

//nolint:gochecknoglobals // the beginning of a clock
var begin = time.Now()

// used returns a time that passes also while the thread does nothing.
func used() time.Duration { return time.Since(begin) }
