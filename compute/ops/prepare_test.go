package ops_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel"
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
