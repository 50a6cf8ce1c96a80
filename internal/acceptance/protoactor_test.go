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
			for id := range processes(t) {
				if strings.HasPrefix(id, name) && !before[id] {
					actors.Root().Stop(actor.NewPID("nonhost", id))
				}
			}
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
