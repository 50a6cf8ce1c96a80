package ops

import (
	"errors"
	"sync"

	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/layout"
)

var slots sync.Pool //nolint:gochecknoglobals // of *tensor.Slot, made on first use: memory that one call uses at a time

func takeSlot() *tensor.Slot {
	if s, found := slots.Get().(*tensor.Slot); found {
		return s
	}
	return new(tensor.Slot)
}

func releaseSlot(s *tensor.Slot) {
	s.Clear()
	slots.Put(s)
}

// temporary passes a tensor to f and frees it after the work that f submits, also where a driver call panics.
func temporary(at tensor.Context, of tensor.Type, l layout.Layout, f func(*tensor.Tensor) error) (err error) {
	slot := takeSlot()
	defer releaseSlot(slot)
	t, err := slot.New(at, of, l)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Free()) }()
	return f(t)
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
