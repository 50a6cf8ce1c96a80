package site

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
)

const (
	// programDepth is the number of the program's calls in a stack. Not fewer: they distinguish places that share their
	// innermost calls. Not more: each costs 8 bytes of every note and some 40 ns.
	programDepth = 22
	// depth is the number of calls that are noted. Up to ten are the allocator's own, whose number must not change the number
	// of the program's: else one place would have two lists of frames, for a warm request and for a cold one.
	depth = programDepth + 10
)

// Stack is the calls that led to a place, the innermost first. The zero Stack is an unknown place. A Stack does not change.
type Stack []uintptr

// Here returns the place of the caller, without the skip innermost calls. With the helpers of a program see Helpers.Here.
func Here(skip int) Stack {
	var calls [depth]uintptr
	n := runtime.Callers(skip+2, calls[:])
	return append(Stack(nil), calls[:n]...)
}

// Deep is Here for code under many calls of the allocator's own, of up to 64 calls in all.
func Deep(skip int) Stack {
	var calls [2 * depth]uintptr
	n := runtime.Callers(skip+2, calls[:])
	return append(Stack(nil), calls[:n]...)
}

// Known reports whether the place was noted.
func (s Stack) Known() bool { return len(s) > 0 }

// Frames returns the calls from the program's innermost one outwards, at most 22: without the allocator's and the runtime's
// calls. All packages of this repository are the allocator's, except its command's, examples' and lab's.
//
// Of a goroutine that runs the allocator's code alone, as go s.AllocFor(...) makes one, they begin with the exported function
// that it was started with. Which code of the program started it is not known: Go has that in the text of runtime.Stack
// only, which costs several microseconds.
func (s Stack) Frames() []runtime.Frame {
	all := make([]runtime.Frame, 0, len(s))
	for _, call := range s {
		if f := frameOf(call); !strings.HasPrefix(f.Function, "runtime.") {
			all = append(all, f)
		}
	}
	all = all[firstOf(all):]
	return all[:min(len(all), programDepth)]
}

// firstOf returns the index of the program's innermost call; of a stack without one, of the outermost exported function.
func firstOf(all []runtime.Frame) (entry int) {
	for i, f := range all {
		if !ours(f) {
			return i
		}
		if exported(f.Function) {
			entry = i
		}
	}
	return entry
}

// frameOf returns the frame of one call. A whole stack would get the calls back that Helpers has left out: CallersFrames adds the
// function that an inlined one was inlined to.
func frameOf(call uintptr) runtime.Frame {
	f, _ := runtime.CallersFrames([]uintptr{call}).Next()
	return f
}

// String returns the program's innermost call: "main.train (train.go:41)", or "an unknown place".
func (s Stack) String() string {
	frames := s.Frames()
	if len(frames) == 0 {
		return "an unknown place"
	}
	return line(frames[0])
}

// MarshalText implements encoding.TextMarshaler: the text of String of a known place, and nothing of an unknown
// one.
func (s Stack) MarshalText() ([]byte, error) {
	if !s.Known() {
		return []byte{}, nil
	}
	return []byte(s.String()), nil
}

// Trace returns all of Frames, a line each, indented.
func (s Stack) Trace(indent string) string {
	var b strings.Builder
	for _, f := range s.Frames() {
		b.WriteString(indent)
		b.WriteString(line(f))
		b.WriteByte('\n')
	}
	return b.String()
}

func line(f runtime.Frame) string {
	name := f.Function[strings.LastIndexByte(f.Function, '/')+1:]
	return fmt.Sprintf("%s (%s:%d)", name, filepath.Base(f.File), f.Line)
}

// module is the path under which the allocator's own packages lie, also those that are modules of their own.
const module = "github.com/go-vram/vram"

// ours reports whether a call is inside the allocator, or in a file of Generated. Its tests and programs are callers like any other.
func ours(f runtime.Frame) bool {
	if generated(f.File) {
		return true
	}
	rest, found := strings.CutPrefix(packageOf(f.Function), module)
	if !found || strings.HasSuffix(f.File, "_test.go") {
		return false
	}
	switch folder, _, _ := strings.Cut(strings.TrimPrefix(rest, "/"), "/"); folder {
	case "cmd", "examples", "lab": // programs, also their packages
		return false
	}
	return rest == "" || rest[0] == '/'
}

// exported reports whether a function, or a method and its type, can be called from other packages.
func exported(function string) bool {
	rest := strings.ReplaceAll(function[len(packageOf(function)):], "[...]", "") // type arguments
	for rest != "" {
		rest = strings.TrimLeft(rest, ".(*)")
		name, more, _ := strings.Cut(rest, ".")
		if name == "" || name[0] < 'A' || name[0] > 'Z' {
			return false
		}
		rest = more
	}
	return true
}

// packageOf returns the package path in the name of a function.
func packageOf(function string) string {
	slash := strings.LastIndexByte(function, '/') + 1
	last, _, _ := strings.Cut(function[slash:], ".")
	return function[:slash] + last
}
