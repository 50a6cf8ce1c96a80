package acceptance_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/futures"
	"github.com/go-vram/vram/pool"
	"github.com/go-vram/vram/streams"
)

// waiters are who waits now.
func (h *house) waiters() vram.Waiters {
	h.t.Helper()
	w, err := h.Waiters(context.Background())
	require.NoError(h.t, err)
	return w
}

// Every request that waits is listed with its bytes, its cause, its duration and its deadline, in the
// order in which they are served; and so are the holders of the memory.
func TestWaitersAreInTheOrderOfTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
		holder, a, b := h.stream(), h.stream(), h.stream()
		gold := h.tenant("gold", vram.Quota{LimitBytes: 8 * mib})
		x, y := must(t, holder, 48*mib), must(t, a, 8*mib)
		charged, err := b.AllocFor(context.Background(), vram.Request{Bytes: 8 * mib, Tenant: gold})
		require.NoError(t, err)

		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		first := waitWithin(ctx, a, vram.Request{Bytes: 16 * mib, Tag: "weights"})
		waits(t, first)
		<-time.After(time.Second)
		batch := b.AllocBatchForAsync(context.Background(), vram.BatchRequest{Bytes: []int64{12 * mib, 8 * mib}, Wait: true, Tag: "cache"})
		synctest.Wait()
		urgent := waitFor(a, vram.Request{Bytes: 24 * mib, Priority: 2})
		waits(t, urgent)
		quota := waitFor(b, vram.Request{Bytes: 4 * mib, Tenant: gold})
		waits(t, quota, first)
		<-time.After(time.Second)

		w := h.waiters()
		require.Len(t, w.Requests, 4)
		for i := range w.Requests {
			assert.Positive(t, w.Requests[i].Age)
			w.Requests[i].Age = 0
		}
		assert.Equal(t, []streams.WaitingRequest{
			{Stream: a.ID(), Bytes: 24 * mib, Count: 1, Priority: 2, Waited: time.Second, Position: 1},
			{Stream: a.ID(), Bytes: 16 * mib, Count: 1, Tag: "weights", Waited: 2 * time.Second, Left: time.Hour - 2*time.Second, HasDeadline: true, Position: 2},
			{Stream: b.ID(), Bytes: 20 * mib, Count: 2, Tag: "cache", Waited: time.Second, Position: 3},
			{Stream: b.ID(), Bytes: 4 * mib, Count: 1, Tenant: "gold", For: streams.WaitForQuota, Waited: time.Second, Position: 4},
		}, w.Requests)
		assert.Equal(t, []pool.Holder{{Stream: holder.ID(), HeldBytes: 48 * mib}, {Stream: a.ID(), HeldBytes: 8 * mib}}, streamsOf(w.Holders)[:2])
		assert.Contains(t, w.Holders, pool.Holder{Tenant: "gold", HeldBytes: 8 * mib})
		assert.Contains(t, w.Edges, vram.WaitEdge{From: vram.Party{Stream: a.ID()}, To: vram.Party{Stream: holder.ID()}})
		assert.Contains(t, w.Edges, vram.WaitEdge{From: vram.Party{Stream: b.ID()}, To: vram.Party{Tenant: "gold"}})
		assert.Contains(t, w.Going(), pool.Holder{Stream: holder.ID(), HeldBytes: 48 * mib})
		text := w.String()
		for _, part := range []string{
			"4 requests wait for 64 MiB in all\n", "   1. 24 MiB on stream 2, priority 2, waits for memory since 1s\n",
			`tag "weights", waits for memory since 2s, deadline in 59m58s`, `20 MiB in 2 buffers on stream 3, tag "cache"`,
			`tenant "gold", waits for its tenant's quota since 1s`, "stream 2 waits for stream 1, unless another of its goroutines frees\n",
		} {
			assert.Contains(t, text, part)
		}

		freeAll(t, x, charged)
		freeAll(t, got(t, urgent))
		freeAll(t, got(t, first), got(t, quota))
		done, err := batch.Await(context.Background())
		require.NoError(t, err)
		require.NoError(t, done.Free())
		freeAll(t, y)
		assert.Empty(t, h.waiters().Requests)
		h.addsUp()
	})
}

// A request that waits for its tenant's quota waits for the tenant, and for no holder of memory.
func TestAWaitForAQuotaIsForTheTenant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
		a, b := h.stream(), h.stream()
		gold := h.tenant("gold", vram.Quota{LimitBytes: 8 * mib})
		other := must(t, a, 4*mib)
		charged, err := a.AllocFor(t.Context(), vram.Request{Bytes: 8 * mib, Tenant: gold})
		require.NoError(t, err)
		quota := waitFor(b, vram.Request{Bytes: 4 * mib, Tenant: gold})
		waits(t, quota)
		assert.Equal(t, []vram.WaitEdge{{From: vram.Party{Stream: b.ID()}, To: vram.Party{Tenant: "gold"}}}, h.waiters().Edges)
		freeAll(t, other, charged)
		freeAll(t, got(t, quota))
	})
}

// streamsOf are the holders that are streams.
func streamsOf(all []pool.Holder) []pool.Holder {
	return slices.DeleteFunc(slices.Clone(all), func(h pool.Holder) bool { return h.Stream == 0 })
}

// A request whose memory the driver is making waits for the pool.
func TestAWaitForTheDriverIsForThePool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
		s := h.stream()
		entered, release := h.holdUp("cuMemCreate")
		answer := s.AllocAsync(t.Context(), vram.Request{Bytes: 8 * mib})
		<-entered
		w := h.waiters()
		require.Len(t, w.Requests, 1)
		assert.Equal(t, streams.WaitForPool, w.Requests[0].For)
		release()
		b, err := answer.Await(t.Context())
		require.NoError(t, err)
		freeAll(t, b)
	})
}

// Two streams that hold memory, of which one waits for memory and the other for a value of the first,
// are a circle. It is seen while a third one that holds memory is runnable, before it is a deadlock.
func TestACircleIsSeenBeforeItIsADeadlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
		producer, consumer, third := h.exclusive(), h.exclusive(), h.exclusive()
		x, y, z := must(t, producer, 16*mib), must(t, consumer, 16*mib), must(t, third, 32*mib)
		values := vram.NewHandover[int](producer, consumer, 1)
		received := make(chan error, 1)
		go func() {
			_, err := values.Receive(context.Background())
			received <- err
		}()
		synctest.Wait()
		assert.Equal(t, []vram.WaitEdge{{From: vram.Party{Stream: consumer.ID()}, To: vram.Party{Stream: producer.ID()}, Told: true, Sure: true}}, h.waiters().Edges)
		assert.Empty(t, h.waiters().Circles())
		more := waitFor(producer, vram.Request{Bytes: 24 * mib})
		waits(t, more)
		w := h.waiters()
		assert.Equal(t, [][]vram.Party{{{Stream: consumer.ID()}, {Stream: producer.ID()}}}, sortedCircles(w.Circles()))
		going := w.Going()
		require.Len(t, going, 1)
		assert.Equal(t, third.ID(), going[0].Stream)
		assert.Contains(t, w.String(), "circles:\n")
		assert.Contains(t, w.String(), "wait for each other\nholders of memory that can proceed: stream 3\n")

		last := waitFor(third, vram.Request{Bytes: 40 * mib}) // nobody is runnable now
		synctest.Wait()
		var deadlock *vram.DeadlockError
		require.ErrorAs(t, (<-last).err, &deadlock)
		require.Len(t, deadlock.Largest, 3)
		assert.Equal(t, z.Ptr(), deadlock.Largest[0].Ptr)
		assert.ErrorContains(t, deadlock, "; largest buffers: 32 MiB on stream 3 / 16 MiB on stream 1 / 16 MiB on stream 2")
		for _, part := range []string{"who holds memory, of a limit of 64 MiB:\n", "who waits, in the order", "largest buffers:\n", "what would help: free"} {
			assert.Contains(t, deadlock.Report(), part)
		}
		freeAll(t, z)
		b := got(t, more)
		require.NoError(t, values.Send(context.Background(), 1))
		require.NoError(t, <-received)
		freeAll(t, b, x, y)
		h.addsUp()
	})
}

// sortedCircles has the parties of each circle by their streams.
func sortedCircles(all [][]vram.Party) [][]vram.Party {
	for _, circle := range all {
		slices.SortFunc(circle, func(a, b vram.Party) int { return -int(a.Stream) + int(b.Stream) })
	}
	return all
}

// A wait without a deadline for something that may never come is seen, also where no stream is
// exclusive and no deadlock is ever declared.
func TestASuspendedStreamWaitsForThoseThatItNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
		a, b := h.stream(), h.stream()
		x := must(t, b, 60*mib)
		resume := b.Suspend(a)
		f := waitFor(a, vram.Request{Bytes: 32 * mib})
		waits(t, f)
		w := h.waiters()
		assert.ElementsMatch(t, []vram.WaitEdge{
			{From: vram.Party{Stream: a.ID()}, To: vram.Party{Stream: b.ID()}},
			{From: vram.Party{Stream: b.ID()}, To: vram.Party{Stream: a.ID()}, Told: true, Sure: true},
		}, w.Edges)
		assert.Len(t, w.Circles(), 1)
		assert.Empty(t, w.Going())
		assert.Contains(t, w.String(), "no holder of memory can proceed by itself")
		resume()
		assert.Empty(t, h.waiters().Circles())
		freeAll(t, x)
		freeAll(t, got(t, f))
	})
}

// A refusal names the ten largest live buffers, the largest first, with tags, tenants and places: in
// the returned error, in the handler's, and in the event.
func TestARefusalNamesTheLargestBuffers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var handled atomic.Pointer[vram.OutOfMemoryError]
		var told atomic.Pointer[vram.OutOfMemoryError]
		h := openHouse(t, vram.Config{
			LimitBytes: 256 * mib, Events: vram.Events{OutOfMemory: func(e *vram.OutOfMemoryError) { told.Store(e) }},
			OnOutOfMemory: func(e *vram.OutOfMemoryError) bool {
				copied := *e // as it is now
				handled.Store(&copied)
				return false
			},
		}, sim.Config{})
		a, b := h.stream(), h.stream()
		gold := h.tenant("gold", vram.Quota{})
		freed := must(t, a, 90*mib)
		var all []vram.Buffer
		for i := range 14 {
			all = append(all, must(t, b, int64(i+1)*mib), must(t, a, 64*kib))
		}
		weights, err := a.AllocFor(context.Background(), vram.Request{Bytes: 20 * mib, Tag: "weights", Tenant: gold})
		require.NoError(t, err)
		freeAll(t, freed)
		_, err = b.Alloc(200 * mib)
		var short *vram.OutOfMemoryError
		require.ErrorAs(t, err, &short)
		want := []int64{20 * mib}
		for i := range 9 {
			want = append(want, int64(14-i)*mib)
		}
		bytes := func(all []pool.LiveBuffer) (sizes []int64) {
			for _, b := range all {
				sizes = append(sizes, b.Bytes)
			}
			return sizes
		}
		assert.Equal(t, want, bytes(short.Largest))
		assert.Equal(t, weights.Ptr(), short.Largest[0].Ptr)
		assert.Equal(t, "weights", short.Largest[0].Tag)
		assert.Equal(t, "gold", short.Largest[0].Tenant)
		assert.Equal(t, []pool.Holder{{Tenant: "gold", HeldBytes: 20 * mib}}, short.Tenants)
		assert.ErrorContains(t, err, `; largest buffers: 20 MiB on stream 1, tag "weights", tenant "gold" / 14 MiB on stream 2 / 13 MiB on stream 2; what would help: `)
		assert.NotContains(t, err.Error(), "\n")
		require.NotNil(t, handled.Load())
		assert.Equal(t, want, bytes(handled.Load().Largest))
		synctest.Wait()
		require.NotNil(t, told.Load())
		assert.Equal(t, want, bytes(told.Load().Largest))
		for _, part := range []string{
			"out of memory: requested 200 MiB on stream 2, of which ", "why: too little is free, and the limit leaves too little room to grow\n", "  stream 2: live or in its magazines 1",
			"of that, in buffers of tenants:\n      20 MiB  tenant \"gold\"\n", "largest buffers:\n      20 MiB  at ",
			"what would help, the cheapest first:\n", "  a LimitBytes higher by at least ",
		} {
			assert.Contains(t, short.Report(), part)
		}

		// Between two ticks the streams are looked through once; buffers freed since are left out.
		larger := must(t, a, 30*mib)
		freeAll(t, weights)
		_, err = b.Alloc(200 * mib)
		require.ErrorAs(t, err, &short)
		assert.Equal(t, append(want[1:], 5*mib), bytes(short.Largest))
		<-time.After(200 * time.Millisecond)
		_, err = b.Alloc(200 * mib)
		require.ErrorAs(t, err, &short)
		assert.Equal(t, larger.Ptr(), short.Largest[0].Ptr)
		_, err = h.Reserve(context.Background(), 250*mib)
		require.ErrorAs(t, err, &short)
		assert.Equal(t, larger.Ptr(), short.Largest[0].Ptr)
		freeAll(t, larger)
		freeAll(t, all...)
	})
}

// The end of a wait names the request ahead of it, and the buffers that hold the memory.
func TestTheEndOfAWaitSaysBehindWhom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
		a, b := h.stream(), h.stream()
		x, err := a.AllocFor(context.Background(), vram.Request{Bytes: 60 * mib, Tag: "weights"})
		require.NoError(t, err)
		first := waitFor(b, vram.Request{Bytes: 32 * mib})
		waits(t, first)
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		second := waitWithin(ctx, a, vram.Request{Bytes: 16 * mib})
		synctest.Wait()
		<-time.After(60 * time.Millisecond)
		var ended *vram.WaitError
		require.ErrorAs(t, (<-second).err, &ended)
		assert.Equal(t, 2, ended.Position)
		require.NotNil(t, ended.Ahead)
		assert.Equal(t, b.ID(), ended.Ahead.Stream)
		assert.Equal(t, 32*mib, ended.Ahead.Bytes)
		require.Len(t, ended.Largest, 1)
		assert.Equal(t, "weights", ended.Largest[0].Tag)
		assert.ErrorContains(t, ended, `; in place 2, after this one: stream 2 waits for 32 MiB; largest buffers: 60 MiB on stream 1, tag "weights"`)
		for _, part := range []string{"waited 50ms for 16 MiB on stream 1: context deadline exceeded\n", "its place in the queue was 2, directly after this request: stream 2", "largest buffers:\n"} {
			assert.Contains(t, ended.Report(), part)
		}
		freeAll(t, x)
		freeAll(t, got(t, first))
	})
}

// The report of a quota has the figures of the tenant, and the remedies.
func TestTheReportOfAQuota(t *testing.T) {
	h := openHouse(t, vram.Config{}, sim.Config{})
	s, gold := h.stream(), h.tenant("gold", vram.Quota{LimitBytes: 8 * mib})
	x, err := s.AllocFor(t.Context(), vram.Request{Bytes: 6 * mib, Tenant: gold})
	require.NoError(t, err)
	_, err = s.AllocFor(t.Context(), vram.Request{Bytes: 4 * mib, Tenant: gold})
	var over *vram.QuotaError
	require.ErrorAs(t, err, &over)
	assert.Equal(t, "over the quota of tenant \"gold\": requested 4 MiB of a limit of 8 MiB\n"+
		"charged: 6 MiB, of that 6 MiB in buffers, and 0 B in its requests that wait\n"+
		"what would help: Request.Wait, for frees of the 6 MiB in buffers; or a Quota.LimitBytes of at least 10 MiB\n"+
		"Device.LiveBuffers lists the tenant's buffers\n", over.Report())
	_, err = s.AllocFor(t.Context(), vram.Request{Bytes: 9 * mib, Tenant: gold})
	require.ErrorAs(t, err, &over)
	assert.Contains(t, over.Report(), "what would help: only a Quota.LimitBytes of at least 9 MiB\n")
	freeAll(t, x)
}

// The end of the context of an Await leaves the request as it is. The error says so, and who holds the memory, for a buffer and
// for a batch; without Wait it is the context's.
func TestAnAwaitThatEndsSaysWhatTheRequestWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
		a, b := h.stream(), h.stream()
		x := must(t, a, 60*mib)
		one := b.AllocAsync(context.Background(), vram.Request{Bytes: 8 * mib, Tag: "weights", Wait: true})
		synctest.Wait()
		several := b.AllocBatchForAsync(context.Background(), vram.BatchRequest{Bytes: []int64{8 * mib, 16 * mib}, Wait: true})
		synctest.Wait()
		within := func(await func(ctx context.Context) error) *vram.WaitError {
			ctx, cancel := context.WithTimeout(context.Background(), 1003*time.Millisecond) // no tick is then, in whose turn the pool tells no place
			defer cancel()
			err := await(ctx)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			var ended *vram.WaitError
			require.ErrorAs(t, err, &ended)
			assert.True(t, ended.Pending)
			assert.Equal(t, a.ID(), ended.Holders[0].Stream)
			return ended
		}
		err := within(func(ctx context.Context) error { _, err := one.Await(ctx); return err })
		assert.Contains(t, err.Error(), `vram: waited 1.003s for 8 MiB on stream 2 with tag "weights": context deadline exceeded, and the request stays pending; stream 1 holds 60 MiB`)
		assert.Contains(t, err.Report(), "the request stays pending: Await waits for it again, and Cancel ends it\n")
		assert.Equal(t, 1, err.Position)
		err = within(func(ctx context.Context) error { _, err := several.Await(ctx); return err })
		assert.Contains(t, err.Error(), "vram: waited 2.006s for 24 MiB on stream 2: ")
		assert.Equal(t, 2, err.Position)
		assert.Equal(t, 8*mib, err.Ahead.Bytes)
		size := futures.Then(one, func(b vram.Buffer) (int64, error) { return b.Bytes(), nil })
		assert.Equal(t, "weights", within(func(ctx context.Context) error { _, err := size.Await(ctx); return err }).Tag)
		all := futures.All(nil, one)
		assert.Equal(t, "weights", within(func(ctx context.Context) error { _, err := all.Await(ctx); return err }).Tag)
		assert.Zero(t, h.Stats().EndedWaitCount, "the requests go on")

		freeAll(t, x)
		buffer, failed := one.Await(t.Context())
		require.NoError(t, failed)
		batch, failed := several.Await(t.Context())
		require.NoError(t, failed)
		freeAll(t, buffer)
		require.NoError(t, batch.Free())
		h.addsUp()
	})
}
