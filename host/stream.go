package host

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
)

// StreamMemory is a source of device memory: it presents the cache of a vram.Stream as an Allocator. Blocks are for work on
// that stream.
type StreamMemory struct {
	owner  *Owner
	stream *vram.Stream
	counts counters
	closed atomic.Bool
}

// OfStream makes the memory of a stream a source. The stream is the caller's. Error: vram.ErrNotOpen
// for nil.
func OfStream(s *vram.Stream) (*StreamMemory, error) {
	if s == nil {
		return nil, fmt.Errorf("host: the stream is nil: %w", vram.ErrNotOpen)
	}
	return ofStream(s), nil
}

func ofStream(s *vram.Stream) *StreamMemory {
	m := &StreamMemory{stream: s}
	m.owner = NewOwner(m)
	return m
}

// Alloc is vram.Stream.AllocFor. Errors: *SizeError, *AlignError, ErrClosed and the stream's.
func (m *StreamMemory) Alloc(bytes, align int64) (Block, error) { return m.alloc(bytes, align, false) }

// AllocZeroed is Alloc with a memset on the stream.
func (m *StreamMemory) AllocZeroed(bytes, align int64) (Block, error) {
	return m.alloc(bytes, align, true)
}

func (m *StreamMemory) alloc(bytes, align int64, zero bool) (Block, error) {
	if m == nil {
		return Block{}, notOpen()
	}
	if err := m.counts.admit(bytes, align, Device, &m.closed); err != nil || bytes == 0 {
		return Block{}, err
	}
	buffer, err := m.stream.AllocFor(context.Background(), vram.Request{Bytes: bytes, Align: align, Zero: zero})
	if err != nil {
		m.counts.refusals.Add(1)
		return Block{}, err
	}
	at := &streamBuffer{buffer: buffer, stream: m.stream}
	at.slot.where, at.slot.ptr = at, buffer.Ptr()
	m.counts.alloc(bytes)
	return Block{owner: m.owner, slot: &at.slot, bytes: bytes}, nil
}

// streamBuffer is one buffer of a stream.
type streamBuffer struct {
	slot   slot
	buffer vram.Buffer
	stream *vram.Stream
}

// usable refuses other streams: they are announced by Buffer.RecordStream, which wants a vram.Stream.
func (b *streamBuffer) usable(s cudadrv.Stream) (keep bool, err error) {
	if s == b.stream.Handle() {
		return false, nil
	}
	return false, &UseError{Stream: s, Kind: Device, Why: "announce it by RecordStream of the block's Buffer"}
}

// Buffer returns the buffer of a block that StreamMemory made, also through wrappers; ok is false for other blocks, and for
// blocks of a Pool, whose buffers later blocks reuse. Free the block, not the buffer.
func (b Block) Buffer() (buffer vram.Buffer, ok bool) {
	if b.slot == nil {
		return vram.Buffer{}, false
	}
	at, ok := b.slot.where.(*streamBuffer)
	if !ok {
		return vram.Buffer{}, false
	}
	return at.buffer, true
}

// Free is Free of the buffer: see vram.Buffer.Free. It does not wait. With an error the block is live if the buffer is: after a Close of
// the device it is not.
func (m *StreamMemory) Free(b Block) error {
	if m == nil {
		return notOpen()
	}
	b, err := b.reown(m.owner, m.owner)
	if b.slot == nil { // also with an error
		return err
	}
	if err := b.slot.end(b.word); err != nil {
		return err
	}
	buffer, _ := b.Buffer()
	err = buffer.Free()
	if err != nil && buffer.Live() {
		b.slot.revive(b.word)
		return err
	}
	m.counts.free(b.bytes)
	if err != nil {
		return goneError{err}
	}
	return nil
}

// Owner returns the allocator's identity.
func (m *StreamMemory) Owner() *Owner {
	if m == nil {
		return nil
	}
	return m.owner
}

// Kind is Device.
func (m *StreamMemory) Kind() Kind { return Device }

// Stats counts blocks and requested bytes.
func (m *StreamMemory) Stats() Stats {
	if m == nil {
		return Stats{}
	}
	return m.counts.stats()
}

// Close refuses further requests. It does not wait, nor close the stream. Error: *LeakError; the
// blocks stay valid.
func (m *StreamMemory) Close(ctx context.Context) error {
	if m == nil {
		return notOpen()
	}
	if ctx == nil {
		return ErrNilContext
	}
	m.closed.Store(true)
	return leak(Device, m.Stats())
}
