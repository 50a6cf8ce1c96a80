package model

import (
	"errors"

	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cuda"
)

// slot has the activations of one micro-batch in a stage, from its forward to its backward. Both are graphs, which share a pool:
// the activations are memory of their hold. A stage has as many slots as micro-batches can be between the two.
type slot struct {
	tokens          *tensor.Tensor    // of the first stage
	in              [2]*tensor.Tensor // of others: from the stage before, a sum and its part
	out             [2]*tensor.Tensor // for the next stage
	dx              *tensor.Tensor    // the gradient of the stage's result, and then of its operand
	targets, losses *tensor.Tensor    // of the last stage
	all             []*tensor.Tensor

	blocks      []activations
	end, normed *tensor.Tensor

	inputs, scope     *tensor.Scope // of the tensors above; of activations
	pool              *cuda.Pool
	forward, backward *cuda.Graph
}

// newSlot makes the tensors of a slot.
func newSlot(st *stage, at *tensor.Scope) (*slot, error) {
	t, p := st.training, &pass{scope: at}
	s := &slot{}
	at.SetTag("boundary" + ofActivations)
	defer at.SetTag("")
	rows := t.Batch * t.Length
	zeros := func(of tensor.Type, shape ...int) *tensor.Tensor {
		x := p.got(tensor.Zeros(at, of, shape...))
		s.all = append(s.all, x)
		return x
	}
	if st.isFirst() {
		s.tokens = zeros(tensor.Int64, t.Batch, t.Length)
	} else {
		s.in = [2]*tensor.Tensor{zeros(st.config.Type, rows, st.config.Width), zeros(st.config.Type, rows, st.config.Width)}
	}
	if st.isLast() {
		s.targets, s.losses = zeros(tensor.Int64, rows), zeros(tensor.Float32, rows)
	} else {
		s.out = [2]*tensor.Tensor{zeros(st.config.Type, rows, st.config.Width), zeros(st.config.Type, rows, st.config.Width)}
	}
	if st.of > 1 {
		s.dx = zeros(st.config.Type, rows, st.config.Width)
	}
	return s, p.err
}

// capture adds a slot to the stage, with its graphs. After an error there is none.
func (st *stage) capture() (err error) {
	inputs, err := tensor.NewScope(st.scope)
	if err != nil {
		return err
	}
	s, err := newSlot(st, inputs)
	s.inputs = inputs
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
			return
		}
		st.slots = append(st.slots, s)
	}()
	for _, x := range s.all {
		if err == nil {
			err = x.Allocate()
		}
	}
	if err != nil {
		return err
	}
	c := st.context()
	if s.scope, err = tensor.NewScope(st.scope); err != nil {
		return err
	}
	if s.pool, err = c.NewPool(); err != nil {
		return err
	}
	p := &pass{Ops: st.ops, scope: s.scope, adds: true}
	if s.forward, err = c.Capture(func() error {
		st.forward(p, s)
		return p.err
	}, cuda.Shared(s.pool)); err != nil {
		return err
	}
	s.backward, err = c.Capture(func() error {
		st.backward(p, s)
		return errors.Join(p.err, s.scope.Close())
	}, cuda.Shared(s.pool))
	return err
}

// close frees the slot, whose work has finished.
func (s *slot) close() (err error) {
	if s.scope != nil {
		err = s.scope.Close()
	}
	for _, g := range []*cuda.Graph{s.backward, s.forward} {
		if g != nil {
			err = errors.Join(err, g.Close())
		}
	}
	if s.pool != nil {
		err = errors.Join(err, s.pool.Close())
	}
	return errors.Join(err, s.inputs.Close())
}

// copied copies a tensor into another one.
func (p *pass) copied(to, x *tensor.Tensor) {
	if p.err == nil {
		p.did(p.CopyInto(p.scope, to, x))
	}
}

// forward computes the blocks of the stage, and in the last stage the last norm.
func (st *stage) forward(p *pass, s *slot) {
	mask := st.maskOf(p, st.training.Length)
	x := stream{sum: s.in[0], part: s.in[1], lent: true}
	if st.isFirst() {
		x = stream{sum: p.embed(s.tokens, st.Model.table, st.positions)}
	}
	s.blocks = s.blocks[:0]
	for _, b := range st.blocks {
		if p.err != nil {
			return
		}
		var a activations
		x, a = b.forward(p, x, mask, st.training.Batch, st.config.Heads)
		s.blocks = append(s.blocks, a)
	}
	if st.isLast() {
		p.in("ln_f" + ofActivations)
		s.end, s.normed = p.settle(x, st.final)
		return
	}
	p.copied(s.out[0], x.sum)
	p.copied(s.out[1], x.part)
	p.free(x.part)
}

// backward adds to the gradients of the stage's parameters, and frees the activations. In the last stage it begins with the loss.
func (st *stage) backward(p *pass, s *slot) {
	dx := s.dx
	if st.isLast() {
		logits := st.head.head(p, s.normed)
		view := st.head.vocabulary(p, logits)
		if p.err != nil {
			return
		}
		rows := st.training.Parts * st.training.Batch * st.training.Length
		p.did(p.CrossEntropyGradientInto(p.scope, nil, s.losses, view, s.targets, ops.LossGradient{Scale: 1 / float64(rows)}))
		dnormed := st.head.headBackward(p, logits, s.normed)
		dx = p.normalizeBackward(dnormed, nil, s.end, st.final)
		p.free(dnormed, s.end)
	}
	for i := len(st.blocks) - 1; i >= 0 && p.err == nil; i-- {
		dx = st.blocks[i].backward(p, dx, s.blocks[i])
	}
	if st.isFirst() {
		p.embedBackward(dx, s.tokens, st.Model.table, st.positions)
	}
	if !st.isLast() || p.err != nil { // dx is the slot's, which the blocks write over
		return
	}
	if !st.isFirst() {
		p.copied(s.dx, dx)
	}
	p.free(dx)
}
