package core

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-vram/vram/internal/fence/line"
	"github.com/go-vram/vram/internal/heap"
	"github.com/go-vram/vram/internal/sizeclass"
)

// sharer is a performer whose buffers are used by others, and what the reference knows of those that were freed.
type sharer struct {
	*performer
	t       *rapid.T
	all     []*line.Line
	pending []*kept
	placed  int // that were freed while a use had not passed
}

func newSharer(t *rapid.T, pageUnits uint32) *sharer {
	s := &sharer{performer: newPerformer(t, pageUnits), t: t}
	s.all, _ = newLines(t, s.w, 3)
	return s
}

// announce says of a buffer that is about to be freed who uses it.
func (s *sharer) announce(b *buffer) {
	k := &kept{b.from, b.units, map[*line.Line]uint64{}}
	use := func(l *line.Line) { k.until[l] = l.Next() }
	switch rapid.IntRange(0, 5).Draw(s.t, "use") {
	case 0:
		require.NoError(s.t, b.slot.Record(b.word, 1))
		use(s.all[1])
	case 1:
		require.NoError(s.t, b.slot.RecordLine(b.word, s.all[2]))
		require.NoError(s.t, b.slot.Record(b.word, 0))
		use(s.all[2])
		use(s.all[0])
	case 2:
		u, err := b.slot.Begin(b.word, s.all[0])
		require.NoError(s.t, err)
		require.NoError(s.t, u.End(s.all[0].Next()))
		use(s.all[0])
	case 3:
		moved, err := b.slot.Move(b.word, s.all[1], 0)
		require.NoError(s.t, err)
		b.word = moved
		use(s.all[1])
		s.find(b)
	default:
		return
	}
	if b.slot.Block < heap.None {
		s.placed++
	}
	s.pending = append(s.pending, k)
}

// find looks a live buffer up from all of its ends.
func (s *sharer) find(b *buffer) {
	for _, unit := range []uint32{b.from, b.from + b.units/2, b.from + b.units - 1} {
		slot, word, bytes, found := s.w.core.Lookup(s.w.core.addressOf(unit))
		require.True(s.t, found, "unit %d", unit)
		require.Same(s.t, b.slot, slot)
		require.Equal(s.t, b.word, word)
		require.Equal(s.t, int64(b.units)<<sizeclass.UnitShift, bytes)
	}
}

// hold says that what is used by others is nobody's, and is found by nobody.
func (s *sharer) hold() {
	var units uint64
	left := s.pending[:0]
	for _, k := range s.pending {
		if !k.waits() {
			continue
		}
		left = append(left, k)
		units += uint64(k.units)
		for u := k.from; u < k.from+k.units; u++ {
			if s.w.owners[u] != nobody {
				require.Fail(s.t, "a unit that is used is handed out, or not the stream's any more")
			}
		}
		_, _, _, found := s.w.core.Lookup(s.w.core.addressOf(k.from))
		require.False(s.t, found, "it was freed")
	}
	s.pending = left
	s.w.core.Drain()
	require.GreaterOrEqual(s.t, s.w.core.PendingBytes(), int64(units<<sizeclass.UnitShift))
}

// pass lets the uses of a stream come to their end.
func (s *sharer) pass(l *line.Line) {
	number := l.Begin()
	l.Took(number)
	l.Pass(number)
}

// Blocks of a plan that others use when they are freed: none is anybody's before the uses have passed, each is found
// while it lives, whatever the stream does with the plan meanwhile, and the books balance after each event.
func TestPlacesWithAnnouncedUses(t *testing.T) {
	t.Parallel()
	placed := 0
	rapid.Check(t, func(t *rapid.T) {
		step := drawStep(t)
		pageUnits := rapid.SampledFrom([]uint32{128, 512}).Draw(t, "page units")
		p := newSharer(t, pageUnits)
		if rapid.IntRange(0, 3).Draw(t, "room for a plan") > 0 {
			require.True(t, p.w.grant(0, worldUnits/pageUnits))
		}
		late := rapid.Bool().Draw(t, "the directory is made while the plan is played")
		if !late {
			p.w.core.Lookup(worldBase)
		}
		const learned = 12 // laps
		for lap := range learned + 7 {
			if lap == learned {
				p.freeing = p.announce
			}
			for _, r := range step {
				if lap < learned {
					p.request(r)
					continue
				}
				switch rapid.IntRange(0, 60).Draw(t, "event") {
				case 0:
					p.w.core.YieldPlan()
				case 1:
					p.w.back(p.w.core.Surrender(^uint32(0), false))
				case 2:
					p.w.back(p.w.core.Spare(^uint32(0), false))
				case 3:
					p.w.core.SetSettings(Settings{Tape: rapid.IntRange(0, 3).Draw(t, "tape") > 0})
				case 4:
					p.tick()
				case 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20:
					p.pass(p.all[rapid.IntRange(0, 2).Draw(t, "line")])
				}
				p.request(r)
				p.hold()
				p.w.check()
				p.find(p.w.any(t))
			}
			p.tick()
		}
		placed += p.placed
		for _, b := range p.w.live {
			p.find(b)
		}
		p.w.checkLive()
		if rapid.Bool().Draw(t, "closed first") {
			p.w.close()
			p.w.check()
		}
		for _, l := range p.all {
			p.pass(l)
		}
		p.w.finish(false)
	})
	require.Positive(t, placed, "no place was ever used by others")
}
