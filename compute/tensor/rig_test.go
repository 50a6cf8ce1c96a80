package tensor_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/internal/recoveredtest"
	"github.com/go-vram/vram/vramtest"
)

func TestMain(m *testing.M) { recoveredtest.Main(m) }

// rig is a checked device with contexts.
type rig struct {
	*testing.T
	dev *vramtest.Device
}

func newRig(t *testing.T, options ...vramtest.Option) (*rig, *cuda.Context) {
	t.Helper()
	r := &rig{t, vramtest.Open(t, append([]vramtest.Option{vramtest.Machine(sim.Config{Bytes: true, TimedKernels: true})}, options...)...)}
	return r, r.context()
}

func (r *rig) context() *cuda.Context {
	r.Helper()
	c, err := cuda.NewContext(r.dev.Stream())
	require.NoError(r, err)
	r.Cleanup(func() { assert.NoError(r, c.Close()) })
	return c
}

// liveBytes returns the bytes of all buffers, each rounded up to 512.
func (r *rig) liveBytes() int64 { return r.dev.Stats().LiveBytes }

// unit is the length of a short buffer in liveBytes.
const unit = 512

func must[T any](value T, err error) func(t require.TestingT) T {
	return func(t require.TestingT) T {
		require.NoError(t, err)
		return value
	}
}

// count is a slice of so many numbers, from 0 on.
func count[T int8 | uint8 | int16 | int32 | int64 | float32 | float64](n int) []T {
	all := make([]T, n)
	for i := range all {
		all[i] = T(i)
	}
	return all
}

// sees checks the elements of a tensor.
func sees[T tensor.Element](t *testing.T, x *tensor.Tensor, want ...T) {
	t.Helper()
	got, err := tensor.Read[T](x)
	require.NoError(t, err)
	require.True(t, slices.Equal(want, got), "want %v, got %v", want, got)
}
