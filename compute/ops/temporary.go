package ops

import (
	"errors"
	"sync"

	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/layout"
)

var slots = sync.Pool{New: func() any { return new(tensor.Slot) }} //nolint:gochecknoglobals // made on first use: memory that one call uses at a time

func takeSlot() *tensor.Slot { return slots.Get().(*tensor.Slot) } //nolint:forcetypeassert // of this pool

func releaseSlot(s *tensor.Slot) {
	s.Clear()
	slots.Put(s)
}

// temporary passes a tensor to f and frees it after the work that f submits.
func temporary(at tensor.Context, of tensor.Type, l layout.Layout, f func(*tensor.Tensor) error) error {
	slot := takeSlot()
	defer releaseSlot(slot)
	t, err := slot.New(at, of, l)
	if err != nil {
		return err
	}
	return errors.Join(f(t), t.Free())
}

// viewed gives f a view of a tensor with another layout.
func viewed(t *tensor.Tensor, l layout.Layout, f func(*tensor.Tensor) error) error {
	slot := takeSlot()
	defer releaseSlot(slot)
	view, err := slot.View(t, l)
	if err != nil {
		return err
	}
	return f(view)
}

// named is failed for an error that may be one of an operation already.
func named(op operation, err error, outputs []*tensor.Tensor, inputs ...*tensor.Tensor) error {
	if err == nil {
		return nil
	}
	if _, known := errors.AsType[*Error](err); known {
		return err
	}
	return failed(op, err, outputs, inputs...)
}
