package vram

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/go-vram/vram/cudadrv"
)

// neighbours are the devices of this process that are in use. Two devices on one GPU, of two
// libraries perhaps, each hold memory that the other cannot see: before a request of one fails for
// want of memory of the driver's, the other releases free memory.
var neighbours table //nolint:gochecknoglobals // the process is watched: all that use one GPU

// neighbourTimeout bounds the wait for a neighbour that cannot release memory at once: one with
// plain segments, whose release waits for all work of the GPU. Not shorter: a trim of 100 GiB takes
// the driver 0.4 s on an H200.
const neighbourTimeout = time.Second

// table has the devices in use, with their GPUs. It is replaced, never changed.
type table struct {
	rows atomic.Pointer[[]row]
}

type row struct {
	gpu    cudadrv.UUID
	device *Device
}

// all are the rows, and the slice that was read, for its replacement.
func (t *table) all() (rows []row, read *[]row) {
	if read = t.rows.Load(); read == nil {
		return nil, nil
	}
	return *read, read
}

// add enters a device. One whose driver names no GPU has no neighbours.
func (t *table) add(gpu cudadrv.UUID, d *Device) {
	for gpu != (cudadrv.UUID{}) {
		rows, read := t.all()
		more := append(rows[:len(rows):len(rows)], row{gpu, d})
		if t.rows.CompareAndSwap(read, &more) {
			return
		}
	}
}

func (t *table) remove(d *Device) {
	for {
		rows, read := t.all()
		var rest []row
		for _, r := range rows {
			if r.device != d {
				rest = append(rest, r)
			}
		}
		if len(rest) == len(rows) || t.rows.CompareAndSwap(read, &rest) {
			return
		}
	}
}

// of are the other devices on the GPU of a device that is in use.
func (t *table) of(d *Device) (others []*Device) {
	rows, _ := t.all()
	gpu := cudadrv.UUID{}
	for _, r := range rows {
		if r.device == d {
			gpu = r.gpu
		}
	}
	for _, r := range rows {
		if r.gpu == gpu && r.device != d {
			others = append(others, r.device)
		}
	}
	return others
}

// captureTimeout bounds the wait for captures on a GPU whose work is waited for.
const captureTimeout = 10 * time.Second

// holdCaptures waits for the captures of devices, and keeps others from beginning until release is
// called. Its error is a *CaptureError after captureTimeout.
func holdCaptures(devices []*Device) (release func(), err error) {
	var held []func()
	release = func() {
		for _, leave := range held {
			leave()
		}
	}
	deadline := time.Now().Add(captureTimeout)
	for _, d := range devices {
		for _, s := range d.streams.Load().open {
			leave, ok := s.HoldCaptures()
			for ; !ok; leave, ok = s.HoldCaptures() {
				if time.Now().After(deadline) {
					release()
					return nil, &CaptureError{Stream: s.ID(), Call: "cuCtxSynchronize"}
				}
				time.Sleep(time.Millisecond)
			}
			held = append(held, leave)
		}
	}
	return release, nil
}

// handlesShortage reports whether anything can be done for a request that the pool refuses.
func (d *Device) handlesShortage() bool {
	return d.config.Load().OnOutOfMemory != nil || len(neighbours.of(d)) > 0
}

// handleShortage is called with a request that the pool refuses, outside every turn. It reports
// whether memory may be free now.
func (d *Device) handleShortage(short *OutOfMemoryError) (retry bool) {
	if d.askNeighbours(context.Background(), short) {
		return true
	}
	ask := d.config.Load().OnOutOfMemory
	return ask != nil && ask(short)
}

// askNeighbours has other devices on the GPU release as much free memory as is missing, if it was
// the driver that had none. It reports whether any was released, and tells the Logger.
func (d *Device) askNeighbours(ctx context.Context, short *OutOfMemoryError) bool {
	if short.Cause == nil { // the limit has refused
		return false
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer time.AfterFunc(neighbourTimeout, cancel).Stop() // no WithTimeout: all of time's formats would be linked with it
	released := int64(0)
	for _, other := range neighbours.of(d) {
		n, err := other.releaseFree(ctx, short.MissingBytes-released)
		released += n
		if d.notices != nil && (n > 0 || err != nil) {
			d.notices.post(func() {
				d.notices.log.Info("vram: another device on the GPU was asked for memory", "wantedBytes", short.MissingBytes, "releasedBytes", n, "error", err)
			})
		}
		if released >= short.MissingBytes {
			break
		}
	}
	d.neighbourBytes.Add(released)
	return released > 0
}

// releaseFree releases so many bytes of free memory to the driver, or all if there are fewer.
func (d *Device) releaseFree(ctx context.Context, bytes int64) (released int64, err error) {
	e := d.engine.Load()
	if e == nil {
		return 0, nil
	}
	books, err := e.pool.Snapshot(ctx)
	if err != nil {
		return 0, err
	}
	return e.pool.Trim(ctx, max(0, books.ReservedBytes-bytes))
}
