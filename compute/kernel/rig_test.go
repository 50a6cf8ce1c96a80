package kernel_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/compute/kernel"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/recoveredtest"
)

func TestMain(m *testing.M) { recoveredtest.Main(m) }

// rig is a device with a context and a compiler.
type rig struct {
	testing.TB

	dev     *vram.Device
	c       *cuda.Context
	kernels *kernel.Compiler
}

func newRig(tb testing.TB, with ...kernel.Option) *rig {
	tb.Helper()
	return newRigWith(tb, open(tb), with...)
}

func newRigOn(tb testing.TB, driver cudadrv.Driver, with ...kernel.Option) *rig {
	tb.Helper()
	dev, err := vram.Open(vram.Config{Driver: driver})
	require.NoError(tb, err)
	tb.Cleanup(func() { assert.NoError(tb, dev.Close()) })
	return newRigWith(tb, dev, with...)
}

// newRigWith is a rig on a device, which the caller closes.
func newRigWith(tb testing.TB, dev *vram.Device, with ...kernel.Option) *rig {
	tb.Helper()
	r := &rig{TB: tb, dev: dev}
	r.c = r.context()
	var err error
	r.kernels, err = kernel.NewCompiler(r.c, with...)
	require.NoError(tb, err)
	tb.Cleanup(func() {
		assert.NoError(tb, r.c.Synchronize(context.Background()))
		assert.NoError(tb, r.kernels.Close())
	})
	return r
}

func (r *rig) context() *cuda.Context {
	r.Helper()
	s, err := r.dev.NewStream()
	require.NoError(r, err)
	c, err := cuda.NewContext(s)
	require.NoError(r, err)
	r.Cleanup(func() { assert.NoError(r, c.Close()) })
	return c
}

// normal is a tensor of random numbers, which the test frees at its end.
func (r *rig) normal(seed uint64, shape ...int) *tensor.Tensor {
	r.Helper()
	x, err := tensor.From(r.c, normal(seed, shape...), shape...)
	require.NoError(r, err)
	r.Cleanup(func() { assert.NoError(r, x.Free()) })
	return x
}

// normal are random numbers.
func normal(seed uint64, shape ...int) []float32 {
	n := 1
	for _, d := range shape {
		n *= d
	}
	random := rand.New(rand.NewPCG(seed, 7))
	values := make([]float32, n)
	for i := range values {
		values[i] = float32(random.NormFloat64())
	}
	return values
}

// made is a tensor without values.
func (r *rig) made(of tensor.Type, shape ...int) *tensor.Tensor {
	r.Helper()
	x, err := tensor.New(r.c, of, shape...)
	require.NoError(r, err)
	r.Cleanup(func() { assert.NoError(r, x.Free()) })
	return x
}

func outs(all ...*tensor.Tensor) []*tensor.Tensor { return all }
