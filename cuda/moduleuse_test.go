package cuda_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
)

// A launch in a capture and Unload may meet, at either one's driver call: the module stays loaded, or the launch is refused. A
// launch that the driver refuses, and a capture that fails, keep no module.
func TestAModuleMeetsALaunchInACapture(t *testing.T) {
	r, c := newFailing(t, sim.Config{})
	load := func() (*cuda.Module, *cuda.Function) {
		m, err := c.LoadModule([]byte(ptx))
		require.NoError(t, err)
		f, err := m.Function("empty")
		require.NoError(t, err)
		return m, f
	}
	meet := func(function string, other func()) {
		r.faults.SetBefore(func(called string) {
			if called == function {
				r.faults.SetBefore(nil)
				other()
			}
		})
	}
	one := cuda.Cover(1, 1)
	t.Run("Unload during the launch", func(t *testing.T) {
		m, f := load()
		g, err := c.Capture(func() error {
			met := false
			meet("cuLaunchKernel", func() { met = true; require.ErrorIs(t, m.Unload(), cuda.ErrModuleInUse) })
			err := c.Launch(f, one)
			assert.True(t, met)
			return err
		})
		require.NoError(t, err)
		require.NoError(t, g.Launch(c))
		require.NoError(t, g.Close())
		require.NoError(t, errors.Join(c.Synchronize(t.Context()), m.Unload(), m.Unload()))
		require.ErrorIs(t, c.Launch(f, one), cuda.ErrUnloaded)
	})
	t.Run("the launch during Unload", func(t *testing.T) {
		m, f := load()
		g, err := c.Capture(func() error {
			meet("cuModuleUnload", func() { require.ErrorIs(t, c.Launch(f, one), cuda.ErrUnloaded) })
			return m.Unload()
		})
		require.NoError(t, err)
		assert.Empty(t, g.Kernels())
		require.NoError(t, g.Close())
	})
	t.Run("Unload that fails", func(t *testing.T) {
		m, f := load()
		require.NoError(t, r.faults.Add(fault.Rule{Func: "cuModuleUnload", First: 1, Result: cudadrv.Unknown}))
		require.ErrorIs(t, m.Unload(), cudadrv.Unknown)
		require.NoError(t, c.Launch(f, one), "it is loaded still")
		require.NoError(t, errors.Join(c.Synchronize(t.Context()), m.Unload()))
	})
	t.Run("a launch that is refused", func(t *testing.T) {
		m, f := load()
		_, err := c.Capture(func() error {
			require.NoError(t, r.faults.Add(fault.Rule{Func: "cuLaunchKernel", First: 1, Result: cudadrv.Unknown}))
			require.ErrorIs(t, c.Launch(f, one), cudadrv.Unknown)
			require.NoError(t, c.Launch(f, one))
			require.ErrorIs(t, m.Unload(), cuda.ErrModuleInUse, "the capture has one launch")
			return errPlanned
		})
		require.ErrorIs(t, err, errPlanned)
		require.NoError(t, m.Unload())
	})
}

var errPlanned = errors.New("planned by the test")
