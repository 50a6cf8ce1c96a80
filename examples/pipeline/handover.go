package main

import (
	"context"
	"errors"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/futures"
)

// parcel is an activation or a gradient on its way to the neighbouring stage. Its holder frees the buffer and
// destroys the event.
type parcel struct {
	buffer vram.Buffer   // of the sender's stream
	filled cudadrv.Event // recorded on the sender's stream after the work that fills it
	on     *gpu          // the sender's
}

// drop frees a parcel that no work touches any more.
func (p parcel) drop() error {
	return errors.Join(p.buffer.Free(), p.on.EventDestroy(p.filled))
}

// road carries parcels from one stage to its neighbour. It has room for a whole step, so senders never wait. The allocator
// knows that a waiting receiver waits for the sender.
type road = vram.Handover[parcel]

func newRoad(from, to *vram.Stream) *road { return vram.NewHandover[parcel](from, to, microBatchCount) }

// inlet receives a stage's activations or gradients. Only the stage's goroutine uses it.
type inlet struct {
	stage *stage
	road  *road // nil for the first stage's inputs, which the data loader writes

	next    futures.Future[vram.Buffer] // for the micro-batch to come
	bytes   int64
	ordered bool
	arrived [microBatchCount]vram.Buffer // the zero Buffer: none
}

// order requests the buffer for the next micro-batch. It does not wait; the end of ctx ends the request.
func (in *inlet) order(ctx context.Context, bytes int64) {
	in.next, in.bytes, in.ordered = in.stage.stream.AllocAsync(ctx, vram.Request{Bytes: bytes}), bytes, true
}

// receive waits for the ordered buffer and for the neighbour's parcel, and queues the copy. The caller drops
// the parcel after the copy; the zero parcel means that there is none.
func (in *inlet) receive(ctx context.Context, t turn) (p parcel, err error) {
	st := in.stage
	b, err := await(ctx, &st.waits, in.next)
	if st.patient && errors.Is(err, vram.ErrOutOfMemory) {
		b, err = st.alloc(ctx, in.bytes, t)
	}
	if err != nil {
		return p, err // release handles a buffer that still comes
	}
	in.ordered = false
	in.arrived[t.MicroBatch] = b
	if in.road == nil {
		return p, st.gpu.MemsetD8Async(b.Ptr(), 1, b.Bytes(), st.stream.Handle())
	}
	if st.patient && in.road.Len() == 0 {
		if err = st.queue.drain(); err != nil {
			return p, err
		}
	}
	if p, err = in.road.Receive(ctx); err != nil {
		return p, context.Cause(ctx)
	}
	return p, st.gpu.copy(b.Ptr(), p, b.Bytes(), st.stream.Handle())
}

// free frees the buffer of a micro-batch. Its last use is on its own stream.
func (in *inlet) free(microBatch int) error {
	b := in.arrived[microBatch]
	in.arrived[microBatch] = vram.Buffer{}
	return b.Free()
}

// release frees all buffers of the inlet, also ordered ones and parcels on the road. The neighbour must have
// stopped.
func (in *inlet) release() error {
	var errs []error
	if in.ordered {
		in.ordered = false
		errs = append(errs, abandon(in.next))
	}
	for m := range in.arrived {
		if in.arrived[m] != (vram.Buffer{}) {
			errs = append(errs, in.free(m))
		}
	}
	for in.road != nil {
		p, ok := in.road.TryReceive()
		if !ok {
			break
		}
		errs = append(errs, p.drop())
	}
	return errors.Join(errs...)
}

// freeable is the value of a future of memory.
type freeable interface{ Free() error }

// abandon cancels a request, or frees its memory.
func abandon[T freeable](f futures.Future[T]) error {
	if f.Cancel() {
		return nil
	}
	v, err := f.Await(context.Background()) // the answer is there, or comes in a moment
	if err != nil {
		return nil //nolint:nilerr // the request has failed: there is nothing to free
	}
	return v.Free()
}
