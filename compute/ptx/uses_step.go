package ptx

// number is the origin of a constant, of a special register and of the outcome of a comparison.
func number() origin { return origin{set: true, number: true} }

// moment is an instruction of a function that is traced.
type moment struct {
	*tracing

	body  *traced
	place int // of the instruction
	i     *Instruction
	ready bool // all registers that it reads are defined
}

// step adds the origins that each instruction of a function gives its results.
func (a *tracing) step(b *traced) {
	for n, i := range b.code.Instructions {
		m := moment{a, b, n, i, true}
		m.evaluate()
	}
}

// value returns the origin of an operand that is read.
func (m *moment) value(o *Operand) (v origin) {
	switch o.Kind {
	case OperandRegister:
		return m.register(o.Register)
	case OperandVariable:
		return addressOf(o.Variable, o.Offset)
	case OperandVector, OperandPair, OperandList:
		for n := range o.Elements {
			v.join(m.value(&o.Elements[n]))
		}
		return v
	case OperandAddress:
		return m.address(o)
	case OperandSpecial:
		if o.Special >= Envreg0 && o.Special <= Envreg31 { // the halves of addresses of the driver, as of a grid's barrier
			return origin{set: true, fixed: true}
		}
	case OperandNone, OperandSink, OperandInteger, OperandFloat32, OperandFloat64, OperandLabel, OperandFunction, OperandName:
	}
	return number()
}

func (m *moment) register(r *Register) origin {
	if r == nil || r.Type == Pred {
		return number()
	}
	v := m.body.of(m.place, r)
	if !v.set {
		if m.unset {
			return number()
		}
		m.ready = false
	}
	return v
}

// address returns the origin of an address between brackets.
func (m *moment) address(o *Operand) origin {
	switch {
	case o.Register != nil:
		return m.register(o.Register).shifted(o.Offset)
	case o.Variable != nil:
		return addressOf(o.Variable, o.Offset)
	}
	return number()
}

// addressOf returns the origin of a variable's address.
func addressOf(v *Variable, offset int64) origin {
	o := origin{set: true}
	switch v.Space {
	case Local, Param:
		o.places = map[*Variable]int64{v: offset}
	case Shared:
		o.shared = true
	case Generic, Global, Const, spaceCount:
		o.fixed = true
	}
	return o
}

// operand returns the origin of an operand by its number; one that is not there is a number.
func (m *moment) operand(n int) origin {
	if n >= len(m.i.Operands) {
		return number()
	}
	return m.value(&m.i.Operands[n])
}

// inputs returns the origins of all operands but the first together.
func (m *moment) inputs() (v origin) {
	v = number()
	for n := 1; n < len(m.i.Operands); n++ {
		v.join(m.operand(n))
	}
	return v
}

// define gives all results of the instruction an origin.
func (m *moment) define(v origin) {
	for k := range m.body.definitions[m.place] {
		m.defineOne(k, v)
	}
}

func (m *moment) defineOne(k int, v origin) {
	if !m.ready {
		return
	}
	r := m.body.results[m.place][k]
	if v.set = true; r.Type == Pred {
		v = number()
	}
	if m.body.defined[m.body.definitions[m.place][k]].join(v.narrowed(r.Type.Bits())) {
		m.changed = true
	}
}

// evaluate adds the effect of one instruction.
func (m *moment) evaluate() {
	switch i := m.i; i.Op { //nolint:exhaustive // the others are arithmetic, or have no result but numbers
	case OpMov:
		v := m.operand(1)
		if len(i.Operands) > 1 && i.Operands[1].Kind == OperandVector {
			if v = v.moved(); i.Type(0).Bits() >= 64 { //nolint:mnd // a pointer
				v = v.widened()
			}
		}
		m.define(v)
	case OpCvta:
		v := m.operand(1)
		if i.Space() == Global {
			m.evident(v)
		}
		m.define(v)
	case OpSelp, OpSlct:
		m.define(union(m.operand(1), m.operand(2)))
	case OpMin, OpMax:
		m.define(m.whole(union(m.operand(1), m.operand(2))))
	case OpShflSync:
		m.define(m.operand(1))
	case OpAdd, OpAddc:
		m.define(m.whole(m.sum(m.operand(1), m.operand(2), 1)))
	case OpSub, OpSubc:
		m.define(m.whole(m.difference(m.operand(1), m.operand(2))))
	case OpNeg:
		m.define(m.whole(m.difference(number(), m.operand(1))))
	case OpMad, OpMadc:
		m.define(m.whole(m.sum(union(m.operand(1), m.operand(2)).scaled(), m.operand(3), 0)))
	case OpAnd, OpOr, OpXor, OpNot, OpLop3, OpBfi, OpShf, OpPrmt:
		m.define(m.combined())
	case OpShl, OpShr, OpBfe:
		m.define(m.shifted())
	case OpCvt:
		m.define(m.converted())
	case OpSetp, OpSet:
		m.compared()
		m.define(number())
	case OpIsspacep, OpTestp, OpMatch, OpVoteSync, OpActivemask, OpBarRed, OpBarrierRed, OpCreatepolicy,
		OpMbarrierArrive, OpMbarrierArriveDrop, OpMbarrierTestWait, OpMbarrierTryWait, OpMbarrierPendingCount:
		m.define(number())
	case OpLd, OpSt, OpAtom, OpRed, OpCpAsync, OpLdmatrix, OpWmmaLoadA, OpWmmaLoadB, OpWmmaLoadC, OpWmmaStoreD:
		m.memory()
	case OpCpAsyncBulkTensor:
		m.ofTensor(&i.Operands[1], accessing{reads: true})
		m.store(Shared, origin{}, 64, fromMemory(64)) //nolint:mnd // it may be a pointer
	case OpCall:
		m.call()
	case UnknownOp:
		m.unknown()
	default:
		m.define(m.inputs().scaled())
	}
}

// compared notes the pointers that the instruction compares with 0.
func (m *moment) compared() {
	if !m.last || !m.i.Has(ModEq) && !m.i.Has(ModNe) || len(m.i.Operands) < 3 { //nolint:mnd // a result and two values
		return
	}
	x, y := &m.i.Operands[1], &m.i.Operands[2]
	switch {
	case m.zero(y):
	case m.zero(x):
		x = y
	default:
		return
	}
	for r, l := range m.value(x).roots {
		if l == base {
			m.roots[r].tested = true
		}
	}
}

// zero reports whether an operand is the constant 0, or a register with it: clang converts NULL as it converts pointers.
func (m *moment) zero(o *Operand) bool {
	for range len(m.body.places) + 1 { // a chain is no longer
		if o.Kind != OperandRegister {
			return o.Kind == OperandInteger && o.Value == 0
		}
		definitions := m.body.single[o.Register]
		if len(definitions) != 1 {
			return false
		}
		i := m.body.code.Instructions[m.body.places[definitions[0]]]
		if i.Op != OpMov && i.Op != OpCvta || len(i.Operands) != 2 { //nolint:mnd // a result and a value
			return false
		}
		o = &i.Operands[1]
	}
	return false
}

// whole returns the origin of arithmetic of integers, as it is, and of floating-point numbers, which are no pointers.
func (m *moment) whole(v origin) origin {
	if m.i.Type(0).Class() == Float {
		return v.scaled()
	}
	return v
}

// points reports whether a value is a pointer for certain, so that a number that is added to it is an index.
func (a *tracing) points(v origin) bool {
	if !v.leads() {
		return false
	}
	for r, l := range v.roots {
		if l == base && !a.roots[r].pointer {
			return false
		}
	}
	return true
}

// leads reports whether a value is a pointer or a whole number of a parameter, and nothing else.
func (v origin) leads() bool {
	return v.set && !v.number && !v.bent && v.loaded != base && v.based()
}

// sum returns the origin of a sum. first is the number of the operand with x, where a constant may follow or precede, or 0.
func (m *moment) sum(x, y origin, first int) origin {
	switch px, py := m.points(x), m.points(y); {
	case px && !py:
		y = y.demoted()
	case py && !px:
		x = x.demoted()
	case !px && !py:
		if x.leads() {
			y.bent = false
		}
		if y.leads() {
			x.bent = false
		}
	}
	halves := x.highest() == half && y.highest() == half
	x, y = x.shifted(m.constant(first, first+1)), y.shifted(m.constant(first, first))
	v := union(x, y)
	v.number = x.number && y.number
	v.mixed = v.mixed || x.highest() == base && y.highest() == base
	if halves && m.i.Type(0).Bits() >= 64 { //nolint:mnd // a pointer
		v = v.widened()
	}
	return v
}

// constant returns the integer that an operand is, or anywhere.
func (m *moment) constant(first, n int) int64 {
	if first > 0 && n < len(m.i.Operands) && m.i.Operands[n].Kind == OperandInteger {
		return int64(m.i.Operands[n].Value) // in two's complement
	}
	return anywhere
}

// difference returns the origin of x-y.
func (m *moment) difference(x, y origin) origin {
	gap := y.fixed || y.shared || len(y.places) > 0
	roots := map[int]level{}
	for r, l := range y.roots {
		gap = gap || l == base && m.roots[r].pointer
		if roots[r] = l; l == base && !x.number { // else the sign may change again
			roots[r] = index
		}
	}
	y.roots = roots
	switch {
	case gap:
		m.evident(x) // a value at a distance from a pointer is one
	case m.points(x):
		y = y.demoted()
	case x.leads():
		y.bent = false
	}
	if by := m.constant(1, 2); by != anywhere { //nolint:mnd // the second operand
		x = x.shifted(-by)
	} else {
		x = x.moved()
	}
	v := union(x, y.moved())
	v.number, v.gap = x.number && y.number || gap, v.gap || gap
	return v
}

// combined returns the origin of an operation on the bits of its operands.
func (m *moment) combined() origin {
	halves, bases, numbers := 0, 0, true
	v := origin{}
	for n := 1; n < len(m.i.Operands); n++ {
		o := m.operand(n)
		switch o.highest() { //nolint:exhaustive // an index is neither
		case half:
			halves++
		case base:
			bases++
		}
		numbers = numbers && o.number
		v.join(o)
	}
	v = v.moved()
	v.number, v.mixed = numbers, v.mixed || bases > 1
	if m.i.Op == OpAnd {
		for n := 1; n < len(m.i.Operands); n++ {
			switch mask := m.constant(1, n); {
			case mask == anywhere:
			case mask >= 0 && mask < 1<<31:
				return v.bend()
			case mask == 1<<32-1:
				return v.narrowed(32) //nolint:mnd // the lower half
			}
		}
	}
	if halves > 1 && m.i.Type(0).Bits() >= 64 { //nolint:mnd // a pointer
		return v.widened()
	}
	return m.whole(v)
}

// maxScale is how far an index is shifted: to elements of 256 bytes.
const maxScale = 8

// shifted returns the origin of a shift, or of bits that are taken out: of half a pointer, or of an index.
func (m *moment) shifted() origin {
	v := union(m.operand(1), m.operand(2).scaled())
	v.number = m.operand(1).number
	amount, length := m.constant(1, 2), m.constant(1, 3)                                                                    //nolint:mnd // the operands
	if m.i.Type(0).Bits() == 64 && (m.i.Op != OpBfe && amount == 32 || m.i.Op == OpBfe && amount&31 == 0 && length == 32) { //nolint:mnd // halves
		return v.narrowed(32) //nolint:mnd // a half
	}
	switch {
	case m.i.Op == OpShl && amount > 0 && amount <= maxScale:
		return v.scaled()
	case m.i.Op != OpBfe && amount == 0:
		return v
	}
	return v.bend()
}

// converted returns the origin of a conversion.
func (m *moment) converted() origin {
	v := m.operand(1)
	if m.i.Type(0).Class() == Float || m.i.Type(1).Class() == Float {
		return m.inputs().scaled()
	}
	return v.narrowed(min(m.i.Type(0).Bits(), m.i.Type(1).Bits()))
}
