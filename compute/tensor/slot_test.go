package tensor_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/layout"
)

// A slot has views of tensors and tensors of its own, one after the other, with the same memory of the host.
func TestASlotHasOneTensorAtATime(t *testing.T) {
	r, c := newRig(t)
	var slot tensor.Slot
	x := must(tensor.From(c, count[float32](6), 2, 3))(t)
	turned := must(slot.View(x, must(x.Layout().Transpose(0, 1))(t)))(t)
	assert.Equal(t, []float32{0, 3, 1, 4, 2, 5}, must(tensor.Read[float32](turned))(t))
	require.ErrorIs(t, turned.Free(), tensor.ErrView)
	assert.Same(t, x, turned.Owner())

	before := r.liveBytes()
	own := must(slot.New(c, tensor.Float32, must(layout.Of(3, 2))(t)))(t)
	assert.Equal(t, before+unit, r.liveBytes())
	require.NoError(t, tensor.Copy(c, own, must(x.Transpose(0, 1))(t)))
	assert.Equal(t, []float32{0, 3, 1, 4, 2, 5}, must(tensor.Read[float32](own))(t))
	require.NoError(t, own.Free())
	require.ErrorIs(t, own.Free(), tensor.ErrFreed)
	assert.Equal(t, before, r.liveBytes())

	gaps := must(layout.New([]int{3, 2}, []int{100, 1}, 50))(t) // places to 252
	apart := must(slot.New(c, tensor.Float32, gaps))(t)
	assert.Equal(t, before+2*unit, r.liveBytes())
	require.NoError(t, tensor.Copy(c, apart, must(x.Transpose(0, 1))(t)))
	assert.Equal(t, []float32{0, 3, 1, 4, 2, 5}, must(tensor.Read[float32](apart))(t))
	require.NoError(t, apart.Free())

	empty := must(slot.New(c, tensor.Float32, must(layout.Of(0, 2))(t)))(t)
	assert.Equal(t, before, r.liveBytes())
	assert.Empty(t, must(tensor.Read[float32](empty))(t))
	require.NoError(t, empty.Free())
	slot.Clear()
	require.ErrorIs(t, empty.Free(), tensor.ErrNoTensor)
	require.NoError(t, x.Free())
}

// No scope frees a tensor of a slot.
func TestASlotIsInNoScope(t *testing.T) {
	_, c := newRig(t)
	var slot tensor.Slot
	s := must(tensor.NewScope(c))(t)
	own := must(slot.New(s, tensor.Int8, must(layout.Of(5))(t)))(t)
	require.NoError(t, s.Close())
	assert.True(t, own.Live())
	require.NoError(t, own.Free())
	_, err := slot.New(s, tensor.Int8, layout.Layout{})
	require.ErrorIs(t, err, tensor.ErrScopeEnded)
}

func TestMistakesWithSlots(t *testing.T) {
	_, c := newRig(t)
	var slot tensor.Slot
	x := must(tensor.New(c, tensor.Float32, 2, 3))(t)
	_, err := slot.View(x, must(layout.Of(7))(t))
	var refused *tensor.LayoutError
	require.ErrorAs(t, err, &refused)
	_, err = slot.View(nil, layout.Layout{})
	require.ErrorIs(t, err, tensor.ErrNoTensor)
	require.NoError(t, x.Free())
	_, err = slot.View(x, x.Layout())
	require.ErrorIs(t, err, tensor.ErrFreed)
	_, err = slot.New(nil, tensor.Float32, layout.Layout{})
	require.ErrorIs(t, err, tensor.ErrNotOpen)
	var typed *tensor.TypeError
	_, err = slot.New(c, 0, layout.Layout{})
	require.ErrorAs(t, err, &typed)
	_, err = slot.New(c, tensor.Float64, must(layout.Of(1<<61))(t))
	require.ErrorIs(t, err, tensor.ErrTooLarge)
}

// A view has any layout whose elements are all in the memory, and no other: of tensors and of tensors of slots.
func TestAViewStaysInTheMemory(t *testing.T) {
	_, c := newRig(t)
	for _, of := range []tensor.Type{tensor.Int8, tensor.Int16, tensor.Float32, tensor.Float64} {
		for elements := range 5 {
			var own, other tensor.Slot
			whole := must(layout.Of(elements))(t)
			x, y := must(tensor.New(c, of, elements))(t), must(own.New(c, of, whole))(t)
			for length := range 6 {
				for stride := 1; stride <= 3; stride++ {
					for offset := range 6 {
						l := must(layout.New([]int{length}, []int{stride}, offset))(t)
						want := length == 0 || offset+(length-1)*stride < elements
						for _, from := range []*tensor.Tensor{x, y} {
							view, err := other.View(from, l)
							if want {
								require.NoError(t, err, "%v of %d elements", l, elements)
								require.True(t, view.Has(of, &l))
								continue
							}
							var refused *tensor.LayoutError
							require.ErrorAs(t, err, &refused, "%v of %d elements", l, elements)
						}
					}
				}
			}
			require.NoError(t, x.Free())
			require.NoError(t, y.Free())
		}
	}
}

// Has is about both the type and the layout, and no tensor has any.
func TestHasComparesTypeAndLayout(t *testing.T) {
	_, c := newRig(t)
	var none *tensor.Tensor
	var zero tensor.Tensor
	var all []*tensor.Tensor
	for _, of := range []tensor.Type{tensor.Int32, tensor.Float32} {
		x := must(tensor.New(c, of, 2, 3))(t)
		all = append(all, x, must(x.Transpose(0, 1))(t), must(x.Narrow(1, 0, 2))(t), must(x.Narrow(1, 1, 2))(t))
	}
	for i, x := range all {
		for j, y := range all {
			l := y.Layout()
			assert.Equal(t, i == j, x.Has(y.Type(), &l), "%d and %d", i, j)
			assert.False(t, none.Has(y.Type(), &l) || zero.Has(y.Type(), &l))
		}
	}
	var scalar layout.Layout
	assert.False(t, none.Has(0, &scalar) || zero.Has(0, &scalar))
	require.NoError(t, all[0].Free())
	require.NoError(t, all[4].Free())
}
