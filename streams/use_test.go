package streams

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/recoveredtest"
	"github.com/go-vram/vram/internal/stream/core"
	"github.com/go-vram/vram/pool"
)

// pair is a stream with buffers and one that uses them, on a pool of that many bytes.
func pair(t *testing.T, limitBytes int64) (r *rig, home, other *Stream) {
	t.Helper()
	r = newRig(t, limitBytes)
	return r, r.stream(core.Budget{}), r.stream(core.Budget{})
}

// work occupies a stream of the simulated device.
func (r *rig) work(s *Stream, d time.Duration) {
	r.t.Helper()
	require.NoError(r.t, r.gpu.Launch(s.Handle(), d))
}

// A block that another stream still works on when it is freed is not handed out before that work
// has finished, and then it is, though nothing more is given to that stream.
func TestAnnouncedUseKeepsMemory(t *testing.T) {
	t.Parallel()
	for _, bytes := range []int64{1000, 100 * kib, 2 * mib} {
		r, home, other := pair(t, 64*mib)
		b := must(t, home, bytes)
		require.NoError(t, b.RecordStream(other))
		require.NoError(t, b.RecordStream(other), "once more")
		require.NoError(t, b.RecordStream(home), "its own stream needs no announcement")
		r.work(other, time.Second)
		require.NoError(t, b.Free())
		require.ErrorIs(t, b.Free(), ErrDoubleFree)
		n := r.stats(home)
		assert.Zero(t, n.LiveCount)
		assert.Zero(t, n.LiveBytes)
		assert.Positive(t, n.PendingBytes)
		for range 8 {
			next := must(t, home, bytes)
			assert.NotEqual(t, b.Ptr(), next.Ptr())
		}
		r.tick(home) // takes the fence
		r.gpu.Advance(time.Second)
		r.tick(home) // sees that it has passed
		assert.Zero(t, r.stats(home).PendingBytes)
		back := false
		for range 200 {
			next, err := home.Alloc(bytes)
			if err != nil {
				break
			}
			back = back || next.Ptr() == b.Ptr()
		}
		assert.True(t, back, "%d bytes", bytes)
		require.NoError(t, control(home).Check(t.Context()))
	}
}

// returns reports whether an allocation of the stream's gets the memory of a buffer that was freed.
func returns(t *testing.T, s *Stream, b Buffer) bool {
	t.Helper()
	for range 70 { // more than a magazine has slots
		if must(t, s, b.Bytes()).Ptr() == b.Ptr() {
			return true
		}
	}
	return false
}

// Memory waits for the work that its stream had at Done, or without Done at the free.
func TestUseEndsWithDone(t *testing.T) {
	t.Parallel()
	for _, done := range []bool{true, false} {
		r, home, other := pair(t, 64*mib)
		b := must(t, home, 100*kib)
		u, err := b.Use(other)
		require.NoError(t, err)
		r.work(other, time.Second)
		if done {
			require.NoError(t, u.Done())
		}
		r.work(other, time.Second)
		require.NoError(t, b.Free())
		require.Error(t, u.Done())
		r.tick(home)
		r.gpu.Advance(time.Second)
		r.tick(home)
		assert.Equal(t, !done, r.stats(home).PendingBytes > 0)
		assert.Equal(t, done, returns(t, home, b))
		r.gpu.Advance(time.Second)
		r.tick(home)
		assert.Zero(t, r.stats(home).PendingBytes)
	}
}

// A use is ended once, through any of its copies; uses of one stream are counted.
func TestUsesAreCountedAndEndOnce(t *testing.T) {
	t.Parallel()
	r, home, other := pair(t, 64*mib)
	b := must(t, home, 4*kib)
	first, err := b.Use(other)
	require.NoError(t, err)
	second, err := b.Use(other)
	require.NoError(t, err)
	require.NoError(t, first.Done())
	require.ErrorIs(t, first.Done(), ErrUseOver)
	third, err := b.Use(other)
	require.NoError(t, err)
	require.ErrorIs(t, first.Done(), ErrUseOver, "a later use is not its own")
	require.NoError(t, third.Done())
	require.ErrorIs(t, Use{}.Done(), ErrUseOver)
	r.work(other, time.Second)
	require.NoError(t, b.Free(), "the second has not ended")
	require.ErrorIs(t, second.Done(), ErrNotLive)
	assert.EqualValues(t, 4*kib, r.stats(home).PendingBytes)
	own, err := must(t, home, 1).Use(home)
	require.NoError(t, err)
	require.NoError(t, own.Done())
}

// A buffer that was handed over has one owner, whose later work waits for the giver's, and whose
// work is waited for after the free.
func TestTransfer(t *testing.T) {
	t.Parallel()
	r, home, other := pair(t, 64*mib)
	third := r.stream(core.Budget{})
	b := must(t, home, 100*kib)
	r.work(home, time.Second)
	x, err := b.Transfer(other)
	require.NoError(t, err)
	assert.Equal(t, b.Ptr(), x.Ptr())
	assert.Equal(t, b.Bytes(), x.Bytes())
	assert.False(t, b.Live())
	assert.True(t, x.Live())
	for _, err := range []error{b.Free(), home.FreeBatch([]Buffer{b})} {
		require.ErrorIs(t, err, ErrTransferred)
		require.ErrorIs(t, err, ErrBadFree)
	}
	require.ErrorIs(t, b.RecordStream(third), ErrNotLive)
	_, err = b.Use(third)
	require.ErrorIs(t, err, ErrNotLive)
	_, err = b.Transfer(third)
	require.ErrorIs(t, err, ErrNotLive)
	assert.EqualValues(t, 1, r.stats(home).LiveCount)

	idle, err := r.gpu.StreamQuery(other.Handle())
	require.NoError(t, err)
	assert.False(t, idle, "it waits for the giver")
	r.gpu.Advance(time.Second)
	r.work(other, time.Second)
	y, err := x.Transfer(third)
	require.NoError(t, err)
	r.work(other, 10*time.Second) // not the buffer's any more
	r.gpu.Advance(time.Second)
	r.work(third, time.Second)
	require.NoError(t, y.Free())
	require.ErrorIs(t, y.Free(), ErrDoubleFree)
	require.ErrorIs(t, x.Free(), ErrDoubleFree)
	r.tick(home)
	assert.Positive(t, r.stats(home).PendingBytes)
	r.gpu.Advance(time.Second)
	r.tick(home)
	assert.Zero(t, r.stats(home).PendingBytes, "it waits for the last owner's work, not for what the one before does now")
	n := r.stats(home)
	assert.EqualValues(t, 1, n.AllocCount)
	assert.EqualValues(t, 1, n.FreeCount)
}

// A buffer may be handed over so often, and back.
func TestTransferLimit(t *testing.T) {
	t.Parallel()
	r, home, other := pair(t, 64*mib)
	b := must(t, home, 1)
	for i := range 255 {
		to := other
		if i%2 == 1 {
			to = home
		}
		next, err := b.Transfer(to)
		require.NoError(t, err)
		require.ErrorIs(t, b.Free(), ErrTransferred)
		b = next
	}
	_, err := b.Transfer(other)
	require.ErrorIs(t, err, ErrTransferLimit)
	require.NoError(t, b.Free())
	r.tick(home)
	r.tick(home)
	assert.Zero(t, r.stats(home).PendingBytes)
}

// Announcements on buffers that are not live, or by closed or foreign streams, are refused and
// change nothing.
func TestUsesAreRefused(t *testing.T) {
	t.Parallel()
	r, home, other := pair(t, 64*mib)
	elsewhere := newRig(t, 64*mib).stream(core.Budget{})
	b, gone := must(t, home, 1), must(t, home, 1)
	require.NoError(t, gone.Free())
	require.NoError(t, other.Close())
	for _, c := range []struct {
		b    Buffer
		on   *Stream
		want error
	}{
		{Buffer{}, home, ErrNotLive},
		{gone, home, ErrNotLive},
		{gone, other, ErrNotLive},
		{b, nil, ErrNotOpen},
		{b, new(Stream), ErrNotOpen},
		{b, elsewhere, ErrForeign},
		{b, other, ErrClosed},
	} {
		require.ErrorIs(t, c.b.RecordStream(c.on), c.want)
		_, err := c.b.Use(c.on)
		require.ErrorIs(t, err, c.want)
		_, err = c.b.Transfer(c.on)
		require.ErrorIs(t, err, c.want)
	}
	require.NoError(t, b.Free())
	assert.Zero(t, r.stats(home).PendingBytes)
}

// A use that is announced while the buffer is freed is refused, and the memory does not wait for it.
func TestAUseThatMeetsAFreeIsRefused(t *testing.T) {
	t.Parallel()
	for name, use := range map[string]func(b Buffer, other, third *Stream) error{
		"RecordStream of a second": func(b Buffer, _, third *Stream) error { return b.RecordStream(third) },
		"Use":                      func(b Buffer, other, _ *Stream) error { _, err := b.Use(other); return err },
	} {
		r, home, other := pair(t, 64*mib)
		third := r.stream(core.Budget{})
		b := must(t, home, mib)
		require.NoError(t, b.RecordStream(other))
		places := 0
		home.cache.SetReach(func(string) {
			if places++; places == 1 {
				require.NoError(t, b.Free())
			}
		})
		err := use(b, other, third)
		home.cache.SetReach(nil)
		require.Positive(t, places, name)
		require.ErrorIs(t, err, ErrNotLive, name)
	}
}

// More streams than have a number may be announced.
func TestManyStreamsUseABuffer(t *testing.T) {
	t.Parallel()
	r := newRig(t, 256*mib)
	home := r.stream(core.Budget{})
	b := must(t, home, 100*kib)
	const many = 70
	for i := range many {
		s := r.stream(core.Budget{})
		require.NoError(t, b.RecordStream(s))
		require.NoError(t, b.RecordStream(s))
		r.work(s, time.Duration(i+1)*time.Second)
	}
	require.Equal(t, unnumbered, r.streams[many].peer.number)
	require.NoError(t, b.Free())
	for range many {
		r.tick(home)
		require.Positive(t, r.stats(home).PendingBytes)
		require.NoError(t, control(home).Check(t.Context()))
		r.gpu.Advance(time.Second)
	}
	r.tick(home)
	assert.Zero(t, r.stats(home).PendingBytes)
}

// A request that would be refused waits for pending memory, of any stream.
func TestPendingMemoryIsWaitedForBeforeARefusal(t *testing.T) {
	t.Parallel()
	for _, own := range []bool{true, false} {
		r, home, other := pair(t, 16*mib)
		b := must(t, home, 12*mib)
		require.NoError(t, b.RecordStream(other))
		r.work(other, time.Second)
		require.NoError(t, b.Free())
		asks := home
		if !own {
			asks = other
		}
		next := must(t, asks, 12*mib)
		assert.GreaterOrEqual(t, r.gpu.Now(), time.Second)
		_, err := asks.Alloc(12 * mib)
		require.ErrorIs(t, err, pool.ErrOutOfMemory, "nothing is pending any more")
		buffers := make([]Buffer, 2)
		require.NoError(t, next.RecordStream(r.stream(core.Budget{})))
		require.NoError(t, next.Free())
		require.NoError(t, asks.AllocBatch(buffers, []int64{6 * mib, 6 * mib}))
	}
}

// Nothing takes a fence on a stream of the caller's but the caller's own calls.
func TestTicksLeaveAdoptedStreamsAlone(t *testing.T) {
	t.Parallel()
	r := newRig(t, 64*mib)
	home := r.stream(core.Budget{})
	h, err := r.device.StreamCreate()
	require.NoError(t, err)
	lent, _, err := Open(Config{ID: 99, Pool: r.pool, Device: r.device, Fences: r.fences, Handle: h, Adopted: true, Limit: &r.limit, Peers: &r.peers})
	require.NoError(t, err)
	r.streams = append(r.streams, lent)
	small := must(t, home, 4*kib)
	require.NoError(t, small.RecordStream(lent))
	require.NoError(t, small.Free())
	for range 3 {
		r.tick(home)
	}
	assert.Zero(t, r.faults.Calls("cuEventRecord"))
	assert.EqualValues(t, 4*kib, r.stats(home).PendingBytes)
	large := must(t, home, 20*mib)
	require.NoError(t, large.RecordStream(lent))
	r.quiet(home)
	require.NoError(t, large.Free())
	assert.EqualValues(t, 1, r.faults.Calls("cuEventRecord"), "by the free")
	r.tick(home)
	assert.Zero(t, r.stats(home).PendingBytes, "one fence for both")
	assert.EqualValues(t, 1, r.faults.Calls("cuEventRecord"))
}

// Closing either stream loses nothing and gives nothing back too early.
func TestCloseWithPendingMemory(t *testing.T) {
	t.Parallel()
	r, home, other := pair(t, 64*mib)
	b, late := must(t, home, 100*kib), must(t, home, 100*kib)
	for _, b := range []Buffer{b, late} {
		require.NoError(t, b.RecordStream(other))
	}
	r.work(other, time.Second)
	require.NoError(t, b.Free())
	require.NoError(t, home.Close())
	assert.Equal(t, time.Duration(0), r.gpu.Now(), "the other stream is not waited for")
	require.NoError(t, late.Free())
	r.until(func() bool { return r.stats(home).PendingBytes == 200*kib })
	assert.EqualValues(t, 2*mib, r.books().LentBytes)
	require.NoError(t, other.Close())
	r.tick(home)
	r.until(control(home).Gone)
	r.until(func() bool { return r.books().LentBytes == 0 })
}

// Announced buffers wait, freed in a batch or one by one.
func TestAnnouncedBuffersOfBatches(t *testing.T) {
	t.Parallel()
	r, home, other := pair(t, 256*mib)
	var all []Buffer
	for _, bytes := range []int64{4 * kib, 100 * kib, 4 * kib, 100 * kib, 4 * kib, 100 * kib} {
		b := must(t, home, bytes)
		require.NoError(t, b.RecordStream(other))
		all = append(all, b)
	}
	moved, err := all[0].Transfer(other)
	require.NoError(t, err)
	all[0] = moved
	r.work(other, time.Second)
	for _, b := range all[:4] {
		require.NoError(t, b.Free())
	}
	require.NoError(t, home.FreeBatch(all[4:]))
	used := map[any]bool{}
	for _, b := range all {
		used[b.Ptr()] = true
	}
	for range 200 {
		for _, bytes := range []int64{4 * kib, 100 * kib} {
			require.False(t, used[must(t, home, bytes).Ptr()])
		}
	}
	n := r.stats(home)
	assert.EqualValues(t, 400, n.LiveCount)
	assert.EqualValues(t, 6, n.FreeCount)
	assert.EqualValues(t, 312*kib, n.PendingBytes)
	require.NoError(t, control(home).Check(t.Context()))
	r.tick(home)
	r.gpu.Advance(time.Second)
	r.tick(home)
	assert.Zero(t, r.stats(home).PendingBytes)
	require.NoError(t, control(home).Check(t.Context()))
}

// While a stream is captured nothing is recorded on it: memory that it used waits until the capture
// has ended.
func TestNoFenceGoesIntoACapture(t *testing.T) {
	t.Parallel()
	r, home, other := pair(t, 256*mib)
	b, later := must(t, home, 32*mib), must(t, home, mib)
	u, err := later.Use(other)
	require.NoError(t, err)
	require.NoError(t, r.gpu.BeginCapture(other.Handle()))
	require.NoError(t, b.RecordStream(other))
	require.NoError(t, u.Done(), "the next fence counts")
	var captured *CaptureError
	_, err = later.Transfer(other)
	require.ErrorAs(t, err, &captured)
	require.NoError(t, later.Free())
	require.NoError(t, b.Free())
	r.tick(home)
	assert.EqualValues(t, 33*mib, r.stats(home).PendingBytes)
	graph, err := r.gpu.EndCapture(other.Handle())
	require.NoError(t, err)
	assert.Empty(t, graph.Calls())
	r.tick(home)
	r.tick(home)
	assert.Zero(t, r.stats(home).PendingBytes)
}

// A sweep waits for the goroutine in the turn, and collects memory whose uses have finished.
func TestASweepWaitsForTheTurn(t *testing.T) {
	t.Parallel()
	r, home, other := pair(t, 64*mib)
	b := must(t, home, 2*mib)
	require.NoError(t, b.RecordStream(other))
	r.work(other, time.Second)
	require.NoError(t, b.Free())
	require.NoError(t, control(home).Sweep(t.Context()))
	assert.EqualValues(t, 2*mib, r.stats(home).PendingBytes, "the work has not finished")
	r.gpu.Advance(time.Second)

	leave := r.occupy(home)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, control(home).Sweep(ctx), context.Canceled, "somebody is in the turn")
	swept := make(chan error, 1)
	go func() { swept <- control(home).Sweep(t.Context()) }()
	leave()
	require.NoError(t, <-swept)
	assert.Zero(t, r.stats(home).PendingBytes)
	require.NoError(t, home.Close())
	require.Error(t, control(home).Sweep(t.Context()), "it has ended")
}

// A use whose end takes no fence since the driver panics is ended by the next one, which covers its
// last work, and by none before.
func TestAUseWhoseFencePanicsEndsWithTheNext(t *testing.T) {
	t.Parallel()
	r, home, other := pair(t, 64*mib)
	earlier := other.cuda.line.TakeNow() // has passed
	_, err := other.cuda.line.Look()
	require.NoError(t, err)
	require.True(t, other.cuda.line.Passed(earlier))
	b := must(t, home, 100*kib)
	u, err := b.Use(other)
	require.NoError(t, err)
	r.work(other, time.Second)
	r.faults.SetBefore(func(function string) {
		if function == "cuEventRecord" {
			panic(recoveredtest.Planted("planted"))
		}
	})
	require.NoError(t, u.Done())
	r.faults.SetBefore(nil)
	require.NoError(t, b.Free())
	r.tick(home)
	assert.Positive(t, r.stats(home).PendingBytes)
	assert.False(t, returns(t, home, b))
	r.tick(home) // takes the fence
	r.gpu.Advance(time.Second)
	r.tick(home)
	assert.Zero(t, r.stats(home).PendingBytes)
}

// Memory whose uses have finished is collected by a sweep although no fence of them was recorded, and by ticks, whichever of several
// streams has finished: before any other turn.
func TestMemoryWhoseUsesHaveFinishedIsCollected(t *testing.T) {
	t.Parallel()
	for _, busy := range []int{-1, 0, 1, 2} {
		for name, collect := range map[string]func(r *rig, home *Stream){
			"sweep": func(_ *rig, home *Stream) { require.NoError(t, control(home).Sweep(t.Context())) },
			"ticks": func(r *rig, home *Stream) {
				for range 2 { // the first records the fences
					r.tick(home)
				}
			},
		} {
			r := newRig(t, 64*mib)
			home := r.stream(core.Budget{})
			want := int64(0)
			for i := range 3 {
				other := r.stream(core.Budget{})
				b := must(t, home, 100*kib)
				require.NoError(t, b.RecordStream(other))
				if i == busy {
					r.work(other, time.Second)
					want = 100 * kib
				}
				require.NoError(t, b.Free())
			}
			collect(r, home)
			require.True(t, home.tryTurn(func() { assert.Equal(t, want, home.turn.state.core.PendingBytes(), "%s, busy %d", name, busy) }))
			r.quiet(home)
			assert.Equal(t, want > 0, control(home).Waits())
		}
	}
}

// Close records the fences for all pending memory of the stream, however little it is.
func TestCloseRecordsTheFencesOfItsPendingMemory(t *testing.T) {
	t.Parallel()
	r, home, other := pair(t, 64*mib)
	b := must(t, home, 4*kib)
	require.NoError(t, b.RecordStream(other))
	require.NoError(t, b.Free())
	r.quiet(home)
	require.Zero(t, r.faults.Calls("cuEventRecord"))
	require.NoError(t, home.Close())
	assert.EqualValues(t, 1, r.faults.Calls("cuEventRecord"))
	r.tick(home)
	r.until(func() bool { return r.books().LentBytes == 0 })
}

// A request that waits is served by memory which a free makes pending then, once the device is done, without a tick: also if the
// stream of the memory is being closed. A request that does not wait is served although the driver's wait for another stream never
// returns.
func TestARequestWaitsForAnyFence(t *testing.T) {
	t.Parallel()
	for _, closes := range []bool{false, true} {
		r, home, other := pair(t, 16*mib)
		b := must(t, home, 12*mib)
		require.NoError(t, b.RecordStream(other))
		r.work(other, time.Second)
		if closes {
			require.NoError(t, home.Close())
		}
		f := r.stream(core.Budget{}).AllocAsync(t.Context(), Request{Bytes: 12 * mib, Wait: true})
		r.until(func() bool { return r.books().Waits.Waiting == 1 })
		require.NoError(t, b.Free())
		r.until(f.Completed)
		next, err := f.Await(t.Context())
		require.NoError(t, err)
		assert.GreaterOrEqual(t, r.gpu.Now(), time.Second)
		require.NoError(t, next.Free())
	}

	r := newRig(t, 16*mib)
	for range 2 {
		home, other := r.stream(core.Budget{}), r.stream(core.Budget{})
		b := must(t, home, 6*mib)
		require.NoError(t, b.RecordStream(other))
		r.work(other, time.Second)
		require.NoError(t, b.Free())
	}
	_, release := r.holdUp("cuEventSynchronize")
	f := r.stream(core.Budget{}).AllocAsync(t.Context(), Request{Bytes: 6 * mib})
	r.until(f.Completed)
	b, err := f.Await(t.Context())
	require.NoError(t, err)
	assert.EqualValues(t, 1, r.streams[len(r.streams)-1].tally.Counts().RetryCount)
	release()
	require.NoError(t, b.Free())
}

// A request that would wait for fences is refused if there are none by then, as of a stream that has ended.
func TestARequestWithoutAFenceToWaitForIsRefused(t *testing.T) {
	t.Parallel()
	r, s, ended := pair(t, 16*mib)
	held := must(t, s, 12*mib)
	require.NoError(t, ended.Close())
	<-ended.ref.Done()
	ended.peer.waits.Store(true) // as its last turn may have left it
	r.peers.change(func(all []*peer) []*peer { return append(all, &ended.peer) })
	f := s.AllocAsync(t.Context(), Request{Bytes: 8 * mib})
	r.until(f.Completed)
	_, err := f.Await(t.Context())
	require.ErrorIs(t, err, pool.ErrOutOfMemory)
	r.peers.leave(&ended.peer)
	require.NoError(t, held.Free())
}
