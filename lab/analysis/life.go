package analysis

import "github.com/go-vram/vram/internal/trace"

// partCount is into how many parts a trace is cut that has no steps.
const partCount = 10

// dominantCount is how many sizes are listed.
const dominantCount = 8

// life is one buffer of a trace.
type life struct {
	bytes  int64
	stream uint16
	from   int // event of the allocation
	to     int // event of the free; the number of events where there is none
	held   bool
}

// events returns how long it lived.
func (l *life) events() int { return l.to - l.from }

// lives returns the buffers of a trace, by id.
func lives(tr *trace.Trace) []life {
	all := make([]life, 0, tr.Info.AllocCount)
	for i := range tr.Events {
		e := &tr.Events[i]
		if e.Op == trace.Alloc {
			all = append(all, life{bytes: e.Bytes, stream: e.Stream, from: i, to: len(tr.Events), held: true})
			continue
		}
		all[e.ID].to, all[e.ID].held = i, false
	}
	return all
}
