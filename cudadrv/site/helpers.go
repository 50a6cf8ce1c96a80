package site

import (
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
)

// Helpers are functions of a program that places leave out, such as the program's own wrappers of Alloc and Launch. nil leaves
// out nothing. It is safe for concurrent use.
type Helpers struct {
	packages  []helper
	functions []helper
	kinds     [kindSlots]atomic.Uint64 // the kinds of calls that were looked up: the counter, and the kind in the low bits
}

// helper is a package, or a function with its type.
type helper struct{ pkg, function string }

// kind is whose a call is.
type kind uint64

const (
	unknownKind kind = iota
	programKind      // a place names it
	helperKind
	otherKind // the allocator's, or the runtime's

	kindBits = 2
	// kindSlots is the number of calls whose kinds are kept; two calls of one slot replace each other. Not fewer: a large
	// program has some thousand calls on the way to its allocations. Not more: each takes 8 bytes.
	kindSlots = 4096
	// helperDepth is how many calls of helpers a stack may have without losing calls of the program.
	helperDepth = 32
)

// NewHelpers returns the functions with these names: of packages, by their import paths, and of functions and methods as in a
// stack trace, "example.com/app/mem.(*Pool).Get", or without the parentheses and the star. A generic function is named without
// its type arguments. The closures in a function are part of it. No names: nil.
func NewHelpers(names []string) *Helpers {
	if len(names) == 0 {
		return nil
	}
	h := &Helpers{}
	for _, name := range names {
		h.packages = append(h.packages, helper{pkg: name})
		pkg, function := split(name)
		if function != "" {
			h.functions = append(h.functions, helper{pkg, plainName(function)})
		}
	}
	return h
}

// Here returns the place of the caller, without the skip innermost calls and without helpers. A stack of helpers alone is
// returned whole. It costs 10 ns more for each call than Here of a nil Helpers, and some microseconds for a call that is new.
func (h *Helpers) Here(skip int) Stack {
	if h == nil {
		return Here(skip + 1)
	}
	var calls [depth + helperDepth]uintptr
	n := runtime.Callers(skip+2, calls[:])
	s := h.without(calls[:n])
	return s[:min(len(s), depth)]
}

// Without returns a copy of a stack without helpers. A stack of helpers alone is returned whole.
func (h *Helpers) Without(s Stack) Stack {
	if h == nil {
		return s
	}
	return h.without(s)
}

func (h *Helpers) without(calls []uintptr) Stack {
	kept, ofProgram := make(Stack, 0, len(calls)), false
	for _, call := range calls {
		k := h.kindOf(call)
		ofProgram = ofProgram || k == programKind
		if k != helperKind {
			kept = append(kept, call)
		}
	}
	if !ofProgram {
		kept = append(kept[:0], calls...)
	}
	return kept
}

// kindOf looks a call up once, as long as no other call takes its slot.
func (h *Helpers) kindOf(call uintptr) kind {
	slot := &h.kinds[uint64(call)*0x9E3779B97F4A7C15>>52]
	if v := slot.Load(); v>>kindBits == uint64(call) {
		return kind(v & (1<<kindBits - 1))
	}
	k := h.look(frameOf(call))
	slot.Store(uint64(call)<<kindBits | uint64(k))
	return k
}

func (h *Helpers) look(f runtime.Frame) kind {
	switch {
	case h.has(f): // first: a closure of an inlined helper can have one of the allocator's names
		return helperKind
	case strings.HasPrefix(f.Function, "runtime.") || ours(f):
		return otherKind
	}
	return programKind
}

// has reports whether a call is a helper's. The compiler names a closure of a function that it has inlined after the function
// that it was inlined to, and its package: "app.Step.With.func1" for a closure of mem.With. The file is still the one of With.
func (h *Helpers) has(f runtime.Frame) bool {
	pkg, function := split(f.Function)
	function = plainName(function)
	name, closure := withoutClosures(function)
	moved := closure && strings.Contains(name, ".")
	for _, p := range h.packages {
		if p.pkg == pkg || moved && inFolder(f.File, p.pkg) && !inFolder(f.File, pkg) {
			return true
		}
	}
	for _, p := range h.functions {
		switch {
		case p.pkg == pkg && (p.function == name || moved && strings.HasSuffix(name, "."+p.function)):
			return true
		case moved && strings.HasSuffix(name, "."+p.function) && inFolder(f.File, p.pkg) && !inFolder(f.File, pkg):
			return true
		}
	}
	return false
}

// inFolder reports whether a file can be one of a package: its folder has the last element of the package's path, with or
// without a version.
func inFolder(file, pkg string) bool {
	folder, _, _ := strings.Cut(path.Base(path.Dir(filepath.ToSlash(file))), "@")
	return folder == path.Base(pkg)
}

// split returns the package path in the name of a function, and the rest. The compiler escapes dots in the last element of a
// path.
func split(name string) (pkg, function string) {
	pkg = packageOf(name)
	function = strings.TrimPrefix(name[len(pkg):], ".")
	return strings.ReplaceAll(pkg, "%2e", "."), function
}

// plainName returns a name without type arguments, and without the parentheses and the star of a receiver.
func plainName(function string) string {
	nested := 0
	return strings.Map(func(c rune) rune {
		switch c {
		case '[':
			nested++
			return -1
		case ']':
			nested--
			return -1
		case '(', ')', '*':
			return -1
		}
		if nested > 0 {
			return -1
		}
		return c
	}, function)
}

// withoutClosures returns the name of the function that a closure is in: "With" of "With.func1.2", "With-range1",
// "With.gowrap1" and "With-fm".
func withoutClosures(function string) (name string, closure bool) {
	name = function
	for {
		at := strings.LastIndexAny(name, ".-")
		if at < 0 || !closureName(name[at+1:]) {
			return name, name != function
		}
		name = name[:at]
	}
}

// closureName reports whether a part of a name is one that the compiler gives to closures.
func closureName(part string) bool {
	if part == "fm" {
		return true
	}
	for _, prefix := range []string{"func", "gowrap", "deferwrap", "range"} {
		part = strings.TrimPrefix(part, prefix)
	}
	return part != "" && strings.Trim(part, "0123456789") == ""
}
