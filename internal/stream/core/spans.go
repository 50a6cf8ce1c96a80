package core

import (
	"slices"

	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/internal/stream/magazine"
)

// spans tracks the blocks from which magazines of classes are carved.
type spans struct {
	magazines *magazine.Spans
	ranges    *ranges
	wanted    *wanted
	units     uint64 // of all spans

	// shelved are the magazines that served when exact counting began. No allocation finds them. Their
	// buffers are freed as usual, and each span counts as live until all are.
	shelved []*magazine.Span
}

// carve returns a new magazine over a block, with all slots free and not installed.
func (s *spans) carve(class int, block int32) *magazine.Span {
	m := s.magazines.New(class, block, s.ranges.address(block))
	s.units += uint64(sizeclass.SpanUnits(class))
	s.ranges.placed(block, occupant{magazine: &m.Magazine})
	return m
}

// retire frees the span of a closed magazine whose slots are all collected.
func (s *spans) retire(m *magazine.Span) {
	s.units -= uint64(sizeclass.SpanUnits(int(m.Class)))
	s.ranges.free(s.magazines.Retire(m))
}

// retireIdle retires the spans that no buffer uses.
func (s *spans) retireIdle() {
	s.retireOf(s.magazines.Idle())
	s.retireOf(s.shelved)
}

// retireUnused retires the spans that no buffer has used since the last call.
func (s *spans) retireUnused() {
	s.retireOf(slices.DeleteFunc(s.magazines.Idle(), func(m *magazine.Span) bool {
		before := m.SeenFrees
		m.SeenFrees = m.Frees()
		return m.SeenFrees != before
	}))
}

// retireOf retires the spans that no buffer uses.
func (s *spans) retireOf(all []*magazine.Span) {
	before := s.units
	for _, m := range all {
		if m.Open && s.magazines.CloseIdle(m) {
			s.retire(m)
		}
	}
	s.wanted.retired = s.wanted.retired || s.wanted.on && s.units < before
}

// close closes a magazine. Its span is retired once all of its slots are collected.
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

// shelve hides the installed magazines from every allocation.
func (s *spans) shelve() {
	s.magazines.Each(func(m *magazine.Span) {
		if m.Open && m.IsInstalled() {
			s.shelved = append(s.shelved, m)
			s.magazines.Uninstall(m)
		}
	})
}

// unshelve reinstalls the shelved magazines that still have their span. None was installed since.
func (s *spans) unshelve() {
	for _, m := range s.shelved {
		if m.Open && !m.IsInstalled() {
			s.magazines.Reinstall(m)
		}
	}
	s.shelved = nil
}

// closeShelved closes the shelved magazines.
func (s *spans) closeShelved() {
	for _, m := range s.shelved {
		if m.Open && !m.IsInstalled() {
			s.close(m)
		}
	}
	s.shelved = nil
}
