package code

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Emitter prints the body of a kernel. Equal operations on equal values are written once within a scope and those around it.
type Emitter struct {
	body   strings.Builder
	counts [classCount]uint64 // of the registers
	labels int
	scopes []map[operation]Value
}

// operation is the origin of a value: equal ones make equal values.
type operation struct {
	op      Op
	a, b, c Value
}

// NewEmitter begins a body.
func NewEmitter() *Emitter { return &Emitter{scopes: []map[operation]Value{{}}} }

// New is a register of its own.
func (e *Emitter) New(class Class) Value {
	e.counts[class]++
	return Value{Class: class, Bits: e.counts[class] - 1}
}

// Line writes a line: %v of a Value is a register or a constant of integers.
func (e *Emitter) Line(format string, args ...any) {
	e.body.WriteByte('\t')
	fmt.Fprintf(&e.body, format, args...)
	e.body.WriteString(";\n")
}

// String is the register, or the constant as an integer.
func (v Value) String() string { return v.operand(asInt) }

//nolint:gochecknoglobals // constant table of names
var prefixes = [classCount]string{"%p", "%h", "%r", "%d"}

//nolint:gochecknoglobals // constant table of names
var declarations = [classCount]string{".pred", ".b16", ".b32", ".b64"}

func (v Value) operand(k kind) string {
	switch {
	case !v.Const:
		return prefixes[v.Class] + strconv.FormatUint(v.Bits, 10)
	case k == asF32:
		return fmt.Sprintf("0f%08X", uint32(v.Bits)) //nolint:gosec // the low half
	case k == asF64:
		return fmt.Sprintf("0d%016X", v.Bits)
	case v.Class == B64:
		return strconv.FormatInt(int64(v.Bits), 10) //nolint:gosec // the same bits
	}
	return strconv.FormatInt(int64(int32(v.Bits)), 10) //nolint:gosec // the same bits
}

// Op1 writes an operation of one operand.
func (e *Emitter) Op1(op Op, a Value) Value {
	if a.Const {
		return Evaluator{}.Op1(op, a)
	}
	if op == U32FromHi {
		return e.Op1(U32FromU64, e.Op2(ShrU64, a, U32(32)))
	}
	return e.shared(operation{op: op, a: a}, func() Value {
		to := e.New(specs[op].result)
		e.Line("%s %v, %v", op.Text(), to, a)
		return to
	})
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
	}
	return e.shared(operation{op: op, a: a, b: b}, func() Value {
		to := e.New(specs[op].result)
		if op == U64FromHalves {
			e.Line("mov.b64 %v, {%v, %v}", to, a, b)
		} else {
			k := specs[op].kind
			e.Line("%s %v, %s, %s", op.Text(), to, a.operand(k), b.operand(k))
		}
		return to
	})
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
	return e.shared(operation{op, a, b, c}, func() Value {
		to := e.New(specs[op].result)
		k := specs[op].kind
		e.Line("%s %v, %s, %s, %s", op.Text(), to, a.operand(k), b.operand(k), c.operand(k))
		return to
	})
}

// shared is the value of an operation that was written before, or is now.
func (e *Emitter) shared(o operation, write func() Value) Value {
	for _, scope := range slices.Backward(e.scopes) {
		if v, ok := scope[o]; ok {
			return v
		}
	}
	v := write()
	e.scopes[len(e.scopes)-1][o] = v
	return v
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
func (e *Emitter) Place(label string) { e.body.WriteString(label + ":\n") }

// Scope writes code that may be skipped, or runs several times: values that are made in it are not used outside.
func (e *Emitter) Scope(write func()) {
	e.scopes = append(e.scopes, map[operation]Value{})
	write()
	e.scopes = e.scopes[:len(e.scopes)-1]
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

// Body is the text between the braces of the kernel: declarations of registers, and the lines.
func (e *Emitter) Body() string {
	var b strings.Builder
	for class, count := range e.counts {
		if count > 0 {
			fmt.Fprintf(&b, "\t.reg %s %s<%d>;\n", declarations[class], prefixes[class], count)
		}
	}
	return b.String() + e.body.String()
}
