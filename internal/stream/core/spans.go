package core

import (
	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/internal/stream/magazine"
)

// spans are the blocks that magazines of classes are carved from.
type spans struct {
	magazines *magazine.Spans
	ranges    *ranges
	wanted    *wanted
	units     uint64 // of all of them

	// shelved are the magazines that served when exact counting began: no allocation finds them, buffers
	// out of them come home as ever, and their span counts as live until all have.
	shelved []*magazine.Span
}

// carve makes a block the span of a magazine with free slots, which is not installed.
func (s *spans) carve(class int, block int32) *magazine.Span {
	m := s.magazines.New(class, block, s.ranges.address(block))
	s.add(class, block, &m.Magazine)
	return m
}

// add books a block that is the span of a magazine.
func (s *spans) add(class int, block int32, m *magazine.Magazine) {
	s.units += uint64(sizeclass.SpanUnits(class))
	s.ranges.placed(block, occupant{magazine: m})
}

// retire makes the span of a closed magazine free whose slots are all home.
func (s *spans) retire(m *magazine.Span) {
	s.units -= uint64(sizeclass.SpanUnits(int(m.Class)))
	s.ranges.free(s.magazines.Retire(m))
}

// retireIdle retires the spans that no buffer uses.
func (s *spans) retireIdle() {
	before := s.units
	s.retireOf(s.magazines.Idle())
	s.retireOf(s.shelved)
	s.wanted.retired = s.wanted.retired || s.wanted.on && s.units < before
}

func (s *spans) retireOf(all []*magazine.Span) {
	for _, m := range all {
		if m.Open && s.magazines.CloseIdle(m) {
			s.retire(m)
		}
	}
}

// close ends the service of a magazine; its span is retired once all of its slots are home.
func (s *spans) close(m *magazine.Span) {
	s.magazines.Close(m)
	if m.WholeHome() {
		s.retire(m)
	}
}

// closeAll closes the magazines of classes.
func (s *spans) closeAll() {
	s.magazines.Each(func(m *magazine.Span) {
		if m.Open {
			s.close(m)
		}
	})
}

// shelve puts the magazines that serve out of the reach of every allocation.
func (s *spans) shelve() {
	s.magazines.Each(func(m *magazine.Span) {
		if m.Open && m.IsInstalled() {
			s.shelved = append(s.shelved, m)
			s.magazines.Uninstall(m)
		}
	})
}

// unshelve lets those serve again that still have their span. No other was installed meanwhile.
func (s *spans) unshelve() {
	for _, m := range s.shelved {
		if m.Open && !m.IsInstalled() {
			s.magazines.Reinstall(m)
		}
	}
	s.shelved = nil
}

// closeShelved closes them instead.
func (s *spans) closeShelved() {
	for _, m := range s.shelved {
		if m.Open && !m.IsInstalled() {
			s.close(m)
		}
	}
	s.shelved = nil
}
