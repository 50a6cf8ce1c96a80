package bytecheck

import (
	"context"
	"errors"
	"math/rand/v2"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
)

// scribble overwrites a buffer after its reading. No content has it.
const scribble = 0xEE

// item is a live buffer of a worker's.
type item struct {
	buffer  vram.Buffer
	ptr     cudadrv.Ptr
	bytes   int64
	stream  *vram.Stream
	content content
	origin  string
	shared  bool // a use on another stream was announced: nothing is written over it any more
}

// worker is one goroutine's buffers.
type worker struct {
	*ground
	dev      device
	random   *rand.Rand
	streams  []*vram.Stream // of the load
	home     int            // the number of the one that is used most; the next one is used, too
	readings *readings
	event    cudadrv.Event // between streams

	residents []*item
	items     []*item
	bytes     int64 // of all of them
	report    Report
}

func newWorker(g *ground, number int, open []*vram.Stream) *worker {
	return &worker{
		ground: g, dev: g.house.own, random: rand.New(rand.NewPCG(g.load.Seed, uint64(number))),
		streams: open, home: number,
	}
}

// worker does one worker's part, from nothing to nothing.
func (g *ground) worker(ctx context.Context, number int, open []*vram.Stream) (Report, error) {
	w := newWorker(g, number, open)
	err := w.begin()
	if err == nil {
		err = w.steps(ctx)
	}
	err = errors.Join(err, w.end())
	if w.readings != nil {
		w.report.CheckedBytes = w.readings.checkedBytes
	}
	return w.report, err
}

func (w *worker) begin() (err error) {
	if w.readings, err = newReadings(w.dev, w.load.HostBytes); err != nil {
		return err
	}
	w.event, err = w.dev.EventCreate()
	return err
}

// end frees everything, each buffer checked, and waits for all readings.
func (w *worker) end() error {
	var failed []error
	for _, it := range append(w.residents, w.items...) {
		failed = append(failed, w.free(it))
	}
	if w.event != 0 {
		failed = append(failed, w.dev.EventDestroy(w.event))
	}
	if w.readings != nil {
		failed = append(failed, w.readings.settleAll(), w.readings.close())
	}
	return errors.Join(failed...)
}

func (w *worker) steps(ctx context.Context) error {
	for n := 1; n <= w.load.Steps && ctx.Err() == nil; n++ {
		if err := w.step(); err != nil {
			return err
		}
		if w.load.TrimSteps > 0 && n%w.load.TrimSteps == 0 {
			if _, err := w.house.Trim(context.WithoutCancel(ctx), 0); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *worker) step() error {
	share := w.load.LiveBytes / int64(w.load.Workers)
	switch dice := w.random.IntN(100); {
	case dice < 50:
		return w.allocate(share)
	case dice < 85:
		return w.freeOne()
	case dice < 91:
		return w.copyOne()
	case dice < 93:
		return w.handOver()
	case dice < 96:
		return w.look()
	case dice < 99:
		return w.toil()
	default:
		return w.move()
	}
}

// stream is one of the two that the worker uses.
func (w *worker) stream() *vram.Stream {
	return w.streams[(w.home+w.random.IntN(2))%len(w.streams)]
}

// move frees all but the residents and continues on other streams: the memory changes owners.
func (w *worker) move() error {
	for len(w.items) > 0 {
		if err := w.freeOne(); err != nil {
			return err
		}
	}
	w.home = w.random.IntN(len(w.streams))
	return nil
}

// freeOne frees any buffer but the residents.
func (w *worker) freeOne() error {
	if len(w.items) == 0 {
		return nil
	}
	i := w.random.IntN(len(w.items))
	it := w.items[i]
	last := len(w.items) - 1
	w.items[i] = w.items[last]
	w.items = w.items[:last]
	return w.free(it)
}

// free queues a reading, often something that writes over the buffer, and frees it while both wait their turn.
func (w *worker) free(it *item) error {
	err := w.readings.read(it)
	if !it.shared && w.random.IntN(2) == 0 {
		err = errors.Join(err, w.dev.MemsetD8Async(it.ptr, scribble, it.bytes, it.stream.Handle()))
	}
	w.bytes -= it.bytes
	w.live.Add(-it.bytes)
	return errors.Join(err, it.buffer.Free())
}

// look reads a resident and any other buffer.
func (w *worker) look() error {
	for _, of := range [][]*item{w.residents, w.items} {
		if len(of) > 0 {
			if err := w.readings.read(of[w.random.IntN(len(of))]); err != nil {
				return err
			}
		}
	}
	return nil
}

// toil keeps a stream busy, so that work on it is late, with the values that a buffer begins with.
func (w *worker) toil() error {
	if len(w.items) == 0 {
		return nil
	}
	it := w.items[w.random.IntN(len(w.items))]
	for range 8 {
		if err := w.fill(it, it.content); err != nil {
			return err
		}
	}
	return nil
}

// fill writes content, which becomes the buffer's.
func (w *worker) fill(it *item, c content) error {
	it.content = c
	at := it.ptr
	for _, r := range c {
		if err := w.dev.MemsetD8Async(at, r.value, r.bytes, it.stream.Handle()); err != nil {
			return err
		}
		at += cudadrv.Ptr(r.bytes)
	}
	return nil
}

// order makes later work of the second stream wait for the current work of the first one.
func (w *worker) order(first, second *vram.Stream) error {
	if err := w.dev.EventRecord(w.event, first.Handle()); err != nil {
		return err
	}
	return w.dev.StreamWaitEvent(second.Handle(), w.event)
}
