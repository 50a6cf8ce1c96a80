//go:build linux && (amd64 || arm64) && !gpu

package share

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
)

// rawPeer exports memory of a side to a test, which has the other end of the connection and answers by hand.
func rawPeer(t *testing.T, s *side) (m *Memory, peer *net.UnixConn) {
	t.Helper()
	m = s.make()
	a, b := connection(t)
	require.NoError(t, a.SetWriteBuffer(1))
	exported := inBackground(func() error { return m.Export(a) })
	message := make([]byte, greetingBytes)
	received, _, err := receiveDescriptors(b, message)
	require.NoError(t, err)
	require.NoError(t, received[0].Close())
	answer, err := decode(message, kindOffer)
	require.NoError(t, err)
	answer.kind, answer.flags = kindAnswer, openedEvent
	_, err = b.Write(answer.encode())
	require.NoError(t, err)
	require.NoError(t, <-exported)
	_, err = io.ReadFull(b, message)
	require.NoError(t, err)
	return m, b
}

// eventOf is the descriptor of an event of a side.
func eventOf(t *testing.T, s *side, m *Memory) cudadrv.EventDescriptor {
	t.Helper()
	a, _ := connection(t)
	l := newLink(m.device, a)
	g := greeting{}
	require.NoError(t, l.makeEvent(&g))
	s.Cleanup(func() { assert.NoError(s, l.abandon()) })
	return g.event
}

// A peer that closes the connection is not linked, although its messages are there already: the call fails, and opens none of its events.
func TestAPeerThatSendsAheadAndCloses(t *testing.T) {
	fakes := [2]*fake{newFake(t), newFake(t)}
	s, other := newSide(t, fakes[0].driver()), newSide(t, fakes[1].driver())
	m := s.make()
	answer := offerOf(s)
	answer.kind, answer.flags, answer.event = kindAnswer, hasEvent|openedEvent, eventOf(t, other, other.make())
	events := fakes[0].live(kindEvents)
	fails := func(err error, op string) {
		t.Helper()
		var gone *PeerError
		require.ErrorAs(t, err, &gone)
		assert.Equal(t, op, gone.Op)
		require.ErrorIs(t, err, ErrPeerDied)
		assert.Equal(t, events, fakes[0].live(kindEvents))
		require.ErrorIs(t, m.Publish(s.c), ErrNotLinked)
	}

	a, b := connection(t) // it closes before the offer
	_, err := b.Write(answer.encode())
	require.NoError(t, err)
	require.NoError(t, b.Close())
	fails(m.Export(a), "export")
	assert.Zero(t, s.faults.Calls("cuIpcOpenEventHandle"))

	closes := func(conn *net.UnixConn) { // when its event is opened
		s.faults.SetBefore(func(function string) {
			if function == "cuIpcOpenEventHandle" {
				s.faults.SetBefore(nil)
				assert.NoError(t, conn.Close())
			}
		})
	}
	a, b = connection(t) // before the confirmation
	exported := inBackground(func() error { return m.Export(a) })
	received, _, err := receiveDescriptors(b, make([]byte, greetingBytes))
	require.NoError(t, err)
	require.NoError(t, received[0].Close())
	closes(b)
	_, err = b.Write(answer.encode())
	require.NoError(t, err)
	fails(<-exported, "export")

	a, b = connection(t) // before the answer
	f, err := exportHandle(m.device.(cudadrv.ShareableMemory), m.pages.handle)
	require.NoError(t, err)
	offer, confirmation := answer, answer
	offer.kind, confirmation.kind = kindOffer, kindConfirmation
	require.NoError(t, sendDescriptor(b, offer.encode(), f))
	require.NoError(t, f.Close())
	_, err = b.Write(confirmation.encode())
	require.NoError(t, err)
	closes(b)
	_, err = Import(s.c, a)
	fails(err, "import")
}

// Of peers that have all answered one is linked, and the others learn that by the end of their connections.
func TestSeveralPeersAnswerAtATime(t *testing.T) {
	s := newSide(t, newFake(t).driver())
	for range 20 {
		m := s.make()
		var peers []*net.UnixConn
		var exports []<-chan error
		for range 3 {
			a, b := connection(t)
			peers = append(peers, b)
			exports = append(exports, inBackground(func() error { return m.Export(a) }))
			received, _, err := receiveDescriptors(b, make([]byte, greetingBytes))
			require.NoError(t, err)
			require.NoError(t, received[0].Close())
		}
		answer := offerOf(s)
		answer.kind = kindAnswer
		for _, b := range peers {
			_, _ = b.Write(answer.encode()) // the connection may be closed
		}
		linked := 0
		for i, exported := range exports {
			if err := <-exported; err != nil {
				require.ErrorIs(t, err, ErrLinked)
				_, err = peers[i].Read(make([]byte, 1))
				require.Error(t, err)
				continue
			}
			linked++
			assert.Equal(t, peers[i].LocalAddr(), m.link.Load().conn.RemoteAddr())
			_, err := io.ReadFull(peers[i], make([]byte, greetingBytes))
			require.NoError(t, err)
		}
		assert.Equal(t, 1, linked)
		assert.Empty(t, m.pending)
		for _, b := range peers {
			_ = b.Close()
		}
		require.NoError(t, m.Close())
	}
}

// Memory that is closed, or whose connection is, is not linked.
func TestLinksThatDoNotBegin(t *testing.T) {
	s := newSide(t, newFake(t).driver())
	m := s.make()
	a, b := connection(t)
	require.NoError(t, a.Close())
	require.ErrorIs(t, m.linked(newLink(m.device, a)), net.ErrClosed)
	require.ErrorIs(t, m.Publish(s.c), ErrNotLinked)
	require.NoError(t, m.Close())
	require.ErrorIs(t, m.linked(newLink(m.device, b)), ErrClosed)
	assert.Nil(t, m.link.Load())
}

// A deadline of the connection is over when the link begins: for both directions.
func TestTheDeadlineOfAConnectionIsCleared(t *testing.T) {
	s := newSide(t, newFake(t).driver())
	m := s.make()
	a, b := connection(t)
	require.NoError(t, a.SetDeadline(time.Unix(1, 0)))
	l := newLink(m.device, a)
	require.NoError(t, m.linked(l))
	_, err := l.conn.Write(make([]byte, noteBytes))
	require.NoError(t, err)
	require.NoError(t, b.Close())
	require.NotErrorIs(t, m.Await(t.Context(), s.c), os.ErrDeadlineExceeded)
	require.NoError(t, m.Close())
}

// A fence counts if its note was sent. The peer that does not take one has died, for the reason of that note.
func TestFencesThatWereSentCount(t *testing.T) {
	s := newSide(t, newFake(t).driver())
	m, peer := rawPeer(t, s)
	m.link.Load().timeout = time.Millisecond
	sent := uint64(0)
	for m.Publish(s.c) == nil {
		sent++
	}
	require.NotZero(t, sent)
	assert.Equal(t, sent, m.Stats().Published)
	require.ErrorIs(t, m.Publish(s.c), os.ErrDeadlineExceeded)
	require.ErrorIs(t, m.Await(t.Context(), s.c), os.ErrDeadlineExceeded)
	notes, err := io.ReadAll(peer)
	require.NoError(t, err)
	assert.Equal(t, sent, uint64(len(notes)/noteBytes))
	require.NoError(t, m.Close())
}

// Close returns an error for a goodbye that the peer does not take.
func TestAGoodbyeThatIsNotTaken(t *testing.T) {
	s := newSide(t, newFake(t).driver())
	m, _ := rawPeer(t, s)
	l := m.link.Load()
	for err := error(nil); err == nil; { // the socket takes no more
		require.NoError(t, l.conn.SetWriteDeadline(time.Now().Add(time.Millisecond)))
		_, err = l.conn.Write(make([]byte, noteBytes))
	}
	l.timeout = time.Millisecond
	err := m.Close()
	var gone *PeerError
	require.ErrorAs(t, err, &gone)
	assert.Equal(t, "close", gone.Op)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.NoError(t, m.Close())
}

// Close does not wait for a peer that ends without an answer to the goodbye.
func TestAPeerThatEndsWithoutAnAnswer(t *testing.T) {
	s := newSide(t, newFake(t).driver())
	m, peer := rawPeer(t, s)
	m.link.Load().timeout = time.Hour
	closed := inBackground(m.Close)
	message := make([]byte, noteBytes)
	_, err := io.ReadFull(peer, message)
	require.NoError(t, err)
	require.Equal(t, note{kind: kindGoodbye}.encode(), message)
	require.NoError(t, peer.Close())
	require.NoError(t, <-closed)
}

// The event of a process is destroyed after its peer has closed it.
func TestThePeerClosesAnEventBeforeItIsDestroyed(t *testing.T) {
	a, b := newPair(t)
	m, theirs := linkSides(t, a, b)
	var mu sync.Mutex
	var order []string
	for name, s := range map[string]*side{"own": a, "peer": b} {
		s.faults.SetBefore(func(function string) {
			if function == "cuEventDestroy" {
				mu.Lock()
				defer mu.Unlock()
				order = append(order, name)
			}
		})
	}
	require.NoError(t, m.Close())
	mu.Lock()
	require.GreaterOrEqual(t, len(order), 3)
	assert.Equal(t, []string{"own", "peer", "own"}, order[:3]) // the first is its view of the peer's event
	mu.Unlock()
	for _, s := range []*side{a, b} {
		s.faults.SetBefore(nil)
	}
	require.NoError(t, theirs.Close())
}

// A peer that has sent a goodbye gets the release of its event, and no goodbye.
func TestAGoodbyeIsNotReturned(t *testing.T) {
	s := newSide(t, newFake(t).driver())
	m, peer := rawPeer(t, s)
	_, err := peer.Write(note{kind: kindGoodbye}.encode())
	require.NoError(t, err)
	message := make([]byte, noteBytes)
	_, err = io.ReadFull(peer, message)
	require.NoError(t, err)
	n, err := decodeNote(message)
	require.NoError(t, err)
	assert.Equal(t, note{kind: kindReleased}, n)
	require.ErrorIs(t, m.Await(t.Context(), s.c), ErrPeerClosed)
	require.NoError(t, m.Close())
	_, err = peer.Read(message)
	require.ErrorIs(t, err, io.EOF)
}

// A peer that closes the connection right after its goodbye has closed the memory, and has not died.
func TestAPeerThatClosesAfterItsGoodbye(t *testing.T) {
	s := newSide(t, newFake(t).driver())
	m, peer := rawPeer(t, s)
	m.use.RLock() // the answer waits until nobody takes it
	_, err := peer.Write(note{kind: kindGoodbye}.encode())
	require.NoError(t, err)
	require.NoError(t, peer.Close())
	m.use.RUnlock()
	<-m.link.Load().done
	err = m.Await(t.Context(), s.c)
	require.ErrorIs(t, err, ErrPeerClosed)
	require.NotErrorIs(t, err, ErrPeerDied)
	require.NoError(t, m.Close())
}

// An Await that is refused takes no fence: the next one has it.
func TestARefusedAwaitTakesNoFence(t *testing.T) {
	a, b := newPair(t)
	m, theirs := linkSides(t, a, b)
	require.NoError(t, m.Publish(a.c))
	closed := b.context()
	require.NoError(t, closed.Stream().Close())
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // a fence that was taken never comes again
	defer cancel()
	require.ErrorIs(t, theirs.Await(ctx, closed), vram.ErrClosed)
	require.ErrorIs(t, theirs.Await(ctx, nil), cuda.ErrNotOpen)
	require.ErrorIs(t, theirs.Await(ctx, a.c), cuda.ErrForeign)
	assert.Zero(t, theirs.Stats().Awaited)
	require.NoError(t, theirs.Await(ctx, b.c))
	assert.Equal(t, Stats{Awaited: 1}, theirs.Stats())
}

// Copies of parts touch these bytes and no others, in both directions.
func TestCopiesOfParts(t *testing.T) {
	s := newSide(t, newFake(t).driver())
	m := s.make()
	random := rand.New(rand.NewPCG(1, 2))
	shared, buffer, got := make([]byte, bytes), make([]byte, bytes), make([]byte, bytes)
	require.NoError(t, cuda.CopyIn(s.c, s.x, shared))
	require.NoError(t, m.CopyFrom(s.c, 0, cuda.Whole(s.x)))
	for i := range 50 {
		for k := range (len(buffer) + 999) / 1000 {
			for j := k * 1000; j < min(k*1000+1000, len(buffer)); j++ {
				buffer[j] = byte(i + k)
			}
		}
		require.NoError(t, cuda.CopyIn(s.c, s.x, buffer))
		length := random.Int64N(bytes / 2)
		at, from := random.Int64N(bytes-length+1), random.Int64N(bytes-length+1)
		part := cuda.Part(s.x, from, length)
		if i%2 == 0 {
			require.NoError(t, m.CopyFrom(s.c, at, part))
			copy(shared[at:at+length], buffer[from:])
		} else {
			require.NoError(t, m.CopyTo(s.c, at, part))
			copy(buffer[from:from+length], shared[at:])
		}
		require.NoError(t, cuda.CopyOut(s.c, got, s.x))
		require.Equal(t, buffer, got)
		require.NoError(t, m.CopyTo(s.c, 0, cuda.Whole(s.x)))
		require.NoError(t, cuda.CopyOut(s.c, got, s.x))
		require.Equal(t, shared, got)
	}
}

// Close waits for an Export in progress, which uses the memory.
func TestCloseWaitsForExports(t *testing.T) {
	s := newSide(t, newFake(t).driver())
	m := s.make()
	conn, _ := connection(t)
	exports := make(chan struct{})
	var exporting atomic.Bool
	s.faults.SetBefore(func(function string) {
		switch function {
		case "cuMemExportToShareableHandle":
			exporting.Store(true)
			close(exports)
			for range 10_000 { // others run
				runtime.Gosched()
			}
			exporting.Store(false)
		case "cuMemUnmap", "cuMemRelease":
			assert.False(t, exporting.Load(), function)
		}
	})
	exported := inBackground(func() error { return m.Export(conn) })
	<-exports
	require.NoError(t, m.Close())
	require.ErrorIs(t, <-exported, ErrClosed)
	s.faults.SetBefore(nil)
}

// A mark that cannot be recorded again, or that a capture has, is none: the stream still counts as one that waits.
func TestAMarkIsRecordedAgain(t *testing.T) {
	fakes := [2]*fake{newFake(t), newFake(t)}
	fakes[1].hold(1)
	a, b := newSide(t, fakes[0].driver()), newSide(t, fakes[1].driver())
	mine, theirs := linkSides(t, a, b)
	theirs.link.Load().patience.Store(int64(time.Hour))
	t.Cleanup(func() { fakes[1].hold(0) })
	require.NoError(t, mine.Publish(a.c))
	require.NoError(t, b.faults.Add(fault.Rule{Func: "cuEventRecord", First: 2, Count: 3, Result: cudadrv.Unknown}))
	require.ErrorIs(t, theirs.Await(t.Context(), b.c), cudadrv.Unknown)
	open := func() (*wait, bool) {
		theirs.marking.Lock()
		defer theirs.marking.Unlock()
		for _, q := range theirs.marked {
			return q.all[0], q.all[0].open
		}
		return nil, false
	}
	theirs.strand()
	_, is := open()
	assert.True(t, is, "the record fails again")
	b.faults.Clear()

	graphs, on := theirs.device.(cudadrv.Graphs), b.c.Stream().Handle()
	b.faults.SetBefore(func(function string) {
		if function == "cuEventRecord" {
			b.faults.SetBefore(nil)
			assert.NoError(t, graphs.StreamBeginCapture(on, cudadrv.CaptureRelaxed))
		}
	})
	theirs.strand()
	g, err := graphs.StreamEndCapture(on)
	require.NoError(t, err, "the capture is not disturbed")
	require.NoError(t, graphs.GraphDestroy(g))
	_, is = open()
	assert.True(t, is, "the mark is a graph's")
	theirs.strand()
	_, is = open()
	assert.False(t, is, "it is recorded")
	require.Len(t, theirs.marked, 1)
	fakes[1].hold(0)
	require.NoError(t, b.c.Synchronize(t.Context()))
	assert.False(t, theirs.strand())
	assert.Empty(t, theirs.marked)
	mine.dies(t)
}

// A stream that was stranded, and has passed the wait, is waited for like others once the memory has no marks of it.
func TestAStreamIsNotStrandedAfterItsMarks(t *testing.T) {
	_, b, mine, theirs, reach := strandedPair(t)
	theirs.link.Load().patience.Store(int64(time.Hour))
	theirs.looks()
	require.ErrorIs(t, b.c.Synchronize(background()), vram.ErrStranded)
	reach()
	for b.c.Synchronize(background()) != nil { // it has finished all the same
		runtime.Gosched()
	}
	require.NoError(t, theirs.unmark())
	there, letGo := b.holdUp()
	<-there
	waiting := b.synchronizes()
	letGo()
	require.NoError(t, <-waiting)
	mine.dies(t)
}

// A stream that was stranded once, with several waits, is found stranded again.
func TestAStreamIsStrandedAgain(t *testing.T) {
	fakes := [2]*fake{newFake(t), newFake(t)}
	a, b := newSide(t, fakes[0].driver()), newSide(t, fakes[1].driver())
	t.Cleanup(func() { fakes[1].hold(0) })
	for range 2 { // each time the event of another memory does not come
		fakes[1].hold(1)
		mine, theirs := linkSides(t, a, b)
		theirs.link.Load().patience.Store(int64(time.Hour))
		for range 3 {
			require.NoError(t, mine.Publish(a.c))
			require.NoError(t, theirs.Await(t.Context(), b.c))
		}
		theirs.looks()
		require.ErrorIs(t, b.c.Synchronize(background()), vram.ErrStranded)
		fakes[1].hold(0)
		for theirs.strand() { // until the stream has come past all of them
			runtime.Gosched()
		}
		require.NoError(t, b.c.Synchronize(background()))
		mine.dies(t)
		require.NoError(t, theirs.Close())
	}
}

// A wait without its second mark has passed where a later one has begun: other work of the stream is no reason to give it up.
func TestAWaitWithoutItsMarkHasPassed(t *testing.T) {
	a, b := newPair(t)
	mine, theirs := linkSides(t, a, b)
	theirs.link.Load().patience.Store(int64(time.Hour))
	for range 2 {
		require.NoError(t, mine.Publish(a.c))
	}
	require.NoError(t, b.faults.Add(ruleFor("cuEventRecord", 2)))
	require.ErrorIs(t, theirs.Await(t.Context(), b.c), cudadrv.Unknown)
	b.faults.Clear()
	theirs.marking.Lock()
	for _, q := range theirs.marked {
		w, err := theirs.newWait()
		require.NoError(t, err)
		q.all = append(q.all, w)
		require.NoError(t, theirs.device.EventRecord(w.before, b.c.Stream().Handle()))
		require.NoError(t, theirs.device.EventRecord(w.after, b.c.Stream().Handle()))
	}
	theirs.marking.Unlock()
	there, letGo := b.holdUp()
	<-there
	theirs.looks()
	assert.Empty(t, theirs.marked)
	letGo()
	require.NoError(t, b.c.Synchronize(background()))
	mine.dies(t)
}
