package cudadrv_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
)

// A registered name makes a driver for each call; a name that was registered twice, or never, makes none.
func TestRegister(t *testing.T) {
	one := func() cudadrv.Driver { return sim.New(sim.Config{}) }
	cudadrv.Register("registered once", one)
	first, err := cudadrv.Named("registered once")
	require.NoError(t, err)
	second, err := cudadrv.Named("registered once")
	require.NoError(t, err)
	assert.NotSame(t, first, second)

	cudadrv.Register("registered twice", one)
	cudadrv.Register("registered twice", one)
	none, err := cudadrv.Named("registered twice")
	require.ErrorIs(t, err, cudadrv.ErrNoDriver)
	require.ErrorContains(t, err, `"registered twice"`)
	assert.Nil(t, none)

	cudadrv.Register("", one)
	cudadrv.Register("made by nothing", nil)
	for _, name := range []string{"", "made by nothing", "never registered"} {
		none, err := cudadrv.Named(name)
		require.NoError(t, err)
		assert.Nil(t, none, name)
	}
	assert.Equal(t, []string{"registered once", "registered twice"}, slices.DeleteFunc(cudadrv.Names(), func(name string) bool {
		return name != "registered once" && name != "registered twice" && name != "" && name != "made by nothing"
	}))
}

// Packages may register and look up names at the same time.
func TestRegisterFromManyGoroutines(t *testing.T) {
	var all sync.WaitGroup
	for n := range 16 {
		name := "goroutine " + string(rune('a'+n))
		all.Go(func() {
			cudadrv.Register(name, func() cudadrv.Driver { return sim.New(sim.Config{}) })
			driver, err := cudadrv.Named(name)
			assert.NoError(t, err)
			assert.NotNil(t, driver)
			assert.Contains(t, cudadrv.Names(), name)
		})
	}
	all.Wait()
}
