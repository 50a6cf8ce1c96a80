package pool

import (
	"errors"

	"github.com/go-vram/vram/pool/core"
	"github.com/go-vram/vram/pool/core/memory"
)

// Observer is told what happened to the pool. Its functions are called outside every turn, by whoever performs
// what a turn left, and must not wait; nil ones are left out. JobDone is called in the order of the jobs.
type Observer struct {
	JobDone func(JobReport)
	Denied  func(*OutOfMemoryError)
}

// JobReport says what a job made of what is held from the driver.
type JobReport struct {
	CreatedBytes  int64
	ReleasedBytes int64
	ReservedBytes int64 // afterwards
	Calls         int   // that succeeded
	Err           error // of the call after those
	// Of the Warm that the job was for: what was mapped for it so far, and all that it wants. 0 if it was for none.
	WarmMappedBytes, WarmWantedBytes int64
}

// report notes what a job did, as an effect of the turn that heard of it. Jobs that only look at fences are
// not reported.
func (p *Pool) report(m core.JobDone) {
	if p.observer.JobDone == nil || m.Job == nil || len(m.Job.Ops) == 0 {
		return
	}
	r := JobReport{ReservedBytes: p.core.ReservedBytes(), Calls: m.Done, Err: m.Err}
	for _, op := range m.Job.Ops[:m.Done] {
		bytes := int64(op.Run.Pages) * p.pageBytes
		switch op.Verb {
		case memory.Create, memory.AllocPlain:
			r.CreatedBytes += bytes
		case memory.Release, memory.FreePlain:
			r.ReleasedBytes += bytes
		case memory.Map, memory.Access, memory.Unmap, memory.Await:
		}
	}
	r.WarmMappedBytes, r.WarmWantedBytes = p.core.Warmed(m.Job)
	p.effects().reports = append(p.effects().reports, r)
}

// observe tells what the turn reported, before its own job can begin.
func (e *effects) observe() {
	reports := e.reports
	e.reports = nil
	for _, r := range reports {
		e.pool.observer.JobDone(r)
	}
}

// observeDenial tells of a refusal for want of memory.
func (e *effects) observeDenial(err error) {
	if short, ok := errors.AsType[*OutOfMemoryError](err); ok && e.pool.observer.Denied != nil {
		e.pool.observer.Denied(short)
	}
}
