package bytecheck

import (
	"context"
	"errors"
	"math"

	"github.com/go-vram/vram"
)

// allocate asks for memory in one of the ways that there are, and fills it. Where it is refused, something is freed.
func (w *worker) allocate(shareBytes int64) error {
	stream := w.stream()
	bytes := w.size()
	if w.bytes+bytes > shareBytes {
		return w.freeOne()
	}
	var err error
	switch dice := w.random.IntN(20); {
	case dice < 8:
		var b vram.Buffer
		if b, err = stream.Alloc(bytes); err == nil {
			err = w.keep(b, stream, "Alloc")
		}
	case dice < 11:
		err = w.batch(stream, shareBytes-w.bytes)
	default:
		err = w.request(stream, bytes)
	}
	if errors.Is(err, vram.ErrOutOfMemory) {
		w.report.RefusalCount++
		return w.freeOne()
	}
	return err
}

// size is as often one of few that come again as any of all lengths, long ones as often as short ones.
func (w *worker) size() int64 {
	if w.random.IntN(2) == 0 {
		again := [...]int64{100, 512, 4 << 10, 48 << 10, 256 << 10, 1 << 20, 3 << 20, 8 << 20}
		return min(again[w.random.IntN(len(again))], w.load.LargestBytes)
	}
	return max(1, int64(math.Exp(w.random.Float64()*math.Log(float64(w.load.LargestBytes)))))
}

// request is one with options.
func (w *worker) request(stream *vram.Stream, bytes int64) error {
	want, origin := vram.Request{Bytes: bytes}, "AllocAsync"
	switch w.random.IntN(3) {
	case 0:
		want.Zero, origin = true, "zeroed"
	case 1:
		want.Align, origin = 512<<w.random.IntN(13), "aligned" // up to 2 MiB
	}
	b, err := stream.AllocAsync(context.Background(), want).Await(context.Background())
	if err != nil {
		return err
	}
	it := w.enter(b, stream, origin)
	if want.Align > 0 && int64(it.ptr)%want.Align != 0 {
		return &PlaceError{it.ptr, want.Align}
	}
	if !want.Zero {
		return w.fill(it, fillOf(it.bytes, w.random.Uint64()))
	}
	it.content = zeros(it.bytes)
	if w.random.IntN(2) == 0 { // else it is read when it is freed
		return nil
	}
	if err := w.readings.read(it); err != nil {
		return err
	}
	return w.fill(it, fillOf(it.bytes, w.random.Uint64()))
}

// batch asks for several small buffers at once.
func (w *worker) batch(stream *vram.Stream, roomBytes int64) error {
	sizes := make([]int64, 2+w.random.IntN(15))
	for i := range sizes {
		sizes[i] = min(w.size(), max(1, roomBytes/int64(len(sizes))))
	}
	got := make([]vram.Buffer, len(sizes))
	if err := stream.AllocBatch(got, sizes); err != nil {
		return err
	}
	var failed []error
	for _, b := range got {
		failed = append(failed, w.keep(b, stream, "AllocBatch"))
	}
	return errors.Join(failed...)
}

// keep enters a buffer and fills it.
func (w *worker) keep(b vram.Buffer, stream *vram.Stream, origin string) error {
	it := w.enter(b, stream, origin)
	return w.fill(it, fillOf(it.bytes, w.random.Uint64()))
}

// enter makes a buffer the worker's; its content is not known yet.
func (w *worker) enter(b vram.Buffer, stream *vram.Stream, origin string) *item {
	it := &item{buffer: b, ptr: b.Ptr(), bytes: b.Bytes(), stream: stream, origin: origin}
	w.bytes += it.bytes
	w.grow(it.bytes)
	w.report.AllocCount++
	if len(w.residents) < w.load.Residents {
		w.residents = append(w.residents, it)
	} else {
		w.items = append(w.items, it)
	}
	return it
}
