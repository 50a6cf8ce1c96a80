package regions_test

import (
	"bytes"
	"context"
	"runtime/trace"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/internal/region"
	"github.com/go-vram/vram/monitor/regions"
)

const mib = int64(1) << 20

// record returns a trace of growth, a wait for another caller's free, and a trim.
func record(t *testing.T) []byte {
	t.Helper()
	var text bytes.Buffer
	require.NoError(t, trace.Start(&text))
	synctest.Test(t, func(t *testing.T) {
		d, err := vram.Open(vram.Config{Driver: sim.New(sim.Config{}), LimitBytes: 64 * mib})
		require.NoError(t, err)
		s, err := d.NewStream()
		require.NoError(t, err)
		x, err := s.Alloc(60 * mib)
		require.NoError(t, err)
		go func() {
			y, err := s.AllocFor(context.Background(), vram.Request{Bytes: 20 * mib, Wait: true})
			assert.NoError(t, err)
			assert.NoError(t, y.Free())
		}()
		synctest.Wait() // until it is parked
		require.NoError(t, x.Free())
		synctest.Wait()
		_, err = d.Trim(context.Background(), 0)
		require.NoError(t, err)
		require.NoError(t, d.Close())
	})
	trace.Stop()
	return text.Bytes()
}

func TestATraceHasTheRegions(t *testing.T) {
	without := record(t)
	regions.Enable()
	with := record(t)
	regions.Disable()
	after := record(t)
	for _, name := range []string{region.Wait, region.Growth, region.DriverJob} {
		assert.False(t, bytes.Contains(without, []byte(name)), name)
		assert.True(t, bytes.Contains(with, []byte(name)), name)
		assert.False(t, bytes.Contains(after, []byte(name)), name)
	}
}
