package main

import (
	"fmt"
	"time"

	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/tensor"
)

// operands are tensors of one shape, and rows of it.
type operands struct{ x, y, row *tensor.Tensor }

// operation computes with operands in a scope.
type operation struct {
	name string
	do   func(s *tensor.Scope, o ops.Ops, t operands) error
}

// one drops the result of an operation.
func one(_ *tensor.Tensor, err error) error { return err }

func elementwise() []operation {
	return []operation{
		{"add", func(s *tensor.Scope, o ops.Ops, t operands) error { return one(o.Add(s, t.x, t.y)) }},
		{"mul", func(s *tensor.Scope, o ops.Ops, t operands) error { return one(o.Mul(s, t.x, t.y)) }},
		{"gelu", func(s *tensor.Scope, o ops.Ops, t operands) error { return one(o.Gelu(s, t.x)) }},
		{"relu", func(s *tensor.Scope, o ops.Ops, t operands) error { return one(o.Relu(s, t.x)) }},
		{"copy", func(s *tensor.Scope, o ops.Ops, t operands) error { return one(o.Copy(s, t.x)) }},
		{"exp", func(s *tensor.Scope, o ops.Ops, t operands) error { return one(o.Exp(s, t.x)) }},
		{"silu", func(s *tensor.Scope, o ops.Ops, t operands) error { return one(o.Silu(s, t.x)) }},
		{"tanh", func(s *tensor.Scope, o ops.Ops, t operands) error { return one(o.Tanh(s, t.x)) }},
		{"gelu backward", func(s *tensor.Scope, o ops.Ops, t operands) error { return one(o.GeluBackward(s, t.y, t.x)) }},
		{"sub", func(s *tensor.Scope, o ops.Ops, t operands) error { return one(o.Sub(s, t.x, t.y)) }},
		{"div", func(s *tensor.Scope, o ops.Ops, t operands) error { return one(o.Div(s, t.x, t.y)) }},
		{"sqrt", func(s *tensor.Scope, o ops.Ops, t operands) error { return one(o.Sqrt(s, t.x)) }},
	}
}

// whole reduces all elements.
func whole() []operation {
	return []operation{
		{"sum of all", func(s *tensor.Scope, o ops.Ops, t operands) error { return one(o.Sum(s, t.x, false)) }},
		{"max of all", func(s *tensor.Scope, o ops.Ops, t operands) error { return one(o.Max(s, t.x, false)) }},
		{"softmax of all", func(s *tensor.Scope, o ops.Ops, t operands) error { return one(o.Softmax(s, t.x, -1)) }},
	}
}

// rows reduces rows.
func rows() []operation {
	const epsilon = 1e-5
	return []operation{
		{"softmax", func(s *tensor.Scope, o ops.Ops, t operands) error { return one(o.Softmax(s, t.x, -1)) }},
		{"layer norm", func(s *tensor.Scope, o ops.Ops, t operands) error {
			return one(o.LayerNorm(s, t.x, t.row, t.row, 1, epsilon))
		}},
		{"row sums", func(s *tensor.Scope, o ops.Ops, t operands) error { return one(o.Sum(s, t.x, false, -1)) }},
		{"column sums", func(s *tensor.Scope, o ops.Ops, t operands) error { return one(o.Sum(s, t.x, false, 0)) }},
		{"bias", func(s *tensor.Scope, o ops.Ops, t operands) error { return one(o.Add(s, t.x, t.row)) }},
		{"transpose", func(s *tensor.Scope, o ops.Ops, t operands) error { return one(o.TransposeCopy(s, t.x, 0, 1)) }},
		{"softmax backward", func(s *tensor.Scope, o ops.Ops, t operands) error { return one(o.SoftmaxBackward(s, t.y, t.x, -1)) }},
		{"rms norm", func(s *tensor.Scope, o ops.Ops, t operands) error { return one(o.RMSNorm(s, t.x, t.row, 1, epsilon)) }},
		{"arg max", func(s *tensor.Scope, o ops.Ops, t operands) error { return one(o.ArgMax(s, t.x, false, -1)) }},
		{"log softmax", func(s *tensor.Scope, o ops.Ops, t operands) error { return one(o.LogSoftmax(s, t.x, -1)) }},
	}
}

// part is a shape that some operations are measured on.
type part struct {
	of         tensor.Type
	operations []operation
	shape      []int
}

// parts are the measurements, those first that the project compares with other libraries.
func parts() []part {
	const million, large, side = 1000000, 1 << 24, 4096
	return []part{
		{tensor.Float32, elementwise(), []int{million}},
		{tensor.Float32, whole(), []int{million}},
		{tensor.Float32, rows(), []int{1024, 1024}},
		{tensor.Float32, rows()[:6], []int{side, side}},
		{tensor.Float32, elementwise()[:4], []int{large}},
		{tensor.Float32, whole(), []int{large}},
		{tensor.Float32, whole(), []int{10000}},
		{tensor.Float32, rows(), []int{8192, 768}},
		{tensor.BFloat16, elementwise()[:6], []int{million}},
		{tensor.BFloat16, rows(), []int{8192, 768}},
		{tensor.Float32, elementwise()[:8], []int{8192 * 768}},
		{tensor.BFloat16, elementwise()[:8], []int{8192 * 768}},
		{tensor.BFloat16, rows()[:6], []int{side, side}},
	}
}

// all measures the operations.
func (m *measurer) all() error {
	for _, part := range parts() {
		for _, op := range part.operations {
			name := fmt.Sprintf("%s %v %v", op.name, part.of, part.shape)
			if time.Since(m.begin) > m.limit {
				m.left++
				continue
			}
			if err := m.one(op, part.of, part.shape); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			m.report(name)
		}
	}
	return nil
}

// one runs an operation on tensors of a type and a shape. The first run of a kernel measures it.
func (m *measurer) one(op operation, of tensor.Type, shape []int) error {
	return tensor.Scoped(m.c, func(s *tensor.Scope) error {
		t := operands{}
		for _, into := range []struct {
			to    **tensor.Tensor
			shape []int
		}{{&t.x, shape}, {&t.y, shape}, {&t.row, shape[len(shape)-1:]}} {
			made, err := m.o.Fill(s, of, 1, into.shape...)
			if err != nil {
				return err
			}
			*into.to = made
		}
		return op.do(s, m.o, t)
	})
}
