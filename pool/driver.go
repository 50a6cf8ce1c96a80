package pool

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/go-vram/vram/actors"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/fence"
	"github.com/go-vram/vram/internal/order"
	"github.com/go-vram/vram/pool/core"
	"github.com/go-vram/vram/pool/core/memory"
)

// work is a job on its way to the driver goroutine, with the marks of the returns before it.
type work struct {
	job     *core.Job
	marks   []stamp
	clients []Client // to be asked whether they are idle
	waiter  Client   // of the job's Await operations; nil if it has left
}

// stamp is a client's fence and the mark that stands for it.
type stamp struct {
	client core.Client
	fence  core.Fence
	mark   fence.Mark
}

// flight is a job that is being performed.
type flight struct{ landed chan struct{} }

// grounded stands in the place of a flight when there will be none any more.
var grounded flight //nolint:gochecknoglobals // An identity, never written.

// driver is the driver goroutine of a pool: the only one that makes driver calls.
type driver struct {
	pool   *Pool
	worker *actors.Worker
	flight atomic.Pointer[flight] // of the job in hand; grounded once the pool has ended

	// Owned by the driver goroutine, after its end by Close.
	waiter    Client
	marks     map[core.Client][]stamp // in the order in which they came
	watches   map[core.Client]*watch  // over the oldest mark that there was then
	running   []*watch                // whose goroutines may not have ended
	lastWatch uint64
	order     []core.Client // of marks, rising: the same history makes the same calls
	passed    []core.Passed // the answer to the last job
	last      core.JobDone
}

// open makes the driver goroutine of a pool, which is to be started.
func (d *driver) open(p *Pool) {
	d.pool, d.worker = p, actors.NewWorker(p.host, "vram-driver")
	d.marks, d.watches = map[core.Client][]stamp{}, map[core.Client]*watch{}
}

// fly has the driver goroutine perform a job. The core has one in flight at a time. After the pool has ended it does nothing.
func (d *driver) fly(w *work) {
	f := &flight{landed: make(chan struct{})}
	if !d.flight.CompareAndSwap(nil, f) {
		return
	}
	d.worker.Schedule(func() {
		done := d.run(w)
		d.flight.Store(nil) // before the outcome is told: the answer may be the next job
		close(f.landed)
		d.pool.ref.Call(&step{pool: d.pool, message: done})
	})
}

// ground waits for the job in hand, lets no other begin, and ends the driver goroutine.
func (d *driver) ground() {
	for !d.flight.CompareAndSwap(nil, &grounded) {
		if f := d.flight.Load(); f != nil {
			actors.Wait(d.pool.host, f.landed)
		}
	}
	d.worker.End()
	actors.Wait(d.pool.host, d.worker.Done())
}

// run performs a job. A job that queries fences fails with the query; driver calls are made whatever the
// fences say, they do not depend on it.
func (d *driver) run(w *work) core.JobDone {
	d.keep(w.marks)
	d.waiter = w.waiter
	done := core.JobDone{Job: w.job}
	done.Err = d.guard(d.poll)
	done.Passed = d.passed
	if done.Err == nil {
		done.Watched = d.watch(w.job.Watch)
		done.Idle = w.job.Idle && d.idle(w.clients)
	}
	if len(w.job.Ops) > 0 {
		done.Err = d.guard(func() error { return d.perform(w.job.Ops, &done.Done) })
	}
	if errors.Is(done.Err, cudadrv.OutOfMemory) {
		done.FreeBytes = d.freeBytes()
	}
	d.last = done
	return done
}

// guard makes a panic of the driver an error: the job fails and its caller gets an answer.
func (d *driver) guard(f func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			d.pool.panics.Here("vram-driver", value)
			err = fmt.Errorf("%w: %v", ErrDriverPanic, value)
		}
	}()
	return f()
}

// freeBytes is what the driver has left; 0 if it does not say.
func (d *driver) freeBytes() (bytes int64) {
	err := d.guard(func() (err error) {
		bytes, _, err = d.pool.device.MemGetInfo()
		return err //nolint:wrapcheck // it is not told
	})
	if err != nil { // the core does without
		return 0
	}
	return bytes
}

func (d *driver) keep(marks []stamp) {
	for _, s := range marks {
		d.marks[s.client] = append(d.marks[s.client], s)
	}
}

// idle reports whether no client's stream has work.
func (d *driver) idle(clients []Client) bool {
	return !slices.ContainsFunc(clients, func(c Client) bool { return !c.Idle() })
}

// poll looks how far all fences have passed; d.passed says so, also after an error.
func (d *driver) poll() error {
	d.passed = d.passed[:0]
	d.order = order.AppendKeys(d.order[:0], d.marks)
	for _, id := range d.order {
		if err := d.look(id, d.marks[id]); err != nil {
			return err
		}
	}
	return nil
}

// look sees how far a client's fences have passed, up to the first that has not. Returns of one client
// may overtake each other on their way here; the newest fence that has passed speaks for all that were
// taken before it, wherever they stand.
func (d *driver) look(id core.Client, stamps []stamp) (err error) {
	var newest core.Fence
	n := 0
	for n < len(stamps) {
		var ok bool
		ok, err = d.pool.fences.Passed(stamps[n].mark)
		if isCaptured(err) { // it never passes: the client's next one speaks for its pages
			err = nil
			n++
			continue
		}
		if !ok || err != nil {
			break
		}
		newest = max(newest, stamps[n].fence)
		n++
	}
	if n == 0 {
		return err
	}
	if newest > 0 {
		d.passed = append(d.passed, core.Passed{Client: id, Fence: newest})
	}
	if d.marks[id] = stamps[n:]; n == len(stamps) {
		delete(d.marks, id)
	}
	for _, s := range stamps[:n] {
		d.giveUp(s)
	}
	return err
}

// giveUp releases a mark, or leaves that to the watch over it.
func (d *driver) giveUp(s stamp) {
	if w := d.watches[s.client]; w != nil && w.mark == s.mark {
		delete(d.watches, s.client)
		if w.leave() {
			return
		}
	}
	_ = d.pool.fences.Release(s.mark) // an event that the driver keeps harms nobody's memory
}

// release gives up the marks that are left when the pool ends. The device has been synchronised: watches end.
func (d *driver) release() {
	for _, id := range order.Keys(d.marks) {
		for _, s := range d.marks[id] {
			d.giveUp(s) // the device is being closed: nobody is left to tell
		}
	}
	for _, w := range d.running {
		actors.Wait(d.pool.host, w.ended)
	}
}

// perform makes the calls of a job up to the first that fails. done counts those that succeeded.
func (d *driver) perform(ops []memory.Op, done *int) error {
	for i := range ops {
		if op := &ops[i]; op.Verb == memory.Map && op.Handle == 0 { // a new handle is mapped at once
			op.Handle = ops[i-1].Handle
		}
		if err := d.call(&ops[i]); err != nil {
			return fmt.Errorf("pool: %w", err)
		}
		*done = i + 1
	}
	return nil
}

func (d *driver) call(op *memory.Op) (err error) {
	p := d.pool
	at := p.at(op.Run.First)
	bytes := int64(op.Run.Pages) * p.pageBytes
	switch op.Verb {
	case memory.Unmap:
		return p.device.MemUnmap(at, bytes)
	case memory.Create:
		op.Handle, err = p.device.MemCreate(bytes)
		return err
	case memory.Map:
		return p.device.MemMap(at, bytes, op.Handle)
	case memory.Access:
		return p.device.MemSetAccess(at, bytes)
	case memory.Release:
		return p.device.MemRelease(op.Handle)
	case memory.AllocPlain:
		return d.alloc(op)
	case memory.FreePlain:
		return p.device.MemFree(op.Address)
	case memory.Await:
		return d.follow(op.Of, op.Fence)
	}
	return nil
}
