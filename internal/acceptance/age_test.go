package acceptance_test

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
)

// once has the process make the objects of its first use, so that they are not made in a bubble.
func once(t *testing.T) {
	t.Helper()
	freeAll(t, must(t, openHouse(t, vram.Config{}, sim.Config{}).stream(), 1))
}

// spike allocates 24 GiB on several streams and frees all of it but 200 MiB.
func (h *house) spike(streams int) (live vram.Buffer, on []*vram.Stream) {
	h.t.Helper()
	var all []vram.Buffer
	for i := range streams {
		on = append(on, h.stream())
		for range 24 * 16 / streams {
			all = append(all, must(h.t, on[i], 64*mib))
		}
	}
	live = must(h.t, on[0], 200*mib)
	freeAll(h.t, all...)
	return live, on
}

// After a spike of 24 GiB the device holds at most twice the live memory: a minute later with Balanced, ten seconds
// later with Lean, four minutes later with Fast, where it also holds the rest of one handle for each stream. It does
// so whether the streams are idle, work on with large blocks or small ones, or have been closed.
func TestMemoryOfASpikeIsReleased(t *testing.T) {
	once(t)
	works := []struct {
		name      string
		peakBytes int64 // of a step, in addition to the 200 MiB
		step      func(t *testing.T, on []*vram.Stream)
	}{
		{"idle", 0, func(*testing.T, []*vram.Stream) {}},
		{"large blocks", 100 * mib, func(t *testing.T, on []*vram.Stream) {
			t.Helper()
			freeAll(t, must(t, on[0], 30*mib), must(t, on[1], 70*mib))
		}},
		{"small blocks", 2 * 64 * 20 * kib, func(t *testing.T, on []*vram.Stream) {
			t.Helper()
			for _, s := range on {
				var all []vram.Buffer
				for range 64 {
					all = append(all, must(t, s, 20*kib))
				}
				freeAll(t, all...)
			}
		}},
		{"one stream works", 70 * mib, func(t *testing.T, on []*vram.Stream) {
			t.Helper()
			freeAll(t, must(t, on[1], 70*mib))
		}},
		{"one stream is closed", 30 * mib, func(t *testing.T, on []*vram.Stream) {
			t.Helper()
			require.NoError(t, on[1].Close())
			freeAll(t, must(t, on[0], 30*mib))
		}},
	}
	for i, mode := range []struct {
		footprint   vram.Footprint
		within      time.Duration
		handleBytes int64
	}{{vram.Balanced, time.Minute, 0}, {vram.Lean, 10 * time.Second, 0}, {vram.Fast, 4 * time.Minute, 256 * mib}} {
		for j, work := range works {
			if raceDetector && testing.Short() && j%3 != i {
				continue // each work in one mode
			}
			t.Run(mode.footprint.String()+"/"+work.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					h := openHouse(t, vram.Config{Footprint: mode.footprint}, sim.Config{})
					live, on := h.spike(2)
					assert.GreaterOrEqual(t, h.Stats().ReservedBytes, 24*gib)
					for begin := time.Now(); time.Since(begin) < mode.within; {
						<-time.After(250 * time.Millisecond)
						work.step(t, on)
					}
					synctest.Wait()
					n := h.addsUp()
					assert.Equal(t, 200*mib, n.LiveBytes)
					assert.LessOrEqual(t, n.ReservedBytes, 2*(n.LiveBytes+work.peakBytes+mode.handleBytes))
					freeAll(t, live)
				})
			})
		}
	}
}

// Memory of a spike is released, too, while a stream pauses again and again, each time for long enough that it returns its
// pages, and for less than ReleaseAfter: no step lends the stream all that is free.
func TestMemoryOfASpikeIsReleasedBesidePauses(t *testing.T) {
	once(t)
	for name, tt := range map[string]struct {
		config  vram.Config
		streams int
		pause   time.Duration
		within  time.Duration
	}{
		"balanced":              {vram.Config{}, 1, 3 * time.Second, time.Minute},
		"balanced, two streams": {vram.Config{}, 2, 3 * time.Second, time.Minute},
		"balanced, long pauses": {vram.Config{}, 1, 12 * time.Second, 2 * time.Minute},
		"fast":                  {vram.Config{Footprint: vram.Fast}, 1, 10 * time.Second, 4 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := openHouse(t, tt.config, sim.Config{})
				var on []*vram.Stream
				for range tt.streams {
					on = append(on, h.stream())
				}
				live := must(t, on[0], 200*mib)
				freeAll(t, must(t, on[0], 24*gib)) // one run
				for begin := time.Now(); time.Since(begin) < tt.within; {
					<-time.After(tt.pause)
					for _, s := range on {
						freeAll(t, must(t, s, 30*mib), must(t, s, 70*mib))
					}
				}
				synctest.Wait()
				n := h.addsUp()
				assert.Equal(t, 200*mib, n.LiveBytes)
				assert.LessOrEqual(t, n.ReservedBytes, 2*(n.LiveBytes+int64(tt.streams)*100*mib))
				freeAll(t, live)
			})
		})
	}
}

// A stream that uses a little more every two seconds asks again soon after it has returned a surplus, and is not lent that
// again.
func TestASurplusIsNotLentToAStreamThatGrows(t *testing.T) {
	once(t)
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, vram.Config{ReleaseAfter: 5 * time.Second}, sim.Config{})
		s := h.stream()
		freeAll(t, must(t, s, 4*gib))
		for n := range int64(120) {
			freeAll(t, must(t, s, (30+n/8*2)*mib))
			<-time.After(250 * time.Millisecond)
		}
		synctest.Wait()
		assert.LessOrEqual(t, h.Stats().ReservedBytes, 256*mib)
	})
}

// loop goes through eight steps with pauses between them, and returns the bytes held at the end, and how many handles the
// driver made and mapped after the second step.
func (h *house) loop(pause time.Duration) (heldBytes int64, made, mapped uint64) {
	h.t.Helper()
	a, b := h.stream(), h.stream()
	for step := range 8 {
		if step == 2 {
			made, mapped = h.faults.Calls("cuMemCreate"), h.faults.Calls("cuMemMap")
		}
		var all []vram.Buffer
		for i := range int64(40) {
			all = append(all, must(h.t, a, (1+i)*5*mib), must(h.t, b, (1+i)*100*kib))
		}
		freeAll(h.t, all...)
		<-time.After(pause)
		synctest.Wait()
	}
	return h.Stats().ReservedBytes, h.faults.Calls("cuMemCreate") - made, h.faults.Calls("cuMemMap") - mapped
}

// A loop whose pauses are shorter than ReleaseAfter does not notice it: from the third step on the driver makes and maps
// no more handles than where memory is never released for its age. With Balanced that is none. With Lean the holes of each
// step lie elsewhere, so that it may remake up to two percent of its pages, and moves fewer.
func TestALoopWithPausesKeepsItsMemory(t *testing.T) {
	once(t)
	for name, tt := range map[string]struct {
		config vram.Config
		pause  time.Duration
	}{
		"balanced":       {vram.Config{}, 14 * time.Second},
		"balanced, busy": {vram.Config{}, 400 * time.Millisecond},
		"lean":           {vram.Config{Footprint: vram.Lean}, 1300 * time.Millisecond},
		"fast":           {vram.Config{Footprint: vram.Fast}, 55 * time.Second},
		"two minutes":    {vram.Config{ReleaseAfter: 2 * time.Minute}, 108 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				never := tt.config
				never.ReleaseAfter = -1
				wantBytes, wantMade, wantMapped := openHouse(t, never, sim.Config{}).loop(tt.pause)
				heldBytes, made, mapped := openHouse(t, tt.config, sim.Config{}).loop(tt.pause)
				assert.InEpsilon(t, wantBytes, heldBytes, 0.01)
				if tt.config.Footprint == vram.Lean {
					wantMade += uint64(heldBytes) / uint64(2*mib) / 50
				}
				assert.LessOrEqual(t, made, wantMade)
				if assert.LessOrEqual(t, mapped, wantMapped); tt.config.Footprint == vram.Balanced {
					assert.Zero(t, mapped)
				}
			})
		})
	}
}

// Memory that Warm mapped is not released before it was used, however long that takes.
func TestWarmMemoryIsKeptUntilItIsUsed(t *testing.T) {
	once(t)
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, vram.Config{}, sim.Config{})
		require.NoError(t, h.Warm(t.Context(), vram.Demand{Bytes: gib, Count: 1}))
		<-time.After(2 * time.Minute)
		assert.GreaterOrEqual(t, h.Stats().ReservedBytes, gib)
		s := h.stream()
		freeAll(t, must(t, s, gib))
		<-time.After(2 * time.Minute)
		synctest.Wait()
		assert.LessOrEqual(t, h.Stats().ReservedBytes, 256*mib)
	})
}

// cache makes the pool hold 1 GiB of free memory from now on.
func (h *house) cache(s *vram.Stream) {
	h.t.Helper()
	freeAll(h.t, must(h.t, s, gib))
	require.NoError(h.t, s.Trim(h.t.Context()))
	synctest.Wait()
	require.GreaterOrEqual(h.t, h.Stats().FreeBytes, gib)
}

// releases checks that the pool releases its free memory after so long and not before; negative: never.
func (h *house) releases(after time.Duration) {
	h.t.Helper()
	if after < 0 {
		<-time.After(5 * time.Minute)
		synctest.Wait()
		assert.GreaterOrEqual(h.t, h.Stats().FreeBytes, gib, "never is over after five minutes")
		return
	}
	<-time.After(after - 200*time.Millisecond)
	synctest.Wait()
	assert.GreaterOrEqual(h.t, h.Stats().FreeBytes, gib, "released before %v have passed", after)
	<-time.After(400 * time.Millisecond)
	synctest.Wait()
	assert.Zero(h.t, h.Stats().FreeBytes, "kept after %v", after)
}

// The pool releases free memory after ReleaseAfter, or the default of the footprint mode; with a negative one never.
func TestReleaseAfter(t *testing.T) {
	once(t)
	for name, tt := range map[string]struct {
		config vram.Config
		after  time.Duration
	}{
		"lean":           {vram.Config{Footprint: vram.Lean}, 1500 * time.Millisecond},
		"balanced":       {vram.Config{}, 15 * time.Second},
		"fast":           {vram.Config{Footprint: vram.Fast}, time.Minute},
		"given":          {vram.Config{Footprint: vram.Lean, ReleaseAfter: 40 * time.Second}, 40 * time.Second},
		"a tick":         {vram.Config{ReleaseAfter: 1}, 200 * time.Millisecond},
		"never":          {vram.Config{ReleaseAfter: -1}, -1},
		"never by hours": {vram.Config{ReleaseAfter: -time.Hour}, -1},
		"for ages":       {vram.Config{ReleaseAfter: math.MaxInt64}, -1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := openHouse(t, tt.config, sim.Config{})
				h.cache(h.stream())
				h.releases(tt.after)
			})
		})
	}
}

// ReleaseAfter may change while the device is in use, also by another footprint mode.
func TestReleaseAfterAtRunTime(t *testing.T) {
	once(t)
	for name, tt := range map[string]struct {
		config vram.Config
		change vram.Settings
		after  time.Duration
	}{
		"shorter":                    {vram.Config{}, vram.Settings{ReleaseAfter: new(5 * time.Second)}, 5 * time.Second},
		"longer":                     {vram.Config{}, vram.Settings{ReleaseAfter: new(30 * time.Second)}, 30 * time.Second},
		"never":                      {vram.Config{}, vram.Settings{ReleaseAfter: new(time.Duration(-1))}, -1},
		"no longer never":            {vram.Config{ReleaseAfter: -1}, vram.Settings{ReleaseAfter: new(3 * time.Second)}, 3 * time.Second},
		"the mode's":                 {vram.Config{ReleaseAfter: -1}, vram.Settings{ReleaseAfter: new(time.Duration(0))}, 15 * time.Second},
		"another mode's":             {vram.Config{}, vram.Settings{Footprint: new(vram.Lean)}, 1500 * time.Millisecond},
		"given, beside another mode": {vram.Config{ReleaseAfter: 20 * time.Second}, vram.Settings{Footprint: new(vram.Lean)}, 20 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := openHouse(t, tt.config, sim.Config{})
				s := h.stream()
				require.NoError(t, h.Reconfigure(tt.change))
				h.cache(s)
				h.releases(tt.after)
			})
		})
	}
}

// A stream at work returns by the new ReleaseAfter, too, whether it was opened before the change or after it.
func TestReleaseAfterOfAStreamAtRunTime(t *testing.T) {
	once(t)
	for _, before := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			h := openHouse(t, vram.Config{ReleaseAfter: -1}, sim.Config{})
			var s *vram.Stream
			if before {
				s = h.stream()
			}
			require.NoError(t, h.Reconfigure(vram.Settings{ReleaseAfter: new(5 * time.Second)}))
			if !before {
				s = h.stream()
			}
			freeAll(t, must(t, s, 4*gib))
			for range 48 {
				freeAll(t, must(t, s, 30*mib))
				<-time.After(250 * time.Millisecond)
			}
			synctest.Wait()
			n := h.addsUp()
			assert.LessOrEqual(t, n.CachedBytes, 32*mib, "after two windows")
			<-time.After(time.Second) // 5 s after it was returned at the latest
			for range 20 {
				freeAll(t, must(t, s, 30*mib))
				<-time.After(250 * time.Millisecond)
			}
			synctest.Wait()
			assert.LessOrEqual(t, h.Stats().ReservedBytes, 256*mib)
		})
	}
}
