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

// ForgetMarks forgets the marked files until restore is called.
func ForgetMarks() (restore func()) {
	old := generatedFiles.Swap(nil)
	return func() { generatedFiles.Store(old) }
}
