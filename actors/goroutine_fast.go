//go:build (race || invariants) && (amd64 || arm64)

package actors

// goroutine returns the address of the runtime's record of the calling goroutine. No other living goroutine has it, and it
// costs a load; runtime.Stack prints every frame.
func goroutine() uintptr
