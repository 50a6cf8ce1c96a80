//go:build (race || invariants) && !amd64 && !arm64

package actors

import (
	"bytes"
	"runtime"
)

// goroutine returns the number at the beginning of a stack trace: "goroutine 7 [running]".
func goroutine() string {
	var stack [64]byte
	text := bytes.TrimPrefix(stack[:runtime.Stack(stack[:], false)], []byte("goroutine "))
	number, _, _ := bytes.Cut(text, []byte(" "))
	return string(number)
}
