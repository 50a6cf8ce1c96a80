package main

import (
	"context"
	"errors"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/futures"
)

// urgency returns the priority of an operation's requests: later stages precede earlier ones, since their backwards come first
// and free the saved buffers, and backwards precede forwards.
func (st *stage) urgency(t turn) int {
	if t.Kind == forward {
		return st.number
	}
	return stageCount + st.number
}

// alloc allocates a buffer on the stage's stream. A patient stage waits for frees, until the end of ctx.
func (st *stage) alloc(ctx context.Context, bytes int64, t turn) (vram.Buffer, error) {
	if !st.patient {
		return st.stream.Alloc(bytes)
	}
	return endure(st, st.stream.AllocAsync(ctx, vram.Request{Bytes: bytes, Wait: true, Priority: st.urgency(t)}))
}

// allocBatch is alloc of several buffers, all or none.
func (st *stage) allocBatch(ctx context.Context, bytes []int64, t turn) (vram.Batch, error) {
	return endure(st, st.stream.AllocBatchForAsync(ctx, vram.BatchRequest{Bytes: bytes, Wait: st.patient, Priority: st.urgency(t)}))
}

// provide allocates a forward's saved buffers all at once: a stage that waits with half of them has nothing to free, and others
// would wait for it for ever.
func (st *stage) provide(ctx context.Context, t turn, o *operation) error {
	left := o.left()
	bytes := make([]int64, len(left))
	for i, r := range left {
		bytes[i] = r.bytes
	}
	all, err := st.allocBatch(ctx, bytes, t)
	if err != nil {
		return err
	}
	for i, b := range all.Buffers() {
		st.held[left[i].buffer] = b
	}
	return nil
}

// endure waits for memory, until the request's context ends. Before it waits, a patient stage drops the parcels that it has
// received: the neighbour may be waiting for their memory.
func endure[T freeable](st *stage, f futures.Future[T]) (T, error) {
	if st.patient && !f.Completed() {
		if err := st.queue.drain(); err != nil {
			return *new(T), errors.Join(err, abandon(f))
		}
	}
	return f.Await(context.Background())
}
