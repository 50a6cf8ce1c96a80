//go:build !vram_builtin

package acceptance_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/actors"
	"github.com/go-vram/vram/cudadrv/sim"
)

// stopActors stops the actors whose ids begin with a name, except for those that were there before.
func stopActors(t *testing.T, name string, before map[string]bool) {
	t.Helper()
	for id := range processes(t) {
		if strings.HasPrefix(id, name) && !before[id] {
			actors.Root().Stop(actor.NewPID("nonhost", id))
		}
	}
}

// The failure of a stream is reported once, by the next tick, and so is the pool.
func TestQuarantineIsTold(t *testing.T) {
	freeAll(t, must(t, openHouse(t, vram.Config{}, sim.Config{}).stream(), 1)) // once: allocations of the process, not of the test
	synctest.Test(t, func(t *testing.T) {
		var b book
		before := processes(t)
		h := openHouse(t, vram.Config{Events: b.events()}, sim.Config{})
		s := h.stream()
		must(t, s, mib)
		stop := func(name string) {
			stopActors(t, name, before)
			<-time.After(time.Second) // virtual: some ticks
			synctest.Wait()
		}
		stop("vram-stream-")
		b.note(func() {
			require.Len(t, b.ends, 1)
			assert.Equal(t, s.ID(), b.ends[0].Stream)
			require.ErrorIs(t, b.ends[0].Err, actors.ErrStopped)
		})
		stop("vram-pool")
		b.note(func() {
			require.Len(t, b.ends, 2)
			assert.Zero(t, b.ends[1].Stream)
		})
		require.Error(t, h.Close())
		assert.Len(t, b.ends, 2)
	})
}

// A failure that no tick has seen is reported by Close.
func TestQuarantineIsToldByClose(t *testing.T) {
	freeAll(t, must(t, openHouse(t, vram.Config{}, sim.Config{}).stream(), 1)) // once: allocations of the process, not of the test
	synctest.Test(t, func(t *testing.T) {
		var b book
		before := processes(t)
		h := openHouse(t, vram.Config{Events: b.events()}, sim.Config{})
		s := h.stream()
		must(t, s, mib)
		stopActors(t, "vram-stream-", before)
		synctest.Wait() // no time passes
		assert.Empty(t, b.ends)
		require.Error(t, h.Close())
		require.Len(t, b.ends, 1)
		assert.Equal(t, s.ID(), b.ends[0].Stream)
	})
}

// A stream that has failed is named by each list that misses its part, and the map has its memory as lent.
func TestListsNameAStreamThatHasFailed(t *testing.T) {
	freeAll(t, must(t, openHouse(t, vram.Config{}, sim.Config{}).stream(), 1)) // once: allocations of the process, not of the test
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, vram.Config{SampleBytes: 1, LimitBytes: 64 * mib}, sim.Config{})
		first := h.stream()
		kept := must(t, first, 4*mib)
		before := processes(t)
		failing := h.stream()
		must(t, failing, 8*mib)
		waiting := first.AllocAsync(t.Context(), vram.Request{Bytes: 60 * mib, Wait: true})
		synctest.Wait()
		stopActors(t, "vram-stream-", before)
		synctest.Wait()

		live, err := h.LiveBuffers(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []uint32{failing.ID()}, live.Unread)
		require.Len(t, live.Buffers, 1)
		assert.Equal(t, kept.Ptr(), live.Buffers[0].Ptr)
		w := h.waiters()
		assert.Equal(t, []uint32{failing.ID()}, w.Unread)
		require.Len(t, w.Requests, 1)
		sampled, err := h.SampledBuffers(t.Context())
		require.NoError(t, err)
		assert.Len(t, sampled, 1)
		m, err := h.MemoryMap(t.Context(), 0)
		require.NoError(t, err)
		assert.Equal(t, [...]int64{4 * mib, 8 * mib}, [...]int64{m.Total.LiveBytes, m.Total.LentBytes})
		waiting.Cancel()
		require.Error(t, h.Close())
	})
}

// processes are the ids of all actors.
func processes(t *testing.T) map[string]bool {
	t.Helper()
	ids := map[string]bool{}
	for _, shard := range actors.Root().ActorSystem().ProcessRegistry.LocalPIDs.LocalPIDs {
		for _, id := range shard.Keys() {
			ids[id] = true
		}
	}
	return ids
}
