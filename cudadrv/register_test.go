package cudadrv_test

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
)

var runs atomic.Int64 // names last as long as the process: each run of a test has its own

// unused returns a name that nothing has registered.
func unused(name string) string { return fmt.Sprint(name, " ", runs.Add(1)) }

// A registered name makes a driver for each call; a name that was registered twice, or never, makes none.
func TestRegister(t *testing.T) {
	one := func() cudadrv.Driver { return sim.New(sim.Config{}) }
	once, twice := unused("registered once"), unused("registered twice")
	cudadrv.Register(once, one)
	first, err := cudadrv.Named(once)
	require.NoError(t, err)
	second, err := cudadrv.Named(once)
	require.NoError(t, err)
	assert.NotSame(t, first, second)

	cudadrv.Register(twice, one)
	cudadrv.Register(twice, one)
	none, err := cudadrv.Named(twice)
	require.ErrorIs(t, err, cudadrv.ErrNoDriver)
	require.ErrorContains(t, err, twice)
	assert.Nil(t, none)

	cudadrv.Register("", one)
	cudadrv.Register("made by nothing", nil)
	for _, name := range []string{"", "made by nothing", "never registered"} {
		none, err := cudadrv.Named(name)
		require.NoError(t, err)
		assert.Nil(t, none, name)
	}
	names := cudadrv.Names()
	assert.Subset(t, names, []string{once, twice})
	assert.NotContains(t, names, "")
	assert.NotContains(t, names, "made by nothing")
	assert.True(t, slices.IsSorted(names))
}

// Packages may register and look up names at the same time.
func TestRegisterFromManyGoroutines(t *testing.T) {
	var all sync.WaitGroup
	begin := make(chan struct{})
	for range 4 {
		names := make([]string, 40)
		for i := range names {
			names[i] = unused("from a goroutine")
		}
		all.Go(func() {
			<-begin
			for _, name := range names {
				cudadrv.Register(name, func() cudadrv.Driver { return sim.New(sim.Config{}) })
			}
			for _, name := range names[:4] {
				driver, err := cudadrv.Named(name)
				assert.NoError(t, err)
				assert.NotNil(t, driver)
			}
			assert.Subset(t, cudadrv.Names(), names)
		})
	}
	close(begin)
	all.Wait()
}
