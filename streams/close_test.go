package streams

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-vram/vram/internal/fence/line"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/futures"
	"github.com/go-vram/vram/internal/stream/core"
)

// A closed stream refuses requests and returns its free memory; buffers that live are freed later,
// and their memory follows; with the last one the stream is gone.
func TestADrainingStreamReturnsWhatComesHome(t *testing.T) {
	r := newRig(t, 256*mib)
	s := r.stream(core.Budget{})
	small, large, kept := must(t, s, kib), must(t, s, 5*mib), must(t, s, 70*kib)
	require.NoError(t, must(t, s, 16*mib).Free())
	require.NoError(t, s.Close())

	_, err := s.Alloc(kib)
	require.ErrorIs(t, err, ErrClosed)
	_, err = s.AllocAsync(context.Background(), Request{Bytes: mib}).Await(context.Background())
	require.ErrorIs(t, err, ErrClosed)
	assert.False(t, control(s).Gone())
	r.until(func() bool { return r.books().LentBytes < 20*mib }) // free pages are back
	lent := r.books().LentBytes
	require.Len(t, control(s).LiveBuffers(), 3)

	require.NoError(t, large.Free())
	r.until(func() bool { return r.books().LentBytes < lent })
	require.ErrorIs(t, large.Free(), ErrBadFree)
	require.NoError(t, small.Free())
	require.NoError(t, kept.Free())
	<-s.ref.Done()
	assert.True(t, control(s).Gone())
	r.until(func() bool { return r.books().LentBytes == 0 })
	assert.Equal(t, uint64(4), control(s).LastStats().FreeCount)
	require.NoError(t, s.Close(), "again")
}

// Close fails waiting requests with ErrClosed, and later grants go back to the pool.
func TestCloseFailsWhatWaits(t *testing.T) {
	r := newRig(t, 256*mib)
	s, other := r.stream(core.Budget{}), r.stream(core.Budget{})
	waiting, queued, leave, release := waitingAndQueued(t, r, s)
	var closing sync.WaitGroup
	closing.Go(func() { assert.NoError(t, s.Close()) })
	leave()
	for _, f := range []futures.Future[Buffer]{waiting, queued} {
		_, err := f.Await(context.Background())
		if err == nil { // it overtook the close
			b, _, _ := f.Poll()
			require.NoError(t, b.Free())
			continue
		}
		require.ErrorIs(t, err, ErrClosed)
	}
	closing.Wait()
	release()
	require.NoError(t, must(t, other, 64*mib).Free())
	<-s.ref.Done()
	_, err := r.pool.Trim(context.Background(), 0) // after the job and its outcome
	require.NoError(t, err)
	r.balanced(other)
}

// Close fails requests that wait at once: not only once the device has finished.
func TestCloseFailsWhatWaitsBeforeItWaitsItself(t *testing.T) {
	r := newRig(t, 256*mib)
	s := r.stream(core.Budget{})
	var once [2]sync.Once
	held, release := make(chan struct{}, 2), make(chan struct{})
	r.faults.SetBefore(func(function string) {
		for i, f := range []string{"cuMemCreate", "cuStreamSynchronize"} {
			if f == function {
				once[i].Do(func() {
					held <- struct{}{}
					<-release
				})
			}
		}
	})
	waiting := s.AllocAsync(context.Background(), Request{Bytes: 8 * mib})
	<-held
	var closing sync.WaitGroup
	closing.Go(func() { assert.NoError(t, s.Close()) })
	_, err := waiting.Await(context.Background())
	require.ErrorIs(t, err, ErrClosed)
	<-held
	close(release)
	closing.Wait()
}

// Pages that reach a stream which is gone go back to the pool.
func TestAGrantToAStreamThatIsGoneGoesBack(t *testing.T) {
	r := newRig(t, 64*mib)
	s := r.stream(core.Budget{})
	require.NoError(t, must(t, s, 6*mib).Free())
	leave := r.occupy(s)
	runs := slices.Clone(s.turn.state.core.Release(^uint32(0), false)) // as if they were on their way
	leave()
	require.NoError(t, s.Close())
	<-s.ref.Done()
	require.Equal(t, 6*mib, r.books().LentBytes)
	s.client.Granted(7, runs, false)
	r.until(func() bool { return r.books().LentBytes == 0 }) // by a goroutine of its own
}

// A grant that a closed stream was about to return when its turn panicked is returned once.
func TestPanicOfAClosedStreamReturnsAGrantOnce(t *testing.T) {
	r := newRig(t, 64*mib)
	s := r.stream(core.Budget{})
	live := must(t, s, 2*mib)
	require.NoError(t, must(t, s, 6*mib).Free())
	leave := r.occupy(s)
	runs := slices.Clone(s.turn.state.core.Release(^uint32(0), false))
	leave()
	require.NoError(t, s.Close())
	crash(s, beforeReturn, 1, nil)
	s.client.Granted(7, runs, false)
	assert.Equal(t, 8*mib, r.stats(s).HeldBytes)
	for range 1000 { // a second return would come from another goroutine
		runtime.Gosched()
	}
	r.balanced(s)
	require.NoError(t, live.Free())
	<-s.ref.Done()
	r.until(func() bool { return r.books().LentBytes == 0 })
}

// Until the device has finished the stream's work, no memory of a closing stream goes to others:
// not by a tick, a free, nor a reclaim request.
func TestAClosingStreamKeepsItsMemoryUntilTheWorkHasFinished(t *testing.T) {
	r := newRig(t, 256*mib)
	s := r.stream(core.Budget{})
	b := must(t, s, 2*mib)
	require.NoError(t, must(t, s, 16*mib).Free())
	require.NoError(t, r.gpu.Launch(s.Handle(), time.Second))
	entered, release := r.holdUp("cuStreamSynchronize")
	var closing sync.WaitGroup
	closing.Go(func() { assert.NoError(t, s.Close()) })
	<-entered
	r.tick(s)
	require.NoError(t, b.Free())
	r.tick(s)
	_, err := r.pool.Trim(context.Background(), 0)
	require.NoError(t, err)
	assert.Equal(t, r.books().ReservedBytes, r.books().LentBytes, "all of it is still the stream's")
	release()
	closing.Wait()
	<-s.ref.Done()
	r.until(func() bool { return r.books().LentBytes == 0 })
	assert.Zero(t, r.books().PendingBytes, "no fence is needed")
	assert.GreaterOrEqual(t, r.gpu.Now(), time.Second)
}

// If the synchronisation fails, the memory stays with the stream and no
// fence is recorded on the handle that is no more; the device's close frees it.
func TestCloseWithoutAnAnswerOfTheDeviceKeepsTheMemory(t *testing.T) {
	r := newRig(t, 256*mib)
	s := r.stream(core.Budget{})
	b := must(t, s, 2*mib)
	require.NoError(t, must(t, s, 16*mib).Free())
	r.fail("cuStreamSynchronize")
	require.Error(t, s.Close())
	r.faults.Clear()
	records := r.faults.Calls("cuEventRecord")
	require.NoError(t, b.Free())
	r.tick(s)
	_, err := r.pool.Trim(context.Background(), 0)
	require.NoError(t, err)
	assert.Equal(t, records, r.faults.Calls("cuEventRecord"))
	assert.Equal(t, r.books().ReservedBytes, r.books().LentBytes)
	assert.False(t, control(s).Gone())
}

// Several goroutines may close: all wait until it is done.
func TestCloseIsConcurrent(t *testing.T) {
	r := newRig(t, 256*mib)
	s := r.stream(core.Budget{})
	require.NoError(t, must(t, s, 16*mib).Free())
	entered, release := r.holdUp("cuStreamDestroy")
	var started, closing sync.WaitGroup
	var done [4]chan struct{}
	for i := range done {
		done[i] = make(chan struct{})
		started.Add(1)
		closing.Go(func() {
			defer close(done[i])
			started.Done()
			assert.NoError(t, s.Close())
		})
	}
	<-entered
	started.Wait()
	for range 1000 { // one that does not wait has time to return
		runtime.Gosched()
	}
	for i := range done {
		select {
		case <-done[i]:
			t.Error("a Close returned before the stream was closed")
		default:
		}
	}
	release()
	closing.Wait()
	assert.Equal(t, uint64(1), r.faults.Calls("cuStreamDestroy"))
}

// A stream's own handle is destroyed with it, after the last fence was recorded on it; an adopted
// one is the caller's.
func TestCloseDestroysTheHandleUnlessItWasAdopted(t *testing.T) {
	r := newRig(t, 256*mib)
	s := r.stream(core.Budget{})
	require.NoError(t, must(t, s, 16*mib).Free())
	require.NoError(t, s.Close())
	_, err := r.device.StreamQuery(s.Handle())
	require.Error(t, err)

	h, err := r.device.StreamCreate()
	require.NoError(t, err)
	adopted, _, err := Open(Config{
		ID: 99, Pool: r.pool, Device: r.device, Fences: r.fences, Handle: h, Adopted: true, Limit: &r.limit,
	})
	require.NoError(t, err)
	r.streams = append(r.streams, adopted)
	require.NoError(t, must(t, adopted, mib).Free())
	require.NoError(t, adopted.Close())
	_, err = r.device.StreamQuery(h)
	require.NoError(t, err)
	require.NoError(t, r.device.StreamDestroy(h))
}

// Close waits for a goroutine that is about to record a fence: a record on a destroyed stream is
// undefined.
func TestCloseWaitsForTheLastRecord(t *testing.T) {
	r := newRig(t, 256*mib)
	s := r.stream(core.Budget{})
	require.NoError(t, must(t, s, 16*mib).Free())
	require.NoError(t, r.gpu.Launch(s.Handle(), time.Second)) // an idle stream answers without a fence
	entered, release := r.holdUp("cuEventRecord")
	var work sync.WaitGroup
	work.Go(func() {
		_, err := r.pool.Trim(context.Background(), 0)
		assert.NoError(t, err)
	})
	<-entered
	closed := make(chan struct{})
	work.Go(func() {
		defer close(closed)
		assert.NoError(t, s.Close())
	})
	r.until(s.cuda.closing.Load)
	for range 1000 { // so that Close would be through if it did not wait
		runtime.Gosched()
	}
	select {
	case <-closed:
		t.Error("Close returned while a fence was still to be recorded")
	default:
	}
	assert.Zero(t, r.faults.Calls("cuStreamDestroy"))
	release()
	work.Wait()
	r.until(func() bool { return r.books().LentBytes == 0 })
}

// The figures of a stream that has ended are the last ones: its peaks since the beginning of a scope, and the counts of requests and
// frees that were refused, before the end and since, also if nobody has read any figure before.
func TestFiguresOfAStreamThatHasEnded(t *testing.T) {
	t.Parallel()
	for _, read := range []bool{false, true} {
		r := newRig(t, 64*mib)
		s := r.stream(core.Budget{})
		before := must(t, s, 8*mib)
		require.NoError(t, control(s).BeginScope(t.Context(), 7))
		b := must(t, s, 4*mib)
		require.NoError(t, b.Free())
		require.NoError(t, before.Free())
		require.ErrorIs(t, b.Free(), ErrDoubleFree)
		_, err := s.Alloc(-1)
		require.ErrorIs(t, err, ErrNegative)
		if read {
			r.stats(s)
		}
		assert.EqualValues(t, 1, control(s).LastStats().BadFreeCount, "read %v", read)
		require.NoError(t, s.Close())
		<-s.ref.Done()
		peaks := control(s).EndScope(7)
		assert.Equal(t, 12*mib, peaks.LiveBytes)
		assert.Equal(t, 12*mib, peaks.HeldBytes)
		require.Error(t, b.Free())
		leave := s.AllocAsync(t.Context(), Request{Bytes: mib})
		_, err = leave.Await(t.Context())
		require.ErrorIs(t, err, ErrClosed)
		n := control(s).LastStats()
		assert.EqualValues(t, 2, n.BadFreeCount)
		assert.EqualValues(t, 2, n.FreeCount)
		assert.Zero(t, n.HeldBytes)
	}
}

// A request that reaches the turn of a stream that is being closed is refused, and counts as refused, as one that comes later.
func TestARequestThatMeetsACloseCountsAsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, 64*mib)
	s := r.stream(core.Budget{})
	leave := r.occupy(s)
	s.post(s.turn.endService) // as Close does
	a := s.request(Request{Bytes: mib})
	b := s.batching(make([]Buffer, 1), []int64{mib})
	s.ref.Call(&a.claim)
	s.ref.Call(&b.claim)
	before := s.tally.Counts()
	leave()
	_, err := a.promise.Future().Await(t.Context())
	require.ErrorIs(t, err, ErrClosed)
	_, err = b.promise.Future().Await(t.Context())
	require.ErrorIs(t, err, ErrClosed)
	after := s.tally.Counts()
	assert.Equal(t, before.RefusedCount+2, after.RefusedCount)
}

// Close waits for calls of each kind that have begun on the CUDA stream, and lets others run: it neither waits for the stream
// nor destroys it before.
func TestCloseWaitsForEveryKindOfCall(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(r *rig, x Submitter) (end func()){
		"Begin":      func(_ *rig, x Submitter) func() { require.NoError(t, x.Begin()); return x.End },
		"Enter":      func(_ *rig, x Submitter) func() { require.NoError(t, x.Enter(false)); return x.Leave },
		"EnterQuick": func(_ *rig, x Submitter) func() { require.NoError(t, x.EnterQuick()); return x.LeaveQuick },
		"Outside":    func(_ *rig, x Submitter) func() { require.NoError(t, x.Outside("call")); return x.Leave },
		"a fence of the timeline": func(r *rig, x Submitter) func() {
			entered, release := r.holdUp("cuEventRecord")
			taken := make(chan struct{})
			go func() {
				defer close(taken)
				x.s.cuda.line.TakeNow()
			}()
			<-entered
			return func() {
				release()
				<-taken
			}
		},
	} {
		r := newRig(t, 16*mib)
		s := r.stream(core.Budget{})
		end := begin(r, Submitter{s})
		yields := 0
		s.host = &yielding{step: func() {
			if yields++; yields > 1 {
				return
			}
			assert.True(t, s.cuda.closing.Load(), name)
			assert.Zero(t, r.faults.Calls("cuStreamSynchronize"), name)
			end()
		}}
		require.NoError(t, s.Close(), name)
		assert.Positive(t, yields, name)
		s.host = nil
	}
}

// Close waits for a call that a turn orders while Close waits for the stream's work: before it destroys the stream.
func TestCloseWaitsForACallThatComesLate(t *testing.T) {
	t.Parallel()
	r := newRig(t, 16*mib)
	s := r.stream(core.Budget{})
	r.faults.SetBefore(func(function string) {
		if function == "cuStreamSynchronize" {
			s.cuda.order()
		}
	})
	made := 0
	s.host = &yielding{step: func() {
		if s.cuda.calls.Load() > 0 {
			made++
			assert.Zero(t, r.faults.Calls("cuStreamDestroy"))
			s.cuda.done()
		}
	}}
	require.NoError(t, s.Close())
	assert.Equal(t, 1, made)
	s.host = nil
}

// A buffer of a closed stream that is freed while a turn returns others is seen after that turn, without a tick or another call: the last
// one ends the stream.
func TestAFreeDuringATurnOfAClosedStreamIsSeen(t *testing.T) {
	t.Parallel()
	r := newRig(t, 64*mib)
	s := r.stream(core.Budget{})
	var all [6]Buffer
	for i := range all {
		all[i] = must(t, s, 3*mib)
	}
	require.NoError(t, s.Close())
	freed := 0
	free := func() {
		if freed < len(all) {
			freed++
			assert.NoError(t, all[freed-1].Free())
		}
	}
	s.setHook(func(p point) {
		if p == beforeReturn {
			free()
		}
	})
	free()
	r.until(control(s).Gone)
	assert.Equal(t, len(all), freed)
	r.until(func() bool { return r.books().LentBytes == 0 })
}

// Each open stream of many that are opened and closed has a number by which buffers record their uses cheaply, and a closed one keeps no
// other stream that it has waited for.
func TestClosedStreamsGiveTheirNumbersBack(t *testing.T) {
	t.Parallel()
	r := newRig(t, 64*mib)
	home := r.stream(core.Budget{})
	b := must(t, home, mib)
	for range 2 * line.Count {
		s := r.stream(core.Budget{})
		require.NotEqual(t, unnumbered, s.peer.number)
		r.crosses(s, b, true, 0)
		require.NoError(t, s.Close())
		assert.Nil(t, s.cuda.crossings.seen.Load())
	}
	require.NoError(t, b.Free())
}
