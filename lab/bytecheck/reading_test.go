package bytecheck

import (
	"errors"

	"github.com/go-vram/vram/cudadrv"
)

// readings is a ring of pinned host memory, for one worker, with the pending copies of buffers.
type readings struct {
	dev   device
	host  []byte // pinned
	slots []slot
	next  int

	checkedBytes int64
}

// slot is a part of the ring.
type slot struct {
	host    []byte
	event   cudadrv.Event // recorded after the copy
	waiting bool
	offset  int64     // of the bytes in the buffer
	want    content   // of these bytes
	fault   ByteError // all but the place and the values
}

// slotCount is the number of pending copies. Not fewer: a worker would wait where frees should overtake work. Not more: the
// bytes are divided between them.
const slotCount = 8

func newReadings(dev device, bytes int64) (*readings, error) {
	host, err := dev.MemHostAlloc(bytes)
	if err != nil {
		return nil, err
	}
	r := &readings{dev: dev, host: host, slots: make([]slot, slotCount)}
	length := len(host) / slotCount
	for i := range r.slots {
		r.slots[i].host = host[i*length : (i+1)*length]
		if r.slots[i].event, err = dev.EventCreate(); err != nil {
			return nil, errors.Join(err, r.close())
		}
	}
	return r, nil
}

// read queues copies of the whole buffer on its stream. Buffers longer than the ring wait for their first parts.
func (r *readings) read(it *item) error {
	for offset := int64(0); offset < it.bytes; {
		s := &r.slots[r.next]
		r.next = (r.next + 1) % len(r.slots)
		if err := r.settle(s); err != nil {
			return err
		}
		n := min(it.bytes-offset, int64(len(s.host)))
		stream := it.stream.Handle()
		if err := r.dev.MemcpyDtoHAsync(s.host[:n], it.ptr+cudadrv.Ptr(offset), stream); err != nil {
			return err
		}
		s.waiting, s.offset, s.want = true, offset, it.content.part(offset, n)
		s.fault = ByteError{Stream: it.stream.ID(), Ptr: it.ptr, Bytes: it.bytes, Origin: it.origin}
		if err := r.dev.EventRecord(s.event, stream); err != nil {
			return err
		}
		offset += n
	}
	return nil
}

// settle waits for the slot's copy and compares it.
func (r *readings) settle(s *slot) error {
	if !s.waiting {
		return nil
	}
	s.waiting = false
	if err := r.dev.EventSynchronize(s.event); err != nil {
		return err
	}
	for _, part := range s.want {
		r.checkedBytes += part.bytes
	}
	if at, want, wrong := s.want.differs(s.host); wrong {
		fault := s.fault
		fault.OffsetBytes, fault.Got, fault.Want = s.offset+at, s.host[at], want
		return &fault
	}
	return nil
}

// settleAll waits for all copies and compares them.
func (r *readings) settleAll() error {
	var failed []error
	for i := range r.slots {
		failed = append(failed, r.settle(&r.slots[i]))
	}
	return errors.Join(failed...)
}

// close frees everything once no copy is pending.
func (r *readings) close() error {
	var failed []error
	for i := range r.slots {
		if s := &r.slots[i]; s.event != 0 {
			if s.waiting {
				failed = append(failed, r.dev.EventSynchronize(s.event))
			}
			failed = append(failed, r.dev.EventDestroy(s.event))
		}
	}
	return errors.Join(append(failed, r.dev.MemFreeHost(r.host))...)
}
