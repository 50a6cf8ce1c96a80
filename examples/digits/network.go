package main

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cuda"
)

// network is a multilayer perceptron for batches of one size, with all tensors of a training step. A scope owns its memory.
type network struct {
	ops.Ops

	layers         []layer
	images         *tensor.Tensor // of a batch: the input of the first layer
	targets        *tensor.Tensor // the class of each image
	found          *tensor.Tensor // the class that the network finds
	losses, loss   *tensor.Tensor // of each image, and their mean
	total          *tensor.Tensor // of the losses of an epoch
	share          *tensor.Tensor // of each image in the loss: 1/batch
	rate           *tensor.Tensor // of learning
	count, one     *tensor.Tensor // of steps, and their increment
	graph          *cuda.Graph    // a captured step; nil without
	parameterCount int
}

// layer multiplies a batch with a weight and adds a bias; all layers but the last one end with relu. dOut is the gradient of
// out.
type layer struct {
	weight, bias     ops.AdamWState // parameters, their gradients and moments
	in, out          *tensor.Tensor
	dIn, dOut        *tensor.Tensor // dIn is nil for the first layer
	turnedIn, turned *tensor.Tensor // views of in and of the weight with rows and columns exchanged
}

// forward computes the output of each layer.
func (n *network) forward(at tensor.Context) (err error) {
	for i, l := range n.layers {
		err = errors.Join(err,
			n.multiply(at, l.out, l.in, l.weight.Param),
			n.AddInto(at, l.out, l.out, l.bias.Param)) // the same bias for each image
		if i < len(n.layers)-1 {
			err = errors.Join(err, n.ReluInto(at, l.out, l.out))
		}
	}
	return err
}

// backward computes the loss, and the gradients of all parameters from the last layer to the first one.
func (n *network) backward(at tensor.Context) error {
	last := n.last()
	err := errors.Join(
		n.CrossEntropyInto(at, n.losses, last.out, n.targets),
		n.MeanInto(at, n.loss, n.losses),
		n.AddInto(at, n.total, n.total, n.loss),
		n.CrossEntropyBackwardInto(at, last.dOut, n.share, last.out, n.targets))
	for _, l := range slices.Backward(n.layers) {
		err = errors.Join(err,
			n.multiply(at, l.weight.Grad, l.turnedIn, l.dOut),
			n.SumInto(at, l.bias.Grad, l.dOut, 0))
		if l.dIn != nil {
			err = errors.Join(err,
				n.multiply(at, l.dIn, l.dOut, l.turned),
				n.ReluBackwardInto(at, l.dIn, l.dIn, l.in))
		}
	}
	return err
}

// step trains with the batch that is in images and targets.
func (n *network) step(at tensor.Context) error {
	err := errors.Join(n.forward(at), n.backward(at), n.AddInto(at, n.count, n.count, n.one))
	for _, l := range n.layers {
		err = errors.Join(err, n.update(at, l.weight), n.update(at, l.bias))
	}
	return err
}

// update changes a parameter by its gradient.
func (n *network) update(at tensor.Context, s ops.AdamWState) error {
	return n.AdamW(at, s, n.rate, n.count, ops.AdamWConfig{Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, Decay: 0.01})
}

func (n *network) multiply(at tensor.Context, out, x, y *tensor.Tensor) error {
	_, err := n.MatmulInto(at, out, x, y, ops.Product{})
	return err
}

func (n *network) last() layer { return n.layers[len(n.layers)-1] }

// next runs a step. The first one is submitted operation by operation, which compiles the kernels; with graphs it is then
// captured, and all later steps launch that graph.
func (n *network) next(c *cuda.Context, graphs bool) (err error) {
	if n.graph != nil {
		return n.graph.Launch(c)
	}
	if err = n.step(c); err == nil && graphs {
		n.graph, err = c.Capture(func() error { return n.step(c) })
	}
	return err
}

// close waits for the graph and destroys it.
func (n *network) close() error {
	if n.graph == nil {
		return nil
	}
	return n.graph.Close()
}

// newNetwork makes layers between these widths, with random weights.
func newNetwork(s *tensor.Scope, o ops.Ops, widths []int, batch int, rate float64, random *rand.Rand) (*network, error) {
	m := maker{s: s}
	n := &network{
		Ops: o, images: m.zeros(batch, widths[0]), losses: m.zeros(batch), loss: m.zeros(), total: m.zeros(), count: m.zeros(),
		targets: m.made(tensor.Zeros(s, tensor.Int64, batch)), found: m.made(tensor.Zeros(s, tensor.Int64, batch)),
		share: m.full(1/float32(batch), batch), rate: m.full(float32(rate)), one: m.full(1),
	}
	in, dIn := n.images, (*tensor.Tensor)(nil) // images need no gradient
	for i, width := range widths[1:] {
		weights := make([]float32, widths[i]*width)
		for w := range weights {
			weights[w] = float32(random.NormFloat64() * math.Sqrt(2/float64(widths[i])))
		}
		l := layer{
			in: in, dIn: dIn, out: m.zeros(batch, width), dOut: m.zeros(batch, width), bias: m.parameter(m.zeros(width)),
			weight: m.parameter(m.made(tensor.From(s, weights, widths[i], width))), turnedIn: m.made(in.Transpose(0, 1)),
		}
		l.turned = m.made(l.weight.Param.Transpose(0, 1))
		in, dIn = l.out, l.dOut
		n.layers = append(n.layers, l)
		n.parameterCount += (widths[i] + 1) * width
	}
	return n, m.err
}

// batch has images on the device, and their digits there and on the host.
type batch struct {
	images, targets *tensor.Tensor
	digits          []int64
}

// load draws images and copies them to the device. Each batch is a view.
func (m *maker) load(random *rand.Rand, count, size int) []batch {
	pictures, digits := draw(random, count/size*size)
	images := m.made(tensor.From(m.s, pictures, count/size, size, pixels))
	targets := m.made(tensor.From(m.s, digits, count/size, size))
	all := make([]batch, count/size)
	for i := range all {
		all[i] = batch{m.made(images.Index(0, i)), m.made(targets.Index(0, i)), digits[i*size:][:size]}
	}
	return all
}

// submit submits a step for each batch. It does not wait.
func (n *network) submit(ctx context.Context, c *cuda.Context, all []batch, graphs bool) error {
	err := n.FillInto(c, n.total, 0)
	for _, b := range all {
		err = errors.Join(err, ctx.Err(), tensor.Copy(c, n.images, b.images), tensor.Copy(c, n.targets, b.targets))
		if err == nil {
			err = n.next(c, graphs)
		}
		if err != nil {
			return err
		}
	}
	return err
}

// test counts the readings of digits.
func (n *network) test(at tensor.Context, all []batch) (counts confusion, accuracy float64, err error) {
	right := 0.0
	for _, b := range all {
		err := errors.Join(tensor.Copy(at, n.images, b.images), n.forward(at), n.ArgMaxInto(at, n.found, n.last().out, -1))
		if err != nil {
			return counts, 0, err
		}
		found, err := tensor.Read[int64](n.found)
		if err != nil {
			return counts, 0, err
		}
		for i, digit := range b.digits {
			counts[digit][found[i]]++
			if found[i] == digit {
				right++
			}
		}
	}
	return counts, right / float64(len(all)*n.images.Dim(0)), nil
}

// maker makes tensors in a scope, and keeps the errors.
type maker struct {
	s   *tensor.Scope
	err error
}

func (m *maker) made(t *tensor.Tensor, err error) *tensor.Tensor {
	m.err = errors.Join(m.err, err)
	return t
}

func (m *maker) zeros(shape ...int) *tensor.Tensor {
	return m.made(tensor.Zeros(m.s, tensor.Float32, shape...))
}

func (m *maker) full(value float32, shape ...int) *tensor.Tensor {
	return m.made(tensor.Full(m.s, value, shape...))
}

// parameter has a gradient and moments of the same shape.
func (m *maker) parameter(p *tensor.Tensor) ops.AdamWState {
	return ops.AdamWState{Param: p, Grad: m.zeros(p.Shape()...), First: m.zeros(p.Shape()...), Second: m.zeros(p.Shape()...)}
}
