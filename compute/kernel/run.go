package kernel

import (
	"context"
	"sync"

	"github.com/go-vram/vram/compute/kernel/plan"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/layout"
	"github.com/go-vram/vram/cuda"
)

// frame is the memory of a Run, which allocates nothing so.
type frame struct {
	geometry  *plan.Geometry // own, or one that the kernel keeps
	own       plan.Geometry
	ownReady  ready
	count     int
	untuned   bool    // its kind of work is to be measured
	kept      *fitted // has the geometry, or is nil
	tensors   [plan.MaxOperands]*tensor.Tensor
	layouts   [plan.MaxOperands]layout.Layout
	ranges    [plan.MaxOperands]cuda.Range
	addresses [plan.MaxOperands]uint64
	args      []cuda.Arg
}

var frames = sync.Pool{New: func() any { return new(frame) }} //nolint:gochecknoglobals // made on first use: memory that one launch uses at a time

func takeFrame() *frame { return frames.Get().(*frame) } //nolint:forcetypeassert // of this pool

// release clears references to memory, and gives the frame to the next launch.
func (f *frame) release() {
	clear(f.tensors[:f.count])
	clear(f.ranges[:f.count])
	clear(f.args)
	f.count, f.geometry, f.kept, f.untuned = 0, nil, nil, false
	f.ownReady.passes = nil
	frames.Put(f)
}

// Run submits the work: outputs of inputs, on the stream of a context. It does not wait for the device; where the variant is not compiled, it
// waits for the compilation. Errors, with which nothing was submitted: *CountError, *OperandError, *plan.ShapeError, ErrNotPrepared,
// ErrClosed, those of cuda.LoadModule and cuda.Context.Launch.
func (k *Kernel) Run(at tensor.Context, outputs []*tensor.Tensor, inputs ...*tensor.Tensor) error {
	if k == nil {
		return ErrNotOpen
	}
	c, err := tensor.ContextOf(at)
	if err != nil {
		return err
	}
	f := takeFrame()
	defer f.release()
	switch r, err := f.again(k, outputs, inputs); {
	case err != nil:
		return err
	case r != nil:
		return f.launch(c, r)
	}
	if err := f.bind(k, outputs, inputs); err != nil {
		return err
	}
	if f.geometry.Empty() {
		return nil
	}
	if f.untuned {
		if err := k.tuneFirst(c, f); err != nil {
			return err
		}
	}
	r, err := f.ready(k)
	if err != nil {
		return err
	}
	f.take(r)
	return f.launch(c, r)
}

// ready is the launch of the geometry. Where its variant is not compiled, this waits for it.
func (f *frame) ready(k *Kernel) (*ready, error) {
	if f.kept != nil {
		if r := f.kept.ready.Load(); r != nil {
			return r, nil
		}
	}
	v := (*k.variants.Load())[f.geometry.Variant]
	if v == nil {
		var err error
		if v, err = k.compiled(f.geometry.Variant); err != nil {
			return nil, err
		}
	}
	r := &f.ownReady
	if f.kept != nil {
		r = new(ready)
	}
	r.set(k.program, v, f.geometry, f.layouts[:f.count])
	if f.kept != nil {
		f.kept.ready.Store(r)
	}
	return r, nil
}

// compiled waits for a variant.
func (k *Kernel) compiled(of plan.Variant) (*variant, error) {
	m, err := k.by.allowed(k, k.program.Emit(of)).Await(context.Background())
	if err != nil {
		return nil, err
	}
	return k.add(of, m.module)
}

// bind checks the tensors and computes the geometry.
func (f *frame) bind(k *Kernel, outputs, inputs []*tensor.Tensor) error {
	p := k.program
	if len(inputs) != p.Inputs || len(inputs)+len(outputs) != len(p.Operands) {
		return k.miscounted(len(outputs), len(inputs))
	}
	f.count = copy(f.tensors[:], inputs)
	f.count += copy(f.tensors[f.count:], outputs)
	for i := range f.count {
		if err := f.operand(p, i); err != nil {
			return k.refused(i, err)
		}
	}
	for i := p.Inputs; i < f.count; i++ {
		for j := range f.count {
			if (j < p.Inputs || j > i) && f.overlaps(p, i, j) {
				return k.refused(j, ErrOverlap)
			}
		}
	}
	return k.fit(f)
}

func (k *Kernel) refused(i int, err error) error {
	e := &OperandError{Kernel: k.brief(), Index: i, Err: err}
	if i >= k.program.Inputs {
		e.Output, e.Index = true, i-k.program.Inputs
	}
	return e
}

// operand takes one tensor in.
func (f *frame) operand(p *plan.Program, i int) error {
	t := f.tensors[i]
	if want := p.Operands[i].Type; t.Type() != want && t.Type().Valid() {
		return &tensor.TypeError{Op: "run a kernel on", Types: []tensor.Type{t.Type(), want}}
	}
	f.layouts[i] = t.Layout()
	r, err := t.Range()
	if err != nil {
		return err
	}
	f.ranges[i], f.addresses[i] = r, 0
	if r.Bytes > 0 {
		f.addresses[i] = uint64(r.Buffer.Ptr()) + uint64(r.Offset) //nolint:gosec // within the buffer
	}
	return nil
}

// overlaps reports whether an operand shares memory with an output, and is not an input of the same elements.
func (f *frame) overlaps(p *plan.Program, out, other int) bool {
	a, b := f.addresses[out], f.addresses[other]
	if a >= b+uint64(f.ranges[other].Bytes) || b >= a+uint64(f.ranges[out].Bytes) { //nolint:gosec // not negative
		return false
	}
	same := other < p.Inputs && !p.Operands[out].Row && f.layouts[out] == f.layouts[other] && a == b &&
		f.tensors[out].Type() == f.tensors[other].Type()
	return !same
}
