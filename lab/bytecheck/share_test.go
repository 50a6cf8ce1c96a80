package bytecheck

import (
	"errors"

	"github.com/go-vram/vram"
)

// copyOne copies the beginning of one buffer over another, on the other's stream. If that is another stream, either the first
// buffer's stream waits for the copy, or the copy is announced as a use: then only vram protects the memory from its next
// owner.
func (w *worker) copyOne() error {
	from, to := w.two()
	if from == nil || to.shared {
		return nil
	}
	n := min(from.bytes, to.bytes)
	transfer := func() error {
		to.content = to.content.overwritten(from.content, n, to.bytes)
		return w.dev.MemcpyDtoDAsync(to.ptr, from.ptr, n, to.stream.Handle())
	}
	if from.stream == to.stream {
		return transfer()
	}
	w.report.CrossCount++
	if err := w.order(from.stream, to.stream); err != nil {
		return err
	}
	switch w.random.IntN(3) {
	case 0:
		if err := transfer(); err != nil {
			return err
		}
		return w.order(to.stream, from.stream) // later frees on its own stream follow the copy
	case 1:
		return w.announced(from, func() error { return from.buffer.RecordStream(to.stream) }, transfer)
	default:
		var use vram.Use
		begin := func() (err error) {
			use, err = from.buffer.Use(to.stream)
			return err
		}
		return w.announced(from, begin, func() error {
			err := transfer()
			if w.random.IntN(4) == 0 { // the free ends it
				return err
			}
			return errors.Join(err, use.Done())
		})
	}
}

// announced does work that uses a buffer on another stream than its own.
func (w *worker) announced(of *item, announce, work func() error) error {
	of.shared = true
	w.report.UseCount++
	if err := announce(); err != nil {
		return err
	}
	return work()
}

// handOver gives a buffer to another stream for good. Nobody orders the two but vram.
func (w *worker) handOver() error {
	it, _ := w.two()
	if it == nil || it.shared {
		return nil
	}
	to := w.stream()
	if to == it.stream {
		return nil
	}
	b, err := it.buffer.Transfer(to)
	if err != nil {
		return err
	}
	w.report.TransferCount++
	it.buffer, it.stream, it.origin = b, to, "Transfer"
	return w.fill(it, fillOf(it.bytes, w.random.Uint64()))
}

// two are any two of the buffers, nil if there are not so many.
func (w *worker) two() (*item, *item) {
	if len(w.items) < 2 {
		return nil, nil
	}
	i := w.random.IntN(len(w.items))
	j := (i + 1 + w.random.IntN(len(w.items)-1)) % len(w.items)
	return w.items[i], w.items[j]
}
