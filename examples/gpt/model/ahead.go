package model

import (
	"context"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/futures"
)

// ahead is a batch of memory that is ordered as a future before it is needed. It waits where memory is short.
type ahead struct {
	next    futures.Future[vram.Batch]
	ordered bool
}

// order requests the batch. It does not wait; the end of ctx ends the request.
func (a *ahead) order(ctx context.Context, on *vram.Stream, want vram.BatchRequest) {
	want.Wait = true
	a.next, a.ordered = on.AllocBatchForAsync(ctx, want), true
}

// take waits for the batch, which the caller frees. The neighbors may wait for memory of parcels that the stage has received: it drains
// its work before it waits.
func (a *ahead) take(ctx context.Context, w *work) (vram.Batch, error) {
	if !a.next.Completed() {
		if err := w.drain(); err != nil {
			return vram.Batch{}, err
		}
	}
	b, err := a.next.Await(ctx)
	a.ordered = err != nil // release finds memory that still comes
	return b, err
}

// release gives back a batch that nobody has taken.
func (a *ahead) release() error {
	if !a.ordered {
		return nil
	}
	a.ordered = false
	if !a.next.Cancel() {
		if b, failed := a.next.Await(context.Background()); failed == nil { // it is there, or has failed
			return b.Free()
		}
	}
	return nil
}
