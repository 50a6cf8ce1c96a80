package share

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"

	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/streams"
)

// Memory is device memory that two processes share. Make it with New or Import. Any number of goroutines may use it.
type Memory struct {
	home   streams.Submitter
	device cudadrv.Device
	bytes  int64

	linking sync.Mutex                 // of the end of an Export, and of pending
	pending map[*net.UnixConn]struct{} // connections of Exports that have not ended
	exports sync.WaitGroup             // those Exports
	link    atomic.Pointer[link]       // nil: alone
	closing sync.Mutex                 // of Close
	quit    chan struct{}              // closed by the first Close
	closed  bool                       // guarded by use
	pages   pages                      // changed by Close
	used    map[*streams.Tail]struct{} // guarded by using
	using   sync.Mutex
	marked  map[*streams.Tail]*waits // guarded by marking
	spare   []*wait                  // likewise
	marking sync.Mutex
	settled chan struct{} // closed by Close when the contexts have finished

	// use is read by calls that use addresses or events, while they make their driver calls, and written to end such
	// calls.
	use sync.RWMutex

	stats struct{ published, synchronized, awaited atomic.Uint64 }
}

// New makes memory that can be exported, of whole granules of the device, on the device of the context, and maps it. The bytes
// are in no defined state. Errors: *SizeError, cuda.ErrNotOpen, vram.ErrClosed, a *vram.OutOfMemoryError where the device's
// limit leaves no room, and the driver's: cudadrv.NotSupported where the device has no shareable handles, cudadrv.OutOfMemory,
// for which vram.Device.Trim may help.
func New(c *cuda.Context, bytes int64) (*Memory, error) {
	m, shareable, err := newMemory(c, "cuMemCreate")
	if err != nil {
		return nil, err
	}
	if m.pages.bytes, err = round(bytes, m.device.Info()); err != nil {
		return nil, err
	}
	m.bytes = bytes
	if err = m.pages.charge(); err != nil {
		return nil, err
	}
	if m.pages.handle, err = shareable.MemCreateShareable(m.pages.bytes); err != nil {
		return nil, errors.Join(err, m.pages.release())
	}
	if err := m.pages.place(); err != nil {
		return nil, err
	}
	return m, nil
}

// newMemory returns memory without pages on the device of a context, and checks the device's capabilities.
func newMemory(c *cuda.Context, function string) (*Memory, cudadrv.ShareableMemory, error) {
	home, err := streams.NewSubmitter(c.Stream())
	if err != nil {
		return nil, nil, err
	}
	device := home.Device()
	const needed = cudadrv.VirtualMemory | cudadrv.ShareableHandles
	shareable, ok := device.(cudadrv.ShareableMemory)
	if has := device.Info().Capabilities; !ok || !has.Has(needed) {
		return nil, nil, unsupported(function, needed&^has)
	}
	m := &Memory{home: home, device: device, quit: make(chan struct{}), used: map[*streams.Tail]struct{}{}}
	m.pending, m.marked, m.settled = map[*net.UnixConn]struct{}{}, map[*streams.Tail]*waits{}, make(chan struct{})
	m.pages.home, m.pages.device = home, device
	return m, shareable, nil
}

// Bytes returns the size passed to New. The driver has rounded it up.
func (m *Memory) Bytes() int64 {
	if m == nil {
		return 0
	}
	return m.bytes
}

// Ptr returns the device address in this process, for work that is submitted past this package; the peer has another one. It
// is valid until Close, which waits for contexts that the memory was used with only.
func (m *Memory) Ptr() cudadrv.Ptr {
	if m == nil {
		return 0
	}
	m.use.RLock()
	defer m.use.RUnlock()
	if m.closed {
		return 0
	}
	return m.pages.at
}

// Stats counts calls.
type Stats struct {
	Published    uint64 // fences sent to the peer
	Synchronized uint64 // fences for which Publish waited on the host
	Awaited      uint64 // fences that Await has returned
	Retried      uint64 // names of a peer's event that the driver did not destroy when the peer closed, and that Close destroys
}

// Stats returns the counts so far.
func (m *Memory) Stats() Stats {
	if m == nil {
		return Stats{}
	}
	stats := Stats{Published: m.stats.published.Load(), Synchronized: m.stats.synchronized.Load(), Awaited: m.stats.awaited.Load()}
	if l := m.link.Load(); l != nil {
		stats.Retried = l.retried.Load()
	}
	return stats
}

// enter begins driver calls with a context, if it is of the memory's device; m.use.RUnlock ends them.
func (m *Memory) enter(c *cuda.Context) (*streams.Tail, error) {
	if m == nil || m.quit == nil {
		return nil, cuda.ErrNotOpen
	}
	work, err := streams.NewSubmitter(c.Stream())
	if err != nil {
		return nil, err
	}
	if !m.home.SameDevice(work) {
		return nil, cuda.ErrForeign
	}
	m.use.RLock()
	if m.closed {
		m.use.RUnlock()
		return nil, ErrClosed
	}
	return work.Tail(), nil
}

// uses notes a stream for which Close waits. Call it before submitting the work. For a new stream it checks two old ones and
// forgets closed streams, so that the number stays bounded.
func (m *Memory) uses(s *streams.Tail) {
	m.using.Lock()
	defer m.using.Unlock()
	if _, ok := m.used[s]; ok {
		return
	}
	looks := 0
	for other := range m.used {
		if looks++; looks > 2 {
			break
		}
		if other.Finished() {
			delete(m.used, other)
		}
	}
	m.used[s] = struct{}{}
}

// within returns the error of a part that is not within the memory.
func (m *Memory) within(offset, bytes int64) error {
	if offset < 0 || bytes < 0 || bytes > m.bytes-offset {
		return &cuda.RangeError{Offset: offset, Bytes: bytes, BufferBytes: m.bytes}
	}
	return nil
}

// CopyFrom submits a copy of a range of a buffer to the memory, from the offset on. Errors: *cuda.RangeError, ErrClosed, and
// the errors of cuda.Context.Submit.
func (m *Memory) CopyFrom(c *cuda.Context, offset int64, src cuda.Range) error {
	return m.copy(c, offset, src, func(device cudadrv.Device, on cudadrv.Stream, at, buffer cudadrv.Ptr) error {
		return device.MemcpyDtoDAsync(at, buffer, src.Bytes, on)
	})
}

// CopyTo submits a copy of the memory, from the offset on, to a range of a buffer. It returns the errors of CopyFrom.
func (m *Memory) CopyTo(c *cuda.Context, offset int64, dst cuda.Range) error {
	return m.copy(c, offset, dst, func(device cudadrv.Device, on cudadrv.Stream, at, buffer cudadrv.Ptr) error {
		return device.MemcpyDtoDAsync(buffer, at, dst.Bytes, on)
	})
}

func (m *Memory) copy(c *cuda.Context, offset int64, r cuda.Range, submit func(cudadrv.Device, cudadrv.Stream, cudadrv.Ptr, cudadrv.Ptr) error) error {
	stream, err := m.enter(c)
	if err != nil {
		return err
	}
	defer m.use.RUnlock()
	if err := m.within(offset, r.Bytes); err != nil {
		return err
	}
	m.uses(stream)
	return c.Submit(func(device cudadrv.Device, on cudadrv.Stream) error {
		return submit(device, on, m.pages.at+cudadrv.Ptr(offset), r.Buffer.Ptr()+cudadrv.Ptr(r.Offset)) //nolint:gosec // within both
	}, r)
}

// Close waits for the work of the contexts that the memory was used with, says goodbye to the peer, destroys the events, and
// unmaps and releases the memory. Waiting calls return ErrClosed. If the wait for a context fails the memory stays mapped:
// Close then ends the connection without a goodbye, and returns the error. For a context whose work waits for an event of a
// dead peer, Close waits at most ten seconds after the death: then the error is a *PeerError that wraps ErrPeerDied and a
// *vram.StrandedError, and the memory stays until this process ends. After an error Close may be called again, and continues
// where it stopped. After success it is idempotent.
func (m *Memory) Close() error {
	if m == nil || m.quit == nil {
		return cuda.ErrNotOpen
	}
	m.use.Lock()
	if !m.closed {
		m.closed = true
		close(m.quit)
	}
	m.use.Unlock()
	m.closing.Lock()
	defer m.closing.Unlock()
	m.endExports()
	m.exports.Wait()
	l := m.link.Load()
	if err := m.settle(); err != nil {
		if l != nil {
			l.cut()
		}
		if errors.Is(err, streams.ErrStranded) {
			err = &PeerError{"close", fmt.Errorf("%w: %w", ErrPeerDied, err)}
		}
		return err
	}
	select {
	case <-m.settled: // by an earlier call
	default:
		close(m.settled)
	}
	failed := m.unmark()
	if l != nil {
		failed = errors.Join(failed, l.close(&m.use))
	}
	return errors.Join(failed, m.pages.release())
}

// settle waits for the contexts that the memory was used with. A stream that is being closed has finished when its
// Close returns.
func (m *Memory) settle() error {
	m.using.Lock()
	defer m.using.Unlock() // no other user is left
	for stream := range m.used {
		if err := settle(stream.Stream()); err != nil {
			return err
		}
		delete(m.used, stream)
	}
	return nil
}

// settle waits for a stream's work. nil is a stream that was closed.
func settle(s *streams.Stream) error {
	if s == nil {
		return nil
	}
	c, err := cuda.NewContext(s)
	if err == nil {
		err = c.Synchronize(context.Background())
	}
	if errors.Is(err, streams.ErrClosed) {
		err = s.Close()
	}
	return err
}
