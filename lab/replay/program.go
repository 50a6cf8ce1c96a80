package replay

import (
	"sync/atomic"

	"github.com/go-vram/vram/internal/trace"
)

// kind is the kind of a step. The shared kinds exist with Options.Parallel only.
type kind uint8

const (
	stepAlloc       kind = iota
	stepFree             // of a buffer that the same goroutine allocated
	stepAllocShared      // another goroutine frees it: open its gate
	stepFreeForeign      // another goroutine allocates it: pass its gate first
)

// step is an event made ready for the loop: 16 bytes, four in a cache line.
type step struct {
	bytes  int64
	id     uint32
	stream uint16 // the buffer's stream, for frees too
	kind   kind
}

// allocates reports whether the step is an allocation.
func (s *step) allocates() bool { return s.kind == stepAlloc || s.kind == stepAllocShared }

// program is the part of a trace that one goroutine plays.
type program struct {
	steps  []step
	events []int // events[i] is the event of the trace that steps[i] is
}

// plan turns a trace into programs: one, or one for each stream. Second answer: the gates, by id, of
// the buffers that two programs share; nil where there are none.
func plan(tr *trace.Trace, parallel bool) ([]program, []*gate) {
	count := 1
	if parallel {
		count = tr.Info.StreamCount
	}
	programs := make([]program, count)
	owner := make([]uint16, tr.Info.AllocCount) // the stream of each buffer
	allocAt := make([]int, tr.Info.AllocCount)  // where in its program it is allocated
	var gates []*gate
	for i, e := range tr.Events {
		p := &programs[0]
		if parallel {
			p = &programs[e.Stream]
		}
		s := step{bytes: e.Bytes, id: e.ID, stream: e.Stream, kind: stepAlloc}
		if e.Op == trace.Alloc {
			owner[e.ID], allocAt[e.ID] = e.Stream, len(p.steps)
		} else {
			s.kind, s.stream = stepFree, owner[e.ID]
		}
		if parallel && s.stream != e.Stream {
			if gates == nil {
				gates = make([]*gate, tr.Info.AllocCount)
			}
			gates[e.ID] = &gate{}
			programs[s.stream].steps[allocAt[e.ID]].kind = stepAllocShared
			s.kind = stepFreeForeign
		}
		p.steps = append(p.steps, s)
		p.events = append(p.events, i)
	}
	return programs, gates
}

// leftovers returns the frees that the trace lacks, in order of allocation.
func leftovers(tr *trace.Trace) []step {
	ids := tr.Leftovers()
	left := make([]step, 0, len(ids))
	for _, e := range tr.Events {
		if len(left) < len(ids) && e.Op == trace.Alloc && e.ID == ids[len(left)] {
			left = append(left, step{bytes: e.Bytes, id: e.ID, stream: e.Stream, kind: stepFree})
		}
	}
	return left
}

// gate orders a foreign free after its allocation. It is closed at the start of each round and opened once; opening it
// publishes the buffer.
type gate struct {
	passable atomic.Bool
	waiting  atomic.Pointer[standing] // who waits, where that is told
	opened   chan struct{}
}

// close is called between rounds, when nobody uses the gate.
func (g *gate) close() {
	g.passable.Store(false)
	g.waiting.Store(nil)
	g.opened = make(chan struct{})
}

func (g *gate) open() {
	g.passable.Store(true)
	g.release()
	close(g.opened)
}
