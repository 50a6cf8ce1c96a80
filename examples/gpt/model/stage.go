package model

import (
	"errors"
	"math"
	"slices"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
)

// position is the place of a stage in a pipeline.
type position struct {
	number, of   int // of this stage, of the stages of a copy
	copy, copies int // of this copy, of copies
}

// stage is a part of the model with a stream of its own. One goroutine at a time uses it.
type stage struct {
	*Model // the blocks of the stage; the tables are with the first one
	position

	place    int // of the device
	driver   cudadrv.Device
	training Training
	head     *Model // of the last stage: its table is the head's, with a gradient of its own
	scope    *tensor.Scope
	slots    []*slot
	work     work

	tokens          *tensor.Tensor // of the first stage: of the copy's micro-batches of a step
	targets, losses *tensor.Tensor // of the last stage; losses of the first copy: of all micro-batches
	loss            *tensor.Tensor
	rate, count     *tensor.Tensor // of the step
	units           *tensor.Tensor // norms of the gradients of the embedding, of each block, and of the last norm
	norm, scale     *tensor.Tensor // as a Trainer has them
	endless         *tensor.Tensor
	first, end      int // the units of this stage

	squares, change *cuda.Graph // the norms of the units; the step of AdamW

	activations, gradients *link // to this stage: from the one before it, and from the one after it
	onward, back           *link // from this stage
	tied                   *link // the head's gradient, from the last stage to the first
	table                  *link // the token table, from the first stage to the last

	peers []*stage               // the stages of this number in all copies
	marks []*vram.Handover[mark] // to each peer
	sums  ahead                  // memory for the gradients of other copies
}

func (st *stage) context() *cuda.Context { return st.scope.Context() }

func (st *stage) stream() *vram.Stream { return st.context().Stream() }

func (st *stage) isFirst() bool { return st.number == 0 }

func (st *stage) isLast() bool { return st.number == st.of-1 }

// share returns the number of micro-batches of a step that the copy computes.
func (st *stage) share() int { return st.training.Parts / st.copies }

// owned returns the units of the stage whose state of training a copy has.
func (st *stage) owned(copyNumber int) (first, end int) {
	count := st.end - st.first
	return st.first + count*copyNumber/st.copies, st.first + count*(copyNumber+1)/st.copies
}

// newStage makes a stage on a stream of its own. close frees it, and the stream.
func newStage(at Place, place int, config Config, t Training, seed uint64, where position) (_ *stage, err error) {
	c, err := at.Context.NewStream()
	if err != nil {
		return nil, err
	}
	c.Stream().Exclusive() // the stage's goroutine alone uses it
	first, end := config.blocksOf(t.Length, where.number, where.of)
	st := &stage{position: where, place: place, training: t, first: first + 1, end: end + 1, work: work{on: c}}
	if st.isFirst() {
		st.first = 0
	}
	if st.isLast() {
		st.end++
	}
	ownFirst, ownEnd := st.owned(st.copy)
	st.Model, err = newPart(c, at.Ops, config, seed, first, end, func(unit int) bool { return unit >= ownFirst && unit < ownEnd })
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	if st.scope, err = tensor.NewScope(c); err != nil {
		return nil, errors.Join(err, st.Model.Close(), c.Close())
	}
	if err = st.allocate(); err == nil {
		err = c.Submit(func(d cudadrv.Device, _ cudadrv.Stream) error { st.driver = d; return nil })
	}
	if err != nil {
		return nil, errors.Join(err, st.close())
	}
	return st, nil
}

// allocate makes the tensors that outlive a step.
func (st *stage) allocate() error {
	t, p := st.training, &pass{scope: st.scope}
	p.in("step")
	defer p.in("")
	var all []*tensor.Tensor // graphs have their addresses
	zeros := func(of tensor.Type, shape ...int) *tensor.Tensor {
		all = append(all, p.got(tensor.Zeros(st.scope, of, shape...)))
		return all[len(all)-1]
	}
	st.rate, st.count = zeros(tensor.Float32), zeros(tensor.Float32)
	st.units = zeros(tensor.Float32, st.config.Layers+2)
	st.norm, st.scale, st.endless = zeros(tensor.Float32), zeros(tensor.Float32), zeros(tensor.Bool)
	if st.isFirst() {
		st.tokens = zeros(tensor.Int64, st.share(), t.Batch, t.Length)
	}
	if st.isLast() {
		losses := st.share()
		if st.copy == 0 {
			losses = t.Parts
		}
		st.targets, st.losses = zeros(tensor.Int64, st.share(), t.Batch*t.Length), zeros(tensor.Float32, losses, t.Batch*t.Length)
		st.loss = zeros(tensor.Float32)
		p.in("head" + ofGradients)
		table := &Parameter{gradient: zeros(tensor.Float32, st.config.padded(), st.config.Width)}
		if st.isFirst() {
			table.Value = st.Model.table.Value
		} else {
			p.in("head" + ofWeights)
			table.Value = zeros(st.config.Type, st.config.padded(), st.config.Width)
		}
		st.head = &Model{ops: st.ops, scope: st.Model.scope, config: st.config, table: table}
	}
	for _, a := range st.all {
		all = append(all, a.Param, a.Value, a.Grad, a.First, a.Second)
	}
	for _, x := range all {
		if p.err == nil && x != nil {
			p.did(x.Allocate())
		}
	}
	return p.err
}

// close frees the stage and its stream, whose work has finished.
func (st *stage) close() (err error) {
	err = st.work.close()
	for _, s := range slices.Backward(st.slots) {
		err = errors.Join(err, s.close())
	}
	for _, g := range []*cuda.Graph{st.squares, st.change} {
		if g != nil {
			err = errors.Join(err, g.Close())
		}
	}
	c := st.context()
	return errors.Join(err, st.scope.Close(), st.Model.Close(), c.Close())
}

// prepare runs all work of the stage once, on zeros, so that its kernels are compiled: nothing is changed. Then it captures the
// work after the last backward.
func (st *stage) prepare() error {
	err := tensor.Scoped(st.scope, func(scope *tensor.Scope) error {
		s, err := newSlot(st, scope)
		if err != nil {
			return err
		}
		p := &pass{Ops: st.ops, scope: scope, adds: true}
		st.forward(p, s)
		st.backward(p, s)
		st.measure(p)
		if p.err == nil {
			p.did(p.FillInto(scope, st.endless, 1)) // AdamW changes nothing
		}
		st.update(p)
		st.clear(p)
		return p.err
	})
	if err != nil {
		return err
	}
	capture := func(f func(p *pass)) (*cuda.Graph, error) {
		return st.context().Capture(func() error {
			return tensor.Scoped(st.scope, func(scope *tensor.Scope) error {
				p := &pass{Ops: st.ops, scope: scope}
				f(p)
				return p.err
			})
		})
	}
	if st.squares, err = capture(st.measure); err != nil {
		return err
	}
	st.change, err = capture(func(p *pass) {
		if st.training.Clip > 0 && p.err == nil {
			p.did(p.GradNormInto(p.scope, st.norm, st.scale, st.endless, []*tensor.Tensor{st.units}, st.training.Clip))
		}
		st.update(p)
		st.clear(p)
	})
	return err
}

// unit returns the parameters of a unit.
func (st *stage) unit(i int) []*Parameter {
	switch i {
	case 0:
		return []*Parameter{st.Model.table, st.positions}
	case st.config.Layers + 1:
		return []*Parameter{st.final.weight, st.final.bias}
	}
	var all []*Parameter
	b := st.blocks[i-max(st.first, 1)]
	for _, l := range []linear{b.attend, b.project, b.expand, b.contract} {
		all = append(all, l.weight, l.bias)
	}
	for _, n := range []norm{b.norm1, b.norm2} {
		all = append(all, n.weight, n.bias)
	}
	return all
}

// gradients returns the gradients of a unit.
func (st *stage) gradientsOf(unit int) (all []*tensor.Tensor) {
	for _, p := range st.unit(unit) {
		all = append(all, p.Grad)
	}
	return all
}

// measure computes the norms of the units whose state the copy has, and the first copy the loss. The norm of all gradients is the norm
// of the units' norms, so that the order of additions does not depend on the number of stages.
func (st *stage) measure(p *pass) {
	p.in("optimizer")
	first, end := st.owned(st.copy)
	for i := first; i < end && st.training.Clip > 0 && p.err == nil; i++ {
		if norm := p.got(st.units.Index(0, i)); p.err == nil {
			p.did(p.GradNormInto(p.scope, norm, nil, nil, st.gradientsOf(i), math.Inf(1)))
		}
	}
	if st.isLast() && st.copy == 0 && p.err == nil {
		p.did(p.MeanInto(p.scope, st.loss, st.losses))
	}
}

// update makes a step of AdamW.
func (st *stage) update(p *pass) {
	step, config := ops.AdamWStep{RateAt: st.rate, StepAt: st.count}, ops.AdamWConfig{Beta1: Beta1, Beta2: Beta2, Epsilon: Epsilon}
	step.SkipAt = st.endless
	if st.training.Clip > 0 {
		step.ScaleAt = st.scale
	}
	var decayed, others []ops.AdamWState
	for _, a := range st.all {
		switch {
		case a.Param == nil: // another copy has the state
		case a.Param.Rank() > 1:
			decayed = append(decayed, a.AdamWState)
		default:
			others = append(others, a.AdamWState)
		}
	}
	if p.err == nil {
		p.did(p.AdamWAll(p.scope, others, step, config))
	}
	config.Decay = st.training.Decay
	if p.err == nil {
		p.did(p.AdamWAll(p.scope, decayed, step, config))
	}
}

// clear sets the gradients to zero: backwards add to them.
func (st *stage) clear(p *pass) {
	all := []*tensor.Tensor{st.endless}
	for _, a := range st.all {
		all = append(all, a.Grad)
	}
	if st.isLast() {
		all = append(all, st.head.table.gradient)
	}
	for _, x := range all {
		if p.err == nil {
			p.did(p.FillInto(p.scope, x, 0))
		}
	}
}
