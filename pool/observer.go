package pool

import (
	"errors"
	"sync/atomic"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/pool/core"
	"github.com/go-vram/vram/internal/pool/memory"
)

// Observer has functions that are called when something has happened in the pool: outside every
// turn, by the goroutine that performs a turn's effects. They must not wait; nil ones are not
// called. JobDone is called in the order of the jobs.
type Observer struct {
	JobDone func(JobReport)
	Denied  func(*OutOfMemoryError)
}

// JobReport is the outcome of a driver job.
type JobReport struct {
	CreatedBytes  int64
	ReleasedBytes int64
	ReservedBytes int64 // afterwards
	Calls         int   // successful ones
	Err           error // of the call after them
	// Of the job's Warm: bytes mapped for it so far, and in all. 0 without one.
	WarmMappedBytes, WarmWantedBytes int64
	Mappings                         []Mapping // in order
}

// Mapping is a range of addresses that a job has mapped, or unmapped. Pages side by side that one job maps one after
// the other are one range, but each plain segment is its own.
type Mapping struct {
	At          cudadrv.Ptr
	ChangeBytes int64 // less than 0: unmapped
}

// mapped adds a range.
func (r *JobReport) mapped(at cudadrv.Ptr, changeBytes int64) {
	if n := len(r.Mappings); n > 0 && changeBytes > 0 {
		if last := &r.Mappings[n-1]; last.ChangeBytes > 0 && last.At+cudadrv.Ptr(last.ChangeBytes) == at { //nolint:gosec // more than 0
			last.ChangeBytes += changeBytes
			return
		}
	}
	r.Mappings = append(r.Mappings, Mapping{at, changeBytes})
}

// report records a job's outcome, as an effect. Jobs that only query fences are not reported.
func (p *Pool) report(m core.JobDone) {
	if p.observer.JobDone == nil || m.Job == nil || len(m.Job.Ops) == 0 {
		return
	}
	r := JobReport{ReservedBytes: p.core.ReservedBytes(), Calls: m.Done, Err: m.Err}
	for _, op := range m.Job.Ops[:m.Done] {
		bytes := int64(op.Run.Pages) * p.pageBytes
		switch op.Verb {
		case memory.Create:
			r.CreatedBytes += bytes
		case memory.Release:
			r.ReleasedBytes += bytes
		case memory.Map:
			r.mapped(p.at(op.Run.First), bytes)
		case memory.Unmap:
			r.Mappings = append(r.Mappings, Mapping{p.at(op.Run.First), -bytes})
		case memory.AllocPlain:
			r.CreatedBytes += bytes
			r.Mappings = append(r.Mappings, Mapping{op.Address, bytes})
		case memory.FreePlain:
			r.ReleasedBytes += bytes
			r.Mappings = append(r.Mappings, Mapping{op.Address, -bytes})
		case memory.Access, memory.Await:
		}
	}
	r.WarmMappedBytes, r.WarmWantedBytes = p.core.Warmed(m.Job)
	p.reports.add(r)
	p.effects() // pass it on
}

// reports are outcomes of jobs that were not passed on. Turns add them, and goroutines that perform effects pass them on, outside of turns: one
// goroutine at a time, so that a later turn's come later.
type reports struct {
	last    atomic.Pointer[outcome] // the newest
	passing atomic.Bool
	due     []JobReport // of the goroutine that passes them on: taken from the list, the newest first
}

// outcome is a report in a list.
type outcome struct {
	JobReport
	before *outcome
}

func (q *reports) add(r JobReport) {
	o := &outcome{JobReport: r}
	for {
		o.before = q.last.Load()
		if q.last.CompareAndSwap(o.before, o) {
			return
		}
	}
}

// pass calls f with the reports. While another goroutine does, it returns at once: that one passes on those that come until it ends, too.
func (q *reports) pass(f func(JobReport)) {
	for q.last.Load() != nil && q.passing.CompareAndSwap(false, true) {
		q.passAll(f)
	}
}

func (q *reports) passAll(f func(JobReport)) {
	defer q.passing.Store(false)
	var taken []JobReport
	for o := q.last.Swap(nil); o != nil; o = o.before {
		taken = append(taken, o.JobReport)
	}
	q.due = append(taken, q.due...) // those that a panic of f has left come first
	for len(q.due) > 0 {
		last := len(q.due) - 1
		r := q.due[last]
		q.due = q.due[:last]
		f(r)
	}
}

// observeDenial calls Denied for a refusal for want of memory.
func (e *effects) observeDenial(err error) {
	if short, ok := errors.AsType[*OutOfMemoryError](err); ok && e.pool.observer.Denied != nil {
		told := *short // the client completes its own
		e.pool.observer.Denied(&told)
	}
}
