package ops_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel"
	"github.com/go-vram/vram/compute/kernel/routine"
	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/tensor"
)

var randomTypes = []tensor.Type{tensor.Float32, tensor.Float64, tensor.Float16, tensor.BFloat16}

// Elements are the words of Philox of the counter that their group has: Random123's known answers come out of the kernel.
func TestUniformHasTheKnownAnswers(t *testing.T) {
	r := newRig(t)
	for _, c := range []struct {
		random ops.Random
		want   []uint32
	}{
		{ops.Random{}, []uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{
			ops.Random{Seed: math.MaxUint64, Stream: math.MaxUint64, Offset: math.MaxUint64},
			[]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
		},
		{
			ops.Random{Seed: 0x299f31d0_a4093822, Offset: 0x85a308d3_243f6a88, Stream: 0x03707344_13198a2e},
			[]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1},
		},
	} {
		x, err := r.o.Uniform(r.s, tensor.Float32, c.random, 0, 1, 4)
		require.NoError(t, err)
		var want []float64
		for _, w := range c.want {
			want = append(want, float64(w>>8)/(1<<24))
		}
		r.near(want, x, 0, 0)
		x, err = r.o.Uniform(r.s, tensor.Float64, c.random, 0, 1, 2)
		require.NoError(t, err)
		want = nil
		for i := 0; i < 4; i += 2 {
			want = append(want, math.Ldexp(float64((uint64(c.want[i+1])<<32|uint64(c.want[i]))>>11), -53))
		}
		r.near(want, x, 0, 0)
	}
}

// The numbers are those that the host computes, bit for bit, in any shape and layout.
func TestRandomNumbersAreThoseOfTheHost(t *testing.T) {
	r := newRig(t)
	for i := range 48 {
		if i == 32 {
			ops.Widen(r.o)
		}
		of, kind := randomTypes[i%4], []routine.Kind{routine.Uniform, routine.Normal}[i/4%2]
		shape := r.shape(i % 4)
		random := ops.Random{Seed: r.random.Uint64(), Stream: r.random.Uint64(), Offset: r.random.Uint64()}
		base, scale := float64(r.random.IntN(9)-4), math.Ldexp(1, r.random.IntN(5)-2)
		out := r.view(of, shape)
		if kind == routine.Uniform {
			require.NoError(t, r.o.UniformInto(r.s, out, random, base, base+scale))
		} else {
			require.NoError(t, r.o.NormalInto(r.s, out, random, base, scale))
		}
		want := make([]float64, count(shape))
		for j := range want {
			x := routine.Standard(kind, of, random.Seed, random.Stream, random.Offset, uint64(j/routine.GroupLen))[j%routine.GroupLen]
			if want[j] = math.FMA(x, scale, base); of != tensor.Float64 {
				want[j] = float64(float32(want[j]))
			}
		}
		if of.Size() == 2 {
			rounded, err := r.o.Cast(r.s, r.tensor(array{shape, want}), of)
			require.NoError(t, err)
			want = r.read(rounded).values
		}
		r.near(want, out, 0, 0, of, kind, shape)
	}
}

// After gives other numbers, and Ahead is added on the device.
func TestAfterAndAhead(t *testing.T) {
	r := newRig(t)
	random := ops.Random{Seed: 3}
	const n = 11
	for _, of := range []tensor.Type{tensor.Float32, tensor.Float64} {
		x, err := r.o.Uniform(r.s, of, random, 0, 1, n)
		require.NoError(t, err)
		next := random.After(n)
		y, err := r.o.Uniform(r.s, of, next, 0, 1, n)
		require.NoError(t, err)
		seen := map[float64]bool{}
		for _, v := range append(r.read(x).values, r.read(y).values...) {
			require.False(t, seen[v])
			seen[v] = true
		}
		ahead, err := tensor.From(r.s, []int64{int64(next.Offset) - 1}, 1) //nolint:gosec // small
		require.NoError(t, err)
		z, err := r.o.Uniform(r.s, of, ops.Random{Seed: 3, Offset: 1, Ahead: ahead}, 0, 1, n)
		require.NoError(t, err)
		r.near(r.read(y).values, z, 0, 0)
	}

	ahead, err := tensor.Zeros(r.s, tensor.Int64)
	require.NoError(t, err)
	one, err := r.o.Fill(r.s, tensor.Int64, 1)
	require.NoError(t, err)
	out := r.view(tensor.Float32, []int{n})
	require.NoError(t, out.Allocate())
	random.Ahead = ahead
	work := func() error {
		if err := r.o.AddInto(r.c, ahead, ahead, one); err != nil {
			return err
		}
		return r.o.NormalInto(r.c, out, random, 0, 1)
	}
	require.NoError(t, work())
	g, err := r.c.Capture(work)
	require.NoError(t, err)
	for i := range 3 {
		require.NoError(t, g.Launch(r.c))
		var want []float64
		for j := range n {
			want = append(want, routine.Standard(routine.Normal, tensor.Float32, 3, 0, uint64(i+2), uint64(j/4))[j%4]) //nolint:gosec // small
		}
		r.near(want, out, 0, 0)
	}
	require.NoError(t, g.Close())
}

func TestMistakesOfRandoms(t *testing.T) {
	r := newRig(t)
	var types *tensor.TypeError
	_, err := r.o.Uniform(r.s, tensor.Int32, ops.Random{}, 0, 1, 4)
	require.ErrorAs(t, err, &types)
	var failed *ops.Error
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, "uniform", failed.Op)
	x := r.tensor(newArray([]int{3}, r.random.NormFloat64))
	_, err = r.o.Normal(r.s, tensor.Float32, ops.Random{Ahead: x}, 0, 1, 4)
	require.ErrorAs(t, err, &types)
	two, err := tensor.Zeros(r.s, tensor.Int64, 2)
	require.NoError(t, err)
	_, err = r.o.Normal(r.s, tensor.Float32, ops.Random{Ahead: two}, 0, 1, 4)
	require.ErrorIs(t, err, ops.ErrShape)
	repeated, err := x.Broadcast(2, 3)
	require.NoError(t, err)
	require.ErrorIs(t, r.o.NormalInto(r.s, repeated, ops.Random{}, 0, 1), kernel.ErrRepeats)
	require.ErrorIs(t, r.o.NormalInto(r.s, nil, ops.Random{}, 0, 1), tensor.ErrNoTensor)
	var closed ops.Ops
	require.ErrorIs(t, closed.UniformInto(r.s, x, ops.Random{}, 0, 1), ops.ErrNotOpen)
}
