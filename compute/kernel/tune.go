package kernel

import (
	"context"

	"github.com/go-vram/vram/compute/kernel/plan"
	"github.com/go-vram/vram/compute/kernel/tune"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/futures"
)

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
	if err := f.bind(k, outputs, inputs); err != nil {
		return nil, err
	}
	if f.geometry.Empty() {
		return nil, nil
	}
	return k.by.tuner.begin(ctx, k.work(f)).await(ctx)
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
		choice.state.Store(open)
		k.by.counts.deferred.Add(1)
		return nil
	}
	if t.config.Mode == TuneAside {
		t.begin(context.Background(), w)
		return nil
	}
	if err := t.now(c, w); err != nil {
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
	w.settle = func(rows []tune.Row) {
		k.choices.settle(at, &w.geometry, rows)
		k.fitted.clear() // they have the earlier choice
	}
	w.giveUp = func(retry bool) { k.choices.giveUp(at, retry) }
	return w
}

// compile loads a variant, on a thread of the compiler.
func (k *Kernel) compile(of plan.Variant) futures.Future[*variant] {
	loaded, _ := k.by.module(k, k.program.Emit(of))
	return futures.Then(loaded, func(m *code) (*variant, error) { return k.add(of, m.module) })
}
