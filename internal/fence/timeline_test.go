package fence

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/fence/line"
)

func (b *bench) timeline() *Timeline { return NewTimeline(b.Events, b.stream, false, nil) }

func (b *bench) take(line *Timeline, number uint64) {
	b.t.Helper()
	taken, err := line.Take(number)
	require.NoError(b.t, err)
	require.True(b.t, taken)
}

func (b *bench) look(line *Timeline) bool {
	b.t.Helper()
	advanced, err := line.Look()
	require.NoError(b.t, err)
	return advanced
}

// One fence covers all blocks that named its number, and no later ones; it passes with the work before it.
func TestFenceCoversWhatCameBefore(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	l := b.timeline()
	assert.True(t, l.Passed(0))
	require.NoError(t, b.sim.Launch(b.stream, time.Second))
	early := l.Next()
	assert.Equal(t, early, l.Next())
	assert.True(t, l.Owed(early))
	b.take(l, early)
	late := l.Next()
	assert.False(t, l.Owed(early))
	assert.True(t, l.Owed(late), "it came after the fence")
	b.take(l, early)
	assert.EqualValues(t, 1, b.faults.Calls("cuEventRecord"), "taken once")
	require.NoError(t, b.sim.Launch(b.stream, time.Second))
	b.take(l, late)
	assert.False(t, b.look(l))
	assert.EqualValues(t, 1, b.faults.Calls("cuEventQuery"), "no look behind one that has not passed")
	b.advance(time.Second)
	assert.True(t, b.look(l))
	assert.True(t, l.Passed(early))
	assert.False(t, l.Passed(late))
	b.advance(time.Second)
	assert.True(t, b.look(l))
	assert.True(t, l.Passed(late))
	assert.False(t, b.look(l))
	assert.EqualValues(t, 4, b.faults.Calls("cuEventQuery"))
	assert.EqualValues(t, 2, b.faults.Calls("cuEventCreate"))
}

// A fence that the driver refuses covers nothing, and the next one covers its blocks.
func TestRefusedFenceIsMadeGood(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	l := b.timeline()
	number := l.Next()
	b.fail("cuEventRecord")
	taken, err := l.Take(number)
	b.expect(err, "cuEventRecord")
	assert.False(t, taken)
	assert.True(t, l.Owed(number))
	later := l.TakeNow()
	assert.Equal(t, l.Next(), later)
	assert.True(t, l.Owed(later), "a later fence covers it")
	b.faults.Clear()
	b.take(l, number)
	b.fail("cuEventQuery")
	_, err = l.Look()
	b.expect(err, "cuEventQuery")
	b.faults.Clear()
	assert.True(t, b.look(l))
	assert.True(t, l.Passed(number))
}

// The number of cells is bounded. One more fence is not recorded, and an order for another stream needs no
// cell.
func TestTimelineIsBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	l := b.timeline()
	require.NoError(t, b.sim.Launch(b.stream, time.Second))
	for range CellCount {
		b.take(l, l.Next())
	}
	last := l.Next()
	taken, err := l.Take(last)
	require.NoError(t, err)
	assert.False(t, taken)
	assert.Equal(t, last, l.TakeNow(), "the next one covers it")
	other, err := b.sim.StreamCreate()
	require.NoError(t, err)
	number, err := l.Order(other)
	require.NoError(t, err)
	assert.True(t, l.Owed(number))
	idle, err := b.sim.StreamQuery(other)
	require.NoError(t, err)
	assert.False(t, idle)
	b.advance(time.Second)
	b.take(l, last)
	assert.True(t, b.look(l))
	assert.True(t, l.Passed(last))
}

// Later work of the other stream waits for this one's present work.
func TestOrderMakesAStreamWait(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	l := b.timeline()
	other, err := b.sim.StreamCreate()
	require.NoError(t, err)
	require.NoError(t, b.sim.Launch(b.stream, time.Second))
	number, err := l.Order(other)
	require.NoError(t, err)
	require.NoError(t, b.sim.StreamSynchronize(other))
	assert.Equal(t, time.Second, b.sim.Now())
	assert.True(t, b.look(l))
	assert.True(t, l.Passed(number))
	b.fail("cuStreamWaitEvent")
	_, err = l.Order(other)
	b.expect(err, "cuStreamWaitEvent")
	b.fail("cuEventRecord")
	_, err = l.Order(other)
	b.expect(err, "cuEventRecord")
}

// Wait takes the oldest fence first; a second caller waits for the first to end.
func TestWaitIsForTheOldest(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	l := b.timeline()
	others, err := l.Wait()
	require.NoError(t, err)
	assert.Nil(t, others, "there is nothing to wait for")
	for range 2 {
		require.NoError(t, b.sim.Launch(b.stream, time.Second))
		b.take(l, l.Next())
	}
	entered, leave := make(chan struct{}), make(chan struct{})
	b.faults.SetBefore(func(function string) {
		if function == "cuEventSynchronize" {
			close(entered)
			<-leave
		}
	})
	done := make(chan error)
	go func() {
		_, err := l.Wait()
		done <- err
	}()
	<-entered
	over, err := l.Wait()
	require.NoError(t, err)
	require.NotNil(t, over)
	assert.False(t, b.look(l), "the second fence has not passed")
	b.faults.SetBefore(nil)
	close(leave)
	require.NoError(t, <-done)
	<-over
	assert.Equal(t, time.Second, b.sim.Now())
	assert.True(t, l.Passed(1))
	b.fail("cuEventSynchronize")
	_, err = l.Wait()
	b.expect(err, "cuEventSynchronize")
	b.faults.Clear()
	_, err = l.Wait()
	require.NoError(t, err)
	assert.True(t, l.Passed(2))
}

// A Wait whose only fence is being queried ends with the query, also with one that ends before the Wait has announced itself.
func TestAWaitForAQueryThatEnds(t *testing.T) {
	t.Parallel()
	for _, early := range []bool{true, false} {
		b := newBench(t)
		l := b.timeline()
		require.NoError(t, b.sim.Launch(b.stream, time.Second))
		b.take(l, l.Next())
		c, number := l.oldest() // as a query does
		require.NotNil(t, c)
		if early {
			l.reach = func() { l.put(c, number) }
		}
		over, err := l.Wait()
		require.NoError(t, err)
		if early {
			assert.Nil(t, over, "nobody would end the wait")
			continue
		}
		l.put(c, number)
		<-over
	}
}

// All Waits that find the only fence being queried end with the query, also those that come when another has announced itself.
func TestAllWaitsForAQueryEndWithIt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	l := b.timeline()
	require.NoError(t, b.sim.Launch(b.stream, time.Second))
	b.take(l, l.Next())
	for range 2 { // the end of the first leaves nothing that the second would find
		c, number := l.oldest()
		require.NotNil(t, c)
		var all []<-chan struct{}
		for range 3 {
			over, err := l.Wait()
			require.NoError(t, err)
			require.NotNil(t, over)
			all = append(all, over)
		}
		l.put(c, number)
		for i, over := range all {
			select {
			case <-over:
			default:
				assert.Fail(t, "a wait has no end", "wait %d", i)
			}
		}
	}
}

// Two waits that announce themselves at once end together: the second one is not forgotten.
func TestAWaitThatComesWhileAnotherAnnouncesItself(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	l := b.timeline()
	require.NoError(t, b.sim.Launch(b.stream, time.Second))
	b.take(l, l.Next())
	c, number := l.oldest()
	require.NotNil(t, c)
	var second <-chan struct{}
	l.reach = func() {
		l.reach = nil
		second = l.whenSettled()
	}
	over := l.whenSettled()
	require.NotNil(t, over)
	assert.Equal(t, second, over)
	l.put(c, number)
	<-second
	<-over
}

// Goroutines that look at once query each fence, and release its event, once.
func TestLooksAmongGoroutines(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	l := b.timeline()
	for range 300 {
		var last uint64
		for range 4 {
			last = l.Next()
			b.take(l, last)
		}
		var all sync.WaitGroup
		var ready atomic.Int64
		for range 3 {
			all.Go(func() {
				for ready.Add(1); ready.Load() < 3; {
					runtime.Gosched()
				}
				_, err := l.Look()
				assert.NoError(t, err)
			})
		}
		all.Wait()
		require.True(t, l.Passed(last))
		require.LessOrEqual(t, len(b.spare), 4, "an event was released twice")
	}
	l.Shut()
	l.Finish()
	require.NoError(t, b.Close(), "an event was released twice")
}

// A shut stream is not touched any more; a finished one owes nothing and has nothing to wait for.
func TestShutAndFinish(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	l := b.timeline()
	require.NoError(t, b.sim.Launch(b.stream, time.Second))
	b.take(l, l.Next())
	l.Shut()
	assert.True(t, l.Idle())
	number := l.Next()
	taken, err := l.Take(number)
	require.NoError(t, err)
	assert.False(t, taken)
	other, err := b.sim.StreamCreate()
	require.NoError(t, err)
	_, err = l.Order(other)
	require.ErrorIs(t, err, ErrShut)
	assert.EqualValues(t, 1, b.faults.Calls("cuEventRecord"))
	l.Finish()
	assert.True(t, l.Passed(number))
	assert.False(t, l.Owed(l.Next()))
	none, err := l.Order(other)
	require.NoError(t, err)
	assert.True(t, l.Passed(none))
	require.NoError(t, b.Close())
	assert.Equal(t, b.faults.Calls("cuEventCreate"), b.faults.Calls("cuEventDestroy"), "its marks were given up")
}

// A finished timeline keeps nothing of its stream: buffers that the stream used keep the timeline until they
// are freed.
func TestAFinishedTimelineKeepsNothingOfItsStream(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	stream := new([1 << 16]byte)
	collected := weak.Make(stream)
	l := NewTimeline(b.Events, b.stream, false, access(func() error { stream[0]++; return nil }))
	b.take(l, 1)
	l.Shut()
	require.True(t, l.Idle())
	l.Finish()
	runtime.GC()
	assert.Nil(t, collected.Value())
	assert.True(t, l.Finished())
}

// No fence is recorded on a stream that may not be touched; it stays owed.
func TestNoFenceWhereNoCallIsAllowed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	refusal := error(cudadrv.NotPermitted)
	l := NewTimeline(b.Events, b.stream, false, access(func() error { return refusal }))
	taken, err := l.Take(1)
	require.ErrorIs(t, err, cudadrv.NotPermitted)
	assert.False(t, taken)
	_, err = l.Order(b.stream)
	require.ErrorIs(t, err, cudadrv.NotPermitted)
	assert.Equal(t, l.Next(), l.TakeNow())
	assert.Zero(t, b.faults.Calls("cuEventRecord"))
	assert.True(t, l.Owed(1))
	refusal = nil
	b.take(l, 1)
}

// A fence that is part of a graph never passes. Look and Wait release it, and its number is owed again.
func TestAFenceThatWentIntoAGraphIsOwedAgain(t *testing.T) {
	t.Parallel()
	swallow := func(b *bench, l *Timeline, count int) {
		b.t.Helper()
		require.NoError(b.t, b.sim.BeginCapture(b.stream))
		for range count {
			b.take(l, l.Next())
		}
	}
	for name, find := range map[string]func(b *bench, l *Timeline){
		"a look": func(b *bench, l *Timeline) { assert.True(b.t, b.look(l), "something has changed") },
		"a wait": func(b *bench, l *Timeline) {
			others, err := l.Wait()
			require.NoError(b.t, err)
			assert.Nil(b.t, others)
		},
	} {
		for _, ended := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, ended %v", name, ended), func(t *testing.T) {
				t.Parallel()
				b := newBench(t)
				l := b.timeline()
				swallow(b, l, 1)
				if ended {
					_, err := b.sim.EndCapture(b.stream)
					require.NoError(t, err)
				}
				assert.False(t, l.Owed(1))
				find(b, l)
				assert.True(t, l.Owed(1))
				assert.False(t, l.Passed(1))
				assert.EqualValues(t, 1, l.Lost())
				if !ended { // a query during the capture has ended it
					_, err := b.sim.EndCapture(b.stream)
					require.ErrorIs(t, err, cudadrv.CaptureBroken)
				}
				b.take(l, 1)
				assert.True(t, b.look(l))
				assert.True(t, l.Passed(1))
			})
		}
	}
	t.Run("many", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		l := b.timeline()
		swallow(b, l, CellCount)
		_, err := b.sim.EndCapture(b.stream)
		require.NoError(t, err)
		other, err := b.sim.StreamCreate()
		require.NoError(t, err)
		number, err := l.Order(other)
		require.NoError(t, err, "there is room")
		assert.EqualValues(t, CellCount, l.Lost())
		assert.True(t, b.look(l))
		assert.True(t, l.Passed(number))
	})
}

// A lost fence owes nothing that a later one covers.
func TestALaterFenceCoversALostOne(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	l := b.timeline()
	require.NoError(t, b.sim.BeginCapture(b.stream))
	b.take(l, 1)
	_, err := b.sim.EndCapture(b.stream)
	require.NoError(t, err)
	require.NoError(t, b.sim.Launch(b.stream, time.Second))
	b.take(l, 2)
	assert.True(t, b.look(l))
	assert.EqualValues(t, 1, l.Lost())
	assert.False(t, l.Owed(1))
	b.advance(time.Second)
	assert.True(t, b.look(l))
	assert.True(t, l.Passed(1))
}

// captureAt begins a capture of the stream right before a call of that function, and returns a timeline that
// may touch the stream while it is not captured.
func (b *bench) captureAt(function string) *Timeline {
	b.t.Helper()
	b.faults.SetBefore(func(called string) {
		if called == function {
			b.faults.SetBefore(nil)
			assert.NoError(b.t, b.sim.BeginCapture(b.stream))
		}
	})
	return NewTimeline(b.Events, b.stream, false, access(func() error {
		if status, err := b.sim.StreamIsCapturing(b.stream); err != nil || status != cudadrv.CaptureNone {
			return cudadrv.NotPermitted
		}
		return nil
	}))
}

// access checks the same before a record and after it.
type access func() error

func (a access) Enter() error { return a() }
func (a access) Check() error { return a() }
func (a access) Leave()       {}

// A capture that begins between check and record is not harmed: nobody queries the fence, and no stream waits
// for it, which would draw that stream into the capture.
func TestACaptureThatBeginsAtARecordGoesOn(t *testing.T) {
	t.Parallel()
	for name, take := range map[string]func(l *Timeline, other cudadrv.Stream) error{
		"a fence":  func(l *Timeline, _ cudadrv.Stream) error { _, err := l.Take(1); return err },
		"an order": func(l *Timeline, other cudadrv.Stream) error { _, err := l.Order(other); return err },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			l := b.captureAt("cuEventRecord")
			other, err := b.sim.StreamCreate()
			require.NoError(t, err)
			require.ErrorIs(t, take(l, other), cudadrv.NotPermitted)
			assert.False(t, b.look(l))
			status, err := b.sim.StreamIsCapturing(other)
			require.NoError(t, err)
			assert.Equal(t, cudadrv.CaptureNone, status)
			_, err = b.sim.EndCapture(b.stream)
			require.NoError(t, err, "the capture has not suffered")
			assert.Zero(t, b.faults.Calls("cuEventQuery"))
			assert.Zero(t, b.faults.Calls("cuStreamWaitEvent"))
			assert.True(t, l.Owed(1))
			assert.EqualValues(t, 1, l.Lost())
			b.take(l, 1)
			assert.True(t, b.look(l))
			assert.True(t, l.Passed(1))
		})
	}
}

// Without a free cell an order calls Look first, which takes a while: only after that it checks whether it
// may touch the stream.
func TestAnOrderWithoutRoomAsksBeforeItRecords(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	l := b.captureAt("cuEventQuery")
	require.NoError(t, b.sim.Launch(b.stream, time.Second))
	for range CellCount {
		b.take(l, l.Next())
	}
	other, err := b.sim.StreamCreate()
	require.NoError(t, err)
	_, err = l.Order(other)
	require.ErrorIs(t, err, cudadrv.NotPermitted)
	g, err := b.sim.EndCapture(b.stream)
	require.NoError(t, err)
	assert.Empty(t, g.Calls())
	assert.Zero(t, l.Lost())
	_, err = l.Order(other)
	require.NoError(t, err)
}

// Only a line without a call on its stream is idle: the stream is destroyed then. The record of each call has not ended: no capture begins
// before.
func TestALineIsBusyDuringEachCallOnItsStream(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	g := &guard{}
	l := NewTimeline(b.Events, b.stream, false, g)
	other, err := b.sim.StreamCreate()
	require.NoError(t, err)
	require.NoError(t, b.sim.Launch(b.stream, time.Second)) // no fence passes
	during := map[string]int{}
	b.faults.SetBefore(func(called string) {
		if called == "cuEventRecord" || called == "cuStreamWaitEvent" {
			during[called]++
			assert.False(t, l.Idle(), called)
			assert.Equal(t, g.begun, g.ended+1, called)
		}
	})
	for range CellCount {
		b.take(l, l.Next())
		assert.True(t, l.Idle())
	}
	_, err = l.Order(other) // without a free cell
	require.NoError(t, err)
	assert.True(t, l.Idle())
	l.Shut()
	_, err = l.Order(other)
	require.ErrorIs(t, err, ErrShut)
	assert.True(t, l.Idle(), "a refused order is over")
	assert.Equal(t, map[string]int{"cuEventRecord": CellCount + 1, "cuStreamWaitEvent": 1}, during)
	l.Finish()
	require.NoError(t, b.Close())
	assert.Equal(t, b.faults.Calls("cuEventCreate"), b.faults.Calls("cuEventDestroy"), "its marks were given up")
}

// A mark in a capture that ended before the check orders nothing, and is no fence.
func TestAnOrderByACapturedMarkFails(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	l := b.timeline()
	require.NoError(t, b.sim.BeginCapture(b.stream))
	other, err := b.sim.StreamCreate()
	require.NoError(t, err)
	b.faults.SetBefore(func(called string) {
		if called == "cuStreamWaitEvent" {
			_, err := b.sim.EndCapture(b.stream)
			assert.NoError(t, err)
		}
	})
	_, err = l.Order(other)
	require.ErrorIs(t, err, ErrCaptured)
	require.ErrorIs(t, err, cudadrv.CapturedEvent)
	assert.True(t, l.Owed(1))
	assert.EqualValues(t, 1, l.Lost())
}

// Numbers are assigned to a bounded number of lines, and reused.
func TestLinesHaveNumbers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var lines line.Lines
	all := make([]*Timeline, line.Count)
	for i := range all {
		all[i] = b.timeline()
		number, ok := lines.Add(&all[i].Line)
		require.True(t, ok)
		require.Same(t, &all[i].Line, lines.At(number))
		require.Same(t, all[i], lines.At(number).Owner())
	}
	_, ok := lines.Add(&b.timeline().Line)
	assert.False(t, ok)
	lines.Remove(&b.timeline().Line)
	lines.Remove(&all[7].Line)
	assert.Nil(t, lines.At(7))
	number, ok := lines.Add(&b.timeline().Line)
	assert.True(t, ok)
	assert.Equal(t, 7, number)
}

// tape is a device whose events are positions in a count of submissions, and which advances on request.
type tape struct {
	cudadrv.Device
	submitted, passed atomic.Int64
	places            sync.Map // by event
	lastEvent         atomic.Uint64
	fails             func() bool
	captures          func() bool // nil: no mark goes into a graph
}

var errTape = errors.New("refused")

// inAGraph is the position of a mark that never passes.
const inAGraph = -1

func (s *tape) EventCreate() (cudadrv.Event, error) { return cudadrv.Event(s.lastEvent.Add(1)), nil }

func (s *tape) EventDestroy(e cudadrv.Event) error {
	s.places.Delete(e)
	return nil
}

func (s *tape) EventRecord(e cudadrv.Event, _ cudadrv.Stream) error {
	if s.fails() {
		return errTape
	}
	at := s.submitted.Load()
	if s.captures != nil && s.captures() {
		at = inAGraph
	}
	s.places.Store(e, at)
	return nil
}

func (s *tape) EventQuery(e cudadrv.Event) (bool, error) {
	if s.fails() {
		return false, errTape
	}
	at, _ := s.places.Load(e)
	n, _ := at.(int64)
	if n == inAGraph {
		return false, cudadrv.CapturedEvent
	}
	return n <= s.passed.Load(), nil
}

// In any order of steps, a number passes only when the device has passed all that was submitted before the
// number was read. The fence of a number is recorded after the blocks that name it.
func TestNumbersPassWithWhatTheyCover(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		refuse, capture := false, false
		s := &tape{fails: func() bool { return refuse }, captures: func() bool { return capture }}
		l := NewTimeline(NewEvents(s), 1, false, nil)
		covers := map[uint64]int64{} // the last submission before a number was read
		for range rapid.IntRange(1, 120).Draw(t, "steps") {
			refuse = rapid.IntRange(0, 4).Draw(t, "refuse") == 0
			capture = rapid.IntRange(0, 4).Draw(t, "capture") == 0
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0:
				s.submitted.Add(1)
			case 1:
				n := l.Next()
				covers[n] = max(covers[n], s.submitted.Load())
			case 2:
				n := uint64(rapid.IntRange(1, int(l.Next())).Draw(t, "number"))
				if taken, err := l.Take(n); taken {
					require.NoError(t, err)
					require.False(t, l.Owed(n))
				}
			case 3:
				s.passed.Store(rapid.Int64Range(s.passed.Load(), s.submitted.Load()).Draw(t, "passed"))
			case 4:
				_, err := l.Look()
				require.True(t, err == nil || refuse)
			}
			for n, submission := range covers {
				if l.Passed(n) {
					require.LessOrEqual(t, submission, s.passed.Load(), "number %d", n)
				}
			}
		}
		refuse, capture = false, false
		s.passed.Store(s.submitted.Load())
		for range 2 {
			_, err := l.Take(l.Next())
			require.NoError(t, err)
			_, err = l.Look()
			require.NoError(t, err)
		}
		for n := range covers {
			require.True(t, l.Passed(n))
		}
	})
}

// The same with many concurrent goroutines.
func TestNumbersPassWithWhatTheyCoverTogether(t *testing.T) {
	t.Parallel()
	s := &tape{fails: func() bool { return false }}
	events := NewEvents(s)
	l := NewTimeline(events, 1, false, nil)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 500 {
				mine := s.submitted.Add(1)
				n := l.Next()
				_, err := l.Take(n)
				assert.NoError(t, err)
				for !l.Passed(n) {
					s.passed.Store(s.submitted.Load()) // may decrease, unlike the observed progress
					_, err := l.Take(n)
					assert.NoError(t, err)
					_, err = l.Look()
					assert.NoError(t, err)
					runtime.Gosched()
				}
				assert.LessOrEqual(t, mine, s.submitted.Load())
			}
		})
	}
	group.Wait()
	// A fence that was recorded while another goroutine saw a later one pass was not queried.
	s.passed.Store(s.submitted.Load())
	_, err := l.Look()
	require.NoError(t, err)
	require.NoError(t, events.Close())
	left := 0
	s.places.Range(func(any, any) bool { left++; return true })
	assert.Zero(t, left, "every mark was given up")
}
