package tensor_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/half"
	"github.com/go-vram/vram/compute/tensor/layout"
	"github.com/go-vram/vram/cuda"
)

// roundTrip writes and reads values of a type, through a view that is not contiguous, too.
func roundTrip[T tensor.Element](t *testing.T, c *cuda.Context, values ...T) {
	t.Helper()
	x := must(tensor.From(c, values, len(values)/2, 2))(t)
	assert.Equal(t, tensor.TypeOf[T](), x.Type())
	assert.Equal(t, int64(len(values)*x.Type().Size()), x.Bytes())
	sees(t, x, values...)
	second := must(x.Index(1, 1))(t)
	require.NoError(t, tensor.Write(second, values[:len(values)/2]))
	want := slices.Clone(values)
	for i := range len(values) / 2 {
		want[2*i+1] = values[i]
	}
	sees(t, x, want...)
	require.NoError(t, tensor.Fill(c, second, values[0]))
	for i := range len(values) / 2 {
		want[2*i+1] = values[0]
	}
	sees(t, x, want...)
	full := must(tensor.Full(c, values[1], 3, 5))(t)
	sees(t, full, slices.Repeat([]T{values[1]}, 15)...)
	one := must(tensor.Scalar(c, values[0]))(t)
	item, err := tensor.Item[T](one)
	require.NoError(t, err)
	assert.Equal(t, values[0], item)
	var zero T
	zeros := must(tensor.Zeros(c, x.Type(), 7))(t)
	sees(t, zeros, slices.Repeat([]T{zero}, 7)...)
	for _, each := range []*tensor.Tensor{x, full, one, zeros} {
		require.NoError(t, each.Free())
	}
}

func TestElementsOfEachType(t *testing.T) {
	r, c := newRig(t)
	roundTrip(t, c, true, true, false, false)
	roundTrip[uint8](t, c, 1, 255, 3, 0)
	roundTrip[int8](t, c, -128, 2, 127, 0)
	roundTrip[int16](t, c, -300, math.MaxInt16, 3, 4)
	roundTrip[int32](t, c, math.MinInt32, 70000, 3, 4)
	roundTrip[int64](t, c, math.MinInt64, 1<<40+7, 3, 4)
	roundTrip(t, c, half.NewFloat16(1.5), half.NewFloat16(-2), 3, 4)
	roundTrip(t, c, half.NewBFloat16(1.5), half.NewBFloat16(-2), 3, 4)
	roundTrip[float32](t, c, 1.5, math.MaxFloat32, -3, 4)
	roundTrip(t, c, 1.5, math.Pi, -3, 4)
	assert.Zero(t, r.liveBytes())
}

func TestTypesHaveNamesAndSizes(t *testing.T) {
	var text strings.Builder
	for _, of := range tensor.Types() {
		require.True(t, of.Valid())
		fmt.Fprintf(&text, "%v %d %v\n", of, of.Size(), of.Kind())
	}
	assert.Equal(t, `bool 1 boolean
uint8 1 unsigned
int8 1 signed
int16 2 signed
int32 4 signed
int64 8 signed
float16 2 floating
bfloat16 2 floating
float32 4 floating
float64 8 floating
`, text.String())
	assert.False(t, tensor.Type(0).Valid())
	assert.False(t, tensor.Type(11).Valid())
	assert.Equal(t, "type 11", tensor.Type(11).String())
	assert.Equal(t, "kind 9", tensor.Kind(9).String())
	assert.Equal(t, "no kind", tensor.Type(0).Kind().String())
}

// A byte that is neither 0 nor 1, as a kernel may write it, is true.
func TestBytesOfBools(t *testing.T) {
	_, c := newRig(t)
	x := must(tensor.New(c, tensor.Bool, 2))(t)
	b := must(x.Buffer())(t)
	require.NoError(t, c.CopyInAt(b, 0, []byte{0, 200}))
	got := must(tensor.Read[bool](x))(t)
	assert.Equal(t, []bool{false, true}, got)
	assert.Equal(t, "true", fmt.Sprint(got[1] == true))
	require.NoError(t, x.Free())
}

// Memory comes with the first use, and not with a view.
func TestMemoryIsAllocatedAtTheFirstUse(t *testing.T) {
	r, c := newRig(t)
	before := must(tensor.Full(c, float32(1), 1024))(t)
	require.NoError(t, before.Free()) // so that the memory has values
	x := must(tensor.Zeros(c, tensor.Float32, 1024))(t)
	half := must(x.Narrow(0, 512, 512))(t)
	assert.Zero(t, r.liveBytes())
	sees(t, half, make([]float32, 512)...)
	assert.Equal(t, int64(4096), r.liveBytes())
	require.NoError(t, x.Allocate())
	assert.Equal(t, int64(4096), r.liveBytes(), "once")
	require.NoError(t, x.Free())
	assert.Zero(t, r.liveBytes())

	never := must(tensor.New(c, tensor.Float32, 1024))(t)
	require.NoError(t, never.Free())
	require.ErrorIs(t, never.Free(), tensor.ErrFreed)
	require.ErrorIs(t, never.Allocate(), tensor.ErrFreed)

	empty := must(tensor.New(c, tensor.Float32, 0, 3))(t)
	require.NoError(t, empty.Allocate())
	sees[float32](t, empty)
	require.NoError(t, tensor.Fill(c, empty, float32(1)))
	require.NoError(t, tensor.Copy(c, empty, empty))
	assert.Zero(t, r.liveBytes())
	require.NoError(t, empty.Free())
	require.ErrorIs(t, empty.Allocate(), tensor.ErrFreed)
}

// Several goroutines are first: one allocation stays, and all see it.
func TestSeveralFirstUses(t *testing.T) {
	r, c := newRig(t)
	for range 50 {
		x := must(tensor.Zeros(c, tensor.Int32, 256))(t)
		found := make([]cuda.Buffer, 4)
		var all sync.WaitGroup
		for i := range found {
			all.Go(func() { found[i], _ = x.Buffer() })
		}
		all.Wait()
		for _, b := range found {
			require.Equal(t, found[0], b)
			require.True(t, b.Live())
		}
		assert.Equal(t, int64(1024), r.liveBytes())
		require.NoError(t, x.Free())
	}
}

// Goroutines with streams of their own read one tensor and its views, make views and copy from it, without a
// word about it.
func TestGoroutinesShareATensor(t *testing.T) {
	r, c := newRig(t)
	weights := must(tensor.From(c, count[float32](64), 8, 8))(t)
	var all sync.WaitGroup
	for i := range 4 {
		own := r.context()
		all.Go(func() {
			for range 20 {
				assert.NoError(t, tensor.Scoped(own, func(s *tensor.Scope) error {
					row, err := weights.Index(0, i)
					if err != nil {
						return err
					}
					mine, err := tensor.Clone(s, row)
					if err != nil {
						return err
					}
					got, err := tensor.Read[float32](mine)
					assert.Equal(t, float32(8*i+7), got[7])
					return err
				}))
			}
		})
	}
	all.Wait()
	require.NoError(t, weights.Free())
	assert.Zero(t, r.liveBytes())
	assert.Empty(t, r.dev.Hazards())
}

// A freed storage is refused through each view, by each operation; so is a free of a view, and a second one.
func TestUseAfterFree(t *testing.T) {
	r, c := newRig(t)
	x := must(tensor.From(c, count[float32](6), 2, 3))(t)
	v := must(x.Transpose(0, 1))(t)
	w := must(v.Index(0, 1))(t)
	assert.Same(t, x, w.Owner())
	assert.Equal(t, "float32[2] on GPU 0, a view", w.String())
	err := w.Free()
	require.ErrorIs(t, err, tensor.ErrView)
	require.EqualError(t, err, "tensor: free float32[2] on GPU 0, a view: a view does not own its storage")
	require.True(t, w.Live())
	require.NoError(t, w.Owner().Free())
	y := must(tensor.From(c, count[float32](6), 2, 3))(t) // has the memory now
	for _, one := range []*tensor.Tensor{x, v, w} {
		assert.False(t, one.Live())
		_, read := tensor.Read[float32](one)
		_, item := tensor.Item[float32](one)
		_, sliced := one.Slice(0, 0, 1, 1)
		_, buffer := one.Buffer()
		_, in := one.In()
		_, clone := tensor.Clone(c, one)
		_, contiguous := tensor.Contiguous(c, one)
		_, to := tensor.To(c, one)
		_, printed := tensor.Sprint(one)
		for i, err := range []error{
			read, item, sliced, buffer, in, clone, contiguous, to, printed, one.Allocate(), tensor.Fill(c, one, float32(1)),
			tensor.Write(one, make([]float32, one.Len())), tensor.Copy(c, one, y), tensor.Copy(c, y, one),
		} {
			require.ErrorIs(t, err, tensor.ErrFreed, "%d", i)
		}
	}
	_, err = tensor.Read[float32](w)
	require.EqualError(t, err, "tensor: read float32[2] on GPU 0, a view, freed: the storage was freed")
	second := x.Free()
	require.ErrorIs(t, second, tensor.ErrFreed)
	var refusal *vram.FreeError
	require.ErrorAs(t, second, &refusal, "with the places of the allocation and of the first free")
	sees(t, y, count[float32](6)...)
	require.NoError(t, y.Free())

	z := must(tensor.From(c, count[float32](6)))(t)
	b := must(z.Buffer())(t)
	require.NoError(t, b.Free()) // past the tensor
	_, err = tensor.Read[float32](z)
	require.ErrorIs(t, err, tensor.ErrFreed)
	require.ErrorIs(t, z.Free(), tensor.ErrFreed)
	assert.Zero(t, r.liveBytes())
}

func TestMistakesAreErrors(t *testing.T) {
	r, c := newRig(t)
	x := must(tensor.From(c, count[float32](6), 2, 3))(t)
	wide := must(must(x.Index(0, 0))(t).Broadcast(4, 3))(t)
	columns := must(x.Transpose(0, 1))(t)
	ints := must(tensor.New(c, tensor.Int32, 2, 3))(t)
	four := must(tensor.New(c, tensor.Float32, 4))(t)
	refused := func(_ *tensor.Tensor, err error) error { return err }
	read := func(_ []int32, err error) error { return err }
	item := func(_ float32, err error) error { return err }
	for text, err := range map[string]error{
		"tensor: read float32 and int32: not possible for these element types":                             read(tensor.Read[int32](x)),
		"tensor: copy float32 and int32: not possible for these element types":                             tensor.Copy(c, x, ints),
		"tensor: new type 0: not possible for these element types":                                         refused(tensor.New(c, 0, 3)),
		"tensor: copy [2 3] and [4]":                                                                       tensor.Copy(c, x, four),
		"tensor: copy [4 3] strides [0 1] offset 0: the destination has elements that are one":             tensor.Copy(c, wide, wide),
		"tensor: write [4 3] strides [0 1] offset 0: the tensor has elements that are one":                 tensor.Write(wide, make([]float32, 12)),
		"tensor: fill [4 3] strides [0 1] offset 0: the tensor has elements that are one":                  tensor.Fill(c, wide, float32(1)),
		"tensor: from: a slice of length 2 and shape [3], which has 3 elements":                            refused(tensor.From(c, []float32{1, 2}, 3)),
		"tensor: read: a slice of length 2 and shape [2 3], which has 6 elements":                          tensor.ReadInto(make([]float32, 2), x),
		"tensor: item float32[2 3] on GPU 0: the tensor does not have exactly one element":                 item(tensor.Item[float32](x)),
		"tensor: reshape [3 2] strides [1 3] offset 0 to [6]: no strides make this view, a copy is needed": refused(columns.Reshape(6)),
		"tensor: new [1152921504606846976 4]: float64: layout: too many elements":                          refused(tensor.New(c, tensor.Float64, 1<<60, 4)),
		"tensor: index 2 of dimension 0, which has length 2":                                               refused(x.Index(0, 2)),
	} {
		require.EqualError(t, err, text)
	}
	before := r.liveBytes()
	late := must(tensor.New(c, tensor.Float32, 3))(t)
	wide = must(late.Broadcast(4, 3))(t)
	for _, err := range []error{tensor.Write(wide, make([]float32, 12)), tensor.Fill(c, wide, float32(1)), tensor.Copy(c, wide, wide)} {
		require.Error(t, err)
		require.Equal(t, before, r.liveBytes(), "a call that is refused allocates nothing")
	}
	require.NoError(t, late.Free())
	shape := []int{3}
	_, err := tensor.From(c, []float32{1, 2}, shape...)
	shape[0] = 7
	require.ErrorContains(t, err, "shape [3]", "the error has a shape of its own")
	_, err = tensor.New(c, tensor.Float64, 1<<60, 4)
	require.ErrorIs(t, err, tensor.ErrTooLarge)
	_, err = tensor.New(c, tensor.Float64, make([]int, 9)...)
	require.ErrorIs(t, err, tensor.ErrRank)
	huge := must(tensor.New(c, tensor.Float64, 1<<40))(t)
	require.ErrorIs(t, huge.Allocate(), vram.ErrTooLarge)
	require.True(t, huge.Live(), "it is as it was")
	require.NoError(t, huge.Free())
	for _, one := range []*tensor.Tensor{x, ints, four} {
		require.NoError(t, one.Free())
	}
	assert.Zero(t, r.liveBytes())
}

// Nil and zero values are refused, and none panics.
func TestNilsAreRefused(t *testing.T) {
	_, c := newRig(t)
	x := must(tensor.From(c, count[float32](6)))(t)
	for _, none := range []*tensor.Tensor{nil, {}} {
		_, read := tensor.Read[float32](none)
		_, item := tensor.Item[float32](none)
		_, view := none.Flatten(0, -1)
		_, clone := tensor.Clone(c, none)
		_, moved := tensor.To(c, none)
		_, rng := none.Range()
		for i, err := range []error{
			read, item, view, clone, moved, rng, none.Free(), none.Allocate(), tensor.Copy(c, none, x), tensor.Copy(c, x, none),
			tensor.Fill(c, none, float32(1)), tensor.Write(none, []float32{1}), tensor.Fprint(nil, none),
		} {
			require.ErrorIs(t, err, tensor.ErrNoTensor, "%d", i)
		}
		assert.Equal(t, "no tensor", none.String())
		assert.Zero(t, none.Len()+none.Rank()+none.Dim(0)+int(none.Bytes())+int(none.Type()))
		assert.Empty(t, none.Shape())
		assert.Nil(t, none.Owner())
		assert.Nil(t, none.Context())
		assert.False(t, none.Live())
	}
	for _, at := range []tensor.Context{nil, (*cuda.Context)(nil), &cuda.Context{}, (*tensor.Scope)(nil), struct{ *tensor.Scope }{}, stranger{c}} {
		_, from := tensor.From(at, []float32{1})
		_, clone := tensor.Clone(at, x)
		_, moved := tensor.To(at, x)
		_, scope := tensor.NewScope(at)
		for i, err := range []error{from, clone, moved, scope, tensor.Copy(at, x, x), tensor.Fill(at, x, float32(1))} {
			require.ErrorIs(t, err, tensor.ErrNotOpen, "%T %d", at, i)
		}
	}
	require.NoError(t, x.Free())
}

// stranger is a Context that is none of the two.
type stranger struct{ *cuda.Context }

// A tensor over a buffer of the caller is a view: the caller frees the buffer.
func TestOverABuffer(t *testing.T) {
	_, c := newRig(t)
	b := must(c.Alloc(24))(t)
	require.NoError(t, cuda.CopyIn(c, b, count[float32](6)))
	x := must(tensor.Over(c, b, tensor.Float32, must(must(layout.Of(2, 3))(t).Transpose(0, 1))(t)))(t)
	sees(t, x, float32(0), 3, 1, 4, 2, 5)
	assert.Nil(t, x.Owner())
	require.ErrorIs(t, x.Free(), tensor.ErrView)
	r := must(must(x.Slice(0, 2, 0, -1))(t).Range())(t)
	assert.Equal(t, cuda.Part(b, 4, 20), r)
	var slot tensor.Slot
	part := must(tensor.Over(c, b, tensor.Float32, must(layout.Of(2))(t)))(t)
	sees(t, must(slot.View(part, must(layout.Of(6))(t)))(t), count[float32](6)...) // the whole buffer is the storage
	_, err := tensor.Over(c, b, tensor.Float64, x.Layout())
	require.EqualError(t, err, "tensor: over [3 2] strides [1 3] offset 0: the buffer has 3 elements of float64")
	_, err = tensor.Over(c, b, 0, x.Layout())
	require.Error(t, err)
	require.NoError(t, b.Free())
	_, err = tensor.Read[float32](x)
	require.ErrorIs(t, err, tensor.ErrFreed)
	_, err = tensor.Over(c, b, tensor.Float32, x.Layout())
	require.ErrorIs(t, err, tensor.ErrFreed)
	_, err = tensor.Over(nil, b, tensor.Float32, x.Layout())
	require.ErrorIs(t, err, tensor.ErrNotOpen)
}

// Kernels get the address of the lowest place, and the checker sees the range.
func TestTensorsAreArgumentsOfKernels(t *testing.T) {
	_, c := newRig(t)
	m := must(c.LoadModule([]byte(".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry two(.param .u64 a, .param .u64 b) { ret; }\n")))(t)
	f := must(m.Function("two"))(t)
	x := must(tensor.From(c, count[float32](8), 2, 4))(t)
	y := must(tensor.New(c, tensor.Float32, 4))(t)
	row := must(x.Index(0, 1))(t)
	in, out := must(row.In())(t), must(y.Out())(t)
	assert.Equal(t, cuda.In(must(x.Buffer())(t)).Of(16, 16), in)
	require.NoError(t, c.Launch(f, cuda.Cover(4, 32), in, out))
	inOut := must(y.InOut())(t)
	assert.Equal(t, cuda.InOut(must(y.Buffer())(t)).Of(0, 16), inOut)
	assert.Equal(t, cuda.Out(must(y.Buffer())(t)).Of(0, 16), out)
	require.NoError(t, tensor.Scoped(c, func(s *tensor.Scope) error { return s.Launch(f, cuda.Cover(4, 32), in, inOut) }))
	require.NoError(t, x.Free())
	require.ErrorIs(t, c.Launch(f, cuda.Cover(4, 32), in, out), cuda.ErrNotLive)
	require.NoError(t, y.Free())
}

func TestStringTouchesNothing(t *testing.T) {
	r, c := newRig(t)
	x := must(tensor.New(c, tensor.BFloat16, 2, 3))(t)
	for _, verb := range []string{"%v", "%+v", "%s", "%#v"} {
		assert.Equal(t, "bfloat16[2 3] on GPU 0", fmt.Sprintf(verb, x))
	}
	assert.Zero(t, r.liveBytes())
	require.NoError(t, x.Free())
	assert.Equal(t, "bfloat16[2 3] on GPU 0, freed", x.String())
}
