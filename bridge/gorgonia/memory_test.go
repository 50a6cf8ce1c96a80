package gorgonia_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	host "gorgonia.org/tensor"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/bridge/gorgonia"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/vramtest"
)

func TestMemoryEndsWithItsScope(t *testing.T) {
	r := newRig(t)
	live := r.dev.Stats().LiveBytes
	x := numbers[float32](r, 31).device
	outside := r.dev.Stats().LiveBytes
	require.Greater(t, outside, live)
	var kept, lost host.Tensor
	require.NoError(t, r.e.Scoped(func() error {
		return r.e.Scoped(func() (err error) {
			kept, err = host.Add(x, x)
			require.NoError(t, err)
			lost, err = host.Mul(x, x)
			require.NoError(t, err)
			return r.e.Keep(kept, x) // x is of another scope, and stays there
		})
	}))
	assert.Equal(t, outside, r.dev.Stats().LiveBytes, "a kept tensor lives until the outer scope ends")
	for _, gone := range []host.Tensor{kept, lost} {
		_, err := gorgonia.Read[float32](gone)
		require.ErrorIs(t, err, gorgonia.ErrForeign)
		require.ErrorIs(t, r.e.Keep(gone), gorgonia.ErrForeign)
		require.ErrorIs(t, r.e.Free(gone, 0), gorgonia.ErrForeign)
	}
	failure := errors.New("planted")
	require.ErrorIs(t, r.e.Scoped(func() error {
		_, err := host.Add(x, x)
		require.NoError(t, err)
		return failure
	}), failure)
	assert.PanicsWithValue(t, failure, func() {
		_ = r.e.Scoped(func() error {
			_, err := host.Add(x, x)
			require.NoError(t, err)
			panic(failure)
		})
	})
	assert.Equal(t, outside, r.dev.Stats().LiveBytes)
	require.NoError(t, r.e.Free(x, 0))
	assert.Equal(t, live, r.dev.Stats().LiveBytes)
}

func TestAKeptTensorLivesInTheOuterScope(t *testing.T) {
	r := newRig(t)
	x := numbers[float32](r, 7)
	var y host.Tensor
	require.NoError(t, r.e.Scoped(func() (err error) {
		if y, err = host.Add(x.device, x.device); err != nil {
			return err
		}
		return r.e.Keep(y)
	}))
	want, err := host.Add(x.host, x.host)
	require.NoError(t, err)
	same[float32](r, want, y, 0)
	require.NoError(t, r.e.Keep(y), "in the outermost scope memory lives until Close")
	same[float32](r, want, y, 0)
}

// The scope in which an engine was made does not end the engine's memory, and Close ends the engine.
func TestAClosedEngineRefuses(t *testing.T) {
	r := newRig(t)
	s, err := tensor.NewScope(r.c)
	require.NoError(t, err)
	e, err := gorgonia.New(s, r.o)
	require.NoError(t, err)
	x, err := gorgonia.From(e, []float32{1, 2, 3})
	require.NoError(t, err)
	require.NoError(t, e.Scoped(func() error { return s.Close() }))
	_, err = gorgonia.Read[float32](x)
	require.NoError(t, err, "the engine's own scope has not ended")
	require.NoError(t, e.Close())
	require.NoError(t, e.Close())
	for _, err := range []error{
		e.Scoped(func() error { return nil }), e.Keep(x), e.Free(x, 0), gorgonia.Write(x, []float32{1, 2, 3}), e.MatMul(x, x, x),
		second(e.New(host.Float32, 1)), second(e.Alloc(1)), second(gorgonia.Scalar(e, 1.0)), second(host.Add(x, x)), second(e.Sum(x)),
	} {
		failure := (*gorgonia.Error)(nil)
		require.ErrorAs(t, err, &failure)
	}
	require.ErrorIs(t, second(e.Alloc(1)), tensor.ErrScopeEnded)
}

func second[T any](_ T, err error) error { return err }

func TestCloseInsideAScope(t *testing.T) {
	r := newRig(t)
	live := r.dev.Stats().LiveBytes
	e, err := gorgonia.New(r.c, r.o)
	require.NoError(t, err)
	require.NoError(t, e.Scoped(func() error {
		return e.Scoped(func() error {
			_, err := e.New(host.Float64, 100)
			require.NoError(t, err)
			return e.Close()
		})
	}))
	assert.Equal(t, live, r.dev.Stats().LiveBytes)
}

func TestNewMemoryIsZero(t *testing.T) {
	r := newRig(t)
	for range 3 {
		require.NoError(t, r.e.Scoped(func() error {
			made := host.New(host.Of(host.Float32), host.WithShape(5, 3), host.WithEngine(r.e))
			values, err := gorgonia.Read[float32](made)
			require.NoError(t, err)
			assert.Equal(t, make([]float32, 15), values)
			return gorgonia.Write(made, elements[float32](t, numbers[float32](r, 15).host))
		}))
	}
}

func TestCopiesAndFills(t *testing.T) {
	r := newRig(t)
	x := numbers[float64](r, 3, 5)
	clone, ok := x.device.Clone().(*host.Dense) // by Alloc and Memcpy
	require.True(t, ok)
	same[float64](r, x.host, clone, 0)
	view, err := clone.Slice(host.S(1, 3))
	require.NoError(t, err)
	require.NoError(t, r.e.Memset(dense(t, view), 2.5))
	values, err := gorgonia.Read[float64](clone)
	require.NoError(t, err)
	assert.Equal(t, append(elements[float64](t, x.host)[:5], 2.5, 2.5, 2.5, 2.5, 2.5, 2.5, 2.5, 2.5, 2.5, 2.5), values)
	r.e.Memclr(dense(t, view))
	values, err = gorgonia.Read[float64](view)
	require.NoError(t, err)
	assert.Equal(t, make([]float64, 10), values)
	single := numbers[float32](r, 3).device
	require.NoError(t, r.e.Memset(single, float32(0.5)))
	singles, err := gorgonia.Read[float32](single)
	require.NoError(t, err)
	assert.Equal(t, []float32{0.5, 0.5, 0.5}, singles)

	foreign := host.New(host.WithBacking([]float64{1}))
	require.ErrorIs(t, r.e.Memset(single, 1), gorgonia.ErrType)
	require.ErrorIs(t, r.e.Memset(single, float64(1)), gorgonia.ErrLayout, "12 bytes are not a number of float64")
	require.ErrorIs(t, r.e.Memset(foreign, float64(1)), gorgonia.ErrForeign)
	require.ErrorIs(t, r.e.Memset(nil, float64(1)), gorgonia.ErrForeign)
	require.ErrorIs(t, r.e.Memcpy(clone, single), gorgonia.ErrShape)
	require.ErrorIs(t, r.e.Memcpy(clone, x.host), gorgonia.ErrForeign)
	require.ErrorIs(t, r.e.Memcpy(x.host, clone), gorgonia.ErrForeign)
	require.ErrorIs(t, r.e.Memcpy(nil, clone), gorgonia.ErrForeign)
	require.ErrorIs(t, r.e.Free(dense(t, view), 0), gorgonia.ErrForeign, "a slice of memory is not freed")
	require.ErrorIs(t, r.e.Free(nil, 0), gorgonia.ErrForeign)
	accessible, err := r.e.Accessible(clone)
	require.ErrorIs(t, err, gorgonia.ErrInaccessible)
	assert.Nil(t, accessible)
	assert.False(t, clone.IsNativelyAccessible())
	assert.False(t, r.e.AllocAccessible())
	assert.True(t, r.e.WorksWith(clone.DataOrder()))
}

func TestNoBytes(t *testing.T) {
	r := newRig(t)
	live := r.dev.Stats().LiveBytes
	m, err := r.e.Alloc(0)
	require.NoError(t, err)
	require.NoError(t, r.e.Free(m, 0))
	require.NoError(t, r.e.Memcpy(m, m))
	require.NoError(t, r.e.Memset(m, 1))
	r.e.Memclr(m)
	empty, err := r.e.New(host.Float32, 0, 3)
	require.NoError(t, err)
	require.NoError(t, r.e.Keep(empty))
	require.NoError(t, gorgonia.Write(empty, []float32{}))
	assert.Equal(t, live, r.dev.Stats().LiveBytes)
	_, err = r.e.Alloc(-1)
	require.Error(t, err)
}

// Memclr returns no error: the scope around it does, once.
func TestAFailedClearIsReported(t *testing.T) {
	r := newRig(t)
	foreign := host.New(host.WithBacking([]float32{1}))
	require.ErrorIs(t, r.e.Scoped(func() error {
		r.e.Memclr(foreign)
		return nil
	}), gorgonia.ErrForeign)
	require.NoError(t, r.e.Scoped(func() error { return nil }))
	e, err := gorgonia.New(r.c, r.o)
	require.NoError(t, err)
	e.Memclr(foreign)
	require.ErrorIs(t, e.Close(), gorgonia.ErrForeign)
}

func TestShortMemoryIsAnError(t *testing.T) {
	opened := vramtest.Open(t, vramtest.Kernels())
	r := newRigOn(t, opened.Device)
	live := r.dev.Stats().LiveBytes
	const tooMany = 1 << 44
	_, err := r.e.New(host.Float32, tooMany)
	require.ErrorIs(t, err, vram.ErrTooLarge)
	assert.Panics(t, func() { host.New(host.Of(host.Float32), host.WithShape(tooMany), host.WithEngine(r.e)) })
	assert.Equal(t, live, r.dev.Stats().LiveBytes)
	made, err := r.e.New(host.Float32, 2)
	require.NoError(t, err)
	same[float32](r, host.New(host.WithShape(2), host.WithBacking([]float32{0, 0})), made, 0)
}

func TestNewRefuses(t *testing.T) {
	r := newRig(t)
	_, err := gorgonia.New(nil, r.o)
	require.ErrorIs(t, err, tensor.ErrNotOpen)
	s, err := tensor.NewScope(r.c)
	require.NoError(t, err)
	require.NoError(t, s.Close())
	_, err = gorgonia.New(s, r.o)
	require.ErrorIs(t, err, tensor.ErrScopeEnded)
}
