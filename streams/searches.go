package streams

import (
	"github.com/go-vram/vram/batch"
	"github.com/go-vram/vram/internal/effect"
	"github.com/go-vram/vram/internal/fence/line"
	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/internal/stream/claims"
	"github.com/go-vram/vram/internal/stream/magazine"
)

// searches searches the core, and queries fences between two searches.
type searches struct {
	wiring  *wiring
	state   *turnState
	lent    *lentMemory
	looks   claims.Looks
	plan    batch.Plan
	missing []uint32 // runs of pages that the last search for a batch did not find
}

// search searches the core once. It returns a slot, or the number of missing pages.
func (s *searches) search(bytes, align int64, hint int, wide bool) (*magazine.Slot, uint32) {
	if align <= sizeclass.UnitBytes {
		return s.state.core.Alloc(max(bytes, 1), hint)
	}
	return s.state.core.AllocAligned(max(bytes, 1), align, wide)
}

// searchAlone searches for a block outside of spans, where no span for its class fits. It is the last search
// before a request is refused.
func (s *searches) searchAlone(bytes, align int64) *magazine.Slot {
	slot, _ := s.state.core.AllocAligned(max(bytes, 1), max(align, sizeclass.UnitBytes), false)
	return slot
}

// fillBatch puts buffers into the zero elements of dst, from the magazines and the stream's ranges,
// the longest of each chunk first. It reports how many, and whether none is missing; s.missing then
// has the missing runs of pages.
func (s *searches) fillBatch(dst []Buffer, bytes []int64, hint int) (served int, whole bool) {
	s.state.core.Drain()
	missing := batch.NewPacking(s.wiring.pool.PageBytes(), s.missing)
	for at := 0; at < len(bytes); at += batch.Width {
		end := min(at+batch.Width, len(bytes))
		chunk, into := bytes[at:end], dst[at:end]
		p := &s.plan
		var wanted uint64
		for i := range into {
			if into[i].slot == nil {
				wanted |= 1 << i
			}
		}
		p.Make(chunk, wanted)
		p.Order()
		groups := p.Groups()
		for g := range groups {
			i, left := groups[g].First(), int(groups[g].Count)
			got := s.state.core.AllocMany(groups[g].Units, left, hint, func(slot *magazine.Slot) {
				into[i] = Buffer{slot, slot.Word(), chunk[i]}
				if left--; left > 0 {
					i = p.Next(i)
				}
			})
			served += got
			if left > 0 {
				missing.Add(groups[g].Units, left)
			}
		}
	}
	s.missing = missing.Runs()
	return served, len(s.missing) == 0
}

// allRuns returns the runs of pages for a whole batch.
func (s *searches) allRuns(bytes []int64) []uint32 {
	missing := batch.NewPacking(s.wiring.pool.PageBytes(), nil)
	for at := 0; at < len(bytes); at += batch.Width {
		p := &s.plan
		p.Make(bytes[at:min(at+batch.Width, len(bytes))], batch.All)
		p.Order()
		for _, g := range p.Groups() {
			missing.Add(g.Units, int(g.Count))
		}
	}
	return missing.Runs()
}

// seek ends a search. After a search that found nothing it may add an effect that queries the fences of
// pending memory: next then says that the search is repeated before the pool is asked. It queries taken
// fences first, and takes missing fences where no taken one is left to wait for.
func (s *searches) seek(after claims.Searched, found bool, bytes int64) (next claims.Searched) {
	if !found && s.state.core.Scarce(bytes) && s.looks.Due(after) {
		next = s.pushLook(after)
	}
	if next == claims.First {
		s.looks.Learn(after, found)
	}
	return next
}

func (s *searches) pushLook(after claims.Searched) (next claims.Searched) {
	s.state.core.EachMissing(func(l *line.Line, number uint64) {
		take, look, then := claims.Line(after, number > 0)
		if take {
			effect.Push(&s.state.effects().fences, fencing{timeline(l), number, false})
		}
		if look {
			effect.Push(&s.state.effects().fences, fencing{timeline(l), 0, true})
		}
		next = max(next, then)
	})
	if next != claims.First {
		s.state.effects().sought = next
	}
	return next
}
