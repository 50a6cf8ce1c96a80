package main

import (
	"context"
	"errors"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/futures"
)

// parcel is an activation or a gradient on its way to the neighbouring stage. Who holds it frees the buffer and
// destroys the event.
type parcel struct {
	buffer vram.Buffer   // of the sender's stream
	filled cudadrv.Event // recorded on the sender's stream behind the work that fills it
	on     *gpu          // the sender's
}

// drop ends a parcel that nobody's work touches any more.
func (p parcel) drop() error {
	return errors.Join(p.buffer.Free(), p.on.EventDestroy(p.filled))
}

// road carries parcels from one stage to its neighbour. It has room for all of a step: senders never wait. While the receiver waits the
// allocator knows for whom.
type road = vram.Handover[parcel]

func newRoad(from, to *vram.Stream) *road { return vram.NewHandover[parcel](from, to, microBatchCount) }

// inlet is where a stage's activations or gradients arrive. It is used by the stage's goroutine alone.
type inlet struct {
	stage *stage
	road  *road // nil for the first stage's inputs, which the data loader writes

	next    futures.Future[vram.Buffer] // for the micro-batch to come
	bytes   int64
	ordered bool
	arrived [microBatchCount]vram.Buffer // the zero Buffer where there is none
}

// order asks for the buffer that the micro-batch to come will arrive in. It does not wait; the end of ctx
// ends the request.
func (in *inlet) order(ctx context.Context, bytes int64) {
	in.next, in.bytes, in.ordered = in.stage.stream.AllocAsync(ctx, vram.Request{Bytes: bytes}), bytes, true
}

// receive waits for the buffer that was ordered and for the neighbour's parcel, and queues the copy. The
// parcel is the caller's to drop once the copy is over; it is the zero parcel where there is none.
func (in *inlet) receive(ctx context.Context, t turn) (p parcel, err error) {
	st := in.stage
	b, err := await(ctx, &st.waits, in.next)
	if st.patient && errors.Is(err, vram.ErrOutOfMemory) {
		b, err = st.alloc(ctx, in.bytes, t)
	}
	if err != nil {
		return p, err // release looks after a buffer that still comes
	}
	in.ordered = false
	in.arrived[t.microBatch] = b
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

// free gives the buffer of a micro-batch back. Its last use is on the stream that it belongs to.
func (in *inlet) free(microBatch int) error {
	b := in.arrived[microBatch]
	in.arrived[microBatch] = vram.Buffer{}
	return b.Free()
}

// release gives back all that the inlet holds, also what was ordered and what lies on the road. The
// neighbour must have stopped.
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

// freeable is what a future of memory brings.
type freeable interface{ Free() error }

// abandon ends a request, or frees what it has brought.
func abandon[T freeable](f futures.Future[T]) error {
	if f.Cancel() {
		return nil
	}
	v, err := f.Await(context.Background()) // there is an answer, or will be in a moment
	if err != nil {
		return nil //nolint:nilerr // the request has failed: there is nothing to free
	}
	return v.Free()
}
