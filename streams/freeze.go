package streams

import (
	"errors"
	"fmt"

	"github.com/go-vram/vram/actors"
	"github.com/go-vram/vram/internal/units"
)

var (
	// ErrFrozen is the kind of every *FrozenError.
	ErrFrozen = errors.New("vram: the buffer is frozen")
	// ErrGraphMemory refuses to freeze memory of a graph, which its launches write.
	ErrGraphMemory = errors.New("vram: the buffer is memory of a graph")
)

// FrozenError refuses a write to a buffer that is frozen. Nothing was submitted.
type FrozenError struct {
	Call   string `json:"call"`   // that would write; "" within an error that names it
	Frozen string `json:"frozen"` // the place of the call of Freeze
	Bytes  int64  `json:"bytes"`  // of the buffer; 0: a buffer of a graph
}

// Error names the call, the place of Freeze, and a remedy.
func (e *FrozenError) Error() string {
	what := "a buffer"
	if e.Bytes > 0 {
		what = "the buffer of " + units.Bytes(e.Bytes)
	}
	text := fmt.Sprintf("%s is frozen since %s, and may not be written: thaw it before", what, e.Frozen)
	if e.Call != "" {
		text = e.Call + ": " + text
	}
	return "vram: " + text
}

// Is makes errors.Is(err, ErrFrozen) hold.
func (e *FrozenError) Is(target error) bool { return target == ErrFrozen }

// Freeze refuses later writes to a live buffer by works of this device's Submitters. The first read of a stream from then on, or since
// the last write, waits for that write; later ones neither wait nor are noted. at is the place for errors. It waits, on the
// host, until works on the buffer that have begun have been submitted. Idempotent. Errors: ErrNotLive, ErrForeign,
// ErrGraphMemory.
func (x Submitter) Freeze(b Buffer, at string) error {
	o, err := x.freezable("Context.Freeze", b)
	if err != nil {
		return err
	}
	o.lock(true, x.s.host)
	o.frozen.CompareAndSwap(nil, &freeze{at})
	o.unlock(true)
	return nil
}

// Thaw allows writes again: they wait for all reads before. It waits, on the host, until launches that have begun have been submitted. Idempotent.
// It returns the errors of Freeze.
func (x Submitter) Thaw(b Buffer) error {
	o, err := x.freezable("Context.Thaw", b)
	if err != nil {
		return err
	}
	o.thaw(x.s.host)
	return nil
}

// ThawFreed thaws the buffers of a graph that were freed, which no caller can thaw any more, and reports whether there was one.
// It waits as Thaw does, and must not be called between EnterQuick and LeaveQuick.
func (x Submitter) ThawFreed(all []Touched) (thawed bool) {
	for _, t := range all {
		if t.order.freed() && t.order.frozen.Load() != nil {
			t.order.thaw(x.s.host)
			thawed = true
		}
	}
	return thawed
}

// thaw allows writes again: see Submitter.Thaw.
func (o *order) thaw(host actors.Host) {
	o.lock(true, host)
	if o.frozen.Swap(nil) != nil {
		o.rouse(host)
	}
	o.unlock(true)
}

// freezable returns the order of a buffer that may be frozen.
func (x Submitter) freezable(call string, b Buffer) (*order, error) {
	home, err := b.usable(call, x.s)
	switch {
	case err != nil:
		return nil, err
	case home.cuda.whole != nil:
		return nil, ErrGraphMemory
	}
	o, err := b.order(home, x.s.host)
	if e := (*NotLiveError)(nil); errors.As(err, &e) {
		return nil, b.notLive(call)
	}
	return o, err
}

// Frozen reports whether writes to a live buffer are refused.
func Frozen(b Buffer) bool {
	if !b.Live() {
		return false
	}
	o, ok := b.slot.Attached(b.word).(*order)
	return ok && o.frozen.Load() != nil
}
