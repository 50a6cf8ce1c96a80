package acceptance_test

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
)

// A change that cannot be names its field, and changes nothing, also of the other fields.
func TestReconfigureIsAllOrNothing(t *testing.T) {
	h := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
	s := h.stream()
	for field, change := range map[string]vram.Settings{
		"LimitBytes":               {LimitBytes: new(int64(-7))},
		"MemoryFraction":           {MemoryFraction: new(7.0)},
		"Tuning.PressureMark":      {Tuning: &vram.Tuning{PressureMark: 7}},
		"Footprint":                {Footprint: new(vram.Footprint(77))},
		"StreamCacheBytes":         {StreamCacheBytes: new(int64(-7))},
		"Tuning.StreamCacheBlocks": {Tuning: &vram.Tuning{StreamCacheBlocks: -7}},
		"PoolCacheBytes":           {PoolCacheBytes: new(int64(-7))},
		"Tuning.PoolCacheBlocks":   {Tuning: &vram.Tuning{PoolCacheBlocks: -7}},
		"Stats":                    {Stats: new(vram.StatsLevel(77))},
		"Waits":                    {Waits: new(vram.Waits(77))},
	} {
		if change.LimitBytes == nil {
			change.LimitBytes = new(mib)
		}
		err := h.Reconfigure(change)
		var wrong *vram.ConfigError
		require.ErrorAs(t, err, &wrong, field)
		assert.Equal(t, field, wrong.Field)
		assert.Contains(t, err.Error(), "7")
		assert.NotEmpty(t, wrong.Want)
	}
	assert.Equal(t, 64*mib, h.Stats().LimitBytes)
	freeAll(t, must(t, s, 60*mib))
}

// A nil field of a change leaves its setting; a fraction takes the place of a limit in bytes.
func TestReconfigureChangesWhatIsGiven(t *testing.T) {
	h := openHouse(t, vram.Config{LimitBytes: 64 * mib, StreamCacheBytes: 8 * mib, Footprint: vram.Lean}, sim.Config{TotalBytes: 256 * mib})
	s := h.stream()
	require.NoError(t, h.Reconfigure(vram.Settings{}))
	assert.Equal(t, 64*mib, h.Stats().LimitBytes)
	require.NoError(t, h.Reconfigure(vram.Settings{MemoryFraction: new(0.5)}))
	assert.Equal(t, 128*mib, h.Stats().LimitBytes)
	require.NoError(t, h.Reconfigure(vram.Settings{LimitBytes: new(32 * mib), MemoryFraction: new(0.75)}))
	assert.Equal(t, 32*mib, h.Stats().LimitBytes)
	require.NoError(t, h.Reconfigure(vram.Settings{LimitBytes: new(int64(0))}))
	assert.Equal(t, 192*mib, h.Stats().LimitBytes)
	require.NoError(t, h.Reconfigure(vram.Settings{MemoryFraction: new(0.0)}))
	freeAll(t, must(t, s, 256*mib))
	assert.LessOrEqual(t, h.addsUp().CachedBytes, 256*mib)
	require.NoError(t, h.Reconfigure(vram.Settings{Tuning: &vram.Tuning{StreamCacheBlocks: 1}}))
	assert.LessOrEqual(t, h.addsUp().CachedBytes, 8*mib, "the budget in bytes is still in force")
	require.NoError(t, h.Reconfigure(vram.Settings{PoolCacheBytes: new(16 * mib)}))
	h.until("the pool gives back", func() bool { return h.Stats().FreeBytes <= 16*mib })
	h.addsUp()
}

// The longest physical allocation may be changed between two growths, and a Tuning replaces the one
// before it whole.
func TestReconfigureReplacesTheTuning(t *testing.T) {
	h := openHouse(t, vram.Config{Footprint: vram.Fast, Tuning: vram.Tuning{SegmentBytes: 4 * mib, StreamCacheBlocks: 1}}, sim.Config{})
	s := h.stream()
	calls := func(bytes int64) uint64 {
		before := h.faults.Calls("cuMemCreate")
		live := must(t, s, bytes)
		made := h.faults.Calls("cuMemCreate") - before
		freeAll(t, live)
		h.trim()
		return made
	}
	assert.EqualValues(t, 4, calls(16*mib))
	require.NoError(t, h.Reconfigure(vram.Settings{Tuning: &vram.Tuning{SegmentBytes: 8 * mib}}))
	assert.EqualValues(t, 2, calls(16*mib))
	require.NoError(t, h.Reconfigure(vram.Settings{StreamCacheBytes: new(mib)}))
	assert.EqualValues(t, 2, calls(16*mib), "a change without a Tuning leaves it")
	require.NoError(t, h.Reconfigure(vram.Settings{Tuning: &vram.Tuning{}}))
	assert.EqualValues(t, 1, calls(16*mib), "what the footprint mode says")
}

// A limit below the held bytes releases free memory and allows no growth until less is held; live
// buffers stay.
func TestALimitBelowWhatIsHeld(t *testing.T) {
	for _, kind := range []vram.Segments{vram.SegmentsVMM, vram.SegmentsPlain} {
		h := openHouse(t, vram.Config{LimitBytes: 128 * mib, Footprint: vram.Lean, Segments: kind}, sim.Config{})
		s, other := h.stream(), h.stream()
		live := []vram.Buffer{must(t, s, 40*mib), must(t, s, 30*mib)}
		freeAll(t, must(t, s, 20*mib), must(t, other, 10*mib))
		require.NoError(t, h.Reconfigure(vram.Settings{LimitBytes: new(50 * mib)}))
		n := h.Stats()
		assert.Equal(t, 70*mib, n.ReservedBytes, "no more than what lives")
		_, err := other.Alloc(4 * mib)
		require.ErrorIs(t, err, vram.ErrOutOfMemory)
		_, err = other.Alloc(51 * mib)
		require.ErrorIs(t, err, vram.ErrTooLarge)
		freeAll(t, live[1])
		again := must(t, s, 8*mib) // free memory serves
		freeAll(t, again, live[0])
		freeAll(t, must(t, other, 50*mib))
		h.until("the pool gives back", func() bool { return h.Stats().ReservedBytes <= 50*mib })
		require.NoError(t, h.Close())
	}
}

// Everything may be changed by several goroutines at once while others allocate: nobody is refused
// memory that is there, nothing overlaps, books balance, and the last settings hold for pool and
// streams, also in new ones.
func TestReconfigureUnderLoad(t *testing.T) {
	for _, kind := range []vram.Segments{vram.SegmentsVMM, vram.SegmentsPlain} {
		var out text
		h := openHouse(t, vram.Config{Debug: true, Segments: kind, Logger: out.logger()}, sim.Config{})
		h.unsettled = 4 * 4
		var o overlaps
		var work, change sync.WaitGroup
		steps := make(chan struct{}, 3) // at most as many changes as steps of the work, which would starve else
		for g := range uint64(4) {
			work.Go(func() {
				random := rand.New(rand.NewPCG(g, 9))
				for round := range 4 {
					s, err := h.NewStream()
					if !assert.NoError(t, err) {
						return
					}
					load(t, s, &o, random, steps)
					if round%2 == 0 {
						assert.NoError(t, s.Close())
					}
				}
			})
		}
		for g := range uint64(3) {
			change.Go(func() {
				random := rand.New(rand.NewPCG(g, 10))
				for range steps {
					assert.NoError(t, h.Reconfigure(anyChange(random)))
				}
			})
		}
		work.Wait()
		close(steps)
		change.Wait()
		require.NoError(t, h.Reconfigure(vram.Settings{
			LimitBytes: new(512 * mib), StreamCacheBytes: new(4 * mib), PoolCacheBytes: new(int64(0)),
			Tuning: &vram.Tuning{}, Stats: new(vram.StatsOn),
		}))
		n := h.balanced()
		assert.Equal(t, 512*mib, n.LimitBytes)
		assert.Zero(t, n.LiveBytes)
		for _, s := range n.Streams {
			assert.LessOrEqual(t, s.CachedBytes, 12*mib, "with what is in spans and parts of pages")
		}
		assert.NotContains(t, out.String(), "quarantine")
		require.NoError(t, h.Close())
	}
}

// load allocates and frees on a stream, and sends its steps to a channel that has room. It lives on 64 MiB, which every limit leaves.
func load(t *testing.T, s *vram.Stream, o *overlaps, random *rand.Rand, steps chan<- struct{}) {
	t.Helper()
	var live []vram.Buffer
	var bytes int64
	for range 300 {
		select {
		case steps <- struct{}{}:
		default:
		}
		size := []int64{600, 5 * kib, 60 * kib, 200 * kib, mib + 1, 3 * mib}[random.IntN(6)]
		for bytes+size > 16*mib || len(live) > 0 && random.IntN(3) == 0 {
			i := random.IntN(len(live))
			bytes -= live[i].Bytes()
			assert.NoError(t, o.free(live[i]))
			live = append(live[:i], live[i+1:]...)
		}
		b, err := s.Alloc(size)
		if errors.Is(err, vram.ErrOutOfMemory) {
			continue // while a lower limit holds more goes to others than is left
		}
		if !assert.NoError(t, err) || !assert.NoError(t, o.enter(b)) {
			return
		}
		live, bytes = append(live, b), bytes+size
	}
	for _, b := range live {
		assert.NoError(t, o.free(b))
	}
}

func anyChange(random *rand.Rand) vram.Settings {
	change := vram.Settings{Stats: new(vram.StatsLevel(random.IntN(3))), ReleaseAfter: new(time.Duration(random.IntN(4)-1) * time.Second)}
	switch random.IntN(4) {
	case 0:
		change.LimitBytes = new(int64(1+random.IntN(4)) * 128 * mib)
	case 1:
		change.Footprint = new(vram.Footprint(random.IntN(3)))
	case 2:
		change.StreamCacheBytes, change.Tuning = new(int64(random.IntN(3))*8*mib), &vram.Tuning{StreamCacheBlocks: random.IntN(5)}
	case 3:
		change.PoolCacheBytes, change.Tuning = new(int64(random.IntN(3))*8*mib), &vram.Tuning{PoolCacheBlocks: random.IntN(5)}
	}
	return change
}

// A driver that does not take memory back when the limit is lowered is told of; the limit holds all
// the same.
func TestALimitWhoseTrimFails(t *testing.T) {
	h := openHouse(t, vram.Config{LimitBytes: 128 * mib, Footprint: vram.Lean}, sim.Config{})
	s := h.stream()
	freeAll(t, must(t, s, 60*mib))
	h.fail("cuMemUnmap", cudadrv.LaunchFailed)
	require.ErrorIs(t, h.Reconfigure(vram.Settings{LimitBytes: new(20 * mib)}), cudadrv.LaunchFailed)
	h.faults.Clear()
	assert.Equal(t, 20*mib, h.Stats().LimitBytes)
	h.trim()
	assert.Zero(t, h.Stats().ReservedBytes)
}

// Statistics that are off have the figures that cost nothing; exact ones have the exact peak, also
// of several streams.
func TestLevelsOfStatistics(t *testing.T) {
	freeAll(t, must(t, openHouse(t, vram.Config{}, sim.Config{}).stream(), 1)) // once: allocations of the process, not of the test
	synctest.Test(t, func(t *testing.T) {
		ahead := []vram.Demand{{Bytes: 6 * mib, Count: 1}}
		h := openHouse(t, vram.Config{Stats: vram.StatsOff, Warm: ahead}, sim.Config{})
		ahead[0].Bytes = 60 * mib // Open has returned: they are the caller's
		synctest.Wait()
		assert.Equal(t, 6*mib, h.usedBytes())
		a, b := h.stream(), h.stream()
		x := must(t, a, 8*mib)
		n := h.Stats()
		assert.Positive(t, n.DriverCalls)
		assert.Positive(t, n.DriverTime)
		assert.Positive(t, n.LimitBytes)
		assert.NotEmpty(t, n.Driver)
		n.DriverCalls, n.DriverTime, n.Driver, n.LimitBytes = 0, 0, nil, 0
		assert.Equal(t, vram.Stats{Level: vram.StatsOff}, n)
		<-time.After(time.Second) // virtual: some ticks, that sample nothing
		synctest.Wait()
		freeAll(t, x)

		require.NoError(t, h.Reconfigure(vram.Settings{Stats: new(vram.StatsOn)}))
		assert.Less(t, h.addsUp().PeakLiveBytes, 16*mib)
		y, z := must(t, a, 40*mib), must(t, b, 2*mib)
		must(t, b, 2*mib) // z's stream speaks to the pool, a's has not since
		<-time.After(time.Second)
		synctest.Wait()
		freeAll(t, y, z)
		assert.GreaterOrEqual(t, h.Stats().PeakLiveBytes, 44*mib, "a tick has seen it")
		require.NoError(t, a.Trim(t.Context()))
		h.ResetPeaks()
		n = h.Stats()
		assert.GreaterOrEqual(t, n.PeakReservedBytes, 44*mib)
		assert.Less(t, n.PeakLiveBytes, 8*mib, "samples before the reset are forgotten")

		// Pending memory of several streams is part of the peak that begins, of the device and of a measurement.
		pending := func() (finish func()) {
			of := map[*vram.Stream]*vram.Stream{a: b, b: a}
			for s, by := range of {
				x := must(t, s, 4*mib)
				require.NoError(t, h.gpu.Launch(by.Handle(), time.Hour))
				require.NoError(t, x.RecordStream(by))
				freeAll(t, x)
			}
			require.Equal(t, 8*mib, h.Stats().PendingBytes)
			return func() {
				h.gpu.Advance(2 * time.Hour)
				for range 2 { // the first finds the ends of the uses
					require.NoError(t, errors.Join(a.Trim(t.Context()), b.Trim(t.Context())))
					<-time.After(time.Second)
					synctest.Wait()
				}
			}
		}
		finish := pending()
		h.ResetPeaks()
		finish()
		assert.Equal(t, [...]int64{0, 8 * mib}, [...]int64{h.Stats().PendingBytes, h.Stats().PeakPendingBytes}, "since the reset")
		finish = pending()
		m := h.Measure(finish)
		assert.Equal(t, 8*mib, m.Stats.PeakPendingBytes, "inside")

		require.NoError(t, h.Reconfigure(vram.Settings{Stats: new(vram.StatsExact)}))
		<-time.After(time.Second)
		synctest.Wait()
		h.ResetPeaks()
		before := h.Stats().LiveBytes
		small := must(t, a, 700) // 1 KiB
		large := must(t, b, 5*mib)
		freeAll(t, small)
		freeAll(t, large, must(t, a, kib), must(t, b, kib))
		n = h.addsUp()
		assert.Equal(t, before+5*mib+2*kib, n.PeakLiveBytes, "with one of a KiB that is gone when the next comes")
		assert.Zero(t, n.MagazineHits-h.Stats().MagazineHits)
		_ = h.Close() // a buffer lives
	})
}
