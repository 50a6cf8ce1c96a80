package acceptance_test

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/meter"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/streams"
)

// counters are all counters of a reading, by the path of their field: every uint64 and every duration
// but the counts of live buffers. An entry of a list goes by its key, as readers tell it.
func counters(s vram.Stats) map[string]int64 {
	all := map[string]int64{}
	var visit func(path string, v reflect.Value)
	visit = func(path string, v reflect.Value) {
		switch x := v.Interface().(type) {
		case streams.SizeStats:
			path = fmt.Sprintf("%s[%d]", path, x.BlockBytes)
		case vram.StreamStats:
			path = fmt.Sprintf("%s[%d]", path, x.Stream)
		case vram.TenantStats:
			path = fmt.Sprintf("%s[%s]", path, x.Name)
		case meter.CallStats:
			path = fmt.Sprintf("%s[%s]", path, x.Func)
		case time.Duration:
			all[path] = int64(x)
			return
		}
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				if name := v.Type().Field(i).Name; name != "LiveCount" {
					visit(path+"."+name, v.Field(i))
				}
			}
		case reflect.Slice:
			for i := range v.Len() {
				at := path
				if v.Type().Elem().Kind() == reflect.Uint64 {
					at = fmt.Sprintf("%s[%d]", path, i)
				}
				visit(at, v.Index(i))
			}
		case reflect.Uint64:
			all[path] = int64(v.Uint()) //nolint:gosec // counts of a test
		}
	}
	visit("Stats", reflect.ValueOf(s))
	return all
}

// rises checks that no counter of a reading is below the previous reading's. A stream that has
// ended is listed no more.
func rises(t *testing.T, before, after map[string]int64, open func(path string) bool) {
	t.Helper()
	for path, was := range before {
		if is, ok := after[path]; (ok || open(path)) && is < was {
			t.Errorf("%s went from %d to %d", path, was, is)
		}
	}
}

// No counter goes back from one reading to the next while callers allocate, free and trim: Prometheus would
// take it for a reset.
func TestCountersNeverGoBack(t *testing.T) {
	t.Parallel()
	polls := 1500
	if testing.Short() {
		polls = 300
	}
	d, err := vram.Open(vram.Config{Driver: sim.New(sim.Config{}), LimitBytes: 256 * mib})
	require.NoError(t, err)
	guest, err := d.Tenant("guest", vram.Quota{LimitBytes: 64 * mib})
	require.NoError(t, err)
	stop := make(chan struct{})
	var callers sync.WaitGroup
	for range 2 {
		s, err := d.NewStream()
		require.NoError(t, err)
		for n := range 2 {
			callers.Go(func() { keepBusy(d, s, guest, n, stop) })
		}
	}
	var pollers sync.WaitGroup
	for range 2 {
		pollers.Go(func() {
			before := counters(d.Stats())
			for range polls {
				after := counters(d.Stats())
				rises(t, before, after, func(string) bool { return true })
				if before = after; t.Failed() {
					return
				}
			}
		})
	}
	pollers.Wait()
	close(stop)
	callers.Wait()
	n := d.Stats()
	assert.Equal(t, n.AllocCount, n.MagazineHits+n.StreamHits+n.PoolHits+n.DriverMisses)
	assert.Positive(t, n.PoolHits)
	assert.Positive(t, n.DriverMisses)
	require.NoError(t, d.Close())
	rises(t, counters(n), counters(d.Stats()), func(path string) bool { return !strings.HasPrefix(path, "Stats.Streams[") })
}

// keepBusy allocates and frees on a stream until it is told to stop: small and large buffers, batches,
// requests of a tenant, some that fail, and it returns memory at the same time.
func keepBusy(d *vram.Device, s *vram.Stream, guest *vram.Tenant, n int, stop <-chan struct{}) {
	ctx := context.Background()
	for i := n; ; i++ {
		select {
		case <-stop:
			return
		default:
		}
		b, err := s.Alloc(int64(1) << (8 + i%16))
		if err == nil {
			_ = b.Free()
		}
		switch i % 64 {
		case 0:
			_ = b.Free() // a bad free
		case 7:
			if some, err := s.AllocBatchFor(ctx, vram.BatchRequest{Bytes: []int64{1 << 12, 1 << 22, 100}}); err == nil {
				_ = some.Free()
			}
		case 15:
			if b, err := s.AllocFor(ctx, vram.Request{Bytes: 3 * mib, Tenant: guest}); err == nil {
				_ = b.Free()
			}
		case 23:
			_, _ = s.Alloc(300 * mib)
			_, _ = s.AllocFor(ctx, vram.Request{Bytes: 65 * mib, Tenant: guest})
		case 31:
			_ = s.Trim(ctx)
		case 63:
			_, _ = d.Trim(ctx, 0)
		}
	}
}

// Counters keep their values while statistics are off, and continue from there.
func TestCountersStayWhileStatisticsAreOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, err := vram.Open(vram.Config{Driver: sim.New(sim.Config{}), LimitBytes: 64 * mib})
		require.NoError(t, err)
		s, err := d.NewStream()
		require.NoError(t, err)
		pair := func() {
			b, err := s.Alloc(4096)
			require.NoError(t, err)
			require.NoError(t, b.Free())
		}
		listed := func(path string) bool { return !strings.HasPrefix(path, "Stats.Streams[") }
		pair()
		before := d.Stats()
		pair()
		full, err := s.Alloc(63 * mib)
		require.NoError(t, err)
		waiting := s.AllocAsync(t.Context(), vram.Request{Bytes: 32 * mib, Wait: true})
		synctest.Wait() // it waits, and its queries of the driver have ended
		require.EqualValues(t, 1, d.Stats().Waits.Waiting)
		require.NoError(t, d.Reconfigure(vram.Settings{Stats: new(vram.StatsOff)}))
		off := d.Stats()
		assert.Equal(t, [...]uint64{0, 0, 1}, [...]uint64{uint64(off.Waits.Waiting), uint64(off.Waits.DemandBytes), off.Waits.Count}, "counts alone")
		waiting.Cancel()
		require.NoError(t, full.Free())
		assert.Equal(t, vram.StatsOff, off.Level)
		rises(t, counters(before), counters(off), listed)
		assert.EqualValues(t, 3, off.AllocCount, "Reconfigure has read it")
		assert.Zero(t, off.LiveBytes+off.ReservedBytes+off.CachedBytes)
		assert.Empty(t, off.Streams)
		pair()
		last, now := counters(off), counters(d.Stats())
		assert.Equal(t, last, now, "the last values")
		require.NoError(t, d.Reconfigure(vram.Settings{Stats: new(vram.StatsOn)}))
		on := d.Stats()
		assert.Equal(t, vram.StatsOn, on.Level)
		assert.EqualValues(t, 4, on.AllocCount, "allocations without statistics count, too")
		rises(t, counters(off), counters(on), listed)
		require.NoError(t, d.Close())
	})
}
