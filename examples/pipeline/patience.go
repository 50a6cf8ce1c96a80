package main

import (
	"context"
	"errors"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/futures"
)

// urgency is the priority of an operation's requests where memory is short: a later stage's go before an earlier one's, since
// it is later stages whose backwards come first and free what their forwards have saved, and a backward's before a forward's.
func (st *stage) urgency(t turn) int {
	if t.kind == forward {
		return st.number
	}
	return stageCount + st.number
}

// alloc is a buffer of the stage's stream. A stage with patience waits for what others free, until the end of ctx.
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

// provide allocates what a forward leaves behind, all at once: a stage that has saved half of it and waits for the other half
// has nothing to give, and others who wait for it would wait for ever.
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

// endure waits for memory; the end of the request's own context ends that. Before it waits a stage with patience drops what was
// handed over to it: the neighbour may be waiting for just that.
func endure[T freeable](st *stage, f futures.Future[T]) (T, error) {
	if st.patient && !f.Completed() {
		if err := st.queue.drain(); err != nil {
			return *new(T), errors.Join(err, abandon(f))
		}
	}
	return f.Await(context.Background())
}
