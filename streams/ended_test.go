package streams

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/actors"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/fence"
	poolcore "github.com/go-vram/vram/internal/pool/core"
	"github.com/go-vram/vram/internal/stream/claims"
	"github.com/go-vram/vram/internal/stream/core"
	"github.com/go-vram/vram/pool"
)

// A stream that is closed while it waits for a process that has died has that error at each Close, and is waited for no more.
func TestEachCloseOfAStrandedStreamSaysSo(t *testing.T) {
	t.Parallel()
	r := newRig(t, 16*mib)
	s := r.stream(core.Budget{})
	tail := submitter(t, s).Tail()
	tail.MayStrand()
	tail.Strand()
	r.work(s, time.Second)
	for range 3 {
		var stranded *StrandedError
		require.ErrorAs(t, s.Close(), &stranded)
		assert.Equal(t, s.ID(), stranded.Stream)
	}
	assert.True(t, s.peers.Stranded())
	assert.False(t, tail.Finished())
	assert.Zero(t, r.faults.Calls("cuStreamDestroy"))
	r.gpu.Advance(time.Second)
}

// A wait for a stream ends as soon as that one waits for a process that has died, though the driver call has not returned.
func TestAStrandEndsTheWaitThatHasBegun(t *testing.T) {
	t.Parallel()
	r, s, _ := pair(t, 16*mib)
	x := submitter(t, s)
	x.Tail().MayStrand()
	r.work(s, time.Second)
	entered, release := r.holdUp("cuStreamSynchronize")
	done := make(chan error, 1)
	go func() { done <- x.Synchronize() }()
	<-entered
	x.Tail().Strand()
	r.until(func() bool { return len(done) == 1 })
	require.ErrorIs(t, <-done, ErrStranded)
	x.Tail().Unstrand()
	release()
	require.NoError(t, x.Synchronize())
}

// A stream that the driver failed to wait for is closed, and may have work: its memory, and memory that it has returned, serves no other
// stream before that work has finished; its Tail keeps it; and the end of the device releases the events on it.
func TestAStreamThatWasNotWaitedForKeepsItsMemory(t *testing.T) {
	t.Parallel()
	for _, fails := range []bool{true, false} {
		r, s, other := pair(t, 64*mib)
		tail := submitter(t, s).Tail()
		kept, returned, used := must(t, s, 8*mib), must(t, s, 16*mib), must(t, other, 8*mib)
		require.NoError(t, used.RecordStream(s))
		r.work(s, time.Hour)
		require.NoError(t, returned.Free())
		require.NoError(t, s.Trim(t.Context()))
		require.NoError(t, used.Free())
		r.tick(other) // takes a fence on the stream
		require.NoError(t, kept.Free())
		if fails {
			r.fail("cuStreamSynchronize")
			require.ErrorIs(t, s.Close(), cudadrv.Unknown)
			r.faults.Clear()
			assert.Zero(t, r.gpu.Now())
		} else {
			require.NoError(t, s.Close())
		}
		assert.Equal(t, !fails, tail.Finished())
		assert.Equal(t, fails, tail.kept.Load() == s)
		r.until(func() bool { return fails || r.books().LentBytes <= 8*mib })
		b := must(t, other, 48*mib)
		assert.GreaterOrEqual(t, r.gpu.Now(), time.Hour)
		require.NoError(t, b.Free())
		b, err := other.Alloc(64 * mib)
		if fails {
			require.ErrorIs(t, err, pool.ErrOutOfMemory, "the stream keeps its memory")
			b, err = other.Alloc(56 * mib)
		}
		require.NoError(t, err)
		require.NoError(t, b.Free())
		require.NoError(t, other.Trim(t.Context()))
	}
}

// The end of the device releases the fences on a stream that was not waited for. The rig finds an event that is left.
func TestTheEndReleasesFences(t *testing.T) {
	t.Parallel()
	r, s, _ := pair(t, 16*mib)
	r.work(s, time.Second)
	s.cuda.line.TakeNow()
	r.fail("cuStreamSynchronize")
	require.ErrorIs(t, s.Close(), cudadrv.Unknown)
	assert.NotZero(t, r.gpu.Objects()["event"])
}

// Memory of a sleeper that is asleep returns with its Close, also if the driver fails to wait for the stream: no work uses it.
func TestASleeperThatWasNotWaitedForReturnsItsMemory(t *testing.T) {
	t.Parallel()
	r := newRig(t, 64*mib)
	home := r.stream(core.Budget{})
	x := r.sleeper(t, home)
	b, err := x.Alloc(32 * mib)
	require.NoError(t, err)
	require.NoError(t, x.Shut(t.Context()))
	require.NoError(t, x.Settle(t.Context()))
	require.NoError(t, x.AwaitCopies())
	_, err = x.Release(t.Context())
	require.NoError(t, err)
	require.NoError(t, b.Free())
	r.fail("cuStreamSynchronize")
	require.ErrorIs(t, x.Close(), cudadrv.Unknown)
	r.faults.Clear()
	assert.True(t, x.s.cuda.line.Finished())
	r.until(func() bool { return r.books().LentBytes == 0 })
	require.NoError(t, must(t, home, 60*mib).Free())
}

// Close waits for records on the stream that others make for its fences, also for one that looks for a free cell first: it neither waits
// for the stream nor destroys it before.
func TestCloseWaitsForCallsOfItsFences(t *testing.T) {
	t.Parallel()
	for _, function := range []string{"cuEventRecord", "cuEventQuery"} {
		r, s, _ := pair(t, 16*mib)
		if function == "cuEventQuery" {
			r.work(s, time.Second)
			for range fence.CellCount {
				s.cuda.line.TakeNow()
			}
		}
		entered, release := r.holdUp(function)
		var all sync.WaitGroup
		all.Go(func() { s.cuda.line.TakeNow() })
		<-entered
		all.Go(func() { assert.NoError(t, s.Close()) })
		r.until(func() bool { return s.cuda.closing.Load() })
		yield(1000)
		assert.Zero(t, r.faults.Calls("cuStreamSynchronize"), function)
		release()
		all.Wait()
		assert.EqualValues(t, 1, r.faults.Calls("cuStreamDestroy"), function)
	}
}

// A Tail of a stream that is being closed has not finished: the work may still be waited for.
func TestATailHasNotFinishedBeforeClose(t *testing.T) {
	t.Parallel()
	r, s, _ := pair(t, 16*mib)
	tail := submitter(t, s).Tail()
	entered, release := r.holdUp("cuStreamSynchronize")
	var closing sync.WaitGroup
	closing.Go(func() { assert.NoError(t, s.Close()) })
	<-entered
	assert.False(t, tail.Finished())
	assert.Same(t, s, tail.Stream())
	release()
	closing.Wait()
	assert.True(t, tail.Finished())
}

// A closed stream is gone with the free of its last buffer, also where other streams have used the buffers: with any number of them.
func TestAClosedStreamIsGoneWithItsLastBuffer(t *testing.T) {
	t.Parallel()
	for _, count := range []int{1, 127, 128, 129, 400} {
		for _, bytes := range []int64{kib, 100 * kib} {
			r, s, other := pair(t, 64*mib)
			all := make([]Buffer, count)
			for i := range all {
				all[i] = must(t, s, bytes)
				require.NoError(t, all[i].RecordStream(other))
			}
			require.NoError(t, s.Close())
			for _, b := range all {
				require.NoError(t, b.Free())
			}
			r.until(func() bool {
				_ = control(s).Sweep(t.Context()) // an error once it is gone
				return control(s).Gone()
			})
			r.until(func() bool { return r.books().LentBytes == 0 })
			assert.EqualValues(t, count, control(s).LastStats().FreeCount)
		}
	}
}

// countingHost is the Go scheduler as a host that counts the functions that it starts.
type countingHost struct {
	actors.Host
	starts int
}

func (h *countingHost) Go(_ string, f func()) {
	h.starts++
	f()
}

// A message that ends unread has its answer, once: from its turn, or from its Fail where that has not answered.
func TestWhichUnreadMessagesAreAnswered(t *testing.T) {
	t.Parallel()
	r := newRig(t, 16*mib)
	s := r.stream(core.Budget{})
	w := &s.wiring
	host := &countingHost{}
	for _, row := range []struct {
		what    string
		message actors.Message
		answers int
		synced  bool
	}{
		{"a grant of nothing", &granted{stream: w}, 0, true},
		{"a grant to a stream that may have work", &granted{stream: w, runs: []poolcore.Run{{First: 1, Pages: 1}}}, 0, false},
		{"an offer", &offered{stream: w, offer: claims.Offer{Token: 1 << 40}}, 1, true},
		{"an offer that its turn has answered", &offered{stream: w, answered: true}, 0, true},
	} {
		s.host = host
		w.cuda.synced.Store(row.synced)
		host.starts = 0
		row.message.Fail(ErrClosed)
		assert.Equal(t, row.answers, host.starts, row.what)
		w.cuda.synced.Store(false)
		s.host = nil
	}
}

// A failed wait for a fence makes a stream serve its delayed requests again only if no other fence is waited for: that one may pass.
func TestAFailedWaitIsToldWhereItIsTheLast(t *testing.T) {
	t.Parallel()
	r, home, other := pair(t, 64*mib)
	third := r.stream(core.Budget{})
	var entry told
	home.peer.entry = &entry
	for _, row := range []struct{ passes, others, tells bool }{
		{true, true, true}, {true, false, true}, {false, false, true}, {false, true, false},
	} {
		entry = told{}
		home.peer.watchBegins(other.cuda.line)
		if row.others {
			require.True(t, home.peer.watchBegins(third.cuda.line))
		}
		if !row.passes {
			r.fail("cuEventRecord")
		}
		r.peers.awaitFence(&home.peer, fencing{other.cuda.line, other.cuda.line.Next(), true}, nil)
		r.faults.Clear()
		assert.Equal(t, 1, entry.passed, "%+v", row)
		assert.Equal(t, row.tells, entry.retries == 1, "%+v", row)
		assert.Equal(t, row.others, r.peers.watching(), "the end of one wait ends no other: %+v", row)
		if row.others {
			home.peer.watchEnds(third.cuda.line)
		}
		assert.False(t, r.peers.watching())
	}
	home.peer.entry = (*peerClient)(&home.turn)
}

// told counts the calls into a stream's turn.
type told struct {
	peerTurn
	passed, retries int
	fences          []fencing
}

func (e *told) fencePassed()                      { e.passed++ }
func (e *told) retryDelayed(bool)                 { e.retries++ }
func (e *told) pendingFences() ([]fencing, error) { return e.fences, nil }

// Requests wait for the fences of all streams but those that are excluded from waits, as long as they are.
func TestWhichFencesRequestsWaitFor(t *testing.T) {
	t.Parallel()
	r, home, other := pair(t, 64*mib)
	third := r.stream(core.Budget{})
	entry := told{fences: []fencing{{other.cuda.line, 1, true}, {third.cuda.line, 1, true}}}
	home.peer.entry = &entry
	home.peer.waits.Store(true)
	watched := func() (is [2]bool) {
		host := &lazyHost{}
		some := r.peers.watchFences(host)
		for i, s := range []*Stream{other, third} {
			if all := home.peer.watched.Load(); all != nil {
				for _, l := range *all {
					is[i] = is[i] || l == s.cuda.line
				}
			}
			if is[i] {
				home.peer.watchEnds(s.cuda.line)
			}
		}
		assert.Equal(t, is[0] || is[1], some)
		return is
	}
	assert.Equal(t, [2]bool{true, true}, watched())
	other.ExcludeFromWaits(true)
	assert.Equal(t, [2]bool{false, true}, watched())
	third.ExcludeFromWaits(true)
	assert.Equal(t, [2]bool{false, false}, watched())
	other.ExcludeFromWaits(false)
	assert.Equal(t, [2]bool{true, false}, watched())
	home.peer.entry = (*peerClient)(&home.turn)
	r.tick(home)
}

// The list of the largest buffers expires when its look has ended, and not before.
func TestTheListOfLargestBuffersExpiresOnceItIsThere(t *testing.T) {
	t.Parallel()
	var p Peers
	l := &listing{done: make(chan struct{})}
	p.found.Store(l)
	p.expire()
	assert.Same(t, l, p.found.Load())
	assert.Nil(t, p.listed())
	close(l.done)
	assert.Same(t, l, p.listed())
	p.expire()
	assert.Nil(t, p.found.Load())

	r := newRig(t, 16*mib)
	s := r.stream(core.Budget{})
	s.peers.found.Store(l)
	control(s).Tick()
	assert.Nil(t, s.peers.found.Load(), "a tick drops it")
}
