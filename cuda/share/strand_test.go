//go:build linux && (amd64 || arm64) && !gpu

package share

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
)

// strandedPair returns two sides with memory in common, of which the second waits for an event of the first that does not come
// before reach is called.
func strandedPair(t *testing.T) (a, b *side, mine, theirs *Memory, reach func()) {
	t.Helper()
	fakes := [2]*fake{newFake(t), newFake(t)}
	fakes[1].hold(1)
	a, b = newSide(t, fakes[0].driver()), newSide(t, fakes[1].driver())
	mine, theirs = linkSides(t, a, b)
	theirs.link.Load().patience.Store(int64(time.Millisecond))
	require.NoError(t, mine.Publish(a.c))
	require.NoError(t, theirs.Await(t.Context(), b.c))
	b.fill(theirs, 's')
	reach = func() { fakes[1].hold(0) }
	t.Cleanup(reach) // a test that failed ends, too
	return a, b, mine, theirs, reach
}

// dies ends the connection of a link without a goodbye.
func (m *Memory) dies(t *testing.T) {
	t.Helper()
	require.NoError(t, m.link.Load().conn.Close())
}

// Close gives up on work that waits for the event of a dead peer, and the memory stays mapped: that work may touch it. Waits
// for the stream end, too. If the event is reached after all, Close may be called again.
func TestCloseAfterTheDeathOfThePeer(t *testing.T) {
	_, b, mine, theirs, reach := strandedPair(t)
	unmaps := b.faults.Calls("cuMemUnmap")
	waiting := inBackground(func() error { return b.c.Synchronize(background()) })
	mine.dies(t)
	for range 2 {
		err := theirs.Close()
		var gone *PeerError
		require.ErrorAs(t, err, &gone)
		assert.Equal(t, "close", gone.Op)
		require.ErrorIs(t, err, ErrPeerDied)
		var stranded *vram.StrandedError
		require.ErrorAs(t, err, &stranded)
		assert.Equal(t, b.c.Stream().ID(), stranded.Stream)
	}
	require.ErrorIs(t, <-waiting, vram.ErrStranded)
	require.ErrorIs(t, b.c.Synchronize(background()), vram.ErrStranded)
	m, err := b.c.LoadModule([]byte(".version 7.0\n.target sm_70\n.visible .global .align 4 .u32 variable[4];\n"))
	require.NoError(t, err)
	v, err := m.Variable("variable")
	require.NoError(t, err)
	for name, copies := range map[string]func() error{
		"CopyIn":  func() error { return cuda.CopyIn(b.c, b.x, make([]byte, 1)) },
		"CopyOut": func() error { return cuda.CopyOut(b.c, make([]byte, 1), b.x) },
		"Set":     func() error { return cuda.Set(b.c, v, make([]uint32, 4)) },
		"Get":     func() error { _, err := cuda.Get[uint32](b.c, v, 4); return err },
	} {
		require.ErrorIs(t, copies(), vram.ErrStranded, name)
	}
	assert.Equal(t, unmaps, b.faults.Calls("cuMemUnmap"))
	reach()
	require.NoError(t, theirs.Close())
	require.NoError(t, b.c.Synchronize(background()), "it has finished all the same")
	require.NoError(t, m.Unload())
}

// A stream that came past the event before the peer died is waited for like others, however long its work takes.
func TestWorkBehindAnEventThatWasReached(t *testing.T) {
	_, b, mine, theirs, reach := strandedPair(t)
	reach()
	mine.dies(t)
	assert.False(t, theirs.strand())
	assert.False(t, theirs.strand())
	require.NoError(t, b.c.Synchronize(background()))
	b.holds(theirs, 's')
}

// holdUp submits work to a context that runs until the test lets it go. there is closed when the device has come to it.
func (s *side) holdUp() (there <-chan struct{}, letGo func()) {
	s.Helper()
	came, gone := make(chan struct{}), make(chan struct{})
	letGo = sync.OnceFunc(func() { close(gone) })
	s.Cleanup(letGo)
	require.NoError(s, s.c.Submit(func(device cudadrv.Device, on cudadrv.Stream) error {
		return device.(cudadrv.HostFunctions).LaunchHostFunc(on, func() {
			close(came)
			<-gone
		})
	}))
	return came, letGo
}

// synchronizes waits for the context's work in the background. It returns when the driver waits.
func (s *side) synchronizes() (failed <-chan error) {
	s.Helper()
	waits := make(chan struct{})
	once := sync.OnceFunc(func() { close(waits) })
	s.faults.SetBefore(func(function string) {
		if function == "cuStreamSynchronize" {
			once()
		}
	})
	failed = inBackground(func() error { return s.c.Synchronize(background()) })
	select {
	case <-waits:
	case err := <-failed:
		require.FailNow(s, "it does not wait", "%v", err)
	}
	s.faults.SetBefore(nil)
	return failed
}

// looks has the memory look for stranded streams often enough to find one.
func (m *Memory) looks() {
	for range 4 {
		m.strand()
	}
}

// Work of the stream's own, between two waits that the device comes to, is no reason to give it up, however long it takes.
func TestWorkAheadOfTheEventOfADeadPeer(t *testing.T) {
	a, b := newPair(t)
	mine, theirs := linkSides(t, a, b)
	theirs.link.Load().patience.Store(int64(time.Hour))
	there, letGo := b.holdUp()
	<-there
	for range 3 {
		require.NoError(t, mine.Publish(a.c))
	}
	require.NoError(t, theirs.Await(t.Context(), b.c))
	inTheMiddle, finish := b.holdUp()
	require.NoError(t, theirs.Await(t.Context(), b.c))
	require.NoError(t, theirs.Await(t.Context(), b.c))
	letGo()
	<-inTheMiddle // past the first wait, and not at the second one
	mine.dies(t)
	<-theirs.link.Load().ended
	theirs.looks()
	waiting := b.synchronizes()
	theirs.looks()
	finish()
	require.NoError(t, <-waiting)
	theirs.looks()
	assert.Empty(t, theirs.marked)
}

// A stream is found stranded also after other work and many waits.
func TestALaterWaitIsStranded(t *testing.T) {
	a, b, mine, theirs, reach := strandedPair(t)
	for range 3 {
		require.NoError(t, mine.Publish(a.c))
		require.NoError(t, theirs.Await(t.Context(), b.c))
	}
	theirs.looks()
	require.ErrorIs(t, b.c.Synchronize(background()), vram.ErrStranded)

	// The event comes all the same: from then on the stream is waited for like others.
	reach()
	there, letGo := b.holdUp()
	<-there
	theirs.looks()
	waiting := b.synchronizes()
	letGo()
	require.NoError(t, <-waiting)
	mine.dies(t)
}

// A wait whose second mark could not be recorded is found, too.
func TestAWaitWithoutItsMarkIsStranded(t *testing.T) {
	fakes := [2]*fake{newFake(t), newFake(t)}
	fakes[1].hold(1)
	a, b := newSide(t, fakes[0].driver()), newSide(t, fakes[1].driver())
	mine, theirs := linkSides(t, a, b)
	theirs.link.Load().patience.Store(int64(time.Hour))
	t.Cleanup(func() { fakes[1].hold(0) })
	require.NoError(t, mine.Publish(a.c))
	require.NoError(t, b.faults.Add(ruleFor("cuEventRecord", 2)))
	require.ErrorIs(t, theirs.Await(t.Context(), b.c), cudadrv.Unknown)
	b.faults.Clear()
	theirs.looks()
	require.Len(t, theirs.marked, 1)
	require.ErrorIs(t, b.c.Synchronize(background()), vram.ErrStranded)
	fakes[1].hold(0)
	require.NoError(t, theirs.Close())
	mine.dies(t)
}

// Streams that were closed are not kept, and no driver events for them.
func TestStreamsThatWereClosedAreForgotten(t *testing.T) {
	const count = 200
	fakes := [2]*fake{newFake(t), newFake(t)}
	a, b := newSide(t, fakes[0].driver()), newSide(t, fakes[1].driver())
	mine, theirs := linkSides(t, a, b)
	before := fakes[1].live(kindEvents)
	for range count {
		require.NoError(t, mine.Publish(a.c))
		c := b.context()
		x, err := c.Alloc(bytes)
		require.NoError(t, err)
		require.NoError(t, theirs.CopyTo(c, 0, cuda.Whole(x)))
		require.NoError(t, theirs.Await(t.Context(), c))
		require.NoError(t, theirs.Publish(c))
		require.NoError(t, x.Free())
		require.NoError(t, c.Close())
		require.NoError(t, c.Stream().Close())
	}
	assert.Less(t, len(theirs.used), 20)
	assert.Less(t, len(theirs.marked), 20)
	assert.Less(t, fakes[1].live(kindEvents)-before, int64(100))
}

// A wait that is made of the events of an earlier one was not seen at its begin yet: the stream has a while to come past it.
func TestAWaitOfUsedEventsIsNew(t *testing.T) {
	a, b, mine, theirs, reach := strandedPair(t)
	theirs.link.Load().patience.Store(int64(time.Hour))
	for seen := false; !seen; {
		require.True(t, theirs.strand())
		theirs.marking.Lock()
		for _, q := range theirs.marked {
			seen = q.all[0].came
		}
		theirs.marking.Unlock()
	}
	reach()
	require.NoError(t, b.c.Synchronize(background()))
	require.False(t, theirs.strand())
	require.NotEmpty(t, theirs.spare)

	there, letGo := b.holdUp()
	<-there
	require.NoError(t, mine.Publish(a.c))
	require.NoError(t, theirs.Await(t.Context(), b.c))
	for range 2 {
		require.True(t, theirs.strand())
		for _, q := range theirs.marked {
			assert.False(t, q.stuck, "the stream has not come to the wait")
		}
	}
	letGo()
	require.NoError(t, b.c.Synchronize(background()))
	require.False(t, theirs.strand())
	mine.dies(t)
}

// A wait of which the driver made one event, and did not destroy it, is made whole when it is used again.
func TestAWaitWithOneEventIsMadeWhole(t *testing.T) {
	machine := sim.New(sim.Config{})
	faults := fault.Wrap(machine)
	device, err := faults.Open(0)
	require.NoError(t, err)
	m := &Memory{device: device}
	for range 1000 {
		require.NoError(t, faults.Add(
			fault.Rule{Func: "cuEventCreate", First: 2, Count: 1, Result: cudadrv.Unknown},
			fault.Rule{Func: "cuEventDestroy", First: 1, Count: 1, Result: cudadrv.Unknown},
		))
		_, err := m.newWait()
		require.ErrorIs(t, err, cudadrv.Unknown)
		require.Len(t, m.spare, 1)
		faults.Clear()
		w, err := m.newWait()
		require.NoError(t, err)
		assert.NotZero(t, w.before)
		assert.NotZero(t, w.after)
		require.NoError(t, device.EventRecord(w.before, 0))
		require.NoError(t, device.EventRecord(w.after, 0))
		require.NoError(t, m.destroy(w))
		require.Empty(t, m.spare)
	}
	require.NoError(t, device.Close())
}
