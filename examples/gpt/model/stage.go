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

// stage is a part of the model with a stream of its own. One goroutine at a time uses it.
type stage struct {
	*Model // the blocks of the stage; the tables are with the first one

	number, of int // of this stage, of stages
	place      int // of the device
	driver     cudadrv.Device
	training   Training
	head       *Model // of the last stage: its table is the head's, with a gradient of its own
	scope      *tensor.Scope
	slots      []*slot
	work       work

	tokens          *tensor.Tensor // of the first stage: of the micro-batches of a step
	targets, losses *tensor.Tensor // of the last stage
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
}

func (st *stage) context() *cuda.Context { return st.scope.Context() }

func (st *stage) stream() *vram.Stream { return st.context().Stream() }

func (st *stage) isFirst() bool { return st.number == 0 }

func (st *stage) isLast() bool { return st.number == st.of-1 }

// newStage makes a stage on a stream of its own. close frees it, and the stream.
func newStage(at Place, place int, config Config, t Training, seed uint64, number, of int) (_ *stage, err error) {
	c, err := at.Context.NewStream()
	if err != nil {
		return nil, err
	}
	c.Stream().Exclusive() // the stage's goroutine alone uses it
	first, end := config.Layers*number/of, config.Layers*(number+1)/of
	m, err := newPart(c, at.Ops, config, seed, first, end)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	st := &stage{Model: m, number: number, of: of, place: place, training: t, first: first + 1, end: end + 1, work: work{on: c}}
	if st.isFirst() {
		st.first = 0
	}
	if st.isLast() {
		st.end++
	}
	if st.scope, err = tensor.NewScope(c); err != nil {
		return nil, errors.Join(err, m.Close(), c.Close())
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
	var all []*tensor.Tensor // graphs have their addresses
	zeros := func(of tensor.Type, shape ...int) *tensor.Tensor {
		all = append(all, p.got(tensor.Zeros(st.scope, of, shape...)))
		return all[len(all)-1]
	}
	st.rate, st.count = zeros(tensor.Float32), zeros(tensor.Float32)
	st.units = zeros(tensor.Float32, st.config.Layers+2)
	st.norm, st.scale, st.endless = zeros(tensor.Float32), zeros(tensor.Float32), zeros(tensor.Bool)
	if st.isFirst() {
		st.tokens = zeros(tensor.Int64, t.Parts, t.Batch, t.Length)
	}
	if st.isLast() {
		st.targets, st.losses = zeros(tensor.Int64, t.Parts, t.Batch*t.Length), zeros(tensor.Float32, t.Parts, t.Batch*t.Length)
		st.loss = zeros(tensor.Float32)
		table := &Parameter{gradient: zeros(tensor.Float32, st.config.padded(), st.config.Width)}
		if st.isFirst() {
			table.Value = st.Model.table.Value
		} else {
			table.Value = zeros(st.config.Type, st.config.padded(), st.config.Width)
		}
		st.head = &Model{ops: st.ops, scope: st.Model.scope, config: st.config, table: table}
	}
	for _, a := range st.all {
		all = append(all, a.Param, a.Value, a.Grad, a.First, a.Second)
	}
	for _, x := range all {
		if p.err == nil {
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

// unit returns the gradients of a unit.
func (st *stage) unit(i int) (all []*tensor.Tensor) {
	add := func(parameters ...*Parameter) {
		for _, p := range parameters {
			all = append(all, p.Grad)
		}
	}
	switch i {
	case 0:
		add(st.Model.table, st.positions)
	case st.config.Layers + 1:
		add(st.final.weight, st.final.bias)
	default:
		b := st.blocks[i-max(st.first, 1)]
		for _, l := range []linear{b.attend, b.project, b.expand, b.contract} {
			add(l.weight, l.bias)
		}
		for _, n := range []norm{b.norm1, b.norm2} {
			add(n.weight, n.bias)
		}
	}
	return all
}

// measure computes the norms of the stage's units. A stage alone adds the head's gradient before: several do when it has arrived.
// The norm of all gradients is the norm of the units' norms, so that the order of additions does not depend on the number of stages.
func (st *stage) measure(p *pass) {
	if st.isFirst() && st.isLast() && p.err == nil {
		table := st.Model.table.gradient
		p.did(p.AddInto(p.scope, table, table, st.head.table.gradient))
	}
	for i := st.first; i < st.end && st.training.Clip > 0 && p.err == nil; i++ {
		if norm := p.got(st.units.Index(0, i)); p.err == nil {
			p.did(p.GradNormInto(p.scope, norm, nil, nil, st.unit(i), math.Inf(1)))
		}
	}
	if st.isLast() && p.err == nil {
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
		if a.Param.Rank() > 1 {
			decayed = append(decayed, a.AdamWState)
		} else {
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
