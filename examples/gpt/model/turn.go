package model

import (
	"context"
	"errors"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/examples/internal/schedule"
)

// input has the numbers of a step.
type input struct {
	tokens, targets []int64
	rate, count     float32
}

// ranges returns the memory of tensors without gaps.
func ranges(all ...*tensor.Tensor) ([]cuda.Range, error) {
	of := make([]cuda.Range, len(all))
	for i, x := range all {
		var err error
		if of[i], err = x.Range(); err != nil {
			return nil, err
		}
	}
	return of, nil
}

// step runs the turns of a step, and waits for the device at its end.
func (st *stage) step(ctx context.Context, in input) error {
	if err := errors.Join(st.begin(in), st.onward.expect(ctx, st.slots[0].out[:]...), st.back.expect(ctx, st.slots[0].dx)); err != nil {
		return err
	}
	for _, t := range schedule.OneF1B(st.number, st.of, st.share(), len(st.slots)-1) {
		if err := ctx.Err(); err != nil {
			return err
		}
		var err error
		s := st.slots[t.MicroBatch%len(st.slots)]
		switch t.Kind {
		case schedule.Forward:
			err = st.takeForward(ctx, s, t.MicroBatch)
		case schedule.Backward:
			err = st.takeBackward(ctx, s, t.MicroBatch)
		case schedule.Optimizer:
			err = st.optimize(ctx)
		}
		if err != nil {
			return err
		}
	}
	return st.work.drain()
}

// begin writes the numbers of a step.
func (st *stage) begin(in input) error {
	count := len(in.tokens) / st.copies
	first, end := st.copy*count, (st.copy+1)*count
	if st.isFirst() {
		if err := tensor.Write(st.tokens, in.tokens[first:end]); err != nil {
			return err
		}
	}
	if st.isLast() {
		if err := tensor.Write(st.targets, in.targets[first:end]); err != nil {
			return err
		}
	}
	if err := tensor.Fill(st.scope, st.rate, in.rate); err != nil {
		return err
	}
	return tensor.Fill(st.scope, st.count, in.count)
}

// copyAt copies a tensor to or from its part of the micro-batches of a step.
func (st *stage) copyAt(all *tensor.Tensor, microBatch int, of *tensor.Tensor, back bool) error {
	part, err := all.Index(0, microBatch)
	if err != nil {
		return err
	}
	if back {
		return tensor.Copy(st.scope, part, of)
	}
	return tensor.Copy(st.scope, of, part)
}

// takeForward makes a forward, and sends its result to the next stage.
func (st *stage) takeForward(ctx context.Context, s *slot, microBatch int) error {
	if st.isFirst() {
		if err := st.copyAt(st.tokens, microBatch, s.tokens, false); err != nil {
			return err
		}
	} else if err := st.activations.receive(ctx, s.in[:]...); err != nil {
		return err
	}
	if err := st.work.run(func() error { return s.forward.Launch(st.context()) }); err != nil || st.isLast() {
		return err
	}
	return st.onward.send(ctx, microBatch+1 < st.share(), s.out[:]...)
}

// takeBackward makes a backward, and sends its result to the stage before.
func (st *stage) takeBackward(ctx context.Context, s *slot, microBatch int) error {
	if st.isLast() {
		if err := st.copyAt(st.targets, microBatch, s.targets, false); err != nil {
			return err
		}
	} else if err := st.gradients.receive(ctx, s.dx); err != nil {
		return err
	}
	if err := st.work.run(func() error { return s.backward.Launch(st.context()) }); err != nil {
		return err
	}
	if st.isLast() {
		if err := st.copyAt(st.losses, microBatch, s.losses, true); err != nil {
			return err
		}
	}
	if st.isFirst() {
		return nil
	}
	return st.back.send(ctx, microBatch+1 < st.share(), s.dx)
}

// optimize makes the step of AdamW with the gradients of all micro-batches of all copies, which all stages clip together: the norms of
// units go from the last stage to the first one, and all of them back.
func (st *stage) optimize(ctx context.Context) error {
	launch := func(g *cuda.Graph) func(context.Context) error {
		return func(context.Context) error { return st.work.run(func() error { return g.Launch(st.context()) }) }
	}
	for _, do := range []func(context.Context) error{
		st.tie, st.reduce, launch(st.squares), st.gatherNorms, st.exchange, launch(st.change), st.gatherValues, st.shareTable,
	} {
		if err := do(ctx); err != nil {
			return err
		}
	}
	return nil
}

// shareTable sends the new token table from the first stage to the last.
func (st *stage) shareTable(ctx context.Context) error {
	switch {
	case st.table == nil:
		return nil
	case st.isFirst():
		return st.table.send(ctx, false, st.Model.table.Value)
	}
	return st.table.receive(ctx, st.head.table.Value)
}

// exchange sends and receives the norms of units.
func (st *stage) exchange(ctx context.Context) error {
	if st.training.Clip <= 0 {
		return nil
	}
	own, err := st.units.Narrow(0, st.first, st.units.Len()-st.first)
	if err != nil {
		return err
	}
	if !st.isLast() {
		later, err := st.units.Narrow(0, st.end, st.units.Len()-st.end)
		if err != nil {
			return err
		}
		if err := st.gradients.receive(ctx, later); err != nil {
			return err
		}
	}
	if !st.isFirst() {
		if err := st.back.send(ctx, false, own); err != nil {
			return err
		}
		if err := st.activations.receive(ctx, st.units); err != nil {
			return err
		}
	}
	if st.isLast() {
		return nil
	}
	return st.onward.send(ctx, false, st.units)
}

// tie adds the head's gradient, of the last stage, to the token table's, of the first one.
func (st *stage) tie(ctx context.Context) (err error) {
	switch {
	case st.isFirst() && st.isLast():
		table := st.Model.table.gradient
		return st.ops.AddInto(st.scope, table, table, st.head.table.gradient)
	case st.isLast():
		return st.tied.send(ctx, false, st.head.table.gradient)
	case !st.isFirst():
		return nil
	}
	table := st.Model.table.gradient
	b, err := st.stream().AllocFor(ctx, vram.Request{Bytes: table.Bytes(), Wait: true, Priority: 2 * st.of, Tag: "gradient of the head"})
	if err != nil {
		return err
	}
	x, err := tensor.Over(st.context(), b, tensor.Float32, table.Layout())
	if err == nil {
		err = st.tied.receive(ctx, x)
	}
	if err == nil {
		err = st.ops.AddInto(st.scope, table, table, x)
	}
	if freed := b.Free(); err == nil {
		err = freed
	}
	return err
}
