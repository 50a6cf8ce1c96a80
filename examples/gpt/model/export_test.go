package model

import (
	"context"
	"errors"

	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cuda"
)

// LaunchStep submits the graph of a step of so many sequences, as the last Step has left them, and does not wait.
func (d *Decoder) LaunchStep(sequences int) error {
	for i, n := range d.classes() {
		if n >= sequences {
			return d.graphs[i].Launch(d.steps.c)
		}
	}
	return cuda.ErrNoKernel
}

// SubmitStep submits the launches of a step, without its graph.
func (d *Decoder) SubmitStep(sequences int) error { return d.step(sequences) }

// Steps returns the context of the steps.
func (d *Decoder) Steps() *cuda.Context { return d.steps.c }

// BlocksOf is Config.blocksOf, and Cost Config.cost.
func (c Config) BlocksOf(length, number, of int) (first, end int) {
	return c.blocksOf(length, number, of)
}

func (c Config) Cost(length, blocks int, head bool) float64 { return c.cost(length, blocks, head) }

// LinkCount returns the number of links.
func (p *Pipeline) LinkCount() int { return len(p.links) }

// Carry sends a parcel on a link and receives it, with functions called before and after that. It returns the error of the latter once
// the receiver's work has finished.
func (p *Pipeline) Carry(ctx context.Context, number int, before, after func()) (err error) {
	l := p.links[number]
	var ends [2]*tensor.Tensor
	for i, st := range []*stage{l.from, l.to} {
		if ends[i], err = tensor.Zeros(st.scope, tensor.Float32, 8); err == nil {
			err = ends[i].Allocate()
		}
		if err != nil {
			return err
		}
	}
	if err := l.send(ctx, false, ends[0]); err != nil {
		return err
	}
	before()
	received := l.receive(ctx, ends[1])
	after()
	return errors.Join(received, l.to.work.drain(), l.from.context().Synchronize(ctx), ends[0].Free(), ends[1].Free())
}
