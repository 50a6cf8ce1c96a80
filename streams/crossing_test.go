package streams

import (
	"errors"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/internal/stream/core"
)

// crosses submits a work of a stream on a buffer, which takes some time on the device.
func (r *rig) crosses(s *Stream, b Buffer, write bool, takes time.Duration) {
	c := Submitter{s}.Crossing()
	defer c.Leave()
	assert.NoError(r.t, c.Touch(b, write, 0))
	_, err := c.Begin()
	assert.NoError(r.t, err)
	assert.NoError(r.t, r.gpu.Launch(s.Handle(), takes))
	c.After()
}

// A work that has not seen that its buffer is shared is waited for, also by a stream that has waited for other work of its stream
// between the first use of the buffer by another one and the submission.
func TestAnEarlierWaitDoesNotCoverAWorkInSubmission(t *testing.T) {
	t.Parallel()
	r, home, other := pair(t, 64*mib)
	third := r.stream(core.Budget{})
	shared, own := must(t, home, mib), must(t, home, mib)
	r.crosses(other, shared, false, 0)
	owner := Submitter{home}
	require.NoError(t, owner.EnterQuick())
	plain, err := owner.Check(own, true)
	require.NoError(t, err)
	require.True(t, plain)
	over := make(chan struct{})
	go func() {
		defer close(over)
		r.crosses(third, own, false, 0)
	}()
	for own.slot.Attached(own.word) == nil {
		runtime.Gosched()
	}
	r.crosses(home, shared, true, 0)
	r.crosses(other, shared, false, 0) // waits for home
	const takes = time.Second
	require.NoError(t, r.gpu.Launch(home.Handle(), takes)) // the work
	owner.LeaveQuick()
	<-over
	before := r.gpu.Now()
	r.crosses(other, own, false, 0)
	require.NoError(t, other.cuda.synchronize())
	assert.GreaterOrEqual(t, r.gpu.Now()-before, takes)
	require.NoError(t, shared.Free())
	require.NoError(t, own.Free())
}

// A wait covers the works before it, and no work that the other stream submits while the driver is told to wait.
func TestAWorkDuringAWaitIsNotCovered(t *testing.T) {
	t.Parallel()
	r, home, other := pair(t, 64*mib)
	early, late := must(t, home, mib), must(t, home, mib)
	for _, b := range []Buffer{early, late} { // both are shared
		r.crosses(other, b, true, 0)
		r.crosses(home, b, true, 0)
	}
	r.crosses(other, early, true, 0)
	const takes = time.Second
	waits := 0
	r.faults.SetBefore(func(function string) {
		if function == "cuStreamWaitEvent" {
			if waits++; waits == 1 {
				r.crosses(other, late, true, takes)
			}
		}
	})
	before := r.gpu.Now()
	r.crosses(home, early, true, 0)
	r.faults.SetBefore(nil)
	require.Positive(t, waits)
	r.crosses(home, late, true, 0)
	require.NoError(t, home.cuda.synchronize())
	assert.GreaterOrEqual(t, r.gpu.Now()-before, takes)
	require.NoError(t, early.Free())
	require.NoError(t, late.Free())
}

// A work is in order with another stream's first use of one of its buffers that comes between the two looks at it. The other buffers stay
// unshared.
func TestAFirstUseBetweenTouchAndBegin(t *testing.T) {
	t.Parallel()
	for at := range 3 {
		r, home, other := pair(t, 64*mib)
		own := []Buffer{must(t, home, mib), must(t, home, mib), must(t, home, mib)}
		const takes = time.Second
		before := r.gpu.Now()
		c := Submitter{home}.Crossing()
		for i, b := range own {
			require.NoError(t, c.Touch(b, true, i))
		}
		r.crosses(other, own[at], false, takes)
		_, err := c.Begin()
		require.NoError(t, err)
		assert.Len(t, c.works.unshared, 2)
		if assert.Len(t, c.works.all, 1) {
			assert.Equal(t, at, c.works.all[0].index)
		}
		require.NoError(t, r.gpu.Launch(home.Handle(), 0))
		c.After()
		c.Leave()
		require.NoError(t, home.cuda.synchronize())
		assert.GreaterOrEqual(t, r.gpu.Now()-before, takes)
		assert.False(t, home.cuda.announcement.busy())
		require.NoError(t, home.FreeBatch(own))
	}
}

// readsOften has a stream read a buffer so often that it is steady.
func (r *rig) readsOften(s *Stream, b Buffer) {
	for range steadyReads {
		r.crosses(s, b, false, 0)
	}
}

// quietly reports whether a work of a stream that reads a buffer needs no lock.
func (r *rig) quietly(s *Stream, b Buffer) bool {
	plain, err := Submitter{s}.Check(b, false)
	require.NoError(r.t, err)
	return plain
}

// A stream that has read a buffer several times reads on without a lock until someone writes to it.
func TestReadsBecomeQuiet(t *testing.T) {
	t.Parallel()
	r, home, other := pair(t, 64*mib)
	third := r.stream(core.Budget{})
	b := must(t, home, mib)
	r.crosses(other, b, false, 0)
	assert.False(t, r.quietly(other, b), "one read")
	r.readsOften(other, b)
	assert.True(t, r.quietly(other, b))
	assert.False(t, r.quietly(third, b), "it has not read")
	assert.False(t, r.quietly(home, b), "it has not read")
	r.crosses(third, b, false, 0)
	assert.True(t, r.quietly(third, b), "the buffer is steady")
	plain, err := Submitter{other}.Check(b, true)
	require.NoError(t, err)
	assert.False(t, plain, "a write")
	r.crosses(home, b, true, 0)
	for _, s := range []*Stream{home, other, third} {
		assert.False(t, r.quietly(s, b), "after a write")
	}
	r.crosses(other, b, false, 0)
	assert.False(t, r.quietly(other, b), "one read since the write")
	r.readsOften(other, b)
	assert.True(t, r.quietly(other, b), "again")
	require.NoError(t, b.Free())
	freed := must(t, home, mib)
	require.NoError(t, freed.Free())
	for _, none := range []Buffer{freed, {}} {
		_, err = Submitter{other}.NewTouched(none, false)
		require.ErrorIs(t, err, ErrNotLive)
	}
}

// A write waits, on the device, for quiet reads, also of streams for whose noted reads it has waited.
func TestAWriteWaitsForQuietReads(t *testing.T) {
	t.Parallel()
	const takes = time.Second
	for _, writer := range []string{"home", "a reader", "another"} {
		r, home, other := pair(t, 64*mib)
		third := r.stream(core.Budget{})
		b, mark := must(t, home, mib), must(t, home, mib)
		by := map[string]*Stream{"home": home, "a reader": other, "another": r.stream(core.Budget{})}[writer]
		r.readsOften(other, b)
		r.readsOften(third, b)
		r.crosses(third, mark, true, 0)
		r.crosses(by, mark, true, 0) // waits for all of third that was noted
		require.True(t, r.quietly(third, b))
		before := r.gpu.Now()
		require.NoError(t, r.gpu.Launch(third.Handle(), takes))
		r.crosses(by, b, true, 0)
		require.NoError(t, by.cuda.synchronize())
		assert.GreaterOrEqual(t, r.gpu.Now()-before, takes, writer)
		require.NoError(t, b.Free())
		require.NoError(t, mark.Free())
	}
}

// A work that writes does not begin, and Thaw does not return, while a quiet read is being submitted.
func TestAWriteWaitsForTheSubmissionOfQuietReads(t *testing.T) {
	t.Parallel()
	const takes = time.Second
	for _, thaws := range []bool{false, true} {
		r, home, other := pair(t, 64*mib)
		b := must(t, home, mib)
		if thaws {
			require.NoError(t, Submitter{home}.Freeze(b, "here"))
			r.crosses(other, b, false, 0)
		} else {
			r.readsOften(other, b)
		}
		reading := Submitter{other}
		require.NoError(t, reading.EnterQuick())
		require.True(t, r.quietly(other, b))
		over := make(chan time.Duration)
		go func() {
			if thaws {
				assert.NoError(t, Submitter{home}.Thaw(b))
			}
			r.crosses(home, b, true, 0)
			assert.NoError(t, home.cuda.synchronize())
			over <- r.gpu.Now()
		}()
		for r.quietly(other, b) {
			runtime.Gosched()
		}
		select {
		case <-over:
			assert.Fail(t, "the write did not wait")
		default:
		}
		before := r.gpu.Now()
		require.NoError(t, r.gpu.Launch(other.Handle(), takes)) // the read
		reading.LeaveQuick()
		assert.GreaterOrEqual(t, <-over-before, takes)
		require.NoError(t, b.Free())
	}
}

// quietWork begins a work of a graph that reads buffers quietly.
func (r *rig) quietWork(s *Stream, all ...Buffer) Crossing {
	reading := Submitter{s}
	var reads []Touched
	for _, b := range all {
		r.readsOften(s, b)
		touched, err := reading.NewTouched(b, false)
		require.NoError(r.t, err)
		reads = append(reads, touched)
	}
	c := reading.Crossing()
	c.TouchAll(reads)
	require.Len(r.t, c.works.quiet, len(all))
	return c
}

// A work of a graph that reads quietly is in order with a write that comes between the two looks at one of its buffers. The other reads
// need no lock.
func TestAWriteBetweenTwoLooksAtAQuietRead(t *testing.T) {
	t.Parallel()
	for at := range 3 {
		r, home, other := pair(t, 64*mib)
		read := []Buffer{must(t, home, mib), must(t, home, mib), must(t, home, mib)}
		c := r.quietWork(other, read...)
		const takes = time.Second
		before := r.gpu.Now()
		r.crosses(home, read[at], true, takes)
		_, err := c.Begin()
		require.NoError(t, err)
		assert.Len(t, c.works.quiet, 2)
		if assert.Len(t, c.works.all, 1) {
			assert.Equal(t, at, c.works.all[0].index)
		}
		require.NoError(t, r.gpu.Launch(other.Handle(), 0))
		c.After()
		c.Leave()
		require.NoError(t, other.cuda.synchronize())
		assert.GreaterOrEqual(t, r.gpu.Now()-before, takes)
		assert.False(t, other.cuda.announcement.busy())
		require.NoError(t, home.FreeBatch(read))
	}
}

// A quiet read of a graph is being submitted from Begin to Leave.
func TestAQuietReadOfAGraphIsAnnounced(t *testing.T) {
	t.Parallel()
	r, home, other := pair(t, 64*mib)
	b := must(t, home, mib)
	c := r.quietWork(other, b)
	_, err := c.Begin()
	require.NoError(t, err)
	require.Len(t, c.works.quiet, 1)
	assert.True(t, other.cuda.announcement.busy())
	c.After()
	c.Leave()
	assert.False(t, other.cuda.announcement.busy())
	require.NoError(t, b.Free())
}

// The error of a work that may not be submitted now names a buffer of it.
func TestTheBufferOfAWorkThatMayNotBegin(t *testing.T) {
	t.Parallel()
	r, home, other := pair(t, 64*mib)
	own, read, written := must(t, other, mib), must(t, home, mib), must(t, home, mib)
	r.readsOften(other, read)
	r.crosses(other, written, true, 0) // it waits for no other stream
	reading := Submitter{other}
	quiet, err := reading.NewTouched(read, false)
	require.NoError(t, err)
	write, err := reading.NewTouched(written, true)
	require.NoError(t, err)
	for name, add := range map[string]func(c *Crossing) (index int){
		"a buffer of its own": func(c *Crossing) int { assert.NoError(t, c.Touch(own, true, 3)); return 3 },
		"a quiet read":        func(c *Crossing) int { c.TouchAll([]Touched{write, quiet}); return 1 },
	} {
		c := reading.Crossing()
		want := add(&c)
		other.cuda.closing.Store(true)
		index, err := c.Begin()
		other.cuda.closing.Store(false)
		require.ErrorIs(t, err, ErrClosed, name)
		assert.Equal(t, want, index, name)
		c.Leave()
	}
	require.NoError(t, other.FreeBatch([]Buffer{own, read, written}))
}

// A work that has been left is over: to leave it again is without effect on the next one, which has its list.
func TestAWorkIsLeftOnce(t *testing.T) {
	t.Parallel()
	r, home, other := pair(t, 64*mib)
	b := must(t, home, mib)
	for _, again := range []bool{false, true} {
		one, two := Submitter{other}.Crossing(), Submitter{other}.Crossing()
		for _, c := range []*Crossing{&one, &two} {
			require.NoError(t, c.Touch(b, true, 0))
			_, err := c.Begin()
			require.NoError(t, err)
			c.After()
			if c == &one || again {
				one.Leave()
			}
			if c == &two {
				assert.Equal(t, 1, c.works.locked)
				c.Leave()
			}
		}
	}
	r.rests(other)
	require.NoError(t, b.Free())
}

// A wait that the driver refuses is the error of its work, and names the buffer: a wait for the last work that wrote, and for one that
// has read.
func TestAWorkWhoseWaitFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before func(r *rig, home, other *Stream, b Buffer)
		write  bool
	}{
		"a read after a write": {func(r *rig, _, other *Stream, b Buffer) { r.crosses(other, b, true, time.Second) }, false},
		"a write after a read": {func(r *rig, home, other *Stream, b Buffer) {
			r.crosses(home, b, true, 0)
			r.crosses(other, b, false, time.Second)
		}, true},
		"a write after a write": {func(r *rig, _, other *Stream, b Buffer) { r.crosses(other, b, true, time.Second) }, true},
	} {
		r, home, other := pair(t, 64*mib)
		b := must(t, home, mib)
		c.before(r, home, other, b)
		work := Submitter{home}.Crossing()
		require.NoError(t, work.Touch(b, c.write, 4), name)
		r.fail("cuStreamWaitEvent")
		index, err := work.Begin()
		r.faults.Clear()
		require.ErrorIs(t, err, cudadrv.Unknown, name)
		assert.Equal(t, 4, index, name)
		work.Leave()
		require.NoError(t, b.Free())
	}
}

// The same for a wait for the stream of a hold, whose memory the buffer is.
func TestAWorkWhoseWaitForAHoldFails(t *testing.T) {
	t.Parallel()
	for _, write := range []bool{false, true} {
		r, home, other := pair(t, 64*mib)
		home.sibling = func() (*Stream, error) { return r.stream(core.Budget{}), nil }
		h, err := submitter(t, home).NewHold()
		require.NoError(t, err)
		b, err := h.Alloc(mib)
		require.NoError(t, err)
		r.work(h.Stream(), time.Second)
		work := Submitter{other}.Crossing()
		require.NoError(t, work.Touch(b, write, 4))
		r.fail("cuStreamWaitEvent")
		index, err := work.Begin()
		r.faults.Clear()
		require.ErrorIs(t, err, cudadrv.Unknown)
		assert.Equal(t, 4, index)
		work.Leave()
		require.NoError(t, b.Free())
		require.NoError(t, h.End())
	}
}

// A launch of a graph on a hold uses all memory of the hold, and may write to it.
func TestLaunchesOnAHoldWriteToItsMemory(t *testing.T) {
	t.Parallel()
	r, home, _ := pair(t, 64*mib)
	home.sibling = func() (*Stream, error) { return r.stream(core.Budget{}), nil }
	h, err := submitter(t, home).NewHold()
	require.NoError(t, err)
	assert.Equal(t, Touched{h.Stream().cuda.whole, true}, h.Touched())
	require.NoError(t, h.End())
}

// The three kinds of works differ in two things: whether a buffer of the own stream counts as shared, and how its first use by
// another stream waits until the work was left: briefly, not at all, or for as long as it takes.
func TestKindsOfWorks(t *testing.T) {
	t.Parallel()
	r, home, _ := pair(t, 64*mib)
	x := Submitter{home}
	for name, c := range map[string]struct {
		begin                 func() Crossing
		shares, yields, waits bool
	}{
		"neither waits nor calls": {x.Crossing, false, true, false},
		"may call":                {x.CrossingOfCalls, true, false, false},
		"may wait":                {x.CrossingOfWaits, false, false, true},
	} {
		b := must(t, home, mib)
		work := c.begin()
		require.NoError(t, work.Touch(b, true, 0))
		_, err := work.Begin()
		require.NoError(t, err)
		assert.Equal(t, c.shares, b.slot.Attached(b.word) != nil, name)
		yields := 0
		host := &yielding{step: func() { yields++; work.Leave() }}
		_, err = b.order(home, host)
		require.NoError(t, err)
		assert.Equal(t, c.yields, yields > 0, name)
		assert.Equal(t, c.waits, host.waits > 0, name)
		work.Leave()
		require.NoError(t, b.Free())
	}
	r.rests(home)
}

// Locks have one sequence: any two orders come in it one after the other, also on two devices that have one number.
func TestLocksHaveOneSequence(t *testing.T) {
	t.Parallel()
	var all []*order
	for i := range 12 {
		all = append(all, &order{number: uint64(i % 4)})
	}
	for _, a := range all {
		for _, b := range all {
			assert.Equal(t, a == b, a.sequence(b) == 0)
			assert.Equal(t, -a.sequence(b), b.sequence(a))
			assert.False(t, a.number < b.number && a.sequence(b) >= 0)
		}
	}
	slices.SortFunc(all, (*order).sequence)
	for i, a := range all {
		for _, b := range all[i+1:] {
			assert.Negative(t, a.sequence(b))
		}
	}
}

// A read is no news after the next work that wrote; each time it takes as many reads until they need no lock.
func TestReadsCountFromTheLastWrite(t *testing.T) {
	t.Parallel()
	_, home, other := pair(t, 16*mib)
	o, reader := newOrder(home), &other.cuda
	count := uint64(0)
	for range 3 {
		for i := range steadyReads {
			assert.False(t, o.quiet(reader, true), "%d reads", i)
			count++
			o.read(reader, count)
			assert.True(t, o.current(o.find(reader)))
			assert.Equal(t, count, o.find(reader).count.Load())
		}
		assert.True(t, o.quiet(reader, true))
		o.rouse(nil)
		assert.False(t, o.quiet(reader, true))
		w := pastWork{&home.cuda, count}
		o.wrote(w)
		assert.Equal(t, w, o.lastWork())
		assert.False(t, o.current(o.find(reader)))
	}
}

// A work that may wait for the device keeps nothing of its buffers once it has been left, and the next use of a buffer waits for
// each such work on it that has begun.
func TestWorksThatWaitAreListedUntilTheyAreLeft(t *testing.T) {
	t.Parallel()
	r, home, _ := pair(t, 64*mib)
	one, two := must(t, home, mib), must(t, home, mib)
	begin := func(all ...Buffer) *Crossing {
		c := Submitter{home}.CrossingOfWaits()
		for i, b := range all {
			require.NoError(t, c.Touch(b, true, i))
		}
		_, err := c.Begin()
		require.NoError(t, err)
		return &c
	}
	waits := func(b Buffer) bool {
		y := &yielding{}
		home.cuda.copies.await(b, y)
		return y.waits > 0
	}
	first, second := begin(one, two), begin(one)
	assert.True(t, waits(one))
	assert.True(t, waits(two))
	second.Leave()
	assert.True(t, waits(one), "the first work has it, too")
	first.Leave()
	assert.False(t, waits(one))
	assert.False(t, waits(two))
	assert.Nil(t, home.cuda.copies.all.Load())
	third, fourth := begin(one), begin(two)
	third.Leave()
	assert.False(t, waits(one))
	assert.True(t, waits(two), "the other work has not been left")
	fourth.Leave()
	r.rests(home)
	require.NoError(t, home.FreeBatch([]Buffer{one, two}))
}

// A work that has a buffer several times, as kernels have that read and write it, writes to it: later reads wait for it, and where it
// may not write, the error has the place of Freeze, the first, and the argument that writes.
func TestTheArgumentsOfAWorkOnOneBuffer(t *testing.T) {
	t.Parallel()
	const takes = time.Second
	for _, writes := range [][]bool{{true, false}, {false, true}, {false, true, false, true}} {
		r, home, other := pair(t, 64*mib)
		third := r.stream(core.Budget{})
		b := must(t, home, mib)
		touch := func() Crossing {
			c := Submitter{other}.Crossing()
			for i, write := range writes {
				require.NoError(t, c.Touch(b, write, i))
			}
			return c
		}
		c := touch()
		_, err := c.Begin()
		require.NoError(t, err)
		r.work(other, takes)
		c.After()
		c.Leave()
		r.crosses(third, b, false, 0)
		require.NoError(t, third.cuda.synchronize())
		assert.Equal(t, takes, r.gpu.Now(), "%v", writes)

		require.NoError(t, Submitter{home}.Freeze(b, "first"))
		require.NoError(t, Submitter{home}.Freeze(b, "second"))
		c = touch()
		index, err := c.Begin()
		c.Leave()
		var frozen *FrozenError
		require.ErrorAs(t, err, &frozen)
		assert.Equal(t, "first", frozen.Frozen)
		assert.Equal(t, slices.Index(writes, true), index, "%v", writes)
		require.NoError(t, Submitter{home}.Thaw(b))

		require.NoError(t, b.Free())
	}
}

// Buffers of a graph that were freed while they were frozen are all thawed, and no other.
func TestAllFreedBuffersOfAGraphAreThawed(t *testing.T) {
	t.Parallel()
	r, home, other := pair(t, 64*mib)
	graph := Submitter{other}
	hold := must(t, home, mib)
	all := []Touched{}
	for _, b := range []Buffer{must(t, home, mib), hold, must(t, home, mib)} {
		use, err := graph.NewTouched(b, true)
		require.NoError(t, err)
		all = append(all, use)
		require.NoError(t, b.RecordStream(other))
		require.NoError(t, graph.Freeze(b, "here"))
		if b != hold {
			require.NoError(t, b.Free())
		}
	}
	assert.True(t, graph.ThawFreed(all))
	for i, use := range all {
		assert.Equal(t, i == 1, use.order.refused() != nil, "buffer %d", i)
	}
	assert.False(t, graph.ThawFreed(all))
	require.NoError(t, hold.Free())
	r.tick(home)
}

// A buffer becomes steady by several reads of one stream since the last write, or since a work that was to write and was not submitted.
func TestReadsCountAgainAfterAWriteThatWasNotMade(t *testing.T) {
	t.Parallel()
	for _, submitted := range []bool{true, false} {
		r, home, other := pair(t, 64*mib)
		b := must(t, home, mib)
		for range 3 {
			for read := range steadyReads {
				o, _ := b.slot.Attached(b.word).(*order)
				assert.False(t, o != nil && o.steady.Load(), "after %d reads", read)
				r.crosses(other, b, false, 0)
			}
			assert.True(t, r.quietly(other, b))
			if submitted {
				for range steadyReads - 1 {
					r.crosses(home, b, true, 0)
					r.crosses(other, b, false, 0)
				}
				r.crosses(home, b, true, 0)
				continue
			}
			c := Submitter{home}.Crossing()
			require.NoError(t, c.Touch(b, true, 0))
			_, err := c.Begin()
			require.NoError(t, err)
			c.Leave()
		}
		require.NoError(t, b.Free())
	}
}

// A work on a buffer of its own stream that was freed since Touch, while another stream used it, is not submitted.
func TestABufferThatWasFreedBetweenTouchAndBegin(t *testing.T) {
	t.Parallel()
	r, home, other := pair(t, 64*mib)
	kept, own, used := must(t, home, mib), must(t, home, mib), must(t, home, 2*mib)
	c := Submitter{home}.Crossing()
	require.NoError(t, c.Touch(kept, true, 3))
	require.NoError(t, c.Touch(own, true, 5))
	require.NoError(t, c.Touch(used, true, 7))
	r.crosses(other, used, false, 0)
	require.NoError(t, own.Free())
	next := must(t, home, mib)
	require.Same(t, own.slot, next.slot)
	r.crosses(other, next, false, 0)
	index, err := c.Begin()
	c.Leave()
	require.ErrorIs(t, err, ErrNotLive)
	assert.Equal(t, 5, index)
	for _, b := range []Buffer{kept, next, used} {
		require.NoError(t, b.Free())
	}
}

// Work on memory of a sleeper whose copies have ended waits for nothing, and work that represents another device on the sleeper's stream
// holds no other up.
func TestWorkOnASleepersMemoryWaitsForItsCopiesAlone(t *testing.T) {
	t.Parallel()
	r, home, other := pair(t, 64*mib)
	x := r.sleeper(t, home)
	b, err := x.Alloc(mib)
	require.NoError(t, err)
	c := Submitter{home}.Crossing()
	require.NoError(t, c.TouchFor(Submitter(x), b, true, 0))
	assert.Nil(t, b.slot.Attached(b.word), "it has no order")
	_, err = c.Begin()
	require.NoError(t, err)
	c.After()
	c.Leave()
	before := r.faults.Calls("cuStreamWaitEvent")
	r.crosses(other, b, false, 0)
	assert.Equal(t, before, r.faults.Calls("cuStreamWaitEvent"), "no copy was made")
	require.NoError(t, b.Free())
}

// A use of a frozen buffer by a graph is refused if it writes, and one of another buffer is not.
func TestOnlyWritesOfFrozenMemoryAreRefused(t *testing.T) {
	t.Parallel()
	_, home, other := pair(t, 64*mib)
	for _, frozen := range []bool{false, true} {
		for _, write := range []bool{false, true} {
			b := must(t, home, mib)
			if frozen {
				require.NoError(t, Submitter{home}.Freeze(b, "here"))
			}
			use, err := Submitter{other}.NewTouched(b, write)
			assert.Equal(t, write, use.write)
			assert.Equal(t, frozen && write, errors.Is(err, ErrFrozen), "frozen %t, write %t: %v", frozen, write, err)
			assert.Equal(t, frozen && write, err != nil)
			require.NoError(t, b.Free())
		}
	}
}

// The uses of a graph have each buffer once, in the order of the first use, and it is written if any work writes.
func TestUsesOfOneBufferAreJoined(t *testing.T) {
	t.Parallel()
	orders := []*order{{}, {}, {}}
	for code := range 6 * 6 * 6 * 6 { // three buffers, read or written, four times
		var all, want []Touched
		for n := code; len(want) < 4 && n >= 0; n = n/6 - 1 {
			one := Touched{orders[n%6/2], n%2 == 1}
			all = Joined(all, one)
			at := slices.IndexFunc(want, func(x Touched) bool { return x.order == one.order })
			if at < 0 {
				want = append(want, one)
				continue
			}
			want[at].write = want[at].write || one.write
		}
		require.Equal(t, len(want), len(all), "%d", code)
		for i := range want {
			require.Same(t, want[i].order, all[i].order)
			require.Equal(t, want[i].write, all[i].write)
		}
	}
}

// A stream that has buffers of another one has one hand there.
func TestAStreamHasOneHand(t *testing.T) {
	t.Parallel()
	var h hands
	x := h.of(7)
	h.keep(x)
	assert.Same(t, x, h.of(7))
	assert.NotSame(t, x, h.of(8))
	assert.EqualValues(t, 8, h.of(8).To)
}

// A wait for another stream covers that stream's works so far, and none if the driver refuses it.
func TestAWaitThatFailsCoversNothing(t *testing.T) {
	t.Parallel()
	r, home, other := pair(t, 64*mib)
	other.cuda.crossings.count.Add(3)
	covered := func() uint64 { return home.cuda.crossings.of(&other.cuda).count.Load() }
	require.NoError(t, r.faults.Add(fault.Rule{Func: "cuStreamWaitEvent", Result: cudadrv.Unknown}))
	require.ErrorIs(t, home.cuda.waitCounted(&other.cuda), cudadrv.Unknown)
	assert.Zero(t, covered())
	r.faults.Clear()
	require.NoError(t, home.cuda.waitCounted(&other.cuda))
	assert.EqualValues(t, 3, covered())
}
