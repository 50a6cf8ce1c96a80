package streams

import (
	"context"
	"encoding"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/actors"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/effect"
	"github.com/go-vram/vram/internal/fence"
	"github.com/go-vram/vram/internal/recovered"
	"github.com/go-vram/vram/internal/recoveredtest"
	"github.com/go-vram/vram/internal/stream/claims"
	"github.com/go-vram/vram/internal/stream/core"
	"github.com/go-vram/vram/pool"
)

// A message to a stream that comes while a goroutine is in its turn is handled after that turn, without another call.
func TestNewsDuringATurnIsSeenToAfterIt(t *testing.T) {
	t.Parallel()
	for name, news := range map[string]struct {
		before, tell func(r *rig, home, other *Stream)
		seen         func(r *rig, home *Stream) bool
	}{
		"a fence has passed": {
			before: func(r *rig, home, other *Stream) {
				b, err := home.Alloc(20 * mib)
				require.NoError(r.t, err)
				require.NoError(r.t, b.RecordStream(other))
				r.work(other, time.Second)
				require.NoError(r.t, b.Free())
				r.tick(home)
				r.gpu.Advance(time.Second)
				_, err = other.cuda.line.Look()
				require.NoError(r.t, err)
			},
			tell: func(_ *rig, home, _ *Stream) { (*peerClient)(&home.turn).fencePassed() },
			seen: func(_ *rig, home *Stream) bool { return home.turn.state.core.PendingBytes() == 0 },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, home, other := pair(t, 64*mib)
			must(t, home, 8*mib)
			news.before(r, home, other)
			seen := func() (seen bool) {
				require.NoError(t, home.inTurn(t.Context(), func() { seen = news.seen(r, home) }))
				return seen
			}
			require.False(t, seen())
			leave := r.occupy(home)
			news.tell(r, home, other)
			leave()
			assert.True(t, seen())
		})
	}
}

// A refusal names a capture that forbade a call since the request began, since that may be the reason; no other refusal names one.
func TestARefusalNamesTheCaptureThatMayBeTheReason(t *testing.T) {
	t.Parallel()
	r, home, other := pair(t, 16*mib)
	must(t, home, 12*mib)
	_, err := other.Alloc(8 * mib)
	require.ErrorIs(t, err, pool.ErrOutOfMemory)
	require.NotErrorIs(t, err, ErrCapturing)
	leave := r.occupy(other)
	f := other.AllocAsync(t.Context(), Request{Bytes: 8 * mib})
	require.NoError(t, r.gpu.BeginCapture(other.Handle()))
	forbidden(t, other.cuda.precede(fence.Mark{}), other, "cuStreamWaitEvent")
	_, err = r.gpu.EndCapture(other.Handle())
	require.NoError(t, err)
	leave()
	_, err = f.Await(t.Context())
	require.ErrorIs(t, err, pool.ErrOutOfMemory)
	forbidden(t, err, other, "cuEventRecord")
}

// A wait for fences ends with the first call that fails: it is not made again and again.
func TestAWaitForAFenceIsNotRepeatedWhenItFails(t *testing.T) {
	t.Parallel()
	for _, function := range []string{"cuEventSynchronize", "cuEventRecord"} {
		r, home, other := pair(t, 16*mib)
		b := must(t, home, 12*mib)
		require.NoError(t, b.RecordStream(other))
		r.work(other, time.Second)
		number := other.cuda.line.Next()
		if function == "cuEventSynchronize" {
			_, err := other.cuda.line.Take(number)
			require.NoError(t, err)
		}
		before := r.faults.Calls(function)
		r.fail(function)
		assert.False(t, fencing{line: other.cuda.line, number: number}.wait(nil))
		assert.EqualValues(t, 1, r.faults.Calls(function)-before, function)
		r.faults.Clear()
		assert.True(t, fencing{line: other.cuda.line, number: number}.wait(nil))
	}
}

// A stream whose memory lives learns that requests wait, and each free of its callers is reported from then on, without a tick: in each
// size of block, also of buffers with a tag. It learns that none waits any more, too.
func TestFreesServeARequestThatWaits(t *testing.T) {
	t.Parallel()
	for _, want := range []Request{{Bytes: 4 * kib}, {Bytes: 64 * kib}, {Bytes: 2 * mib}, {Bytes: 4 * kib, Tag: "a"}, {Bytes: 2 * mib, Tag: "a"}} {
		r, home, other := pair(t, 16*mib)
		var all []Buffer
		for b, err := home.AllocFor(t.Context(), want); err == nil; b, err = home.AllocFor(t.Context(), want) {
			all = append(all, b)
		}
		wait := Request{Bytes: 4 * mib, Wait: true}
		if want.Tag != "" {
			wait.Bytes = 1
		}
		f := other.AllocAsync(t.Context(), wait)
		r.until(func() bool { return r.books().Waiting == 1 })
		for _, b := range all {
			require.NoError(t, b.Free())
		}
		b, err := f.Await(t.Context())
		require.NoError(t, err)
		live := control(other).LiveBuffers()
		require.Len(t, live, 1)
		assert.Positive(t, live[0].Age, "it has waited")
		wanted := true
		r.until(func() bool {
			require.NoError(t, home.inTurn(t.Context(), func() { wanted = home.turn.state.wanted }))
			return !wanted
		})
		require.NoError(t, b.Free())
	}
}

// Calls that return memory return once the pool has it: also while another goroutine performs their turn's effects.
func TestACallThatReturnsMemoryWaitsForThePool(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]func(s *Stream) error{
		"Trim": func(s *Stream) error { return s.Trim(context.Background()) },
		"Reconfigure": func(s *Stream) error {
			return control(s).Reconfigure(context.Background(), core.Settings{Budget: core.Budget{CacheBytes: 2 * mib}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, s, _ := pair(t, 64*mib)
			b := must(t, s, 20*mib)
			r.work(s, time.Second)
			require.NoError(t, b.Free())
			held := r.stats(s).HeldBytes
			leave := r.occupy(s)
			entered, release := r.holdUp("cuEventRecord")
			release = sync.OnceFunc(release)
			t.Cleanup(release)
			done := make(chan error, 1)
			go func() { done <- call(s) }()
			yield(1000) // it is queued
			go leave()  // with the effects of its turn
			<-entered
			yield(1000)
			select {
			case err := <-done:
				require.Fail(t, "the pool has nothing yet", "%v", err)
			default:
			}
			release()
			require.NoError(t, <-done)
			assert.Less(t, r.books().LentBytes, held)
		})
	}
}

// yield lets other goroutines run so many times.
func yield(times int) {
	for range times {
		runtime.Gosched()
	}
}

// The pages of a hold stay with it until its end: neither a trim nor a reclaim takes them.
func TestAHoldKeepsItsPages(t *testing.T) {
	t.Parallel()
	r, home, other := pair(t, 16*mib)
	home.sibling = func() (*Stream, error) { return r.stream(core.Budget{}), nil }
	h, err := submitter(t, home).NewHold()
	require.NoError(t, err)
	b := must(t, h.Stream(), 10*mib)
	require.NoError(t, b.Free())
	require.NoError(t, h.Stream().Trim(t.Context()))
	_, err = other.Alloc(10 * mib)
	require.ErrorIs(t, err, pool.ErrOutOfMemory)
	assert.GreaterOrEqual(t, r.stats(h.Stream()).HeldBytes, 10*mib)
	require.NoError(t, h.End())
	require.NoError(t, must(t, other, 10*mib).Free())
}

// The list of observers contains the entries of all editors.
func TestObserversAreListed(t *testing.T) {
	t.Parallel()
	var list Observers
	assert.Empty(t, list.All())
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 10 {
				list.EditAll(func(all []*Observer) []*Observer { return append(all, new(Observer)) })
			}
		})
	}
	all.Wait()
	assert.Len(t, list.All(), 80)
	list.EditAll(func(all []*Observer) []*Observer { return all[:1] })
	assert.Len(t, list.All(), 1)
}

// The runs for a whole batch are the runs of all its sizes, in chunks of any number, also after other searches.
func TestRunsOfAWholeBatch(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1024*mib)
	s := r.stream(core.Budget{})
	of := func(x *searches, count int, bytes int64) []uint32 {
		return x.allRuns(slices.Repeat([]int64{bytes}, count))
	}
	for _, count := range []int{1, 63, 64, 65, 130} {
		x := &searches{wiring: &s.wiring, state: &s.turn.state}
		runs := of(x, count, 2*mib)
		sum := uint32(0)
		for _, n := range runs {
			sum += n
		}
		assert.EqualValues(t, count, sum, "of pages of 2 MiB")
		of(x, 3, 5*mib)
		assert.Equal(t, runs, of(x, count, 2*mib))
	}
}

// The texts of values are those that encoders write.
func TestTexts(t *testing.T) {
	t.Parallel()
	r, home, other := pair(t, 16*mib)
	b := must(t, home, mib)
	use, err := b.Use(other)
	require.NoError(t, err)
	all, err := home.AllocBatchAsync(t.Context(), []int64{kib, 2 * kib}).Await(t.Context())
	require.NoError(t, err)
	for _, value := range []interface {
		fmt.Stringer
		encoding.TextMarshaler
	}{b, Buffer{}, home, new(Stream), use, Use{}, all, Batch{}} {
		text, err := value.MarshalText()
		require.NoError(t, err)
		assert.NotEmpty(t, text)
		assert.Equal(t, value.String(), string(text))
	}
	require.NoError(t, all.Free())
	require.NoError(t, b.Free())
	r.balanced(home, other)
}

// A stream that waits for a process that has died is not waited for: its error names it, unless its work has finished, or the driver
// fails.
func TestASynchronizeOfAStrandedStream(t *testing.T) {
	t.Parallel()
	r, s, _ := pair(t, 16*mib)
	x := submitter(t, s)
	x.Tail().MayStrand()
	x.Tail().Strand()
	require.NoError(t, x.Synchronize(), "all work has finished")
	r.work(s, time.Second)
	var stranded *StrandedError
	require.ErrorAs(t, x.Synchronize(), &stranded)
	assert.Equal(t, s.ID(), stranded.Stream)
	r.fail("cuStreamQuery")
	err := x.Synchronize()
	require.ErrorIs(t, err, cudadrv.Unknown)
	require.NotErrorAs(t, err, &stranded)
	r.faults.Clear()
	x.Tail().Unstrand()
	recoveredtest.Expect(t, "driver: the function ended its goroutine")
	r.ends("cuStreamSynchronize")
	require.ErrorContains(t, x.Synchronize(), "the function ended its goroutine")
	require.NoError(t, x.Synchronize())
	assert.GreaterOrEqual(t, r.gpu.Now(), time.Second)
}

// unsure is a device whose queries say that a stream has finished, and fail.
type unsure struct{ cudadrv.Device }

func (unsure) StreamQuery(cudadrv.Stream) (bool, error) { return true, cudadrv.Unknown }

// A query that fails says nothing of the stream's work, and its error is the answer where one is due.
func TestAQueryThatFailsSaysNothing(t *testing.T) {
	t.Parallel()
	r, s, _ := pair(t, 16*mib)
	assert.True(t, s.cuda.idle())
	s.cuda.device = unsure{r.device}
	assert.False(t, s.cuda.idle())
	require.ErrorIs(t, s.cuda.unlessFinished(s.cuda.device), cudadrv.Unknown)
	s.cuda.device = r.device
}

// yielding is a host that takes a step at the first yield.
type yielding struct {
	actors.Host
	step  func()
	waits int
}

func (y *yielding) Reach(string) { y.step() }

func (y *yielding) Wait(...<-chan struct{}) { y.waits++ }

// The end of a lease waits, and lets others run, until no call records an event for it.
func TestTheEndOfALeaseWaitsForItsCalls(t *testing.T) {
	t.Parallel()
	r, home, _ := pair(t, 16*mib)
	home.sibling = func() (*Stream, error) { return r.stream(core.Budget{}), nil }
	h, err := submitter(t, home).NewHold()
	require.NoError(t, err)
	l := h.NewLease()
	assert.False(t, l.Finish(), "it has not ended")
	require.NoError(t, l.End())
	entered, release := r.holdUp("cuEventRecord")
	recorded := make(chan struct{})
	go func() {
		defer close(recorded)
		l.line.TakeNow()
	}()
	<-entered
	yields := 0
	h.s.host = &yielding{step: func() {
		if yields++; yields == 1 {
			release()
			<-recorded
		}
	}}
	assert.True(t, l.Finish())
	h.s.host = nil
	assert.Equal(t, 1, yields)
	require.NoError(t, h.End())
}

// A sweep that meets another look at its fences waits, and lets others run, until that has ended.
func TestASweepWaitsForOtherLooks(t *testing.T) {
	t.Parallel()
	r, _, other := pair(t, 16*mib)
	line := other.cuda.line
	number := line.TakeNow()
	entered, release := r.holdUp("cuEventQuery")
	looked := make(chan struct{})
	go func() {
		defer close(looked)
		_, err := line.Look()
		assert.NoError(t, err)
	}()
	<-entered
	yields := 0
	fencing{line: line, number: number}.sweep(&yielding{step: func() {
		if yields++; yields == 1 {
			release()
			<-looked
		}
	}})
	assert.Equal(t, 1, yields)
	assert.True(t, line.Passed(number))
}

// A sweep tries to take a fence once: one that the driver refuses is due again later.
func TestASweepTakesAFenceOnce(t *testing.T) {
	t.Parallel()
	r, _, other := pair(t, 16*mib)
	line := other.cuda.line
	r.fail("cuEventRecord")
	fencing{line: line, number: line.Next()}.sweep(nil)
	assert.EqualValues(t, 1, r.faults.Calls("cuEventRecord"))
	assert.True(t, line.Owed(line.Next()))
	r.faults.Clear()
	fencing{line: line, number: line.Next()}.sweep(nil)
	fencing{line: line}.sweep(nil)
	assert.EqualValues(t, 2, r.faults.Calls("cuEventRecord"))
	assert.True(t, line.Passed(line.Next()-1))
}

// A sweep does not wait for a look that is held up in the driver.
func TestASweepDoesNotWaitForALookThatHangs(t *testing.T) {
	t.Parallel()
	r, _, other := pair(t, 16*mib)
	line := other.cuda.line
	number := line.TakeNow()
	entered, release := r.holdUp("cuEventQuery")
	var all sync.WaitGroup
	all.Go(func() {
		_, err := line.Look()
		assert.NoError(t, err)
	})
	<-entered
	yields := 0
	fencing{line: line, number: number}.sweep(&yielding{step: func() { yields++ }})
	assert.Equal(t, maxYields, yields)
	release()
	all.Wait()
}

// A buffer has an age in the list of live buffers if it has a tag, or its request has waited.
func TestWhichBuffersHaveAnAge(t *testing.T) {
	t.Parallel()
	r, s, _ := pair(t, 16*mib)
	ages := func(want Request) bool {
		leave := r.occupy(s)
		f := s.AllocAsync(t.Context(), want)
		leave()
		b, err := f.Await(t.Context())
		require.NoError(t, err)
		live := control(s).LiveBuffers()
		require.Len(t, live, 1)
		require.NoError(t, b.Free())
		return live[0].Age > 0
	}
	assert.False(t, ages(Request{Bytes: kib}))
	assert.True(t, ages(Request{Bytes: kib, Tag: "a"}))
}

// A batch of one buffer, for which the driver maps memory, counts as a miss.
func TestABatchOfOneMisses(t *testing.T) {
	t.Parallel()
	r, s, _ := pair(t, 64*mib)
	buffers := make([]Buffer, 1)
	require.NoError(t, s.AllocBatch(buffers, []int64{3 * mib}))
	assert.EqualValues(t, 1, r.stats(s).DriverMisses)
	require.NoError(t, s.FreeBatch(buffers))
}

// The causes of waits have texts that can be read back, and no other text is one.
func TestTheTextsOfCausesOfWaits(t *testing.T) {
	t.Parallel()
	for w := range WaitFor(len(waitForNames)) {
		text, err := w.MarshalText()
		require.NoError(t, err)
		read := w + 1
		require.NoError(t, read.UnmarshalText(text))
		assert.Equal(t, w, read)
	}
	for _, text := range []string{"", "Memory", "memory "} {
		read := WaitFor(2)
		require.Error(t, read.UnmarshalText([]byte(text)))
		assert.Equal(t, WaitFor(2), read)
	}
	assert.Equal(t, "WaitFor(9)", WaitFor(9).String())
}

// A lease whose End panics in the driver has ended, and keeps its memory until the work before it has finished.
func TestALeaseWhoseEndPanics(t *testing.T) {
	t.Parallel()
	r, home, _ := pair(t, 16*mib)
	home.sibling = func() (*Stream, error) { return r.stream(core.Budget{}), nil }
	h, err := submitter(t, home).NewHold()
	require.NoError(t, err)
	panics := new(recovered.Log)
	h.s.cuda.panics = panics
	l := h.NewLease()
	r.work(h.s, time.Second)
	r.faults.SetBefore(func(call string) {
		if call == "cuEventRecord" {
			panic(recoveredtest.Planted("planted"))
		}
	})
	require.NoError(t, l.End())
	require.True(t, l.Ended())
	assert.EqualValues(t, 1, panics.Count())
	assert.False(t, l.Finish())
	assert.EqualValues(t, 2, panics.Count(), "the panic of its fence, too")
	r.faults.SetBefore(nil)
	assert.False(t, l.Finish())
	assert.Less(t, r.gpu.Now(), time.Second)
	r.gpu.Advance(time.Second)
	r.until(l.Finish)
	require.NoError(t, h.End())
}

// The pool knows of a request that waits whether the only goroutine that could free waits for it.
func TestThePoolKnowsWhoIsBlocked(t *testing.T) {
	t.Parallel()
	r, s, other := pair(t, 8*mib)
	b := must(t, s, 6*mib)
	other.suspensions.exclusive.Store(true)
	f := other.AllocAsync(t.Context(), Request{Bytes: 4 * mib, Wait: true})
	blocked := func() bool {
		q, err := r.pool.Queue(t.Context())
		require.NoError(t, err)
		return len(q.Waiters) == 1 && q.Waiters[0].Blocked
	}
	r.until(func() bool { return r.books().Waits.Waiting == 1 })
	assert.False(t, blocked())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := f.Await(ctx)
		ended <- err
	}()
	r.until(blocked)
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	r.until(func() bool { return !blocked() })
	require.NoError(t, b.Free())
	b, err := f.Await(t.Context())
	require.NoError(t, err)
	require.NoError(t, b.Free())
}

// The effects of a turn are stored for a later turn once they were performed.
func TestEffectsAreUsedAgain(t *testing.T) {
	t.Parallel()
	r, s, _ := pair(t, 16*mib)
	var one, next *effects
	require.NoError(t, s.inTurn(t.Context(), func() { one = s.turn.state.effects() }))
	r.until(func() bool { return s.turn.state.spare.Load() == one })
	require.NoError(t, s.inTurn(t.Context(), func() { next = s.turn.state.effects() }))
	assert.Same(t, one, next)
}

// A batch that is refused returns the buffers that it has found, and counts as no allocation.
func TestARefusedBatchReturnsWhatItHas(t *testing.T) {
	t.Parallel()
	r, s, _ := pair(t, 16*mib)
	require.NoError(t, must(t, s, 4*kib).Free())
	before := r.stats(s)
	buffers := make([]Buffer, 3)
	require.ErrorIs(t, s.AllocBatch(buffers, []int64{4 * kib, 70 * kib, 15 * mib}), pool.ErrOutOfMemory)
	after := r.stats(s)
	assert.Equal(t, before.AllocCount, after.AllocCount)
	assert.Equal(t, before.FreeCount, after.FreeCount)
	require.NoError(t, s.Trim(t.Context()))
	assert.Zero(t, r.stats(s).HeldBytes)
}

// Memory that waits for a lease which nobody has ended is free once the hold has ended.
func TestTheEndOfAHoldEndsItsLeases(t *testing.T) {
	t.Parallel()
	r, home, other := pair(t, 16*mib)
	home.sibling = func() (*Stream, error) { return r.stream(core.Budget{}), nil }
	h, err := submitter(t, home).NewHold()
	require.NoError(t, err)
	l := h.NewLease()
	b := must(t, other, 4*mib)
	require.NoError(t, l.Keep(b))
	require.NoError(t, b.Free())
	require.Equal(t, 4*mib, r.stats(other).PendingBytes)
	number := l.line.Next()
	_, err = l.line.Take(number)
	require.ErrorIs(t, err, errHeld)
	require.NoError(t, h.End())
	_, err = l.line.Take(number)
	require.ErrorIs(t, err, ErrClosed)
	assert.True(t, l.line.Passed(number))
	assert.Zero(t, r.stats(other).PendingBytes)
}

// A batch that is refused holds none of its blocks while the device's handler frees memory for it.
func TestARefusedBatchHoldsNothingWhileTheHandlerRuns(t *testing.T) {
	t.Parallel()
	r, s, other := pair(t, 16*mib)
	require.NoError(t, must(t, s, 4*mib).Free())
	taken := must(t, other, 8*mib)
	asked := 0
	s.handler = func(*pool.OutOfMemoryError) bool {
		asked++
		assert.Zero(t, s.parts.Units())
		if asked == 1 {
			assert.Zero(t, r.stats(s).LiveCount)
			assert.NoError(t, s.Trim(t.Context()))
			assert.Zero(t, r.stats(s).HeldBytes, "all that it had found goes back")
			return false
		}
		assert.NoError(t, taken.Free())
		return true
	}
	buffers, bytes := make([]Buffer, 3), []int64{2 * mib, mib, 9 * mib}
	require.ErrorIs(t, s.AllocBatch(buffers, bytes), pool.ErrOutOfMemory)
	require.NoError(t, s.AllocBatch(buffers, bytes))
	assert.Equal(t, 2, asked)
	require.NoError(t, s.FreeBatch(buffers))
}

// A search that ends is learned from, and one that is repeated is not.
func TestSearchesAreLearnedFrom(t *testing.T) {
	t.Parallel()
	_, s, _ := pair(t, 16*mib)
	require.NoError(t, s.inTurn(t.Context(), func() {
		for _, after := range []claims.Searched{claims.First, claims.AfterFences, claims.AfterLook, claims.AfterTake} {
			for _, found := range []bool{false, true} {
				x := s.turn.dispatch.searches
				var want claims.Looks
				want.Learn(claims.AfterLook, false)
				x.looks = want
				require.Equal(t, claims.First, x.seek(after, found, mib), "nothing is pending")
				want.Learn(after, found)
				assert.Equal(t, want, x.looks, "after %d, found: %t", after, found)
			}
		}
	}))
}

// fills is an effect that counts, or panics.
type fills struct {
	count  *int
	panics bool
}

func (f fills) fill(*cudaStream) {
	*f.count++
	if f.panics {
		panic(recoveredtest.Planted("planted"))
	}
}

// A panic costs the effect that panics, and the others of its turn are performed.
func TestAPanicCostsOneEffect(t *testing.T) {
	t.Parallel()
	for at := range 3 {
		_, s, _ := pair(t, 16*mib)
		count := 0
		var e *effects
		require.NoError(t, s.inTurn(t.Context(), func() {
			e, s.turn.state.out = s.turn.state.effects(), nil // this test performs them
			for i := range 3 {
				effect.Push[filler](&e.fills, fills{&count, i == at})
			}
			effect.Push[message](&e.again, &fenceWaited{})
		}))
		assert.Panics(t, e.Perform)
		assert.Equal(t, 3, count, "the effect %d panics", at)
		_, ok := effect.Pop(&e.again)
		assert.False(t, ok)
	}

	_, s, _ := pair(t, 16*mib)
	resume := s.Suspend()
	before, p := s.suspensions.pool, &listeningPool{first: func() { panic(recoveredtest.Planted("planted")) }}
	require.NoError(t, s.inTurn(t.Context(), func() { s.suspensions.pool = p }))
	e := &effects{stream: &s.wiring, spare: func(*effects) {}, suspends: true}
	assert.Panics(t, e.Perform)
	assert.Empty(t, p.reports)
	require.NoError(t, s.inTurn(t.Context(), func() { s.suspensions.pool = before }))
	resume()
}

// The launches that can have failed are the recorded ones that are not known to have finished, the youngest first. One that was not made
// is none, and takes no later one with it that has its place.
func TestLaunchesThatCanHaveFailed(t *testing.T) {
	t.Parallel()
	r := newRig(t, 16*mib)
	r.peers.RecordLaunches(false)
	x := submitter(t, r.stream(core.Budget{}))
	names := func() (all []string) {
		launches, recorded := r.peers.unfinished()
		assert.True(t, recorded)
		for _, l := range launches {
			all = append(all, l.Kernel)
		}
		return all
	}
	assert.Empty(t, names())
	first := x.Launching("first", nil)
	x.Launching("second", nil)
	failed := x.Launching("failed", nil)
	x.Launching("fourth", nil)
	failed()
	assert.Equal(t, []string{"fourth", "second", "first"}, names())
	x.Finished(1)
	assert.Equal(t, []string{"fourth", "second"}, names())
	x.Finished(0) // an earlier look
	assert.Equal(t, []string{"fourth", "second"}, names())
	for range recordedLaunches {
		x.Launching("later", nil)
	}
	first() // its place has another
	assert.Len(t, names(), recordedLaunches)
	x.Finished(x.LaunchCount())
	assert.Empty(t, names())
}

// A hold that ends keeps its memory until the work of each stream that End is given has finished. If a wait for one cannot be ordered the hold
// stays as it is. The same holds for a lease, which does not wait itself.
func TestTheEndOfAHoldWaitsForEachStream(t *testing.T) {
	t.Parallel()
	for _, busy := range []int{0, 1} {
		r, home, other := pair(t, 16*mib)
		users := []*Stream{r.stream(core.Budget{}), r.stream(core.Budget{})}
		home.sibling = func() (*Stream, error) { return r.stream(core.Budget{}), nil }
		h, err := submitter(t, home).NewHold()
		require.NoError(t, err)
		b, err := h.Alloc(12 * mib)
		require.NoError(t, err)
		l := h.NewLease()
		leased, kept := must(t, other, mib), must(t, other, mib)
		require.NoError(t, l.Keep(leased))
		require.NoError(t, kept.RecordStream(h.Stream()))
		require.NoError(t, leased.Free())
		require.NoError(t, kept.Free())
		require.NoError(t, b.Free())
		r.work(users[busy], time.Second)

		r.fail("cuStreamWaitEvent")
		require.ErrorIs(t, h.End(users...), cudadrv.Unknown)
		r.faults.Clear()
		assert.False(t, h.Stream().cuda.closing.Load(), "the memory stays")
		require.NoError(t, control(other).Sweep(t.Context()))
		assert.Equal(t, 2*mib, r.stats(other).PendingBytes)
		require.NoError(t, l.End(users...))
		assert.False(t, l.Finish(), "a stream works")
		assert.Less(t, r.gpu.Now(), time.Second)
		r.gpu.Advance(time.Second)
		assert.True(t, l.Finish())
		require.NoError(t, control(other).Sweep(t.Context()))
		assert.Equal(t, mib, r.stats(other).PendingBytes)
		r.work(users[busy], time.Second)

		require.NoError(t, h.End(users...))
		assert.GreaterOrEqual(t, r.gpu.Now(), 2*time.Second)
		require.NoError(t, h.End(), "again")
		require.NoError(t, control(other).Sweep(t.Context()))
		assert.Zero(t, r.stats(other).PendingBytes)
		require.NoError(t, must(t, other, 14*mib).Free())
	}
}

// Another stream's first use of a buffer waits for each copy of it that is being submitted, and for copies of no other buffer.
func TestAFirstUseWaitsForEachCopyOfItsBuffer(t *testing.T) {
	t.Parallel()
	r, home, _ := pair(t, 16*mib)
	b, not := must(t, home, mib), must(t, home, mib)
	var h hostCopies
	host := &leavingHost{}
	h.await(b, host)
	first, other, second := h.begin(b), h.begin(not), h.begin(b)
	for _, c := range []struct {
		b     Buffer
		waits int
	}{{b, 2}, {not, 1}} {
		host.waits = nil
		h.await(c.b, host)
		assert.Len(t, host.waits, c.waits)
	}
	h.end(first)
	host.waits = nil
	h.await(b, host)
	assert.Len(t, host.waits, 1)
	h.end(other)
	h.end(second)
	assert.Nil(t, h.all.Load(), "nothing is left")
	require.NoError(t, home.FreeBatch([]Buffer{b, not}))
	r.quiet(home)
}

// The list has all memory that an open stream has of another one, and none that a closed stream has.
func TestWhatEachStreamHasOfEachOtherIsListed(t *testing.T) {
	t.Parallel()
	for closed := range 3 {
		r := newRig(t, 256*mib)
		all := []*Stream{r.stream(core.Budget{}), r.stream(core.Budget{}), r.stream(core.Budget{})}
		var open, left []pool.Handed
		var buffers []Buffer
		for i, from := range all {
			for k, to := range all {
				if from == to {
					continue
				}
				h := pool.Handed{From: from.ID(), To: to.ID(), Bytes: int64(4*i+k+1) * 2 * mib}
				b, err := must(t, from, h.Bytes).Transfer(to)
				require.NoError(t, err)
				buffers, open = append(buffers, b), append(open, h)
				if k != closed {
					left = append(left, h)
				}
			}
		}
		assert.Equal(t, open, r.peers.Handed())
		require.NoError(t, all[closed].Close())
		assert.Equal(t, left, r.peers.Handed(), "stream %d is closed", closed)
		for _, b := range buffers {
			require.NoError(t, b.Free())
		}
	}
}

// A stream lists the streams that have buffers of it, and no other: lists do not grow with the streams that once had some.
func TestOnlyStreamsWithBuffersAreListed(t *testing.T) {
	t.Parallel()
	r := newRig(t, 64*mib)
	home := r.stream(core.Budget{})
	stays := r.stream(core.Budget{})
	kept, err := must(t, home, mib).Transfer(stays)
	require.NoError(t, err)
	for range 20 {
		to := r.stream(core.Budget{})
		b, err := must(t, home, 2*mib).Transfer(to)
		require.NoError(t, err)
		assert.ElementsMatch(t, []pool.Handed{
			{From: home.ID(), To: stays.ID(), Bytes: mib}, {From: home.ID(), To: to.ID(), Bytes: 2 * mib},
		}, r.peers.Handed())
		require.NoError(t, b.Free())
		assert.LessOrEqual(t, len(home.peer.hands.list()), 2)
	}
	require.NoError(t, kept.Free())
	assert.Empty(t, r.peers.Handed())
}
