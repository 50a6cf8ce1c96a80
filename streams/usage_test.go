package streams

import (
	"context"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/effect"
	poolcore "github.com/go-vram/vram/internal/pool/core"
	"github.com/go-vram/vram/internal/stream/core"
)

// used returns the published figures of a stream and of its core, at the same moment.
func (r *rig) used(s *Stream) (published, actual poolcore.Usage) {
	r.t.Helper()
	for !s.ref.TryEnter() { // leaves without publishing, as an allocation does
		runtime.Gosched()
	}
	published = s.client.Usage()
	actual.UsedBytes = s.turn.state.core.LiveBytes()
	actual.FreePages, actual.MaxFreePages = s.turn.state.core.NoteFree()
	actual.Stale = published.Stale
	assert.Equal(r.t, s.turn.state.core.HeldBytes(), s.peer.heldBytes.Load(), "as errors have it")
	s.ref.End()
	return published, actual
}

// After each kind of turn a stream's published figures equal its core's, or are marked as
// stale; after a Look they equal its core's and are not stale.
func TestUsageIsThatOfTheCore(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		r := newRig(t, 256*mib)
		s, other := r.stream(core.Budget{}), r.stream(core.Budget{})
		random := rand.New(rand.NewPCG(seed, 5)) //nolint:gosec // reproducible is the point
		ctx := context.Background()
		var live []Buffer
		size := func() int64 { return 1 + random.Int64N([]int64{kib, 60 * kib, 3 * mib, 9 * mib}[random.IntN(4)]) }
		keep := func(b Buffer, err error) {
			if err == nil {
				live = append(live, b)
			}
		}
		turns := []struct {
			name string
			take func()
		}{
			{"alloc", func() { keep(s.Alloc(size())) }},
			{"alloc of large blocks", func() { keep(s.Alloc(100*kib + size())) }},
			{"aligned", func() { keep(s.AllocFor(ctx, Request{Bytes: size(), Align: 64 * kib})) }},
			{"by message", func() {
				leave := r.occupy(s)
				f := s.AllocAsync(ctx, Request{Bytes: size()})
				leave()
				keep(f.Await(ctx))
			}},
			{"batch", func() {
				all := make([]Buffer, 3)
				if s.AllocBatch(all, []int64{size(), size(), size()}) == nil {
					live = append(live, all...)
				}
			}},
			{"free", func() {
				for range min(len(live), 1+random.IntN(8)) {
					i := random.IntN(len(live))
					require.NoError(t, live[i].Free())
					live[i] = live[len(live)-1]
					live = live[:len(live)-1]
				}
			}},
			{"use of another stream", func() {
				if b, err := s.Alloc(size()); err == nil {
					require.NoError(t, b.RecordStream(other))
					require.NoError(t, r.gpu.Launch(other.Handle(), time.Millisecond))
					require.NoError(t, b.Free())
				}
			}},
			{"tick", func() { r.gpu.Advance(time.Millisecond); r.tick(s) }},
			{"reclaim request", func() { s.client.Asked(0, uint32(random.IntN(5))) }}, //nolint:gosec // a few
			{"trim", func() { require.NoError(t, s.Trim(ctx)) }},
			{"statistics", func() { r.stats(s) }},
			{"settings", func() {
				b := core.Budget{CacheBytes: random.Int64N(64) * mib}
				require.NoError(t, control(s).Reconfigure(ctx, core.Settings{Budget: b, AgeTicks: random.IntN(3)}))
			}},
			{"other stream's miss", func() {
				if b, err := other.Alloc(random.Int64N(200 * mib)); err == nil {
					require.NoError(t, b.Free())
				}
			}},
		}
		fresh := 0
		for range 400 {
			turn := turns[random.IntN(len(turns))]
			turn.take()
			published, actual := r.used(s)
			if !published.Stale {
				fresh++
				require.Equal(t, actual, published, "seed %d, after %s", seed, turn.name)
			}
			if random.IntN(4) == 0 {
				s.client.Look()
				r.until(func() bool { // another goroutine may be in a turn
					s.client.Look()
					published, actual = r.used(s)
					return !published.Stale
				})
				require.Equal(t, actual, published, "seed %d, after %s and a Look", seed, turn.name)
			}
		}
		assert.Positive(t, fresh)
		for _, b := range live {
			require.NoError(t, b.Free())
		}
		r.stats(s)
		require.NoError(t, s.Trim(ctx))
		r.used(s)
	}
}

// A turn of an allocation that leaves no effect publishes nothing, and says so, once: the figures
// before it are stale.
func TestAnAllocationOutdatesUsage(t *testing.T) {
	t.Parallel()
	r := newRig(t, 64*mib)
	s := r.stream(core.Budget{})
	require.NoError(t, must(t, s, 16*mib).Free())
	r.tick(s)
	before := s.client.Usage()
	assert.Equal(t, poolcore.Usage{FreePages: 8, MaxFreePages: 8}, before)
	b := must(t, s, 6*mib)
	after := s.client.Usage()
	assert.True(t, after.Stale)
	after.Stale = false
	assert.Equal(t, before, after, "it is not published")
	s.client.Look()
	assert.Equal(t, poolcore.Usage{UsedBytes: 6 * mib, FreePages: 5, MaxFreePages: 5}, s.client.Usage())
	require.NoError(t, b.Free())
	assert.True(t, s.client.Usage().Stale, "a block was freed")
	s.client.Look()
	assert.Equal(t, poolcore.Usage{FreePages: 8, MaxFreePages: 8}, s.client.Usage())
}

// A loop of allocations that publish nothing keeps the pages that it needs, and the rest goes back
// to the pool once the window has passed.
func TestALoopKeepsItsPagesPastTheWindow(t *testing.T) {
	t.Parallel()
	r := newRig(t, 128*mib)
	s := r.stream(core.Budget{})
	require.NoError(t, control(s).Reconfigure(t.Context(), core.Settings{AgeTicks: 4}))
	require.NoError(t, must(t, s, 64*mib).Free())
	for i := range int64(20) { // a length of its own each: no magazine serves it
		b := must(t, s, 20*mib-i*kib)
		require.NoError(t, b.Free())
		r.tick(s)
		require.GreaterOrEqual(t, r.stats(s).HeldBytes, 20*mib, "tick %d", i)
	}
	assert.Equal(t, 20*mib, r.stats(s).HeldBytes)
	r.until(func() bool { return r.books().FreeBytes == 44*mib })
	assert.EqualValues(t, 1, r.stats(s).PoolHits, "the loop asked for none of them again")
}

// Surplus is returned for good: the pool does not lend it back to a stream that had no use for it.
// An adopted stream returns only covered pages.
func TestSurplusIsReturnedForGood(t *testing.T) {
	t.Parallel()
	for _, adopted := range []bool{false, true} {
		r := newRig(t, 64*mib)
		s := r.stream(core.Budget{})
		if adopted {
			s = r.adopt()
		}
		require.NoError(t, control(s).Reconfigure(t.Context(), core.Settings{AgeTicks: 1}))
		require.NoError(t, must(t, s, 16*mib).Free())
		r.tick(s) // ends the window in which it held nothing
		leave := r.occupy(s)
		s.turn.lent.age()
		returns := slices.Clone(effect.Left(&s.turn.state.effects().returns))
		leave()
		if adopted {
			assert.Empty(t, returns, "no fence covers them")
			continue
		}
		require.Len(t, returns, 1)
		assert.True(t, returns[0].Final)
		assert.False(t, returns[0].Answer)
		assert.Equal(t, []poolcore.Run{{First: 0, Pages: 8}}, returns[0].Runs)
	}
}
