package kernel

import (
	"context"
	"errors"
	"sync"

	"github.com/go-vram/vram/compute/kernel/plan"
	"github.com/go-vram/vram/compute/kernel/tune"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/layout"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/futures"
)

// frame is the memory of a Run, kept for the next one: a warm Run allocates nothing.
type frame struct {
	geometry  *plan.Geometry // own, or one that the kernel keeps
	own       plan.Geometry
	ownReady  ready
	count     int
	untuned   bool    // this kind of work is to be measured
	kept      *fitted // has the geometry, or is nil
	tensors   [plan.MaxOperands]*tensor.Tensor
	layouts   [plan.MaxOperands]layout.Layout
	ranges    [plan.MaxOperands]cuda.Range
	addresses [plan.MaxOperands]uint64
	args      []cuda.Arg
}

var frames = sync.Pool{New: func() any { return new(frame) }} //nolint:gochecknoglobals // made on first use: memory that one launch uses at a time

func takeFrame() *frame { return frames.Get().(*frame) } //nolint:forcetypeassert // of this pool

// release clears references to memory and returns the frame to the pool.
func (f *frame) release() {
	clear(f.tensors[:f.count])
	clear(f.ranges[:f.count])
	clear(f.args)
	f.count, f.geometry, f.kept, f.untuned = 0, nil, nil, false
	f.ownReady.passes = nil
	frames.Put(f)
}

// Run submits the work: outputs of inputs, on the stream of a context. It does not wait for the device; where the variant is
// not compiled, it waits for the compilation. Errors, with which nothing was submitted: *CountError, *OperandError,
// *plan.ShapeError, ErrNotPrepared, ErrClosed, errors of cuda.LoadModule and cuda.Context.Launch.
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
		return r.launch(c, f.args)
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
	f.args = r.fill(f.args, &f.ranges)
	return r.launch(c, f.args)
}

// again returns a launch that an earlier Run made for tensors with these layouts and alignments, and sets the frame's
// arguments. It returns nil if there is none, or if the tensors overlap. Errors: an *OperandError of a tensor without memory.
func (f *frame) again(k *Kernel, outputs, inputs []*tensor.Tensor) (*ready, error) {
	p := k.program
	if p == nil { // of a zero Kernel
		return nil, ErrNotOpen
	}
	if len(inputs) != p.Inputs || len(inputs)+len(outputs) != len(p.Operands) {
		return nil, nil //nolint:nilnil // bind refuses it
	}
	for _, e := range *k.fitted.list.Load() {
		r := e.ready.Load()
		if r == nil || !e.has(p, outputs, inputs) {
			continue
		}
		f.args = append(f.args[:0], r.args...)
		for i := range r.operands {
			t := operandOf(outputs, inputs, i)
			b, err := t.Buffer()
			if err != nil {
				return nil, k.refused(i, err)
			}
			o := &r.operands[i]
			f.args[o.param].SetBuffer(b)
			f.addresses[i] = 0
			if o.bytes > 0 {
				f.addresses[i] = uint64(b.Ptr()) + uint64(o.offsetBytes) //nolint:gosec // within the buffer
			}
		}
		if e.aligned(&f.addresses) && !r.overlap(&f.addresses) {
			return r, nil
		}
	}
	return nil, nil //nolint:nilnil // Run binds the tensors
}

func operandOf(outputs, inputs []*tensor.Tensor, i int) *tensor.Tensor {
	if i < len(inputs) {
		return inputs[i]
	}
	return outputs[i-len(inputs)]
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
	return f.fit(k)
}

// operand reads the type, the layout and the memory of a tensor.
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

// overlaps reports whether an operand shares memory with an output, other than an input of the same elements.
func (f *frame) overlaps(p *plan.Program, out, other int) bool {
	a, b := f.addresses[out], f.addresses[other]
	if a >= b+uint64(f.ranges[other].Bytes) || b >= a+uint64(f.ranges[out].Bytes) { //nolint:gosec // not negative
		return false
	}
	same := other < p.Inputs && !p.Operands[out].Row && f.layouts[out] == f.layouts[other] && a == b &&
		f.tensors[out].Type() == f.tensors[other].Type()
	return !same
}

// fit computes the geometry of the operands, or takes a kept one. Errors: ErrRepeats in an *OperandError, errors of
// plan.Program.Fit.
func (f *frame) fit(k *Kernel) error {
	kept, searched := k.fitted.find(f.layouts[:f.count], &f.addresses)
	if kept != nil {
		f.kept, f.geometry = kept, &kept.geometry
		return nil
	}
	for i := k.program.Inputs; i < f.count; i++ {
		if f.layouts[i].MayOverlap() {
			return k.refused(i, ErrRepeats)
		}
	}
	f.kept, f.geometry = nil, &f.own
	if err := k.program.Fit(&f.own, f.layouts[:f.count], f.addresses[:f.count]); err != nil {
		return err
	}
	f.untuned = k.choices.choose(&f.own)
	if !f.untuned {
		k.fitted.keep(searched, f.layouts[:f.count], f.addresses[:f.count], &f.own)
	}
	return nil
}

// ready returns the launch of the geometry. It waits for the compilation of the variant.
func (f *frame) ready(k *Kernel) (*ready, error) {
	if f.kept != nil {
		if r := f.kept.ready.Load(); r != nil {
			return r, nil
		}
	}
	v := k.variant(f.geometry.Variant)
	if v == nil {
		m, err := k.by.allowed(k, k.program.Emit(f.geometry.Variant)).Await(context.Background())
		if err != nil {
			return nil, err
		}
		if v, err = k.add(f.geometry.Variant, m.module); err != nil {
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

// tuneFirst measures the kind of work of a Run, or begins to, unless another Run does or a stream is captured.
func (k *Kernel) tuneFirst(c *cuda.Context, f *frame) error {
	t := k.by.tuner
	w := k.work(f)
	choice := (*k.choices.all.Load())[classOf(&w.geometry)]
	if choice == nil || !choice.state.CompareAndSwap(open, measuring) {
		return nil
	}
	if cuda.Capturing(c) || cuda.Capturing(t.on()) {
		w.lost(true)
		k.by.counts.deferred.Add(1)
		return nil
	}
	if t.config.Mode == TuneAside {
		t.enqueue(context.Background(), w)
		return nil
	}
	switch err := t.now(c, w); {
	case errors.Is(err, cuda.ErrCapturing): // a capture that has begun since, or past package cuda
		k.by.counts.deferred.Add(1)
		return nil
	case err != nil:
		return err
	}
	return f.fit(k)
}

// work returns the kind of work of a frame that is bound.
func (k *Kernel) work(f *frame) *work {
	w := &work{program: k.program, name: k, count: f.count, layouts: f.layouts, compile: k.compile}
	for i, address := range f.addresses[:f.count] {
		w.lows[i] = address % vectorBytes
	}
	_ = k.program.Fit(&w.geometry, w.layouts[:w.count], w.lows[:w.count]) // it fitted when it was bound
	at := classOf(&w.geometry)
	w.key = k.choices.key(at)
	w.won = func(rows []tune.Row) {
		k.choices.settle(at, &w.geometry, rows)
		k.fitted.clear() // they have the earlier choice
	}
	w.lost = func(retry bool) { k.choices.giveUp(at, retry) }
	return w
}

// compile loads a variant, on a thread of the compiler.
func (k *Kernel) compile(of plan.Variant) futures.Future[*variant] {
	loaded, _ := k.by.module(k, k.program.Emit(of))
	return futures.Then(loaded, func(m *code) (*variant, error) { return k.add(of, m.module) })
}
