package kernel

import (
	"context"
	"fmt"

	"github.com/go-vram/vram/compute/kernel/plan"
	"github.com/go-vram/vram/compute/kernel/tune"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/layout"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/futures"
)

// Prepare compiles the variant for tensors with these types and layouts. It depends on the alignment of their memory, which is
// not touched. It does not wait. Errors are as of Run.
func (k *Kernel) Prepare(outputs []*tensor.Tensor, inputs ...*tensor.Tensor) futures.Future[*Kernel] {
	if k == nil || k.by == nil {
		return futures.Failed[*Kernel](ErrNotOpen)
	}
	f := takeFrame()
	defer f.release()
	if err := f.bind(k, outputs, inputs); err != nil {
		return futures.Failed[*Kernel](err)
	}
	return k.prepared(f.geometry)
}

// PrepareFor is Prepare for layouts without tensors: inputs, then outputs. It takes their lowest addresses to be aligned.
func (k *Kernel) PrepareFor(layouts ...layout.Layout) futures.Future[*Kernel] {
	f := takeFrame()
	defer f.release()
	if err := f.fitLayouts(k, layouts); err != nil {
		return futures.Failed[*Kernel](err)
	}
	return k.prepared(&f.own)
}

func (k *Kernel) prepared(g *plan.Geometry) futures.Future[*Kernel] {
	return futures.Then(k.load(k.by.module, g), func(Origin) (*Kernel, error) { return k, nil })
}

// load compiles the variant of a geometry with Compiler.module or moduleHere, and reports where its code came from.
func (k *Kernel) load(module func(fmt.Stringer, string) (futures.Future[*code], bool), g *plan.Geometry) futures.Future[Origin] {
	v := g.Variant
	if k.variant(v) != nil || g.Empty() {
		return futures.Done(Known)
	}
	loaded, known := module(k, k.program.Emit(v))
	return futures.Then(loaded, func(m *code) (Origin, error) {
		if _, err := k.add(v, m.module); err != nil {
			return Known, err
		}
		if known {
			return Known, nil
		}
		return m.origin, nil
	})
}

// Text returns the PTX that Run compiles for tensors with these layouts, inputs, then outputs. It takes their lowest addresses
// to be aligned.
func (k *Kernel) Text(layouts ...layout.Layout) (string, error) {
	f := takeFrame()
	defer f.release()
	if err := f.fitLayouts(k, layouts); err != nil {
		return "", err
	}
	return k.program.Emit(f.own.Variant), nil
}

// fitLayouts computes the geometry of layouts whose lowest addresses are aligned.
func (f *frame) fitLayouts(k *Kernel, layouts []layout.Layout) error {
	if k == nil || k.by == nil {
		return ErrNotOpen
	}
	if len(layouts) != len(k.program.Operands) {
		return k.miscounted(len(layouts)-k.program.Inputs, k.program.Inputs)
	}
	clear(f.addresses[:len(layouts)])
	if err := k.program.Fit(&f.own, layouts, f.addresses[:len(layouts)]); err != nil {
		return err
	}
	k.choices.choose(&f.own)
	return nil
}

// Tune measures the variants for tensors with these types and layouts, in any mode and also where rows are known, and waits:
// from then on Run takes the winner. It does not touch the memory of the tensors. It returns the measured rows. If ctx ends
// first, nothing changes. Errors: *DisqualifiedError, with the rows, and the others were measured; errors of Run for tensors
// that do not fit; cuda.ErrCapturing; ErrTuningMemory, ErrTuningTime, ErrClosed, cuda.ErrNilContext, ctx's,
// vram.ErrOutOfMemory.
func (k *Kernel) Tune(ctx context.Context, outputs []*tensor.Tensor, inputs ...*tensor.Tensor) ([]tune.Row, error) {
	switch {
	case k == nil || k.by == nil:
		return nil, ErrNotOpen
	case ctx == nil:
		return nil, cuda.ErrNilContext
	}
	f := takeFrame()
	defer f.release()
	if err := f.bind(k, outputs, inputs); err != nil { //nolint:contextcheck // memory of tensors is not this caller's alone
		return nil, err
	}
	if f.geometry.Empty() {
		return nil, nil
	}
	return k.by.tuner.enqueue(ctx, k.work(f)).await(ctx)
}
