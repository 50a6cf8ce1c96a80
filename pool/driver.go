package pool

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-vram/vram/actors"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/fence"
	"github.com/go-vram/vram/internal/pool/core"
	"github.com/go-vram/vram/internal/pool/memory"
	"github.com/go-vram/vram/internal/region"
)

// work is a job for the driver goroutine, with the marks of the Returns before it.
type work struct {
	job     *core.Job
	marks   []markedFence
	clients []Client // queried whether they are idle
	waiter  Client   // of the job's Await operations; nil if it has left
	before  func()   // makes driver calls before the job; nil: there are none
}

// markedFence is a client's fence and the mark that was recorded for it.
type markedFence struct {
	client core.Client
	fence  core.Fence
	mark   fence.Mark
}

// inFlight is a job that is being performed.
type inFlight struct{ ended chan struct{} }

// noMoreJobs takes the place of a job in flight once the driver was stopped.
var noMoreJobs inFlight //nolint:gochecknoglobals // An identity, never written.

// driver is the driver goroutine of a pool: the only goroutine that maps and unmaps.
type driver struct {
	pool     *Pool
	clock    func() time.Duration // measures the device's calls
	worker   *actors.Worker
	inFlight atomic.Pointer[inFlight] // noMoreJobs once the pool has ended

	// Owned by the driver goroutine, after its end by Close.
	waiter    Client
	marks     map[core.Client][]markedFence // in the order of their arrival
	watches   map[core.Client]*watch        // over the client's oldest mark when it began
	running   []*watch                      // watches whose goroutines may not have ended
	lastWatch uint64
	order     []core.Client // keys of marks, sorted: the same history makes the same calls
	passed    []core.Passed // the answer to the last job
	last      core.JobDone

	share func(at cudadrv.Ptr, bytes int64) error // makes pages accessible to other devices, too; nil: there are none
}

// open makes the driver goroutine of a pool; it does not start it.
func (d *driver) open(p *Pool) {
	d.pool, d.worker, d.clock = p, actors.NewWorker(p.host, "vram-driver"), p.clock
	d.marks, d.watches = map[core.Client][]markedFence{}, map[core.Client]*watch{}
}

// submit sends a job to the driver goroutine. The core has one in flight at a time. After stop it does nothing.
func (d *driver) submit(w *work) {
	f := &inFlight{ended: make(chan struct{})}
	if !d.inFlight.CompareAndSwap(nil, f) {
		return
	}
	d.worker.Schedule(func() {
		defer func() { // also where the driver ends the goroutine
			done := d.last
			d.inFlight.Store(nil) // before the outcome is sent: the answer may be the next job
			close(f.ended)
			d.pool.ref.Call(&step{pool: d.pool, message: done})
		}()
		d.run(w)
	})
}

// stop waits for the job in flight, allows no other, and ends the driver goroutine.
func (d *driver) stop() {
	for !d.inFlight.CompareAndSwap(nil, &noMoreJobs) {
		if f := d.inFlight.Load(); f != nil {
			actors.Wait(d.pool.host, f.ended)
		}
	}
	d.worker.End()
	actors.Wait(d.pool.host, d.worker.Done())
}

// run performs a job, and stores its outcome. One without driver calls fails if its fence queries do. The calls of another do not
// depend on the queries: it fails if they do, and if the driver ends the goroutine.
func (d *driver) run(w *work) {
	d.keep(w.marks)
	d.waiter = w.waiter
	d.passed = d.passed[:0]
	done, returned := core.JobDone{Job: w.job}, false
	defer func() {
		if !returned {
			done.Passed = d.passed
			done.Err = d.panicked(recover())
		}
		d.last = done
	}()
	if w.before != nil {
		w.before()
	}
	done.Err = d.guard(d.poll)
	done.Passed = d.passed
	if done.Err == nil {
		done.Watched = d.watch(w.job.Watch)
		done.Idle = w.job.Idle && d.idle(w.clients)
	}
	if len(w.job.Ops) > 0 {
		end := region.Begin(regionOf(w.job.Ops))
		began := d.clock()
		done.Err = d.guard(func() error { return d.perform(w.job.Ops, &done.Done) })
		done.TookNs = int64(d.clock() - began)
		end()
	}
	if errors.Is(done.Err, cudadrv.OutOfMemory) {
		done.FreeBytes = d.freeBytes()
	}
	returned = true
}

// regionOf returns the name of the region of a job.
func regionOf(ops []memory.Op) string {
	for i := range ops {
		if v := ops[i].Verb; v == memory.Create || v == memory.AllocPlain {
			return region.Growth
		}
	}
	return region.DriverJob
}

// clockOf returns the time in which driver calls are measured: modelled time where the device has it, so
// that decisions that depend on it are reproducible.
func clockOf(modelled cudadrv.Modelled) func() time.Duration {
	if modelled != nil {
		return modelled.ModelledTime
	}
	epoch := time.Now()
	return func() time.Duration { return time.Since(epoch) }
}

// guard turns a panic of the driver into an error: the job fails and its request gets an answer.
func (d *driver) guard(f func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = d.panicked(value)
		}
	}()
	return f()
}

// panicked reports a panic of the driver, or with nil the end of the goroutine, and returns its error.
func (d *driver) panicked(value any) error {
	return fmt.Errorf("%w: %v", ErrDriverPanic, d.pool.panics.Here("vram-driver", value))
}

// freeBytes returns the driver's free memory; 0 if it cannot be queried.
func (d *driver) freeBytes() (bytes int64) {
	err := d.guard(func() (err error) {
		bytes, _, err = d.pool.device.MemGetInfo()
		return err //nolint:wrapcheck // not reported
	})
	if err != nil { // the core copes with 0
		return 0
	}
	return bytes
}

func (d *driver) keep(marks []markedFence) {
	for _, s := range marks {
		d.marks[s.client] = append(d.marks[s.client], s)
	}
}

// idle reports whether no client's stream has work.
func (d *driver) idle(clients []Client) bool {
	for _, c := range clients {
		if !c.Idle() {
			return false
		}
	}
	return true
}

// poll queries all fences. d.passed has the passed ones, also after an error.
func (d *driver) poll() error {
	d.passed = d.passed[:0]
	d.order = slices.AppendSeq(d.order[:0], maps.Keys(d.marks))
	slices.Sort(d.order)
	for _, id := range d.order {
		if err := d.look(id, d.marks[id]); err != nil {
			return err
		}
	}
	return nil
}

// look queries a client's fences up to the first that has not passed. Returns of one client may
// overtake each other on their way here; the newest fence that has passed covers all older ones,
// wherever they are in the list.
func (d *driver) look(id core.Client, marked []markedFence) (err error) {
	var newest core.Fence
	n := 0
	for n < len(marked) {
		var ok bool
		if ok, err = d.pool.fences.Passed(marked[n].mark); !ok { // as after an error
			break
		}
		newest = max(newest, marked[n].fence)
		n++
	}
	if n == 0 {
		return err
	}
	d.passed = append(d.passed, core.Passed{Client: id, Fence: newest})
	if d.marks[id] = marked[n:]; n == len(marked) {
		delete(d.marks, id)
	}
	for _, s := range marked[:n] {
		d.releaseMark(s)
	}
	return err
}

// releaseMark releases a mark, or leaves that to the watch over it.
func (d *driver) releaseMark(s markedFence) {
	if w := d.watches[s.client]; w != nil && w.mark == s.mark {
		delete(d.watches, s.client)
		if w.handOver() {
			return
		}
	}
	_ = d.pool.fences.Release(s.mark) // an event that the driver keeps does no harm
}

// release releases the remaining marks when the pool ends. The device has been synchronised:
// watches end.
func (d *driver) release() {
	for _, id := range slices.Sorted(maps.Keys(d.marks)) {
		for _, s := range d.marks[id] {
			d.releaseMark(s) // the device is being closed: an error changes nothing
		}
	}
	for _, w := range d.running {
		actors.Wait(d.pool.host, w.ended)
	}
}

// perform makes the calls of a job up to the first that fails. done counts the successful ones.
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
		if d.share != nil {
			return d.share(at, bytes)
		}
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
