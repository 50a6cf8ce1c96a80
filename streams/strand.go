package streams

import (
	"sync/atomic"

	"github.com/go-vram/vram/cudadrv"
)

// strandedWaits counts the waits of a stream for processes that have died. Only a stream whose work may wait
// for another process has one.
type strandedWaits struct {
	now atomic.Pointer[strandedCount]
}

// strandedCount is replaced, never changed: one look has the count, and the channel that tells of the next one.
type strandedCount struct {
	stuck   int           // waits for processes that died, and that have not passed
	changed chan struct{} // closed when another count has replaced it
}

// add changes the count.
func (k *strandedWaits) add(waits int) {
	for {
		old := k.now.Load()
		if k.now.CompareAndSwap(old, &strandedCount{old.stuck + waits, make(chan struct{})}) {
			close(old.changed)
			return
		}
	}
}

// MayStrand records that later work may wait for another process. Waits for the stream then end with Strand.
func (t *Tail) MayStrand() {
	if s := t.stream.Value(); s != nil && s.cuda.strand.Load() == nil {
		k := &strandedWaits{}
		k.now.Store(&strandedCount{changed: make(chan struct{})})
		s.cuda.strand.CompareAndSwap(nil, stranding(k))
	}
}

// Strand records that the stream waits for a process that has died: until Unstrand, Synchronize and Close of
// the stream do not wait for work that has not finished.
func (t *Tail) Strand() {
	if k := t.strand(); k != nil {
		k.add(1)
	}
}

// Unstrand reverts one Strand: that wait has passed after all.
func (t *Tail) Unstrand() {
	if k := t.strand(); k != nil {
		k.add(-1)
	}
}

func (t *Tail) strand() *strandedWaits {
	s := t.stream.Value()
	if s == nil {
		return nil
	}
	k, _ := s.cuda.strand.Load().(*strandedWaits)
	return k
}

// Synchronize waits on the host for the stream's work. No capture of the stream begins during the call.
// Errors: ErrClosed, *CaptureError, *StrandedError, and the driver's.
func (x Submitter) Synchronize() error {
	if err := x.Outside("cuStreamSynchronize"); err != nil {
		return err
	}
	defer x.Leave()
	return x.Await()
}

// Await is Synchronize for a call that has entered.
func (x Submitter) Await() error {
	if k, ok := x.s.cuda.strand.Load().(stranding); ok {
		return k.await(&x.s.cuda, x.Device())
	}
	return x.Device().StreamSynchronize(x.s.cuda.stream)
}

// AwaitOthers is Synchronize for a stream whose work may wait for another process, and does nothing for
// others. Call it before a driver call that waits for the stream, which might otherwise never return.
func (x Submitter) AwaitOthers() error {
	if x.s.cuda.strand.Load() == nil {
		return nil
	}
	return x.Synchronize()
}

// await waits for a stream that may be stranded; if it is, a goroutine keeps waiting in the driver.
func (k *strandedWaits) await(h *cudaStream, device cudadrv.Device) error {
	var done chan error
	for {
		now := k.now.Load()
		if now.stuck > 0 {
			return h.unlessFinished(device)
		}
		if done == nil {
			done = make(chan error, 1)
			go guardTo(h.panics, func(err error) { done <- err }, func() error { // no simulation has such streams
				return device.StreamSynchronize(h.stream)
			})
		}
		select {
		case err := <-done:
			return err
		case <-now.changed:
		}
	}
}

// unlessFinished returns the error of a stream that was stranded, if it has not finished all the same.
func (h *cudaStream) unlessFinished(device cudadrv.Device) error {
	finished := false
	err := h.guard(func() (err error) {
		finished, err = device.StreamQuery(h.stream)
		return err
	})
	if err != nil || finished {
		return err
	}
	return &StrandedError{Stream: h.id}
}

// Stranded reports whether a stream of the device was closed while it was stranded: then calls that wait for
// the device never return.
func (p *Peers) Stranded() bool { return p.stranded.Load() }
