package code

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
)

// Emitter prints the body of a kernel. Equal operations on equal values are written once within a scope and those around it.
type Emitter struct {
	text   []byte // memory for the text of a module
	body   []byte
	counts [classCount]uint64 // of the registers
	labels int
	scopes []map[key]Value
	spare  []map[key]Value // of scopes that have ended, empty
}

// operation is the origin of a value: equal ones make equal values.
type operation struct {
	op      Op
	a, b, c Value
}

// key is an operation without gaps between its words, which are hashed all at once so.
type key [4]uint64

func (o *operation) key() key {
	kind := func(v Value) uint64 {
		if v.Const {
			return uint64(v.Class)<<1 | 1
		}
		return uint64(v.Class) << 1
	}
	return key{uint64(o.op)<<24 | kind(o.a)<<16 | kind(o.b)<<8 | kind(o.c), o.a.Bits, o.b.Bits, o.c.Bits}
}

// emitters is memory of emitters that were released: a process that starts writes many kernels, one after the other.
var emitters sync.Pool //nolint:gochecknoglobals // scratch memory, made on first use

// newEmitter returns an emitter with an empty body.
func newEmitter() *Emitter {
	if e, ok := emitters.Get().(*Emitter); ok {
		return e
	}
	return &Emitter{body: make([]byte, 0, usualBytes), scopes: []map[key]Value{make(map[key]Value, usualValues)}}
}

// release gives the memory to a later newEmitter.
func (e *Emitter) release() {
	e.reset()
	emitters.Put(e)
}

// reset empties the body.
func (e *Emitter) reset() {
	e.body, e.scopes, e.counts, e.labels = e.body[:0], e.scopes[:1], [classCount]uint64{}, 0
	clear(e.scopes[0])
}

// The room that most kernels need.
const (
	usualBytes  = 8 << 10
	usualValues = 128
)

// New is a register of its own.
func (e *Emitter) New(class Class) Value {
	e.counts[class]++
	return Value{Class: class, Bits: e.counts[class] - 1}
}

// Line writes a line: %v of a Value is a register or a constant of integers.
func (e *Emitter) Line(format string, args ...any) {
	e.body = fmt.Appendf(append(e.body, '\t'), format, args...)
	e.body = append(e.body, ";\n"...)
}

// String is the register, or the constant as an integer.
func (v Value) String() string { return string(v.appendTo(nil, asInt)) }

//nolint:gochecknoglobals // constant table of names
var prefixes = [classCount]string{"%p", "%h", "%r", "%d"}

//nolint:gochecknoglobals // constant table of names
var declarations = [classCount]string{".pred", ".b16", ".b32", ".b64"}

// appendTo adds the register, or the constant as one of a kind.
func (v Value) appendTo(b []byte, k kind) []byte {
	switch {
	case !v.Const:
		return strconv.AppendUint(append(b, prefixes[v.Class]...), v.Bits, 10)
	case k == asF32:
		return appendHex(append(b, "0f"...), v.Bits, 8)
	case k == asF64:
		return appendHex(append(b, "0d"...), v.Bits, 16)
	case v.Class == B64:
		return strconv.AppendInt(b, int64(v.Bits), 10) //nolint:gosec // the same bits
	}
	return strconv.AppendInt(b, int64(int32(v.Bits)), 10) //nolint:gosec // the same bits
}

// appendHex adds the lowest digits of a number.
func appendHex(b []byte, bits uint64, digits int) []byte {
	for shift := 4 * (digits - 1); shift >= 0; shift -= 4 {
		b = append(b, "0123456789ABCDEF"[bits>>shift&15])
	}
	return b
}

// operation writes an operation of so many operands, unless it was written before: the result is the same value then.
func (e *Emitter) operation(o operation, operands int) Value {
	at, k := o.key(), o.op.kind()
	if v, ok := e.written(at); ok {
		return v
	}
	to := e.New(specs[o.op].result)
	e.body = append(append(append(e.body, '\t'), o.op.Text()...), ' ')
	e.body = to.appendTo(e.body, asInt)
	all := [...]Value{o.a, o.b, o.c}
	for _, v := range all[:operands] {
		e.body = v.appendTo(append(e.body, ", "...), k)
	}
	e.body = append(e.body, ";\n"...)
	e.scopes[len(e.scopes)-1][at] = to
	return to
}

// Op1 writes an operation of one operand.
func (e *Emitter) Op1(op Op, a Value) Value {
	if a.Const {
		return Evaluator{}.Op1(op, a)
	}
	if op == U32FromHi {
		return e.Op1(U32FromU64, e.Op2(ShrU64, a, U32(32)))
	}
	return e.operation(operation{op: op, a: a}, 1)
}

// Op2 writes an operation of two operands.
func (e *Emitter) Op2(op Op, a, b Value) Value {
	if a.Const && b.Const {
		return Evaluator{}.Op2(op, a, b)
	}
	if a.Class == Pred {
		a, b = e.Register(a), e.Register(b)
	}
	if op == U64FromHalves {
		a, b = e.Register(a), e.Register(b)
		return e.shared(operation{op: op, a: a, b: b}, func() Value {
			to := e.New(specs[op].result)
			e.Line("mov.b64 %v, {%v, %v}", to, a, b)
			return to
		})
	}
	return e.operation(operation{op: op, a: a, b: b}, 2)
}

// Op3 writes an operation of three operands.
func (e *Emitter) Op3(op Op, a, b, c Value) Value {
	switch op { //nolint:exhaustive // choices
	case Select32, Select64, SelectPred:
		if a == b {
			return a
		}
		if c.Const {
			if c.Bits != 0 {
				return a
			}
			return b
		}
	}
	if a.Const && b.Const && c.Const {
		return Evaluator{}.Op3(op, a, b, c)
	}
	if op == SelectPred {
		return e.Op2(OrPred, e.Op2(AndPred, a, c), e.Op2(AndPred, b, e.Op1(NotPred, c)))
	}
	return e.operation(operation{op, a, b, c}, 3)
}

// shared is the value of an operation that was written before, or is now.
func (e *Emitter) shared(o operation, write func() Value) Value {
	at := o.key()
	if v, ok := e.written(at); ok {
		return v
	}
	v := write()
	e.scopes[len(e.scopes)-1][at] = v
	return v
}

// written is the value of an operation in a scope that has not ended.
func (e *Emitter) written(at key) (Value, bool) {
	for _, scope := range slices.Backward(e.scopes) {
		if v, ok := scope[at]; ok {
			return v, true
		}
	}
	return Value{}, false
}

// Register is the value in a register.
func (e *Emitter) Register(v Value) Value {
	if !v.Const {
		return v
	}
	return e.shared(operation{op: opCount, a: v}, func() Value {
		to := e.New(v.Class)
		if v.Class == Pred {
			e.Line("setp.ne.s32 %v, %d, 0", to, v.Bits)
		} else {
			e.Set(to, v)
		}
		return to
	})
}

// Variable is a register that Set changes, with its first value.
func (e *Emitter) Variable(first Value) Value {
	v := e.New(first.Class)
	e.Set(v, first)
	return v
}

// Set changes a register.
func (e *Emitter) Set(to, from Value) {
	e.Line("mov.%s %v, %v", declarations[to.Class][1:], to, from)
}

// Get is the value that a variable has now.
func (e *Emitter) Get(variable Value) Value {
	to := e.New(variable.Class)
	e.Set(to, variable)
	return to
}

// Label is a new name of a place.
func (e *Emitter) Label() string {
	e.labels++
	return "L" + strconv.Itoa(e.labels)
}

// Place puts a label here.
func (e *Emitter) Place(label string) { e.body = append(append(e.body, label...), ":\n"...) }

// Scope writes code that may be skipped, or runs several times: values that are made in it are not used outside.
func (e *Emitter) Scope(write func()) {
	last := len(e.spare) - 1
	if last < 0 {
		e.spare, last = append(e.spare, map[key]Value{}), 0
	}
	scope := e.spare[last]
	e.scopes, e.spare = append(e.scopes, scope), e.spare[:last]
	write()
	clear(scope)
	e.scopes, e.spare = e.scopes[:len(e.scopes)-1], append(e.spare, scope)
}

// If writes code that runs where the condition holds.
func (e *Emitter) If(condition Value, write func()) {
	end := e.Label()
	e.Line("@!%v bra %s", e.Register(condition), end)
	e.Scope(write)
	e.Place(end)
}

// Rare writes a branch around the function's code.
func (e *Emitter) Rare(condition, otherwise Value, do func() Value) Value {
	if condition.Const {
		return Evaluator{}.Rare(condition, otherwise, do)
	}
	to := e.Variable(otherwise)
	e.If(condition, func() { e.Set(to, do()) })
	return to
}

// appendBody appends the text between the braces of the kernel: the declarations of registers, and the lines.
func (e *Emitter) appendBody(b []byte) []byte {
	b = slices.Grow(b, len(e.body)+usualBytes/8)
	for class, count := range e.counts {
		if count > 0 {
			b = fmt.Appendf(b, "\t.reg %s %s<%d>;\n", declarations[class], prefixes[class], count)
		}
	}
	return append(b, e.body...)
}
