package site

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
)

// depth is how many calls are noted. Not fewer: up to ten are the allocator's own. Not more: each costs 8 bytes
// of every note and some 40 ns.
const depth = 24

// Stack is the calls that led to a place, the innermost first. The zero Stack is a place that nobody noted. It does
// not change once it was taken.
type Stack []uintptr

// Here is the place of the caller, without the skip innermost calls.
func Here(skip int) Stack {
	var calls [depth]uintptr
	n := runtime.Callers(skip+2, calls[:])
	return append(Stack(nil), calls[:n]...)
}

// Known reports whether the place was noted.
func (s Stack) Known() bool { return len(s) > 0 }

// Frames are the calls from the program's innermost one outwards: what is the allocator's own is left out, and so is
// the runtime's. Where nothing else is left they are all calls.
func (s Stack) Frames() []runtime.Frame {
	var all []runtime.Frame
	first := -1
	for frames, more := runtime.CallersFrames(s), len(s) > 0; more; {
		var f runtime.Frame
		f, more = frames.Next()
		if strings.HasPrefix(f.Function, "runtime.") {
			continue
		}
		if first < 0 && !ours(f) {
			first = len(all)
		}
		all = append(all, f)
	}
	return all[max(first, 0):]
}

// String is the program's innermost call: "main.train (train.go:41)", or "an unknown place".
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

// Trace is all of Frames, a line each, every line behind the indent.
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

// module is the path under which the allocator's own packages lie.
const module = "github.com/go-vram/vram"

// ours reports whether a call is inside the allocator. Its tests and programs are callers like any other.
func ours(f runtime.Frame) bool {
	rest, found := strings.CutPrefix(packageOf(f.Function), module)
	if !found || strings.HasSuffix(f.File, "_test.go") {
		return false
	}
	if rest == "" {
		return true
	}
	folder, _, _ := strings.Cut(strings.TrimPrefix(rest, "/"), "/")
	switch folder {
	case "actors", "batch", "cuda", "cudadrv", "futures", "kernel", "pool", "streams", "tensor", "vramtest":
		return rest[0] == '/'
	}
	return false
}

// packageOf is the package path in the name of a function.
func packageOf(function string) string {
	slash := strings.LastIndexByte(function, '/') + 1
	last, _, _ := strings.Cut(function[slash:], ".")
	return function[:slash] + last
}
