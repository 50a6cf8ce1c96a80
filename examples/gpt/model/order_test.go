package model

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/cudadrv/sim/ptxrun"
)

// Gradients are added up in the order of the copies' numbers, whichever copy adds them, after the work that computes them: here a kernel
// takes longer than a copy from device to device. The new values reach all copies, after the kernel that computes them.
func TestCopiesAddInOrder(t *testing.T) {
	driver := sim.New(sim.Config{
		Devices: 3, Bytes: true, NoCosts: true, Executor: ptxrun.New(ptxrun.Config{}),
		KernelTime: func(string, cudadrv.Geometry) time.Duration { return time.Millisecond },
	})
	var places []Place
	for i := range 3 {
		c, err := cuda.Open(vram.Config{Driver: driver, Ordinal: i})
		require.NoError(t, err)
		o, err := ops.New(c)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, errors.Join(o.Close(), c.Close())) })
		places = append(places, Place{c, o})
	}
	config := Config{Layers: 1, Width: 4, Heads: 1, Context: 4, Vocabulary: 11, Type: tensor.Float32}
	p, err := NewPipeline(t.Context(), places, config, Training{Batch: 1, Parts: 3, Length: 2}, 1, 3, 1)
	require.NoError(t, err)
	defer func() { require.NoError(t, p.Close()) }()

	var all sync.WaitGroup
	for i, st := range p.stages {
		scope, err := tensor.NewScope(st.scope)
		require.NoError(t, err)
		value, err := tensor.New(scope, tensor.Float32)
		require.NoError(t, err)
		require.NoError(t, tensor.Fill(scope, value, []float32{1e8, -1e8, 3}[i])) // another order has another sum
		all.Go(func() {
			for _, x := range st.all {
				assert.NoError(t, st.ops.AddInto(scope, x.Grad, x.Grad, value))
			}
			assert.NoError(t, st.reduce(t.Context()))
			assert.NoError(t, st.gatherNorms(t.Context()))
			for _, x := range st.all {
				if x.Param != nil {
					assert.NoError(t, st.ops.CopyInto(scope, x.Param, x.Grad))
				}
			}
			assert.NoError(t, st.gatherValues(t.Context()))
			assert.NoError(t, errors.Join(st.work.drain(), scope.Close()))
		})
	}
	all.Wait()
	for _, st := range p.stages {
		assert.Len(t, st.peers, 3)
		for _, x := range st.all {
			got, err := tensor.Read[float32](x.Value)
			require.NoError(t, err)
			for i := range x.Grad.Len() {
				require.Equal(t, float32(3), got[i], x.Name) //nolint:testifylint // the sum is exact
			}
		}
	}
}
