package pool

import (
	"slices"
	"sync/atomic"

	"github.com/go-vram/vram/actors"
	"github.com/go-vram/vram/internal/fence"
	"github.com/go-vram/vram/internal/pool/core"
)

// watch is a wait for a mark on a goroutine of its own: it may last as long as a kernel, and holds
// up nothing else.
type watch struct {
	core.Watch
	mark  fence.Mark
	state atomic.Uint32 // watching, then handedOver or finished, whichever comes first
	ended chan struct{}
}

const (
	watching   uint32 = iota
	handedOver        // the driver goroutine has seen the mark pass: the watch releases it
	finished          // the driver goroutine owns the mark again
)

// handOver gives the mark to the watch. False: the watch has finished, and the caller releases the
// mark.
func (w *watch) handOver() bool { return w.state.CompareAndSwap(watching, handedOver) }

// watch begins to watch the oldest mark of each client, where none is watched yet. It returns the
// watches over those that have a mark.
func (d *driver) watch(ids []core.Client) (watched []core.Watch) {
	d.running = slices.DeleteFunc(d.running, func(w *watch) bool {
		select {
		case <-w.ended:
			return true
		default:
			return false
		}
	})
	for _, id := range ids {
		if len(d.marks[id]) == 0 {
			continue
		}
		w := d.watches[id]
		if w == nil || w.state.Load() != watching {
			d.lastWatch++
			w = &watch{Watch: core.Watch{Client: id, Number: d.lastWatch}, mark: d.marks[id][0].mark, ended: make(chan struct{})}
			d.watches[id] = w
			d.running = append(d.running, w)
			actors.Go(d.pool.host, "", func() { d.awaitMark(w) })
		}
		watched = append(watched, w.Watch)
	}
	return watched
}

// awaitMark waits until the mark has passed and reports that to the core.
func (d *driver) awaitMark(w *watch) {
	defer close(w.ended)
	p, err, returned := d.pool, error(nil), false
	defer func() {
		if !returned {
			err = d.panicked(recover())
		}
		if !w.state.CompareAndSwap(watching, finished) {
			_ = p.fences.Release(w.mark) // an event that the driver keeps does no harm
		}
		p.ref.Call(&step{pool: p, message: core.WatchOver{Watch: w.Watch, Err: err}})
	}()
	err = p.fences.Wait(w.mark)
	returned = true
}
