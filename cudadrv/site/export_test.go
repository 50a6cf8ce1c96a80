package site

import "runtime"

// Ours and Exported are for tests.
var (
	Ours     = ours
	Exported = exported
	FirstOf  = firstOf
	Mark     = mark
	Marked   = generated
)

// Has reports whether a function of a file is a helper.
func Has(h *Helpers, function, file string) bool {
	return h.has(runtime.Frame{Function: function, File: file})
}

// KindOf returns whose a call is, which may be kept, and KindLookedUp the same from the call's function.
func KindOf(h *Helpers, call uintptr) uint64       { return uint64(h.kindOf(call)) }
func KindLookedUp(h *Helpers, call uintptr) uint64 { return uint64(h.look(frameOf(call))) }

// ForgetMarks forgets the marked files until restore is called.
func ForgetMarks() (restore func()) {
	old := generatedFiles.Swap(nil)
	return func() { generatedFiles.Store(old) }
}
