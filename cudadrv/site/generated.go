package site

import (
	"runtime"
	"slices"
	"sync/atomic"
)

// generatedFiles are the files that have called Generated; replaced, never changed. A program has a few.
var generatedFiles atomic.Pointer[[]string] //nolint:gochecknoglobals // made on first use: facts about the program's text, which do not change

// Generated marks the file of the caller, without the skip innermost calls, as one that a program of this module has written:
// places leave its functions out and name their callers. Other functions of its package stay. Idempotent.
func Generated(skip int) {
	var calls [1]uintptr
	if runtime.Callers(skip+2, calls[:]) == 0 {
		return
	}
	mark(frameOf(calls[0]).File)
}

// mark marks a file, "" none.
func mark(file string) {
	for file != "" && !generated(file) {
		old := generatedFiles.Load()
		var all []string
		if old != nil {
			all = *old
		}
		all = append(slices.Clip(all), file)
		generatedFiles.CompareAndSwap(old, &all)
	}
}

// generated reports whether a file was marked.
func generated(file string) bool {
	all := generatedFiles.Load()
	return all != nil && slices.Contains(*all, file)
}
