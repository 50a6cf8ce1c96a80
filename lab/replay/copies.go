package replay

import (
	"fmt"

	"github.com/go-vram/vram/internal/trace"
)

// copied returns so many copies of a trace side by side, each on streams of its own: event for event in turns. The result keeps
// all rules of a trace.
func copied(tr *trace.Trace, copies int) *trace.Trace {
	if copies <= 1 {
		return tr
	}
	n := int64(copies)
	info := tr.Info
	out := &trace.Trace{Name: fmt.Sprintf("%s x%d", tr.Name, copies), Info: trace.Info{
		EventCount: copies * info.EventCount, AllocCount: copies * info.AllocCount, FreeCount: copies * info.FreeCount,
		StreamCount: copies * info.StreamCount, PeakLiveBytes: n * info.PeakLiveBytes, LeftoverBytes: n * info.LeftoverBytes,
	}}
	for i, e := range tr.Events {
		for copyOf := range copies {
			next := e
			next.ID = e.ID*uint32(copies) + uint32(copyOf)              //nolint:gosec // as many as there are allocations
			next.Stream = e.Stream + uint16(copyOf*tr.Info.StreamCount) //nolint:gosec // looked at by Options.complete
			out.Events, out.Micros = append(out.Events, next), append(out.Micros, tr.Micros[i])
		}
	}
	return out
}
