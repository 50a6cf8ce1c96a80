package routine

import (
	"github.com/go-vram/vram/compute/kernel/elementary"
	"github.com/go-vram/vram/compute/kernel/internal/code"
	"github.com/go-vram/vram/compute/tensor"
)

const (
	// AdamWSlots is the number of states of a launch. Their parameters are 3.5 KiB of the 4 KiB that a launch may have.
	AdamWSlots = 64
	// AdamWBlockLen is the number of elements of a tensor that a block takes: four vectors for each thread.
	AdamWBlockLen = 4 * adamWVector * BlockThreads

	adamWVector = 4
	vectorBytes = 16 // the largest load
)

// AdamWNumbers are the numbers of a step, in the order of the parameters.
type AdamWNumbers struct {
	Beta1, Rest1             float32 // and 1 less that
	Beta2, Rest2             float32
	Epsilon, Decay, Rate     float32
	Correction1, Correction2 float32 // 1-beta^step
	Log1, Log2               float32 // of the betas, where the step is read on the device
}

// adamWStep is the numbers of a step in registers.
type adamWStep struct {
	beta1, rest1, beta2, rest2, epsilon value
	scale                               value // the factor of a gradient
	keep                                value // the factor of a parameter
	rate                                value // divided by the first correction
	factor                              value // of the root of the second moment
}

// adamWStep loads the numbers: rate, step and scale from memory where their addresses are not 0. It ends threads that are to
// skip the step.
func (w *writer) adamWStep() adamWStep {
	rateAt, stepAt, scaleAt, skipAt := w.address(), w.address(), w.address(), w.address()
	w.If(w.Op2(code.NeS64, skipAt, code.U64(0)), func() {
		skip := w.Load("global", tensor.Bool, skipAt, 1)[0]
		w.Line("@%v exit", w.Op2(code.NeS32, skip, code.U32(0)))
	})
	s := adamWStep{beta1: w.Float(4), rest1: w.Float(4), beta2: w.Float(4), rest2: w.Float(4), epsilon: w.Float(4)}
	decay, rateGiven := w.Float(4), w.Float(4)
	given := [2]value{w.Float(4), w.Float(4)}
	logs := [2]value{w.Float(4), w.Float(4)}
	rate := w.Variable(rateGiven)
	w.If(w.Op2(code.NeS64, rateAt, code.U64(0)), func() { w.Set(rate, w.loadWord(rateAt)) })
	scale := w.Variable(code.F32(1))
	w.If(w.Op2(code.NeS64, scaleAt, code.U64(0)), func() { w.Set(scale, w.loadWord(scaleAt)) })
	s.scale = w.Get(scale)
	corrections := [2]value{w.Variable(given[0]), w.Variable(given[1])}
	w.If(w.Op2(code.NeS64, stepAt, code.U64(0)), func() {
		step := w.loadWord(stepAt)
		for i, to := range corrections {
			w.Set(to, w.Op1(code.NegF32, elementary.BuildExpm1(w, w.Op2(code.MulF32, step, logs[i]))))
		}
	})
	now := w.Get(rate)
	s.keep = w.Op2(code.SubF32, code.F32(1), w.Op2(code.MulF32, now, decay))
	s.rate = w.Op2(code.DivF32, now, w.Get(corrections[0]))
	s.factor = w.Op2(code.DivF32, code.F32(1), w.Op1(code.SqrtF32, w.Get(corrections[1])))
	return s
}

// update changes a parameter and its moments by the gradient.
func (s *adamWStep) update(m code.Machine, all [4]value) (parameter, first, second value) {
	mul := func(a, b value) value { return m.Op2(code.MulF32, a, b) }
	parameter, gradient, first, second := all[0], mul(all[1], s.scale), all[2], all[3]
	first = m.Op3(code.FmaF32, gradient, s.rest1, mul(first, s.beta1))
	second = m.Op3(code.FmaF32, mul(gradient, gradient), s.rest2, mul(second, s.beta2))
	root := m.Op3(code.FmaF32, m.Op1(code.SqrtF32, second), s.factor, s.epsilon)
	change := mul(s.rate, m.Op2(code.DivF32, first, root))
	return m.Op2(code.SubF32, mul(parameter, s.keep), change), first, second
}

// states returns the number of tensors of a state.
func (w *writer) states() int {
	if w.Copy.Valid() {
		return len(w.Of) + 1
	}
	return len(w.Of)
}

// stateType returns the type of a tensor of a state.
func (w *writer) stateType(k int) tensor.Type {
	if k == len(w.Of) {
		return w.Copy
	}
	return w.Of[k]
}

// change updates neighbours, of which the addresses of all tensors are given, and writes the copy of the parameter if there is
// one.
func (w *writer) change(s *adamWStep, at []value, count int) {
	var all [4][]value
	for k := range all {
		all[k] = w.Load("global", w.Of[k], at[k], count)
	}
	for i := range count {
		all[0][i], all[2][i], all[3][i] = s.update(w, [4]value{all[0][i], all[1][i], all[2][i], all[3][i]})
	}
	for _, k := range []int{0, 2, 3} {
		w.Store(w.Of[k], at[k], all[k]...)
	}
	if w.Copy.Valid() {
		w.Store(w.Copy, at[len(w.Of)], all[0]...)
	}
}

// adamW writes AdamW.
func (w *writer) adamW() {
	s := w.adamWStep()
	t := w.tensorOfBlock(AdamWSlots, w.states(), AdamWBlockLen)
	at := make([]value, w.states())
	aligned := code.U64(0)
	for k := range at {
		size := uint64(w.stateType(k).Size()) //nolint:gosec // small
		at[k] = w.Op2(code.AddS64, t.at[k], w.Op2(code.MulS64, t.begin, code.U64(size)))
		aligned = w.Op2(code.Or64, aligned, at[k])
	}
	thread := w.Special("tid.x")
	vectors := w.Variable(code.U32(0)) // elements that are taken as vectors
	w.If(w.Op2(code.EqS64, w.Op2(code.And64, aligned, code.U64(vectorBytes-1)), code.U64(0)), func() {
		w.Set(vectors, w.Op2(code.And32, t.count, code.U32(^uint32(adamWVector-1))))
	})
	pass := func(from, to value, width uint32) {
		w.loop(w.Op2(code.SubS32, to, from), BlockThreads*width, func(i value) {
			i = w.Op2(code.AddS32, w.Op2(code.AddS32, i, from), w.Op2(code.MulS32, thread, code.U32(width)))
			w.If(w.Op2(code.LtU32, i, to), func() {
				here := make([]value, len(at))
				for k := range here {
					here[k] = w.Op2(code.AddS64, at[k], w.Op2(code.MulWideU32, i, code.U32(uint32(w.stateType(k).Size())))) //nolint:gosec // small
				}
				w.change(&s, here, int(width))
			})
		})
	}
	taken := w.Get(vectors)
	pass(code.U32(0), taken, adamWVector)
	pass(taken, t.count, 1)
}

// adamWStrided writes AdamWStrided.
func (w *writer) adamWStrided() {
	s := w.adamWStep()
	count, shape := w.size(), w.sizes(w.Rank)
	operands := make([]operand, w.states())
	for k := range operands {
		operands[k] = w.operand()
	}
	at := w.thread()
	w.If(w.Less(at, count), func() {
		index := w.Split(at, shape)
		here := make([]value, len(operands))
		for k, o := range operands {
			here[k] = w.Address(o.at, w.place(o, index), w.stateType(k).Size())
		}
		w.change(&s, here, 1)
	})
}

// AdamWTypes reports whether a step can have the types of parameter, gradient and moments.
func AdamWTypes(of [4]tensor.Type) bool {
	for _, t := range of {
		if t != tensor.Float32 && t != tensor.Float16 && t != tensor.BFloat16 {
			return false
		}
	}
	return true
}
