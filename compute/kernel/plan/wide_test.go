package plan_test

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel/expr"
	"github.com/go-vram/vram/compute/kernel/plan"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/layout"
)

// Elements that lie further apart than 31 bits reach take indices of 64 bits, up and down.
func TestIndicesOf64Bits(t *testing.T) {
	const stride = 1 << 31
	x := expr.Input(0, tensor.Float32)
	for _, step := range []int{stride, -stride} {
		m := newMemory()
		base := uint64(1) << 40
		for i := range uint64(3) {
			m.Bytes[base+4*stride*i] = binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(i+1)))
		}
		l, err := layout.New([]int{3}, []int{step}, max(0, -2*step))
		require.NoError(t, err)
		want := []float64{1, 2, 3}
		if step < 0 {
			want = []float64{3, 2, 1}
		}
		out, sum := m.array(tensor.Float32, of(t, 3), 0), m.array(tensor.Float32, of(t), 0)
		at := m.array(tensor.Int64, of(t), 0)
		p := program(t, nil, x.Add(expr.Number(1)))
		var g plan.Geometry
		require.NoError(t, p.Fit(&g, []layout.Layout{l, out.layout}, []uint64{base, out.at}))
		require.True(t, g.Wide)
		launch(t, p, m, &g, []uint64{base, out.at})
		assert.Equal(t, []float64{want[0] + 1, want[1] + 1, want[2] + 1}, out.values())

		p = program(t, plan.All, x.Sum(), x.ArgMax())
		require.NoError(t, p.Fit(&g, []layout.Layout{l, sum.layout, at.layout}, []uint64{base, sum.at, at.at}))
		require.True(t, g.Wide)
		launch(t, p, m, &g, []uint64{base, sum.at, at.at})
		assert.Equal(t, []float64{6}, sum.values())
		assert.Equal(t, want[at.bytes[0]], 3.0)
	}
}

// A row of more columns than 31 bits count takes indices of 64 bits, though none of its operands is as long.
func TestColumnsOf64BitsWithoutMemory(t *testing.T) {
	p := program(t, plan.All, expr.Input(0, tensor.Float32).Sum())
	for columns, wide := range map[int]bool{1 << 20: false, 1 << 31: true} {
		l, err := layout.New([]int{columns}, []int{0}, 0)
		require.NoError(t, err)
		var g plan.Geometry
		require.NoError(t, p.Fit(&g, []layout.Layout{l, of(t)}, []uint64{1 << 20, 1 << 21}))
		assert.Equal(t, wide, g.Wide, columns)
	}
}

// Every output has the shape of all elements: one of fewer dimensions, or of a length of 1, would be written many times.
func TestOutputsAreNotBroadcast(t *testing.T) {
	x := expr.Input(0, tensor.Float32)
	p := program(t, nil, x, x.Add(expr.Number(1)))
	all := of(t, 2, 3)
	for _, shape := range [][]int{{3}, {}, {1, 3}, {2, 1}} {
		var g plan.Geometry
		var wrong *plan.ShapeError
		require.ErrorAs(t, p.Fit(&g, []layout.Layout{all, all, of(t, shape...)}, make([]uint64, 3)), &wrong)
		assert.Equal(t, plan.ShapeError{Operand: 2, Shape: shape, Want: []int{2, 3}}, *wrong)
		require.NoError(t, p.Fit(&g, []layout.Layout{of(t, shape...), all, all}, make([]uint64, 3)), "an input may be")
	}
}
