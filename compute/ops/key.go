package ops

import (
	"fmt"
	"math"

	"github.com/go-vram/vram/compute/kernel/expr"
	"github.com/go-vram/vram/compute/kernel/plan"
	"github.com/go-vram/vram/compute/tensor"
)

// maxInputs is the number of operands of the operation with the most of them.
const maxInputs = 6

// key says which kernel it is.
type key struct {
	op      operation
	with    uint8       // optional operands that are there
	out     tensor.Type // of the only output; 0 for the type that the expression has
	in      [maxInputs]tensor.Type
	axes    axes
	numbers [4]uint64 // constants, as the bits of float64
}

const (
	withWeight = 1 << iota
	withBias
	withIgnored
)

func (k *key) input(i int) expr.Expr { return expr.Input(i, k.in[i]) }

func (k *key) number(i int) float64 { return math.Float64frombits(k.numbers[i]) }

// summed returns the sum over the axes, if there are any.
func (k *key) summed(e expr.Expr) expr.Expr {
	if k.axes == 0 {
		return e
	}
	return e.Sum()
}

// axes are those that are reduced: bit 0 is the last dimension, and so on.
type axes uint16

// allAxes are all of them, for any rank.
const allAxes axes = 1 << 15

// list returns the axes as package plan has them.
func (a axes) list() []int {
	if a&allAxes != 0 {
		return plan.All
	}
	all := []int{}
	for i := range 15 {
		if a&(1<<i) != 0 {
			all = append(all, -1-i)
		}
	}
	return all
}

// has reports whether a dimension is one of them.
func (a axes) has(dim, rank int) bool { return a&allAxes != 0 || a&(1<<(rank-1-dim)) != 0 }

// axesOf returns the axes with these numbers; all without any. Errors: ErrAxes.
func axesOf(rank int, numbers ...int) (axes, error) {
	if len(numbers) == 0 {
		return allAxes, nil
	}
	var all axes
	for _, n := range numbers {
		if rank == 0 && (n == 0 || n == -1) {
			return allAxes, nil // a scalar is a row of one element
		}
		dim, err := axisOf(rank, n)
		if err != nil {
			return 0, err
		}
		if all.has(dim, rank) {
			return 0, fmt.Errorf("axis %d twice, of %d dimensions: %w", n, rank, ErrAxes)
		}
		all |= 1 << (rank - 1 - dim)
	}
	return all, nil
}

// axisOf returns the number of a dimension. Errors: ErrAxes.
func axisOf(rank, axis int) (int, error) {
	dim := axis
	if dim < 0 {
		dim += rank
	}
	if dim < 0 || dim >= rank {
		return 0, badAxis(axis, rank)
	}
	return dim, nil
}

// family orders the types as promotion does.
func family(of tensor.Type) int {
	switch of.Kind() {
	case tensor.Boolean:
		return 0
	case tensor.Floating:
		return 2
	case tensor.Unsigned, tensor.Signed:
	}
	return 1
}

// holds reports whether an integer type has a number. Other types have all.
func holds(of tensor.Type, x float64) bool {
	if of.Kind() == tensor.Floating || of == tensor.Bool || !of.Valid() {
		return true
	}
	bits := 8 * of.Size()
	if of.Kind() == tensor.Unsigned {
		return x >= 0 && x < math.Ldexp(1, bits)
	}
	return x >= -math.Ldexp(1, bits-1) && x < math.Ldexp(1, bits-1)
}

// accumulator returns the type in which a type is summed.
func accumulator(of tensor.Type) tensor.Type {
	if of == tensor.Float64 {
		return of
	}
	return tensor.Float32
}
