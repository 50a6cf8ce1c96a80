package streams

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/go-vram/vram/cudadrv"
)

// ErrStranded is the kind of every *StrandedError.
var ErrStranded = errors.New("vram: the stream's work waits for an event that does not come")

// StrandedError says that a stream has not finished, and that nobody waits for it any more: its work is behind an event of another
// process that died before the event was reached. Memory that the work may touch goes with this process.
type StrandedError struct {
	Stream uint32 `json:"stream"`
}

// Error names the stream and a remedy.
func (e *StrandedError) Error() string {
	return fmt.Sprintf("vram: stream %d has work behind an event of a process that died, which does not come: its memory is released "+
		"when this process ends", e.Stream)
}

// Is makes errors.Is(err, ErrStranded) hold.
func (e *StrandedError) Is(target error) bool { return target == ErrStranded }

// stranding is a *strand. Waits for a stream know this interface alone, so that a program without other processes has no code for it.
type stranding interface {
	await(h *cudaStream, device cudadrv.Device) error
}

// strand belongs to a stream whose work may wait for another process. Other streams have none.
type strand struct {
	stuck   atomic.Int64                  // waits for processes that died, and that have not passed
	changed atomic.Pointer[chan struct{}] // closed when one is added
}

// MayStrand says that work that is submitted from now on may wait for another process. Waits for the stream end with Strand then.
func (t *Tail) MayStrand() {
	if s := t.stream.Value(); s != nil && s.cuda.strand.Load() == nil {
		k := &strand{}
		k.changed.Store(new(make(chan struct{})))
		s.cuda.strand.CompareAndSwap(nil, stranding(k))
	}
}

// Strand says that the stream waits for a process that is gone: until Unstrand, Synchronize and Close of the stream do not wait for work
// that has not finished.
func (t *Tail) Strand() {
	if k := t.strand(); k != nil {
		k.stuck.Add(1)
		close(*k.changed.Swap(new(make(chan struct{}))))
	}
}

// Unstrand takes one Strand back: that wait has passed all the same.
func (t *Tail) Unstrand() {
	if k := t.strand(); k != nil {
		k.stuck.Add(-1)
	}
}

func (t *Tail) strand() *strand {
	s := t.stream.Value()
	if s == nil {
		return nil
	}
	k, _ := s.cuda.strand.Load().(*strand)
	return k
}

// Synchronize waits on the host for the stream's work. A capture of the stream begins after it. Errors: ErrClosed, *CaptureError,
// *StrandedError, and the driver's.
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

// AwaitOthers is Synchronize for a stream whose work may wait for another process, and does nothing for others: ahead of a call of the
// driver that waits for the stream itself, and so for ever.
func (x Submitter) AwaitOthers() error {
	if x.s.cuda.strand.Load() == nil {
		return nil
	}
	return x.Synchronize()
}

// await waits for a stream that may be stranded: then a goroutine waits on, in the driver.
func (k *strand) await(h *cudaStream, device cudadrv.Device) error {
	var done chan error
	for {
		changed := *k.changed.Load() // before the look, which misses no later one
		if k.stuck.Load() > 0 {
			return h.unlessFinished(device)
		}
		if done == nil {
			done = make(chan error, 1)
			go func() { done <- h.guard(func() error { return device.StreamSynchronize(h.stream) }) }() // no simulation has such streams
		}
		select {
		case err := <-done:
			return err
		case <-changed:
		}
	}
}

// unlessFinished is the error of a stream that was stranded, if it has not finished all the same.
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

// Stranded reports whether a stream of the device was closed while it was stranded: no call that waits for the device returns any more.
func (p *Peers) Stranded() bool { return p.stranded.Load() }
