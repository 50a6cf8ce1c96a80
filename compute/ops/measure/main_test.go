package main

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/compute/kernel"
	"github.com/go-vram/vram/compute/kernel/tune"
	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/cudadrv/sim/ptxrun"
	"github.com/go-vram/vram/internal/recoveredtest"
)

func TestMain(m *testing.M) { recoveredtest.Main(m) }

func newMeasurer(t *testing.T, with ...kernel.Option) *measurer {
	t.Helper()
	dev, err := vram.Open(vram.Config{Driver: sim.New(sim.Config{Bytes: true, Executor: ptxrun.New(ptxrun.Config{})})})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, dev.Close()) })
	stream, err := dev.NewStream()
	require.NoError(t, err)
	c, err := cuda.NewContext(stream)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Close()) })
	o, err := ops.New(c, with...)
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, c.Synchronize(context.Background()))
		assert.NoError(t, o.Close())
	})
	return &measurer{c: c, o: o, begin: time.Now(), limit: time.Hour}
}

// Every operation of the list runs, on both types.
func TestTheListRuns(t *testing.T) {
	m := newMeasurer(t)
	for _, of := range []tensor.Type{tensor.Float32, tensor.BFloat16} {
		for _, op := range append(append(elementwise(), rows()...), whole()...) {
			require.NoError(t, m.one(op, of, []int{4, 8}), op.name)
		}
	}
	assert.Empty(t, m.o.Kernels().Tuned().Devices())
}

func TestWhatIsMeasuredIsReportedOnce(t *testing.T) {
	m := newMeasurer(t, kernel.WithTuning(kernel.Tuning{Mode: kernel.TuneNow, Rounds: 1, RotateBytes: 1 << 12, Limit: time.Hour}))
	for range 2 {
		require.NoError(t, m.one(elementwise()[0], tensor.Float32, []int{40}))
		m.report("add")
	}
	assert.Equal(t, 1, m.measured)
	read, err := tune.Parse(m.o.Kernels().Tuned().String())
	require.NoError(t, err)
	assert.Len(t, read.Devices(), 1)
	m.limit = 0
	require.NoError(t, m.all())
	assert.Greater(t, m.left, 50)
}
