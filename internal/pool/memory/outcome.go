package memory

import (
	"github.com/go-vram/vram/internal/heap"
)

// Outcome is the result of a job.
type Outcome struct {
	GrownBytes int64 // change of the reserved bytes
	// FailedAt is the operation that failed; Await where none did, or the job had no operations: nothing has changed then.
	FailedAt Verb
	// StartBytes are those that were reserved when the job was planned.
	StartBytes int64
	// Undo gives back the handles that a failed job left. Start it at once; it has no operations if there is nothing to do.
	Undo Job
}

// Finish enters the operations of a job that succeeded and repairs the books after one that failed: pages that are still mapped
// as before become free again, each under its old tag; handles that the job made or moved go back to the driver. The pages of a
// filled window stay busy until they are lent or freed.
func (m *Memory) Finish(j *Job, done int, failed bool) Outcome {
	out := Outcome{FailedAt: Await, StartBytes: j.startBytes}
	if done < len(j.Ops) {
		out.FailedAt = j.Ops[done].Verb
	}
	before := m.reservedBytes
	if j.books != nil {
		out.Undo = j.books.finish(m, j, done, failed)
	} else {
		out.Undo = m.finish(j, done, failed)
	}
	out.GrownBytes = m.reservedBytes - before
	return out
}

// finish is Finish of a job that is entered here, and returns the job that gives back what it left.
func (m *Memory) finish(j *Job, done int, failed bool) (undo Job) {
	for _, op := range j.Ops[:done] {
		m.enter(op)
	}
	if !failed {
		m.settle(j)
		return Job{}
	}
	m.skip(j, done)
	switch j.Purpose {
	case Nothing:
	case Fill:
		undo = Job{Purpose: Rollback, Ops: m.undoOps(j)}
		m.freeWindow(j)
	case Shrink:
		undo = Job{Purpose: Rollback, Ops: m.undoOps(j)}
	case Rollback, CloseAll:
		undo = Job{Purpose: j.Purpose, Ops: m.withoutLost(j.Ops[done:])}
	}
	return undo
}

// enter enters one driver call that succeeded.
func (m *Memory) enter(op Op) {
	switch op.Verb {
	case Unmap:
		for at := op.Run.First; at < op.Run.End(); {
			h := &m.handleOf[m.pages[at].handle]
			h.mapd = false
			m.setHandle(Run{First: at, Pages: h.run.Pages}, heap.None)
			at += h.run.Pages
		}
		m.setState(op.Run, Hole, 0)
	case Create:
		h := &m.handleOf[op.Index]
		h.id, h.live, h.fresh = op.Handle, true, true
		m.madeHandle(op.Run.Pages)
	case Map:
		h := &m.handleOf[op.Index]
		h.run.First, h.mapd, h.fresh = op.Run.First, true, true
		m.setHandle(op.Run, op.Index)
	case Access, Await:
	case Release:
		m.releasedHandle(op.Index)
	case AllocPlain:
		m.handleOf[op.Index] = handle{at: op.Address, run: op.Run, live: true, mapd: true}
		m.setHandle(op.Run, op.Index)
		m.madeHandle(op.Run.Pages)
	case FreePlain:
		m.setHandle(op.Run, heap.None)
		m.setState(op.Run, Hole, 0)
		m.releasedHandle(op.Index)
	}
}

func (m *Memory) setHandle(r Run, id int32) {
	entries := m.of(r)
	for i := range entries {
		entries[i].handle = id
	}
}

// settle reports that nothing of a job is to be undone.
func (m *Memory) settle(j *Job) {
	for _, op := range j.Ops {
		if op.Verb == Map {
			m.handleOf[op.Index].fresh = false
		}
	}
}

// skip enters that the operations from the failed one on were not made.
func (m *Memory) skip(j *Job, done int) {
	for _, op := range j.Ops[done:] {
		switch op.Verb {
		case Unmap, FreePlain: // still there, untouched
			if j.Purpose != Rollback && j.Purpose != CloseAll {
				m.addFree(op.Run, Tag{})
			}
		case Create, AllocPlain: // never made
			m.dropHandle(op.Index)
		case Map, Access, Release, Await:
		}
	}
}

// undoOps unmaps and releases every handle that a failed job made, moved or took out. Nothing is left of a job on plain
// segments: it ends with the only one that it makes.
func (m *Memory) undoOps(j *Job) []Op {
	var unmaps, releases []Op
	seen := map[int32]bool{}
	for _, op := range j.Ops {
		if op.Verb != Map && op.Verb != Create && op.Verb != Release || seen[op.Index] {
			continue
		}
		seen[op.Index] = true
		h := &m.handleOf[op.Index]
		if !h.live || (h.mapd && !h.fresh) { // never made, given back already, or still where it was
			continue
		}
		if h.mapd {
			unmaps = append(unmaps, Op{Verb: Unmap, Run: h.run})
		}
		releases = append(releases, Op{Verb: Release, Index: op.Index, Handle: h.id, Run: h.run})
		h.fresh = false
	}
	return append(unmaps, releases...)
}

// freeWindow frees the pages of a window that was not filled: those that still have an untouched handle become free under the
// tag that they had, those without become holes, the rest stays busy for the rollback.
func (m *Memory) freeWindow(j *Job) {
	inUndo := func(id int32) bool {
		for i := range j.Ops {
			if op := &j.Ops[i]; op.Index == id && (op.Verb == Map || op.Verb == Create) {
				return true
			}
		}
		return false
	}
	for at, end := j.Window.First, j.Window.End(); at < end; {
		id, first := m.pages[at].handle, at
		for at < end && m.pages[at].handle == id {
			at++
		}
		r := Run{First: first, Pages: at - first}
		switch {
		case id == heap.None:
			m.setState(r, Hole, 0)
		case !inUndo(id):
			m.FreeParts(j.Parts, r)
		}
	}
}

// withoutLost gives up the handle of the first operation, which has failed, so that the others still go back. Its pages stay
// busy for ever if it is mapped.
func (m *Memory) withoutLost(ops []Op) (rest []Op) {
	if len(ops) == 0 {
		return nil
	}
	lost := map[int32]bool{}
	lose := func(id int32) {
		lost[id] = true
		m.loseHandle(id)
	}
	switch failed := ops[0]; failed.Verb {
	case Unmap: // it has no Index: the pages know their handles
		for at := failed.Run.First; at < failed.Run.End(); at++ {
			lose(m.pages[at].handle)
		}
	case Release, FreePlain:
		lose(failed.Index)
	case Create, Map, Access, AllocPlain, Await:
	}
	for _, op := range ops[1:] {
		if op.Verb != Release || !lost[op.Index] {
			rest = append(rest, op)
		}
	}
	return rest
}
