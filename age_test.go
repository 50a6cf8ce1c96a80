package vram_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
)

// spike leaves 200 MiB in use of 24 GiB, on one of the streams, which works on or not.
func (h *house) spike(streams int) (live []vram.Buffer, on []*vram.Stream) {
	h.t.Helper()
	var all []vram.Buffer
	for i := range streams {
		on = append(on, h.stream())
		for range 24 * 16 / streams {
			all = append(all, must(h.t, on[i], 64*mib))
		}
	}
	live = []vram.Buffer{must(h.t, on[0], 200*mib)}
	freeAll(h.t, all...)
	return live, on
}

// What a spike has left goes home: within a minute with Balanced and ten seconds with Lean no more than twice what lives is held, whether
// the streams are idle or work on.
func TestWhatASpikeHasLeftGoesHome(t *testing.T) {
	freeAll(t, must(t, openHouse(t, vram.Config{}, sim.Config{}).stream(), 1)) // what a process makes once is made
	for name, tt := range map[string]struct {
		footprint vram.Footprint
		within    time.Duration
	}{
		"balanced": {vram.Balanced, time.Minute},
		"lean":     {vram.Lean, 10 * time.Second},
		"fast":     {vram.Fast, 4 * time.Minute},
	} {
		for work, works := range map[string]bool{"idle": false, "at work": true} {
			t.Run(name+", "+work, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					h := openHouse(t, vram.Config{Footprint: tt.footprint}, sim.Config{})
					_, on := h.spike(2)
					assert.GreaterOrEqual(t, h.Stats().ReservedBytes, 24*gib)
					for begin := time.Now(); time.Since(begin) < tt.within; {
						<-time.After(250 * time.Millisecond)
						if works {
							a, b := must(t, on[0], 30*mib), must(t, on[1], 70*mib)
							freeAll(t, a, b)
						}
					}
					synctest.Wait()
					n := h.addsUp()
					assert.LessOrEqual(t, n.ReservedBytes, 2*(n.LiveBytes+100*mib))
				})
			})
		}
	}
}

// A loop whose pauses are shorter than ReleaseAfter makes no driver call for memory once it has been gone through twice.
func TestALoopWithPausesKeepsItsMemory(t *testing.T) {
	freeAll(t, must(t, openHouse(t, vram.Config{}, sim.Config{}).stream(), 1))
	for name, tt := range map[string]struct {
		config vram.Config
		pause  time.Duration
	}{
		"balanced":  {vram.Config{}, 14 * time.Second},
		"lean":      {vram.Config{Footprint: vram.Lean}, 1300 * time.Millisecond},
		"for hours": {vram.Config{ReleaseAfter: 4 * time.Hour}, 3 * time.Hour},
		"for ever":  {vram.Config{ReleaseAfter: -1}, 3 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := openHouse(t, tt.config, sim.Config{})
				s := h.stream()
				step := func() {
					var all []vram.Buffer
					for i := range int64(40) {
						all = append(all, must(t, s, (1+i)*5*mib))
					}
					freeAll(t, all...)
					<-time.After(tt.pause)
					synctest.Wait()
				}
				step()
				step()
				before := h.Stats().ReservedBytes
				for range 4 {
					step()
					assert.Equal(t, before, h.Stats().ReservedBytes)
				}
			})
		})
	}
}

// What was warmed up waits for its use, however long.
func TestWarmMemoryWaitsForItsUse(t *testing.T) {
	freeAll(t, must(t, openHouse(t, vram.Config{}, sim.Config{}).stream(), 1))
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, vram.Config{}, sim.Config{})
		require.NoError(t, h.Warm(t.Context(), vram.Demand{Bytes: gib, Count: 1}))
		<-time.After(10 * time.Minute)
		assert.GreaterOrEqual(t, h.Stats().ReservedBytes, gib)
		s := h.stream()
		freeAll(t, must(t, s, gib))
		<-time.After(10 * time.Minute)
		synctest.Wait()
		assert.LessOrEqual(t, h.Stats().ReservedBytes, 256*mib)
	})
}
