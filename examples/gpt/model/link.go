package model

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
)

// roadCapacity is the number of parcels on a road that were not received yet. Not fewer: a sender would wait for the receiver's
// goroutine. Not more: parcels take memory.
const roadCapacity = 1

// parcel is a copy of activations, gradients or a table on its way to another stage.
type parcel struct {
	memory vram.Batch    // of the sender's stream
	filled cudadrv.Event // recorded on the sender's stream after the copies that fill it
	from   *stage
}

// drop gives a parcel back that no work touches any more.
func (p parcel) drop() error {
	if p.from == nil {
		return nil
	}
	return errors.Join(p.memory.Free(), p.from.driver.EventDestroy(p.filled))
}

// link carries parcels from one stage to another. The memory of a parcel is all or nothing, and is ordered one parcel ahead as a
// future, which waits where memory is short.
type link struct {
	from, to *stage
	road     *vram.Handover[parcel]
	priority int    // of its memory
	tag      string // of its memory
	next     ahead  // of the sender
}

// newLink makes a link. Gradients have priority over activations, as backwards free the most memory, and so have later stages.
func newLink(from, to *stage) *link {
	l := &link{
		from: from, to: to, priority: from.number, road: vram.NewHandover[parcel](from.stream(), to.stream(), roadCapacity),
		tag: fmt.Sprintf("stage %d to %d", from.number, to.number),
	}
	if to.number < from.number {
		l.priority += from.of
	}
	return l
}

// bytesOf returns the sizes of ranges.
func bytesOf(all []cuda.Range) []int64 {
	sizes := make([]int64, len(all))
	for i, r := range all {
		sizes[i] = r.Bytes
	}
	return sizes
}

// order requests the memory of the next parcel, a copy of ranges.
func (l *link) order(ctx context.Context, like []cuda.Range) {
	l.next.order(ctx, l.from.stream(), vram.BatchRequest{Bytes: bytesOf(like), Priority: l.priority, Tag: l.tag})
}

// expect orders the memory of the first parcel of a step; a nil link needs none.
func (l *link) expect(ctx context.Context, of ...*tensor.Tensor) error {
	if l == nil {
		return nil
	}
	like, err := ranges(of...)
	if err == nil {
		l.order(ctx, like)
	}
	return err
}

// send copies tensors of the sender into the memory that was ordered for them, and hands it over. again: a parcel of the same
// sizes is the next one.
func (l *link) send(ctx context.Context, again bool, of ...*tensor.Tensor) error {
	all, err := ranges(of...)
	if err != nil {
		return err
	}
	if !l.next.ordered {
		l.order(ctx, all)
	}
	memory, err := l.next.take(ctx, &l.from.work)
	if err != nil {
		return err
	}
	p := parcel{memory: memory, from: l.from}
	for i, r := range all {
		if err == nil {
			err = l.from.context().Copy(cuda.Part(memory.Buffers()[i], 0, r.Bytes), r)
		}
	}
	if err == nil {
		p.filled, err = l.from.driver.EventCreate()
	}
	if err != nil {
		return errors.Join(err, memory.Free())
	}
	err = l.from.context().Submit(func(d cudadrv.Device, on cudadrv.Stream) error { return d.EventRecord(p.filled, on) })
	if err == nil {
		start := time.Now()
		err = l.road.Send(ctx, p)
		l.from.work.waited += time.Since(start)
	}
	if err != nil {
		return errors.Join(err, p.drop())
	}
	if again {
		l.order(ctx, all)
	}
	return nil
}

// receive waits for the next parcel, has the receiver's stream wait on the device until it is filled, and copies it to tensors. The
// receiver's work drops it once the copy has finished.
func (l *link) receive(ctx context.Context, into ...*tensor.Tensor) error {
	to, err := ranges(into...)
	if err != nil {
		return err
	}
	if l.road.Len() == 0 {
		if err := l.to.work.drain(); err != nil {
			return err
		}
	}
	start := time.Now()
	p, err := l.road.Receive(ctx)
	l.to.work.waited += time.Since(start)
	if err != nil {
		return err
	}
	l.to.work.took(p)
	return l.to.context().Submit(func(d cudadrv.Device, on cudadrv.Stream) error {
		if err := d.StreamWaitEvent(on, p.filled); err != nil {
			return err
		}
		for i, r := range to {
			if err := l.to.copyFrom(l.from, d, on, r, p.memory.Buffers()[i].Ptr()); err != nil {
				return err
			}
		}
		return nil
	})
}

// copyFrom queues a copy from the memory of another stage on the stage's stream.
func (st *stage) copyFrom(other *stage, d cudadrv.Device, on cudadrv.Stream, to cuda.Range, from cudadrv.Ptr) error {
	if st.place == other.place {
		return d.MemcpyDtoDAsync(to.Ptr(), from, to.Bytes, on)
	}
	here, ok := d.(cudadrv.Peers)
	there, also := other.driver.(cudadrv.Peers)
	if !ok || !also {
		return errNoPeers
	}
	return here.MemcpyPeerAsync(to.Ptr(), here.Context(), from, there.Context(), to.Bytes, on)
}

// errNoPeers reports a driver that copies on one device only.
var errNoPeers = errors.New("model: the driver cannot copy between devices")

// release gives back the memory that a failed step has left. Both stages have stopped.
func (l *link) release() (err error) {
	if l == nil {
		return nil
	}
	err = l.next.release()
	for {
		p, ok := l.road.TryReceive()
		if !ok {
			return err
		}
		err = errors.Join(err, p.drop())
	}
}
