package ops

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/go-vram/vram/compute/kernel"
	"github.com/go-vram/vram/compute/kernel/routine"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cuda"
)

// AdamWStep has the numbers of one step, which are arguments of the launch: new ones compile nothing.
type AdamWStep struct {
	Rate float64 // the learning rate
	Step int     // the number of the step, from 1 on

	// RateAt and StepAt hold the numbers in memory, each as a tensor of one float32, for a graph that is launched for several
	// steps. If not nil they replace Rate and Step.
	RateAt, StepAt *tensor.Tensor

	// ScaleAt is a factor of all gradients, a tensor of one float32, as GradNorm writes it to clip them. nil for 1.
	ScaleAt *tensor.Tensor
	// SkipAt is a tensor of one bool, as GradNorm writes it for gradients with Inf or NaN: where it is true the step changes
	// nothing. The number at StepAt is the caller's to leave. nil for false.
	SkipAt *tensor.Tensor
}

// numbers returns the tensors of a step, which may be nil.
func (a AdamWStep) numbers() [4]*tensor.Tensor {
	return [...]*tensor.Tensor{a.RateAt, a.StepAt, a.ScaleAt, a.SkipAt}
}

// AdamWAll makes one step of many parameters: one launch for each 64 of the same types, and one for each whose tensors lie
// apart from each other: with gaps, or in other orders. No launch depends on the numbers in config and step. The types are
// float32, float16 and bfloat16, and it computes in float32. Tensors without elements are left out, and so are states whose Grad
// is nil, as PyTorch skips parameters without a gradient. No tensor may share memory with a parameter, a moment or a copy, of its
// state or of another one. It allocates nothing on the heap.
//
// It reads parameter, gradient and moments once and writes the others once: 28 bytes for each element of float32, also with
// float32 parameters, bfloat16 gradients and a bfloat16 copy; 14 where all are bfloat16.
//
// Errors, with which nothing was submitted: ErrNumber, ErrShape, *tensor.TypeError, kernel.ErrOverlap, kernel.ErrRepeats.
func (o Optimizers) AdamWAll(at tensor.Context, states []AdamWState, step AdamWStep, config AdamWConfig) error {
	config, err := config.filled()
	if err = cmp.Or(err, step.check()); err != nil {
		return &Error{Op: opAdamW.String(), Operands: []string{"many tensors"}, Err: err}
	}
	c, err := tensor.ContextOf(at)
	if err != nil {
		return &Error{Op: opAdamW.String(), Operands: []string{"many tensors"}, Err: err}
	}
	f := o.set.frame()
	defer f.release()
	for i := range states {
		if states[i].skipped() {
			continue
		}
		if err := states[i].check(f); err != nil {
			return states[i].failed(err)
		}
	}
	if state, err := f.separate(states, step); err != nil {
		return states[state].failed(err)
	}
	for i := range states {
		if states[i].skipped() {
			continue
		}
		if first := firstOf(states, states[i].types()); first < i {
			continue
		}
		if err := o.manyOf(c, f, states[i:], step, config); err != nil {
			return err
		}
	}
	return nil
}

// check refuses numbers. Errors: ErrNumber, ErrShape, *tensor.TypeError.
func (a AdamWStep) check() error {
	if a.StepAt == nil && a.Step < 1 {
		return fmt.Errorf("the step is %d, want 1 or more: %w", a.Step, ErrNumber)
	}
	for _, t := range a.numbers() {
		of := tensor.Float32
		if t == a.SkipAt {
			of = tensor.Bool
		}
		switch {
		case t == nil:
		case t.Type() != of:
			return &tensor.TypeError{Op: "a number of the step of " + opAdamW.String(), Types: []tensor.Type{t.Type()}}
		case t.Len() != 1:
			return ErrShape
		}
	}
	return nil
}

// arguments are the numbers of a step, as the kernel has them.
func (a AdamWConfig) arguments(step AdamWStep) [11]float32 {
	n := routine.AdamWNumbers{
		Beta1: float32(a.Beta1), Rest1: float32(1 - a.Beta1), Beta2: float32(a.Beta2), Rest2: float32(1 - a.Beta2),
		Epsilon: float32(a.Epsilon), Decay: float32(a.Decay), Rate: float32(step.Rate),
		Correction1: float32(1 - math.Pow(a.Beta1, float64(step.Step))), Correction2: float32(1 - math.Pow(a.Beta2, float64(step.Step))),
		Log1: float32(math.Log(a.Beta1)), Log2: float32(math.Log(a.Beta2)),
	}
	return [...]float32{
		n.Beta1, n.Rest1, n.Beta2, n.Rest2, n.Epsilon, n.Decay, n.Rate, n.Correction1, n.Correction2, n.Log1, n.Log2,
	}
}

// skipped reports whether the parameter has no gradient, and is left as it is.
func (s *AdamWState) skipped() bool { return s.Grad == nil && s.Param.Type().Valid() }

// types returns the types of the tensors: 0 for a copy that there is not.
func (s *AdamWState) types() (all [5]tensor.Type) {
	for k, t := range s.tensors() {
		all[k] = t.Type()
	}
	return all
}

// firstOf returns the number of the first state with these types.
func firstOf(states []AdamWState, types [5]tensor.Type) int {
	for i := range states {
		if !states[i].skipped() && states[i].types() == types {
			return i
		}
	}
	return len(states)
}

// bind takes the tensors of a state in.
func (s *AdamWState) bind(f *routineFrame) error {
	f.wide = f.always
	for k, t := range s.tensors() {
		var err error
		switch {
		case t == nil:
			f.operands[k] = place{}
		case k == stateGrad:
			err = f.bind(k, t, cuda.In)
		case k == stateCopy:
			err = f.bindOut(k, t, cuda.Out)
		default:
			err = f.bindOut(k, t, cuda.InOut)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// check refuses a state.
func (s *AdamWState) check(f *routineFrame) error {
	for k, t := range s.tensors() {
		if k == stateCopy && t == nil {
			continue
		}
		if !t.Type().Valid() {
			return tensor.ErrNoTensor
		}
		if !sameShape(t, s.Param) {
			return ErrShape
		}
	}
	types := s.types()
	if !routine.AdamWTypes([4]tensor.Type(types[:])) || s.Copy != nil && !floats(s.Copy) {
		return &tensor.TypeError{Op: opAdamW.String(), Types: slices.DeleteFunc(slices.Clone(types[:]), func(of tensor.Type) bool { return of == 0 })}
	}
	return s.bind(f)
}

// separate returns an error where a tensor shares memory with another one that is written, and the number of the state of one of
// them. Errors: kernel.ErrOverlap.
func (f *routineFrame) separate(states []AdamWState, step AdamWStep) (state int, err error) {
	add := func(t *tensor.Tensor, state int, written bool) error {
		r, err := t.Range()
		if err == nil && r.Bytes > 0 {
			first := (&place{at: r}).address()
			f.spans = append(f.spans, span{first, first + uint64(r.Bytes), state, written})
		}
		return err
	}
	for i := range states {
		if states[i].skipped() {
			continue
		}
		for k, t := range states[i].tensors() {
			if t == nil {
				continue
			}
			if err := add(t, i, k != stateGrad); err != nil {
				return i, err
			}
		}
	}
	for _, t := range step.numbers() {
		if t != nil && len(states) > 0 {
			if err := add(t, 0, false); err != nil {
				return 0, err
			}
		}
	}
	slices.SortFunc(f.spans, func(a, b span) int { return cmp.Compare(a.first, b.first) })
	var written, all uint64 // the ends of those before
	for _, s := range f.spans {
		if s.first < written || s.written && s.first < all {
			return s.state, kernel.ErrOverlap
		}
		if all = max(all, s.end); s.written {
			written = max(written, s.end)
		}
	}
	return 0, nil
}

// dense reports whether the elements of all tensors lie without gaps, and in the same order.
func (s *AdamWState) dense() bool {
	one := s.Param.Layout()
	same, contiguous := true, true
	for _, t := range s.tensors() {
		if t == nil {
			continue
		}
		l := t.Layout()
		contiguous = contiguous && l.Contiguous()
		for d := range l.Rank() {
			same = same && l.Stride(d) == one.Stride(d)
		}
	}
	first, end := one.Bounds()
	return contiguous || same && end-first == one.Len() && !one.MayOverlap()
}

// manyOf makes a step of all states that have the types of the first one.
func (o Optimizers) manyOf(c *cuda.Context, f *routineFrame, states []AdamWState, step AdamWStep, config AdamWConfig) error {
	types := states[0].types()
	k := routine.Kernel{Kind: routine.AdamW, Of: [4]tensor.Type(types[:]), Copy: types[stateCopy]}
	m := many{at: c, set: o.set, frame: f, kernel: k, step: step, config: config}
	for i := range states {
		s := &states[i]
		if s.skipped() || s.types() != types || s.Param.Len() == 0 {
			continue
		}
		if err := s.bind(f); err != nil {
			return s.failed(err)
		}
		var err error
		if s.dense() {
			err = m.add(s.Param.Len())
		} else {
			err = m.apart(s)
		}
		if err != nil {
			return s.failed(err)
		}
	}
	if err := m.flush(); err != nil {
		return states[0].failed(err)
	}
	return nil
}

// many is a launch for many tensors, as it is put together.
type many struct {
	at     *cuda.Context
	set    *set
	frame  *routineFrame
	kernel routine.Kernel
	step   AdamWStep
	config AdamWConfig
	slots  int // that are taken
	blocks int
}

// tensors returns the number of tensors of a state in the launch.
func (m *many) tensors() int {
	if m.kernel.Copy.Valid() {
		return stateCopy + 1
	}
	return stateCopy
}

// begin appends the arguments that each launch has.
func (m *many) begin() error {
	for _, t := range m.step.numbers() {
		arg := cuda.Value(uint64(0))
		if t != nil {
			var err error
			if arg, err = t.In(); err != nil {
				return err
			}
		}
		m.frame.value(arg)
	}
	for _, n := range m.config.arguments(m.step) {
		m.frame.value(cuda.Value(n))
	}
	return nil
}

// add takes the tensors of the frame into the launch.
func (m *many) add(count int) error {
	if m.slots == 0 {
		if err := m.begin(); err != nil {
			return err
		}
	}
	for k := range m.tensors() {
		m.frame.value(m.frame.operands[k].arg)
	}
	m.frame.value(cuda.Value(int64(count)))
	m.frame.value(word(m.blocks))
	m.slots++
	m.blocks += (count + routine.AdamWBlockLen - 1) / routine.AdamWBlockLen
	if m.slots == routine.AdamWSlots {
		return m.flush()
	}
	return nil
}

// flush launches, unless there is nothing to do.
func (m *many) flush() error {
	if m.slots == 0 {
		return nil
	}
	const never = math.MaxUint32
	for ; m.slots < routine.AdamWSlots; m.slots++ {
		for range m.tensors() {
			m.frame.value(cuda.Value(uint64(0)))
		}
		m.frame.value(cuda.Value(int64(0)))
		m.frame.value(word(never))
	}
	blocks := m.blocks
	m.slots, m.blocks, m.frame.wide = 0, 0, false
	return m.frame.run(m.at, m.set, m.kernel, blocks)
}

// apart launches a step of a state whose tensors lie apart. The launch for many goes first, as it has the arguments.
func (m *many) apart(s *AdamWState) error {
	if m.slots > 0 {
		if err := m.flush(); err != nil {
			return err
		}
		if err := s.bind(m.frame); err != nil {
			return err
		}
	}
	if err := m.begin(); err != nil {
		return err
	}
	f, l := m.frame, s.Param.Layout()
	f.items = dims{}
	f.goes(l, func(d int) (strides [maxOperands]int) {
		for k, t := range s.tensors() {
			if t != nil {
				strides[k] = t.Layout().Stride(d)
			}
		}
		return strides
	})
	f.items.merge()
	f.size(l.Len())
	f.shape(&f.items)
	for k := range m.tensors() {
		f.operand(k, &f.items)
	}
	k := m.kernel
	k.Kind, k.Rank = routine.AdamWStrided, uint8(f.items.rank) //nolint:gosec // small
	return f.run(m.at, m.set, k, blocksOf(l.Len()))
}
