package core

import "github.com/go-vram/vram/internal/pool/memory"

// jobs starts driver jobs, one at a time.
type jobs struct {
	settings *Settings
	memory   *memory.Memory
	budget   *budget
	fx       *Effects

	inFlight *Job
}

// start puts a job in flight.
func (j *jobs) start(job *Job) {
	j.inFlight = job
	j.fx.Job = job
}

// poll asks how far the fences of all tagged runs have passed, so that the runs of those that have become clean. For a request
// that may have plain segments freed it also asks whether the device has work: freeing waits for all of it. It returns onward.
func (j *jobs) poll(r *request) verdict {
	idle := j.memory.Plain() && r != nil && r.kind == refill
	if ids := j.memory.TaggedClients(); len(ids) > 0 || idle {
		j.start(&Job{Poll: ids, Idle: idle, request: r})
	}
	return onward
}

// fill makes a window free for a request, from the victims, then from new handles.
func (j *jobs) fill(r *request, window Run, victims []int32) {
	job := &Job{request: r}
	p := &j.settings.Policy
	j.memory.PlanFill(&job.Job, memory.Plan{
		Window: window, Victims: victims, For: r.client,
		MergePages: p.MergePages, MaxHandlePages: j.budget.maxHandlePages(),
	})
	j.start(job)
}

// shrink gives clean handles back to the driver until that many bytes are gone, for a request or, with nil, for the pool
// itself. It reports whether there are any.
func (j *jobs) shrink(r *request, bytes int64) bool {
	ids, _ := j.memory.Victims(bytes, Run{})
	return j.release(r, ids)
}

// release gives handles back to the driver. It reports whether there are any.
func (j *jobs) release(r *request, ids []int32) bool {
	if len(ids) == 0 {
		return false
	}
	job := &Job{request: r}
	j.memory.PlanShrink(&job.Job, ids)
	j.start(job)
	return true
}
