package ops_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel"
	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/tensor"
)

// shelf is a store in memory.
type shelf struct{ images sync.Map }

func (s *shelf) Get(text string) ([]byte, bool) {
	image, ok := s.images.Load(text)
	if !ok {
		return nil, false
	}
	return slices.Clone(image.([]byte)), true
}

func (s *shelf) Put(text string, image []byte) { s.images.Store(text, slices.Clone(image)) }

// All operations run in a process that may not compile, with the kernels that another one has left in the store; others are
// refused.
func TestPreparedFromAStore(t *testing.T) {
	var kept shelf
	before := newRigOn(t, bookkeeping(t), kernel.WithStore(&kept))
	for op, ways := range before.calls() {
		for way, f := range ways {
			require.NoError(t, f(), op, way)
		}
	}
	r := newRigOn(t, bookkeeping(t), kernel.WithStore(&kept), kernel.Prepared())
	for op, ways := range r.calls() {
		for way, f := range ways {
			require.NoError(t, f(), op, way)
		}
	}
	stats := r.o.Kernels().Stats()
	assert.Zero(t, stats.Compiled)
	assert.Zero(t, stats.Failed)
	assert.Positive(t, stats.Stored)

	_, err := r.o.Clamp(r.s, r.zeros(3), 0.25, 0.75)
	require.ErrorIs(t, err, kernel.ErrNotPrepared)
	assert.Zero(t, r.o.Kernels().Stats().Compiled)
	assert.Zero(t, r.o.Kernels().Stats().Failed)
}

// Operations that ran before Freeze still run, also routines without expressions; others are refused.
func TestFreeze(t *testing.T) {
	r := newRigOn(t, bookkeeping(t))
	o := r.operands()
	run := []call{
		func() error { return r.o.AddInto(r.s, o.out, o.x, o.bias) },
		func() error { return r.o.CrossEntropyInto(r.s, o.row, o.x, o.classes) },
		func() error { return r.o.GatherInto(r.s, o.out, o.x, o.indices, 0) },
	}
	for _, f := range run {
		require.NoError(t, f())
	}
	r.o.Kernels().Freeze()
	compiled := r.o.Kernels().Stats().Compiled
	for _, f := range run {
		require.NoError(t, f())
	}
	for _, f := range []call{
		func() error { return r.o.SubInto(r.s, o.out, o.x, o.bias) },
		func() error { return r.o.AddInto(r.s, o.strided, o.x, o.bias) },
		func() error { _, err := r.o.Gather(r.s, o.half, r.made(tensor.Int32, 16, 32), 0); return err },
	} {
		require.ErrorIs(t, f(), kernel.ErrNotPrepared)
	}
	assert.Equal(t, compiled, r.o.Kernels().Stats().Compiled)
}

// Tensors without gaps have the kernels of one dimension, of each shape.
func TestShapesWithoutGapsHaveOneKernel(t *testing.T) {
	r := newRigOn(t, launching(t))
	indices := func(shape ...int) *tensor.Tensor {
		x, err := tensor.Zeros(r.s, tensor.Int32, shape...)
		require.NoError(t, err)
		return x
	}
	table, columns := r.zeros(7, 5), []int{5}
	all := map[string]func(shape []int) error{
		"uniform": func(shape []int) error { return r.o.UniformInto(r.s, r.zeros(shape...), ops.Random{}, 0, 1) },
		"normal":  func(shape []int) error { return r.o.NormalInto(r.s, r.zeros(shape...), ops.Random{}, 0, 1) },
		"embedding": func(shape []int) error {
			return r.o.EmbeddingInto(r.s, r.zeros(slices.Concat(shape, columns)...), table, indices(shape...))
		},
		"embedding backward": func(shape []int) error {
			return r.o.EmbeddingBackwardInto(r.s, table, r.zeros(slices.Concat(shape, columns)...), indices(shape...))
		},
		"cross entropy gradient": func(shape []int) error {
			logits := r.zeros(slices.Concat(shape, columns)...)
			return r.o.CrossEntropyGradientInto(r.s, r.zeros(), r.zeros(shape...), logits, indices(shape...), ops.LossGradient{})
		},
	}
	for name, f := range all {
		require.NoError(t, f([]int{24}), name)
	}
	r.o.Kernels().Freeze()
	for name, f := range all {
		for _, shape := range [][]int{{24}, {4, 6}, {2, 3, 4}, {2, 3, 2, 2}, {1, 24, 1}} {
			require.NoError(t, f(shape), "%s of %v", name, shape)
		}
	}
}
