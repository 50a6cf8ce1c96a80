package simulation

import (
	"slices"

	"github.com/go-vram/vram/cudadrv"
	poolcore "github.com/go-vram/vram/pool/core"
)

// order is a job on its way to the driver.
type order struct {
	job       *poolcore.Job
	marks     []stamp
	mostBytes int64 // that may be in use: the limit when the job was made, or what was in use then
}

// driver is the shell's driver goroutine, one call at a time.
type driver struct {
	marks   map[poolcore.Client][]stamp
	order   *order
	watched bool
	next    int // operation
	passed  []poolcore.Passed
}

func (d *driver) take(w *world, o order) {
	for _, s := range o.marks {
		d.marks[s.client] = append(d.marks[s.client], s)
	}
	d.order, d.watched, d.next, d.passed = &o, false, 0, nil
	w.note("job: poll %v wait %v ops %d", o.job.Poll, o.job.Wait, len(o.job.Ops))
}

// advance makes the next step of the job in flight.
func (d *driver) advance(w *world) {
	j := d.order.job
	if !d.watched {
		d.watched = true
		if err := d.watch(w, j); err != nil || len(j.Ops) == 0 {
			d.done(w, err)
		}
		return
	}
	op := &j.Ops[d.next]
	if op.Verb == poolcore.Map && op.Handle == 0 {
		op.Handle = j.Ops[d.next-1].Handle
	} else if op.Verb == poolcore.Map {
		w.report.Moved++
	}
	err := d.call(w, op)
	w.report.DriverCalls++
	w.note("driver: verb %d pages %v: %v", op.Verb, op.Run, err)
	if err == nil {
		d.next++
	}
	if err != nil || d.next == len(j.Ops) {
		d.done(w, err)
	}
}

func (d *driver) done(w *world, err error) {
	m := poolcore.JobDone{Job: d.order.job, Done: d.next, Passed: d.passed, Err: err}
	d.order = nil
	w.pool.tell(m, noMark)
}

// watch waits for the fences of the clients that the job says, and looks how far all others are.
func (d *driver) watch(w *world, j *poolcore.Job) error {
	for _, id := range j.Wait {
		if stamps := d.marks[id]; len(stamps) > 0 {
			if err := w.fences.Wait(stamps[len(stamps)-1].mark); err != nil {
				return err
			}
		}
	}
	ids := make([]poolcore.Client, 0, len(d.marks))
	for id := range d.marks {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		stamps, latest := d.marks[id], poolcore.Fence(0)
		for len(stamps) > 0 {
			ok, err := w.fences.Passed(stamps[0].mark)
			if err != nil || !ok {
				d.marks[id] = stamps
				if latest > 0 {
					d.passed = append(d.passed, poolcore.Passed{Client: id, Fence: latest})
				}
				if err != nil {
					return err
				}
				break
			}
			latest = max(latest, stamps[0].fence)
			_ = w.fences.Release(stamps[0].mark) // an event that is not destroyed is the device's to forget
			stamps = stamps[1:]
		}
		if len(stamps) == 0 {
			delete(d.marks, id)
			d.passed = append(d.passed, poolcore.Passed{Client: id, Fence: latest})
		}
	}
	return nil
}

// call makes one driver call and holds it against what callers and the device still use.
func (d *driver) call(w *world, op *poolcore.Op) (err error) {
	at := w.base + cudadrv.Ptr(op.Run.First)*cudadrv.Ptr(w.shape.pageBytes)
	bytes := int64(op.Run.Pages) * w.shape.pageBytes
	switch op.Verb {
	case poolcore.Unmap:
		s := span{at, at + cudadrv.Ptr(bytes)}
		if b := w.ranges.touched(s); b != nil && !w.closing {
			w.broken("pages %v are unmapped under the live buffer %v of stream %d", op.Run, b.span, b.stream.id)
		}
		if u, ok := w.uses.hit(s, nil, w.watch.Now()); ok {
			w.broken("pages %v are unmapped while stream %d works on %v", op.Run, u.stream.id, u.span)
		}
		return w.device.MemUnmap(at, bytes)
	case poolcore.Create:
		if op.Handle, err = w.device.MemCreate(bytes); err == nil && w.usedBytes() > d.order.mostBytes {
			w.broken("%d bytes in use, at most %d may be", w.usedBytes(), d.order.mostBytes)
		}
		return err
	case poolcore.Map:
		return w.device.MemMap(at, bytes, op.Handle)
	case poolcore.Access:
		return w.device.MemSetAccess(at, bytes)
	case poolcore.Release:
		return w.device.MemRelease(op.Handle)
	case poolcore.Alloc, poolcore.Free:
		w.broken("a plain segment where there is virtual memory: %+v", *op)
	}
	return nil
}

// usedBytes is what the device says.
func (w *world) usedBytes() int64 {
	free, total, err := w.watch.MemGetInfo()
	if err != nil {
		return 0 // only once it is closed
	}
	return total - free
}
