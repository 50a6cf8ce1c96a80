package core

import (
	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/streams/magazine"
)

// spans are the blocks that magazines of classes are carved from.
type spans struct {
	owner  *magazine.Owner
	ranges *ranges
	wanted *wanted
	units  uint64 // of all of them, also those of lanes

	// shelved are the magazines that served when exact counting began: no allocation finds them, buffers
	// out of them come home as ever, and their span counts as live until all have.
	shelved []*magazine.Magazine
}

// carve makes a block the span of a magazine with free slots, which is not installed.
func (s *spans) carve(class int, block int32) *magazine.Magazine {
	s.units += uint64(sizeclass.SpanUnits(class))
	m := s.owner.Span(class, block, s.ranges.address(block))
	s.ranges.placed(block, occupant{magazine: m})
	return m
}

// lease makes a block the span of a magazine of a lane.
func (s *spans) lease(l *magazine.Lane, class int, block int32) {
	s.units += uint64(sizeclass.SpanUnits(class))
	s.ranges.placed(block, occupant{magazine: s.owner.LeaseSpan(l, class, block, s.ranges.address(block))})
}

// retire makes the span of a closed magazine free whose slots are all home.
func (s *spans) retire(m *magazine.Magazine) {
	s.units -= uint64(sizeclass.SpanUnits(int(m.Class)))
	s.ranges.free(s.owner.Retire(m))
}

// release makes a block of a lane free: a span, or, with a negative class, a large block.
func (s *spans) release(block, class int32) {
	s.wanted.Note()
	if class >= 0 {
		s.units -= uint64(sizeclass.SpanUnits(int(class)))
	}
	s.ranges.free(block)
}

// collect makes free what lanes have left behind that is home.
func (s *spans) collect() { s.owner.Collect(s.release) }

// retireIdle retires the spans that no buffer uses.
func (s *spans) retireIdle() {
	before := s.units
	s.retireOf(s.owner.Idle())
	s.retireOf(s.shelved)
	s.wanted.retired = s.wanted.retired || s.wanted.on && s.units < before
}

func (s *spans) retireOf(all []*magazine.Magazine) {
	for _, m := range all {
		if m.Open && s.owner.CloseIdle(m) {
			s.retire(m)
		}
	}
}

// close ends the service of a magazine; its span is retired once all of its slots are home.
func (s *spans) close(m *magazine.Magazine) {
	s.owner.Close(m, func(*magazine.Slot) {})
	if m.WholeHome() {
		s.retire(m)
	}
}

// closeAll closes the magazines of classes.
func (s *spans) closeAll() {
	s.owner.All(func(m *magazine.Magazine) {
		if m.Class >= 0 && m.Open {
			s.close(m)
		}
	})
}

// shelve puts the magazines that serve out of the reach of every allocation.
func (s *spans) shelve() {
	s.owner.All(func(m *magazine.Magazine) {
		if m.Class >= 0 && m.Open && m.Bucket >= 0 {
			s.shelved = append(s.shelved, m)
			s.owner.Uninstall(m)
		}
	})
}

// unshelve lets those serve again that still have their span. No other was installed meanwhile.
func (s *spans) unshelve() {
	for _, m := range s.shelved {
		if m.Open && m.Bucket < 0 {
			s.owner.Install(m.Class, int(m.Shard), m)
		}
	}
	s.shelved = nil
}

// closeShelved closes them instead.
func (s *spans) closeShelved() {
	for _, m := range s.shelved {
		if m.Open && m.Bucket < 0 {
			s.close(m)
		}
	}
	s.shelved = nil
}
