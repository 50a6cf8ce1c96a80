package share

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/streams"
)

// peerTimeout is how long a peer may leave 16 bytes in a socket that takes thousands of them, or a goodbye without an
// answer: no process that runs needs as much, and a Close that hangs for longer looks broken.
const peerTimeout = 10 * time.Second

// link is the connection to a peer, and the events of both. One goroutine reads the connection.
type link struct {
	conn    *net.UnixConn
	device  cudadrv.Device
	events  cudadrv.SharedEvents // nil where the device has none
	timeout time.Duration

	patience atomic.Int64 // how long after the peer's death, in nanoseconds, streams may still reach its events

	publishesEvents bool // the peer has opened own
	awaitsEvents    bool // theirs was opened

	// The events are destroyed under Memory.use, written. 0: none.
	own, theirs cudadrv.Event

	publishing sync.Mutex    // of a Publish, and of a goodbye
	last       *streams.Tail // of the stream of the last fence; nil: there is none, or its work has finished
	captured   bool          // a capture may have the last record of own
	sent       uint64        // fences; guarded by publishing

	turn     chan struct{} // holds a token while an Await waits
	awaited  uint64        // fences; of the Await that has the turn
	received atomic.Uint64 // fences; written by the goroutine that reads
	arrived  chan struct{} // a fence was received since the last check

	retried  atomic.Uint64
	writing  sync.Mutex
	once     sync.Once
	why      error         // of the end; written before ended is closed
	ended    chan struct{} // nothing more comes
	released chan struct{} // the peer has closed own
	done     chan struct{} // the goroutine has ended
}

func newLink(device cudadrv.Device, conn *net.UnixConn) *link {
	l := &link{
		conn: conn, device: device, timeout: peerTimeout, turn: make(chan struct{}, 1), arrived: make(chan struct{}, 1),
		ended: make(chan struct{}), released: make(chan struct{}), done: make(chan struct{}),
	}
	l.patience.Store(int64(peerTimeout))
	if device.Info().Capabilities.Has(cudadrv.EventSharing) {
		l.events, _ = device.(cudadrv.SharedEvents)
	}
	return l
}

// abandon closes the connection, and destroys the events, of a link that was not started.
func (l *link) abandon() error {
	err := l.conn.Close()
	if errors.Is(err, net.ErrClosed) {
		err = nil // by Memory.Close
	}
	return errors.Join(err, l.destroy(&l.theirs), l.destroy(&l.own))
}

func (l *link) destroy(e *cudadrv.Event) error {
	if *e == 0 {
		return nil
	}
	if err := l.device.EventDestroy(*e); err != nil {
		return err
	}
	*e = 0
	return nil
}

// end notes why nothing more comes. The first reason counts.
func (l *link) end(why error) {
	l.once.Do(func() {
		l.why = why
		close(l.ended)
	})
}

// over returns the reason of the end, or nil.
func (l *link) over() error {
	select {
	case <-l.ended:
		return l.why
	default:
		return nil
	}
}

// read takes notes from the peer until the connection ends.
func (l *link) read(use *sync.RWMutex) {
	defer close(l.done)
	err := l.take(use)
	l.end(err)
	if _, ok := errors.AsType[*ProtocolError](err); ok {
		_ = l.conn.Close() // this notifies the peer; the reason is kept
	}
}

func (l *link) take(use *sync.RWMutex) error {
	message := make([]byte, noteBytes)
	for {
		if _, err := io.ReadFull(l.conn, message); err != nil {
			return died(err)
		}
		n, err := decodeNote(message)
		if err != nil {
			return err
		}
		switch n.kind {
		case kindFence:
			if last := l.received.Load(); n.number != last+1 || l.over() != nil {
				return &ProtocolError{fmt.Sprintf("fence %d after fence %d", n.number, last)}
			}
			l.received.Store(n.number)
			select {
			case l.arrived <- struct{}{}:
			default: // a check is pending
			}
		case kindGoodbye:
			l.end(ErrPeerClosed)
			l.forget(use)
		case kindReleased:
			select {
			case <-l.released:
				return &ProtocolError{"a second release"}
			default:
				close(l.released)
			}
		}
	}
}

// forget closes the event of a closing peer, which will destroy it. If the driver fails, Close tries again; no call uses the
// event from now on.
func (l *link) forget(use *sync.RWMutex) {
	use.Lock()
	if l.destroy(&l.theirs) != nil {
		l.retried.Add(1)
	}
	use.Unlock()
	_ = l.write(note{kind: kindReleased}) // if it fails the connection is closed, and the next read fails
}

// write sends a note. A peer that does not take it counts as dead.
func (l *link) write(n note) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	err := l.conn.SetWriteDeadline(time.Now().Add(l.timeout))
	if err == nil {
		_, err = l.conn.Write(n.encode())
	}
	if err != nil {
		err = died(err)
		l.end(err)
		_ = l.conn.Close() // a part of the note may have been sent
	}
	return err
}

// cut ends the connection without a goodbye.
func (l *link) cut() {
	l.end(ErrClosed)   // the peer has not died
	_ = l.conn.Close() // again, maybe
	<-l.done
}

// close sends a goodbye, waits until the peer has closed the event that is destroyed here, and closes the connection. It may be
// called again.
func (l *link) close(use *sync.RWMutex) error {
	use.Lock()
	failed := l.destroy(&l.theirs)
	use.Unlock()
	failed = errors.Join(failed, l.goodbye())
	l.cut()
	use.Lock()
	defer use.Unlock()
	return errors.Join(failed, l.destroy(&l.own))
}

// goodbye returns nil also if the peer is gone.
func (l *link) goodbye() error {
	l.publishing.Lock()
	defer l.publishing.Unlock()
	if l.over() != nil {
		return nil
	}
	if err := l.write(note{kind: kindGoodbye}); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return &PeerError{"close", err}
		}
		return nil
	}
	timer := time.NewTimer(l.timeout)
	defer timer.Stop()
	select {
	case <-l.released:
	case <-l.done:
	case <-timer.C:
		return &PeerError{"close", died(os.ErrDeadlineExceeded)}
	}
	return nil
}

// died returns the error of a connection that ended or failed.
func died(err error) error { return fmt.Errorf("%w: %w", ErrPeerDied, err) }

// ended returns the error of a greeting that could not be exchanged: the peer's death, or else the connection's, as its
// deadline.
func ended(op string, err error) error {
	if isGone(err) {
		return &PeerError{op, died(err)}
	}
	return fmt.Errorf("share: %s: %w", op, err)
}

// isGone reports whether the other end of a connection is closed.
func isGone(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
