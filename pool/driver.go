package pool

import (
	"fmt"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/fence"
	"github.com/go-vram/vram/pool/core"
)

// work is a job on its way to the driver goroutine, with the marks of the returns before it.
type work struct {
	job   *core.Job
	marks []stamp
}

// stamp is a client's fence and the mark that stands for it.
type stamp struct {
	client core.Client
	fence  core.Fence
	mark   fence.Mark
}

// drive performs jobs until the channel is closed. It is the only goroutine that maps memory and the
// owner of the marks.
func (p *Pool) drive() {
	defer close(p.ended)
	d := driver{pool: p, marks: map[core.Client][]stamp{}}
	for w := range p.jobs {
		for _, s := range w.marks {
			d.marks[s.client] = append(d.marks[s.client], s)
		}
		done := core.JobDone{Job: w.job}
		done.Passed, done.Err = d.watch(w.job)
		if done.Err == nil {
			done.Done, done.Err = d.perform(w.job.Ops)
		}
		p.ref.Call(&step{pool: p, message: done})
	}
	d.release()
}

type driver struct {
	pool   *Pool
	marks  map[core.Client][]stamp // in the order of their fences
	passed []core.Passed           // the answer to the last job
}

// watch waits for the fences of the clients of job.Wait, and looks how far all others have passed:
// a client's fences pass in order, so it stops at the first that has not.
func (d *driver) watch(job *core.Job) (passed []core.Passed, err error) {
	passed = d.passed[:0]
	for _, id := range job.Wait {
		if stamps := d.marks[id]; len(stamps) > 0 {
			if err := d.pool.fences.Wait(stamps[len(stamps)-1].mark); err != nil {
				return passed, err
			}
		}
	}
	for id, stamps := range d.marks {
		n := 0
		for n < len(stamps) {
			ok, err := d.pool.fences.Passed(stamps[n].mark)
			if err != nil {
				return passed, err
			}
			if !ok {
				break
			}
			n++
		}
		if n == 0 {
			continue
		}
		passed = append(passed, core.Passed{Client: id, Fence: stamps[n-1].fence})
		for _, s := range stamps[:n] {
			if err := d.pool.fences.Release(s.mark); err != nil {
				return passed, err
			}
		}
		if d.marks[id] = stamps[n:]; n == len(stamps) {
			delete(d.marks, id)
		}
	}
	d.passed = passed
	return passed, nil
}

// release gives up the marks that are left when the pool ends.
func (d *driver) release() {
	for _, stamps := range d.marks {
		for _, s := range stamps {
			_ = d.pool.fences.Release(s.mark) // the device is being closed: nobody is left to tell
		}
	}
}

// perform makes the calls of a job up to the first that fails.
func (d *driver) perform(ops []core.Op) (done int, err error) {
	for i := range ops {
		if op := &ops[i]; op.Verb == core.Map && op.Handle == 0 { // a new handle is mapped at once
			op.Handle = ops[i-1].Handle
		}
		if err := d.call(&ops[i]); err != nil {
			return i, fmt.Errorf("pool: %w", err)
		}
	}
	return len(ops), nil
}

func (d *driver) call(op *core.Op) (err error) {
	p := d.pool
	at := p.base + cudadrv.Ptr(op.Run.First)*cudadrv.Ptr(p.pageBytes)
	bytes := int64(op.Run.Pages) * p.pageBytes
	switch op.Verb {
	case core.Unmap:
		return p.device.MemUnmap(at, bytes)
	case core.Create:
		op.Handle, err = p.device.MemCreate(bytes)
		return err
	case core.Map:
		return p.device.MemMap(at, bytes, op.Handle)
	case core.Access:
		return p.device.MemSetAccess(at, bytes)
	case core.Release:
		return p.device.MemRelease(op.Handle)
	}
	return nil
}
