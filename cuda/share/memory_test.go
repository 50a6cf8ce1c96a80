//go:build linux && (amd64 || arm64) && !gpu

package share

import (
	"context"
	"io"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/streams"
)

// Tests in one process: two copies of the fake library are two processes to the driver.

func newPair(t *testing.T) (a, b *side) {
	t.Helper()
	return newSide(t, newFake(t).driver()), newSide(t, newFake(t).driver())
}

func TestCallsAreRefused(t *testing.T) {
	s := newSide(t, newFake(t).driver())
	other := newSide(t, newFake(t).driver())
	m := s.make()

	for _, wrong := range []int64{0, -1, 1 << 60, 1<<63 - 1} {
		_, err := New(s.c, wrong)
		var size *SizeError
		require.ErrorAs(t, err, &size)
		assert.Equal(t, wrong, size.Bytes)
	}
	_, err := New(nil, bytes)
	require.ErrorIs(t, err, cuda.ErrNotOpen)
	_, err = Import(s.c, nil)
	require.ErrorIs(t, err, os.ErrInvalid)
	require.ErrorIs(t, m.Export(nil), os.ErrInvalid)

	for _, at := range []int64{-1, 1, bytes + 1} {
		var part *cuda.RangeError
		require.ErrorAs(t, m.CopyFrom(s.c, at, cuda.Whole(s.x)), &part)
		require.ErrorAs(t, m.CopyTo(s.c, at, cuda.Whole(s.x)), &part)
		assert.Equal(t, &cuda.RangeError{Offset: at, Bytes: bytes, BufferBytes: bytes}, part)
	}
	require.ErrorIs(t, m.CopyFrom(nil, 0, cuda.Whole(s.x)), cuda.ErrNotOpen)
	require.ErrorIs(t, m.CopyFrom(other.c, 0, cuda.Whole(other.x)), cuda.ErrForeign)
	require.ErrorIs(t, m.CopyFrom(s.c, 0, cuda.Whole(other.x)), cuda.ErrForeign)
	freed, err := s.c.Alloc(bytes)
	require.NoError(t, err)
	require.NoError(t, freed.Free())
	require.ErrorIs(t, m.CopyTo(s.c, 0, cuda.Whole(freed)), cuda.ErrNotLive)

	require.ErrorIs(t, m.Publish(s.c), ErrNotLinked)
	require.ErrorIs(t, m.Await(t.Context(), s.c), ErrNotLinked)
	publish, await := m.Ways()
	assert.Equal(t, "none none", publish.String()+" "+await.String())

	none := (*Memory)(nil)
	require.ErrorIs(t, none.Publish(s.c), cuda.ErrNotOpen)
	require.ErrorIs(t, none.Await(t.Context(), s.c), cuda.ErrNotOpen)
	require.ErrorIs(t, none.CopyTo(s.c, 0, cuda.Whole(s.x)), cuda.ErrNotOpen)
	require.ErrorIs(t, none.Close(), cuda.ErrNotOpen)
	require.ErrorIs(t, (&Memory{}).Close(), cuda.ErrNotOpen)
	assert.Zero(t, none.Ptr())
	assert.Zero(t, none.Bytes())
	assert.Zero(t, none.Stats())
}

func TestClosedMemoryRefusesCalls(t *testing.T) {
	a, b := newPair(t)
	m, theirs := linkSides(t, a, b)
	assert.NotZero(t, m.Ptr())
	require.NoError(t, m.Close())
	require.NoError(t, m.Close())
	assert.Zero(t, m.Ptr())
	conn, _ := connection(t)
	require.ErrorIs(t, m.Export(conn), ErrClosed)
	require.ErrorIs(t, m.Publish(a.c), ErrClosed)
	require.ErrorIs(t, m.Await(t.Context(), a.c), ErrClosed)
	require.ErrorIs(t, m.CopyFrom(a.c, 0, cuda.Whole(a.x)), ErrClosed)
	require.ErrorIs(t, theirs.Await(t.Context(), b.c), ErrPeerClosed)
	require.NoError(t, theirs.Close())
}

// Both sides close at a time: neither waits for the other.
func TestBothSidesClose(t *testing.T) {
	a, b := newPair(t)
	for range 20 {
		m, theirs := linkSides(t, a, b)
		closed := inBackground(m.Close)
		require.NoError(t, theirs.Close())
		require.NoError(t, <-closed)
	}
}

func TestMemoryIsLinkedOnce(t *testing.T) {
	a, b := newPair(t)
	m, theirs := linkSides(t, a, b)
	conn, peer := connection(t)
	require.ErrorIs(t, m.Export(conn), ErrLinked)
	_, err := peer.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF, "the connection is closed")
	conn, _ = connection(t)
	require.ErrorIs(t, theirs.Export(conn), ErrLinked)
	require.NoError(t, m.Publish(a.c))
	require.NoError(t, theirs.Await(t.Context(), b.c))
}

// The end of its context ends an Await, which has taken no fence; Close ends it, too.
func TestAwaitEnds(t *testing.T) {
	a, b := newPair(t)
	m, theirs := linkSides(t, a, b)
	ctx, cancel := context.WithCancel(t.Context())
	first := inBackground(func() error { return theirs.Await(ctx, b.c) })
	second := inBackground(func() error { return theirs.Await(ctx, b.c) })
	cancel()
	require.ErrorIs(t, <-first, context.Canceled)
	require.ErrorIs(t, <-second, context.Canceled)
	require.NoError(t, m.Publish(a.c))
	require.NoError(t, theirs.Await(t.Context(), b.c))
	assert.Equal(t, Stats{Awaited: 1}, theirs.Stats())

	waiting := inBackground(func() error { return theirs.Await(background(), b.c) })
	require.NoError(t, theirs.Close())
	require.ErrorIs(t, <-waiting, ErrClosed)
}

// Close ends calls that wait for a fence before it waits for work itself.
func TestAwaitsEndBeforeWork(t *testing.T) {
	a, b := newPair(t)
	m, theirs := linkSides(t, a, b)
	require.NoError(t, m.Publish(a.c))
	require.NoError(t, theirs.Await(t.Context(), b.c))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	waiting := make(chan error, 2)
	for range cap(waiting) { // one of them waits for the other
		go func() { waiting <- theirs.Await(ctx, b.c) }()
	}
	for len(theirs.link.Load().turn) == 0 {
		runtime.Gosched()
	}
	waits := 0
	b.faults.SetBefore(func(function string) {
		if function == "cuStreamSynchronize" && waits == 0 {
			waits++
			for range cap(waiting) {
				assert.ErrorIs(t, <-waiting, ErrClosed)
			}
		}
	})
	require.NoError(t, theirs.Close())
	b.faults.SetBefore(nil)
	assert.Equal(t, 1, waits)
}

// Close ends an Export that waits for its peer, and a deadline does.
func TestExportEnds(t *testing.T) {
	f := newFake(t)
	s := newSide(t, f.driver())
	m := s.make()
	conn, _ := connection(t)
	require.NoError(t, conn.SetDeadline(time.Now()))
	require.ErrorIs(t, m.Export(conn), os.ErrDeadlineExceeded)
	require.ErrorIs(t, m.Publish(s.c), ErrNotLinked)

	conn, peer := connection(t)
	exported := inBackground(func() error { return m.Export(conn) })
	_, err := io.ReadFull(peer, make([]byte, greetingBytes))
	require.NoError(t, err)
	require.NoError(t, m.Close())
	require.ErrorIs(t, <-exported, ErrClosed)

	conn, _ = connection(t)
	require.NoError(t, conn.SetDeadline(time.Now()))
	_, err = Import(s.c, conn)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
}

// lesser is a driver whose devices lack abilities.
type lesser struct {
	cudadrv.Driver
	lack cudadrv.Capability
}

func (l lesser) Open(ordinal int) (cudadrv.Device, error) {
	dev, err := l.Driver.Open(ordinal)
	if err != nil {
		return nil, err
	}
	return lesserDevice{dev, dev.(cudadrv.ShareableMemory), l.lack}, nil
}

type lesserDevice struct {
	cudadrv.Device
	cudadrv.ShareableMemory
	lack cudadrv.Capability
}

func (d lesserDevice) Unwrap() cudadrv.Device { return d.Device }

func (d lesserDevice) Info() cudadrv.Info {
	info := d.Device.Info()
	info.Capabilities &^= d.lack
	return info
}

// Without events for others Publish waits on the host, says so, and Await needs no event: each direction by itself.
func TestFencesWithoutEvents(t *testing.T) {
	for name, lacks := range map[string][2]bool{"both": {true, true}, "the exporter": {true, false}, "the importer": {false, true}} {
		t.Run(name, func(t *testing.T) {
			var sides [2]*side
			for i := range sides {
				driver := cudadrv.Driver(newFake(t).driver())
				if lacks[i] {
					driver = lesser{driver, cudadrv.EventSharing}
				}
				sides[i] = newSide(t, driver)
			}
			a, b := sides[0], sides[1]
			m, theirs := linkSides(t, a, b)
			for _, end := range []*Memory{m, theirs} {
				publish, await := end.Ways()
				assert.Equal(t, "host host", publish.String()+" "+await.String())
			}
			records, waits := a.faults.Calls("cuEventRecord"), a.faults.Calls("cuStreamSynchronize")
			a.fill(m, 'h')
			require.NoError(t, m.Publish(a.c))
			assert.Equal(t, records, a.faults.Calls("cuEventRecord"))
			assert.Equal(t, waits+1, a.faults.Calls("cuStreamSynchronize"))
			assert.Equal(t, Stats{Published: 1, Synchronized: 1}, m.Stats())
			require.NoError(t, theirs.Await(t.Context(), b.c))
			b.holds(theirs, 'h')

			// Such a fence stays valid when its process ends.
			require.NoError(t, m.Publish(a.c))
			m.link.Load().cut()
			<-theirs.link.Load().ended
			require.NoError(t, theirs.Await(t.Context(), b.c))
			require.ErrorIs(t, theirs.Await(t.Context(), b.c), ErrPeerDied)
		})
	}
}

// A note of a fence is kept for an Await that comes later, or looks for fences just now.
func TestANoteIsKeptForAnAwait(t *testing.T) {
	a, b := newPair(t)
	m, theirs := linkSides(t, a, b)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	l := theirs.link.Load()
	for range 3 {
		require.NoError(t, m.Publish(a.c))
		for len(l.arrived) == 0 {
			require.NoError(t, ctx.Err())
			runtime.Gosched()
		}
		require.NoError(t, theirs.Await(ctx, b.c))
		select { // Await has found the fence by its number
		case <-l.arrived:
		default:
		}
	}
}

// Each way is its own: of fences that are published, and of those that are awaited.
func TestEachWayIsItsOwn(t *testing.T) {
	for _, events := range [][2]bool{{false, false}, {false, true}, {true, false}, {true, true}} {
		m := &Memory{}
		m.link.Store(&link{publishesEvents: events[0], awaitsEvents: events[1]})
		publish, await := m.Ways()
		assert.Equal(t, events, [2]bool{publish == ByEvent, await == ByEvent})
		assert.Equal(t, events, [2]bool{publish != ByHost, await != ByHost})
	}
}

func TestDevicesWithoutHandles(t *testing.T) {
	for name, driver := range map[string]cudadrv.Driver{
		"sim":       sim.New(sim.Config{Bytes: true}),
		"no handle": lesser{newFake(t).driver(), cudadrv.ShareableHandles},
		"no memory": lesser{newFake(t).driver(), cudadrv.VirtualMemory},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSide(t, driver)
			_, err := New(s.c, bytes)
			require.ErrorIs(t, err, cudadrv.NotSupported)
			conn, peer := connection(t)
			_, err = Import(s.c, conn)
			require.ErrorIs(t, err, cudadrv.NotSupported)
			_, err = peer.Read(make([]byte, 1))
			require.ErrorIs(t, err, io.EOF, "the connection is closed")
		})
	}
}

// A captured context is refused: its work would belong to a graph.
func TestCapturedContextsAreRefused(t *testing.T) {
	a, b := newPair(t)
	m, theirs := linkSides(t, a, b)
	require.NoError(t, theirs.Publish(b.c))
	g, err := a.c.Capture(func() error {
		for _, err := range []error{
			m.CopyFrom(a.c, 0, cuda.Whole(a.x)), m.CopyTo(a.c, 0, cuda.Whole(a.x)), m.Publish(a.c), m.Await(background(), a.c), m.Close(),
		} {
			assert.ErrorIs(t, err, cuda.ErrCapturing)
		}
		return a.c.Fill8(cuda.Whole(a.x), 0)
	})
	require.NoError(t, err)
	require.NoError(t, g.Close())
	require.NoError(t, m.Close())
}

// A stream that was closed has finished; a fence of it counts.
func TestAContextThatWasClosed(t *testing.T) {
	a, b := newPair(t)
	m, theirs := linkSides(t, a, b)
	c := a.context()
	require.NoError(t, m.CopyFrom(a.c, 0, cuda.Whole(a.x)))
	require.NoError(t, m.Publish(c))
	require.NoError(t, c.Close())
	require.NoError(t, c.Stream().Close())
	require.ErrorIs(t, m.Publish(c), streams.ErrClosed)
	require.NoError(t, m.Publish(a.c))
	require.NoError(t, theirs.Await(t.Context(), b.c))
	require.NoError(t, theirs.Await(t.Context(), b.c))
	require.NoError(t, m.Close())
}

// Fences of many goroutines: each Await takes one that was published, in both directions at a time, and Close ends
// those that wait.
func TestManyFences(t *testing.T) {
	const callers, each = 4, 50
	a, b := newPair(t)
	m, theirs := linkSides(t, a, b)
	var calls []<-chan error
	repeat := func(call func() error) {
		calls = append(calls, inBackground(func() error {
			for range each {
				if err := call(); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	for range callers {
		c, d := a.context(), b.context()
		repeat(func() error { return m.Publish(c) })
		repeat(func() error { return theirs.Await(background(), d) })
		repeat(func() error { return theirs.Publish(d) })
		repeat(func() error { return m.Await(background(), c) })
	}
	for _, failed := range calls {
		require.NoError(t, <-failed)
	}
	assert.Equal(t, Stats{Published: callers * each, Awaited: callers * each}, m.Stats())
	assert.Equal(t, m.Stats(), theirs.Stats())

	var waiting [callers]<-chan error
	for i := range waiting {
		waiting[i] = inBackground(func() error { return theirs.Await(background(), b.c) })
	}
	copied := inBackground(func() error {
		for {
			if err := theirs.CopyFrom(b.c, 0, cuda.Whole(b.x)); err != nil {
				return err
			}
		}
	})
	require.NoError(t, theirs.Close())
	for _, failed := range waiting {
		require.ErrorIs(t, <-failed, ErrClosed)
	}
	require.ErrorIs(t, <-copied, ErrClosed)
}

// A fence that was refused, since its record went to a capture, leaves the others: they come after the work of the last one.
func TestAFenceAfterOneThatWasCaptured(t *testing.T) {
	for _, sameContext := range []bool{true, false} {
		a, b := newPair(t)
		m, theirs := linkSides(t, a, b)
		captured, last, next := a.context(), a.c, a.context()
		if sameContext {
			last = captured
		}
		require.NoError(t, m.Publish(last))
		work, err := streams.NewSubmitter(captured.Stream())
		require.NoError(t, err)
		graphs, on := work.Device().(cudadrv.Graphs), captured.Stream().Handle()
		a.faults.SetBefore(func(function string) {
			if function == "cuEventRecord" {
				assert.NoError(t, graphs.StreamBeginCapture(on, cudadrv.CaptureRelaxed))
			}
		})
		require.ErrorIs(t, m.Publish(captured), cuda.ErrCapturing)
		var seen []string
		a.faults.SetBefore(func(function string) { seen = append(seen, function) })
		if sameContext {
			require.ErrorIs(t, m.Publish(next), cuda.ErrCapturing, "nothing can wait for the last fence yet")
			assert.NotContains(t, seen, "cuEventRecord")
		} else {
			require.NoError(t, m.Publish(next))
		}
		g, err := graphs.StreamEndCapture(on)
		require.NoError(t, err, "the capture is not disturbed")
		require.NoError(t, graphs.GraphDestroy(g))
		if sameContext {
			require.NoError(t, m.Publish(next))
		}
		synchronized, recorded := slices.Index(seen, "cuStreamSynchronize"), slices.Index(seen, "cuEventRecord")
		assert.True(t, 0 <= synchronized && synchronized < recorded, "the work of the last fence has finished: %v", seen)
		seen = nil
		require.NoError(t, m.Publish(last))
		assert.Contains(t, seen, "cuStreamWaitEvent", "the fence before has an event again")
		assert.NotContains(t, seen, "cuStreamSynchronize")
		a.faults.SetBefore(nil)
		for range 3 {
			require.NoError(t, theirs.Await(t.Context(), b.c))
		}
		assert.Equal(t, uint64(3), m.Stats().Published)
		require.NoError(t, m.Close())
	}
}

// A capture that nobody announced, and that begins as a fence is recorded, is not disturbed, and the fence is refused.
func TestCapturesPastThePackage(t *testing.T) {
	a, b := newPair(t)
	m, theirs := linkSides(t, a, b)
	require.NoError(t, theirs.Publish(b.c))
	work, err := streams.NewSubmitter(a.c.Stream())
	require.NoError(t, err)
	graphs, on := work.Device().(cudadrv.Graphs), a.c.Stream().Handle()
	for _, call := range []func() error{
		func() error { return m.Publish(a.c) },
		func() error { return m.Await(background(), a.c) },
	} {
		records := 0
		a.faults.SetBefore(func(function string) {
			if function == "cuEventRecord" {
				if records++; records == 1 {
					assert.NoError(t, graphs.StreamBeginCapture(on, cudadrv.CaptureRelaxed))
				}
			}
		})
		published := m.Stats().Published
		err := call()
		a.faults.SetBefore(nil)
		require.ErrorIs(t, err, cuda.ErrCapturing)
		require.NotErrorIs(t, err, cudadrv.CapturedEvent)
		assert.Equal(t, published, m.Stats().Published)
		g, ended := graphs.StreamEndCapture(on)
		require.NoError(t, ended, "the capture is not disturbed")
		require.NoError(t, graphs.GraphDestroy(g))
		require.NoError(t, call(), "the next one")
	}
	require.NoError(t, theirs.Await(background(), b.c))
	require.NoError(t, m.Close())
}
