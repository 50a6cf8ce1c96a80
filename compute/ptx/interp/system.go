package interp

import (
	"bytes"
	"fmt"

	"github.com/go-vram/vram/compute/ptx"
)

// system is a function that the driver has and not the module, which declares it .extern.
type system struct {
	params, results []int // sizes in bytes
	run             func(w *warp, f *frame, in *instruction, thread int) bool
}

// systemOf is the system function of a name, or nil.
func systemOf(name string) *system {
	const word, pointer = 4, 8
	switch name {
	case "__assertfail": // message, file, line, function, and the size of a character
		return &system{[]int{pointer, pointer, word, pointer, pointer}, nil, (*warp).assertFail}
	case "vprintf": // format and arguments
		return &system{[]int{pointer, pointer}, []int{word}, (*warp).vprintf}
	}
	return nil
}

// declaredAs reports whether a declaration is that of the function.
func (s *system) declaredAs(f *ptx.Function) bool {
	fits := func(variables []*ptx.Variable, sizes []int) bool {
		if len(variables) != len(sizes) {
			return false
		}
		for n, v := range variables {
			if v.Bytes() != sizes[n] {
				return false
			}
		}
		return true
	}
	return fits(f.Params, s.params) && fits(f.Results, s.results)
}

// callSystem calls a function of the driver in each thread.
func (w *warp) callSystem(in *instruction, f *frame, m uint32) {
	f.written(in, m)
	for ; m != 0; m &= m - 1 {
		n := next(m)
		w.local[n].grow(f.base + f.fn.localBytes)
		if !in.callee.system.run(w, f, in, n) {
			return
		}
	}
}

// argument is an argument of a system function. It reports false after a fault.
func (w *warp) argument(f *frame, in *instruction, number, thread int) (value uint64, ok bool) {
	p := in.callee.arguments[number]
	if p.slot != none {
		if f.undefinedBits(p.slot, thread)&mask(8*p.bytes) != 0 && !w.undefined(f, p.slot, thread, false) { //nolint:mnd // bits
			return 0, false
		}
		return f.regs[p.slot][thread] & mask(8*p.bytes), true //nolint:mnd // bits
	}
	l, start := &w.local[thread], f.base+p.local
	if l.holes(start, p.bytes) && !w.block.run.ignored[Uninitialised] {
		w.fail(&Fault{Kind: Uninitialised, Detail: fmt.Sprintf("argument %d of %s was not written", number, in.callee.fn.name)}, thread)
		return 0, false
	}
	return load(l.bytes[start:], p.bytes), true
}

// returned writes the result of a system function.
func (w *warp) returned(f *frame, in *instruction, value uint64, thread int) {
	if len(in.callee.results) == 0 {
		return
	}
	p := in.callee.results[0]
	if p.slot != none {
		f.regs[p.slot][thread] = value
		return
	}
	l, start := &w.local[thread], f.base+p.local
	store(l.bytes[start:], p.bytes, value)
	l.mark(start, p.bytes)
}

// peek is the memory from a generic address to the end of its owner's.
func (w *warp) peek(address uint64, thread int) (from []byte, space ptx.Space, err error) {
	space = spaceAt(address)
	offset := address & (1<<windowShift - 1)
	switch space {
	case ptx.Shared:
		from = w.block.shared
	case ptx.Local:
		from = w.local[thread].bytes
	case ptx.Param:
		from = w.block.run.launch.Params
	default:
		g, err := w.block.run.find(&access{space: space, address: address, bytes: 1, thread: thread})
		if err != nil {
			return nil, space, err
		}
		from, offset = g.Bytes, address-g.Start
	}
	if offset >= uint64(len(from)) {
		return nil, space, fmt.Errorf("the address is past the end of %d bytes", len(from))
	}
	return from[offset:], space, nil
}

// text is the text at an address, as far as it is not too long. An error says that no zero ends it.
func (w *warp) text(address uint64, most, thread int) (string, error) {
	from, _, err := w.peek(address, thread)
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

// FailedAssertion is an assert of CUDA C++ that did not hold. A text that cannot be read is "".
type FailedAssertion struct {
	Message  string `json:"message"` // the condition
	File     string `json:"file"`
	Line     int    `json:"line"`
	Function string `json:"function"`
}

// assertFail is __assertfail.
func (w *warp) assertFail(f *frame, in *instruction, thread int) bool {
	var values [5]uint64
	for n := range values {
		var ok bool
		if values[n], ok = w.argument(f, in, n, thread); !ok {
			return false
		}
	}
	read := func(address uint64) string {
		if values[4] != 1 { // wide characters
			return ""
		}
		text, err := w.text(address, maxText, thread)
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
