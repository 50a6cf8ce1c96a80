package model

import (
	"math"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/tensor"
)

// deviation is the standard deviation of GPT-2's initial weights.
const deviation = 0.02

// Parameter is a parameter of the model with its state of training. In a pipeline with copies one of them has the state: the others
// have the gradient and the value alone.
type Parameter struct {
	ops.AdamWState // float32 master, gradient and moments, and the copy of 16 bits if there is one: without padding

	Name  string
	Value *tensor.Tensor // the network computes with it: the master, or the copy. With padding

	gradient *tensor.Tensor // Grad with padding
}

// The ends of a tag: after a layer and its part, as h.3/attn/weights.
const (
	ofWeights     = "/weights"
	ofGradients   = "/gradients"
	ofMoments     = "/moments"
	ofActivations = "/activations"
)

// partOf returns the layer and the part of a parameter: h.3/attn of h.3.attn.c_attn.weight, and wte of wte.weight.
func partOf(name string) string {
	all := strings.Split(name, ".")
	if len(all) > 2 {
		return strings.Join(all[:2], ".") + "/" + all[2]
	}
	return all[0]
}

// norm has the parameters of a layer norm.
type norm struct{ weight, bias *Parameter }

// linear has the parameters of a product with a bias.
type linear struct{ weight, bias *Parameter }

// block has the parameters of a layer.
type block struct {
	attention, feedForward string // tags of activations

	norm1, norm2     norm
	attend, project  linear // to queries, keys and values; from the heads' values
	expand, contract linear // to four times the width; back
}

// maker makes parameters in a scope, and keeps the first error.
type maker struct {
	s      *tensor.Scope
	config Config
	random *rand.Rand
	skips  bool // parameters are drawn and not made: they are of another part of the model
	lent   bool // they are made without a state of training, which another copy of the part has
	all    []*Parameter
	err    error
}

func (m *maker) got(t *tensor.Tensor, err error) *tensor.Tensor {
	if m.err == nil {
		m.err = err
	}
	return t
}

// parameter makes a parameter with normally distributed elements, or of ones or zeros if deviation is 0.
func (m *maker) parameter(name string, deviation float64, mean float32, shape ...int) *Parameter {
	return m.padded(name, deviation, mean, shape[0], shape...)
}

// padded makes a parameter with more rows in memory than the shape has. They are 0.
func (m *maker) padded(name string, deviation float64, mean float32, rows int, shape ...int) *Parameter {
	size := 1
	for _, n := range shape {
		size *= n
	}
	values := make([]float32, size)
	for i := range values {
		values[i] = mean
		if deviation > 0 {
			values[i] += float32(deviation * m.random.NormFloat64())
		}
	}
	if m.skips {
		return nil
	}
	whole := append([]int{rows}, shape[1:]...)
	defer m.s.SetTag("")
	part := partOf(name)
	zeros := func(of tensor.Type, use string) *tensor.Tensor {
		m.s.SetTag(part + use)
		return m.got(tensor.Zeros(m.s, of, whole...))
	}
	view := func(t *tensor.Tensor) *tensor.Tensor {
		if m.err != nil || rows == shape[0] {
			return t
		}
		return m.got(t.Narrow(0, 0, shape[0]))
	}
	p := &Parameter{Name: name, gradient: zeros(tensor.Float32, ofGradients)}
	p.Grad = view(p.gradient)
	if m.all = append(m.all, p); m.lent {
		p.Value = zeros(m.config.Type, ofWeights)
		return p
	}
	p.Value = zeros(tensor.Float32, ofWeights)
	p.Param = view(p.Value)
	p.First, p.Second = view(zeros(tensor.Float32, ofMoments)), view(zeros(tensor.Float32, ofMoments))
	if m.config.Type != tensor.Float32 {
		p.Value = zeros(m.config.Type, ofWeights)
		p.Copy = view(p.Value)
	}
	if m.err == nil {
		m.err = tensor.Write(p.Param, values)
	}
	return p
}

func (m *maker) norm(name string) norm {
	return norm{m.parameter(name+".weight", 0, 1, m.config.Width), m.parameter(name+".bias", 0, 0, m.config.Width)}
}

func (m *maker) linear(name string, deviation float64, in, out int) linear {
	return linear{m.parameter(name+".weight", deviation, 0, in, out), m.parameter(name+".bias", 0, 0, out)}
}

func (m *maker) block(i int) block {
	name, width := "h."+strconv.Itoa(i), m.config.Width
	// The sum of all blocks' results keeps its size, as in the GPT-2 paper (Radford et al. 2019, section 2.3).
	last := deviation / math.Sqrt(2*float64(m.config.Layers))
	return block{
		attention: name + "/attn" + ofActivations, feedForward: name + "/mlp" + ofActivations,

		norm1:    m.norm(name + ".ln_1"),
		attend:   m.linear(name+".attn.c_attn", deviation, width, 3*width),
		project:  m.linear(name+".attn.c_proj", last, width, width),
		norm2:    m.norm(name + ".ln_2"),
		expand:   m.linear(name+".mlp.c_fc", deviation, width, 4*width),
		contract: m.linear(name+".mlp.c_proj", last, 4*width, width),
	}
}
