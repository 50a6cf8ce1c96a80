package interp

import (
	"bytes"
	"fmt"
)

// argument returns an argument of a system function. It reports false after a fault.
func argument(w *warp, f *frame, in *instruction, number, thread int) (value uint64, ok bool) {
	p := in.callee.arguments[number]
	if p.slot != none {
		if f.undefinedBits(p.slot, thread)&mask(8*p.bytes) != 0 && !w.undefined(f, p.slot, thread, false) { //nolint:mnd // bits
			return 0, false
		}
		return f.regs[p.slot][thread] & mask(8*p.bytes), true //nolint:mnd // bits
	}
	l, start := &w.memory.local[thread], f.base+p.local
	if l.holes(start, p.bytes) && !w.ignores(Uninitialised) {
		w.fail(&Fault{Kind: Uninitialised, Detail: fmt.Sprintf("argument %d of %s was not written", number, in.callee.fn.name)}, thread)
		return 0, false
	}
	return load(l.bytes[start:], p.bytes), true
}

// returnValue writes the result of a system function.
func returnValue(w *warp, f *frame, in *instruction, value uint64, thread int) {
	if len(in.callee.results) == 0 {
		return
	}
	p := in.callee.results[0]
	if p.slot != none {
		f.regs[p.slot][thread] = value
		return
	}
	l, start := &w.memory.local[thread], f.base+p.local
	store(l.bytes[start:], p.bytes, value)
	l.mark(start, p.bytes)
}

// textAt returns the text at an address, at most so many bytes of it. It fails if no zero ends the text.
func textAt(w *warp, address uint64, most, thread int) (string, error) {
	from, _, err := w.memory.peek(address, thread)
	if err != nil {
		return "", err
	}
	if end := bytes.IndexByte(from[:min(len(from), most)], 0); end >= 0 {
		return string(from[:end]), nil
	}
	if len(from) < most {
		return "", fmt.Errorf("no zero ends the text within the %d bytes to the end of its memory", len(from))
	}
	return string(from[:most]) + "...", nil
}

// maxText is the most bytes of a text that the driver reads.
const maxText = 4096

// assertFail is __assertfail.
func assertFail(w *warp, f *frame, in *instruction, thread int) bool {
	var values [5]uint64
	for n := range values {
		var ok bool
		if values[n], ok = argument(w, f, in, n, thread); !ok {
			return false
		}
	}
	read := func(address uint64) string {
		if values[4] != 1 { // wide characters
			return ""
		}
		text, err := textAt(w, address, maxText, thread)
		if err != nil {
			return ""
		}
		return text
	}
	a := &FailedAssertion{Message: read(values[0]), File: read(values[1]), Line: int(values[2]), Function: read(values[3])} //nolint:gosec // 32 bits
	w.fail(&Fault{
		Kind: Assertion, Assertion: a,
		Detail: fmt.Sprintf("%s:%d: %s: assertion %q failed", a.File, a.Line, a.Function, a.Message),
	}, thread)
	return false
}
