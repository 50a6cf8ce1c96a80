package core

import (
	"github.com/go-vram/vram/internal/heap"
	"github.com/go-vram/vram/internal/stream/magazine"
)

// eachBlock visits the used blocks with their occupants: the spans of the classes, and the blocks of slots
// that have their own.
func eachBlock(owner *magazine.Owner, visit func(block int32, o occupant)) {
	owner.Spans.Each(func(m *magazine.Span) {
		if m.Block != heap.None {
			visit(m.Block, occupant{magazine: &m.Magazine})
		}
	})
	owner.All(func(m *magazine.Magazine) {
		m.Each(func(s *magazine.Slot) {
			if s.Block != heap.None {
				visit(s.Block, occupant{slot: s})
			}
		})
	})
}
