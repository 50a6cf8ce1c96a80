package simulation

import "github.com/go-vram/vram/internal/sizeclass"

// note is a request of a step: its length, and how many requests later it is freed.
type note struct {
	bytes int64
	life  int
}

// score is a step that callers play again and again, as training does.
type score []note

// scoreCount is how many there are. More than one, so that none is all that a stream sees.
const scoreCount = 2

// newScore draws a step whose lengths differ, of which up to a quarter of the limit lives at once, if that is no smaller than a
// few blocks beyond the classes.
func (s *shape) newScore(draw uint64) score {
	notes := make(score, 16+draw%25)
	spread := uint64(max(32, s.limitBytes/24/sizeclass.UnitBytes))
	for i := range notes {
		d := mixed(draw, uint64(i))
		notes[i] = note{sizeclass.MaxBytes + sizeclass.UnitBytes*int64(1+d%spread), 1 + int(d>>32%6)}
	}
	return notes
}

func (s *shape) score(draw uint32) score { return s.scores[draw%scoreCount] }

// stepped is a caller that plays a step a few times, with differences or without, while time advances.
func (w *world) stepped(s *stream, act action) func() {
	strays := act.c%3 > 0
	return func() { w.playScore(s, w.shape.score(act.b), int(1+act.c/4%4), uint64(act.c), strays) }
}

// rehearsed lets a stream play its step by itself, until callers may take blocks back, and then a few times with differences.
func (w *world) rehearsed(act action) {
	e := w.era
	w.settle(uint64(act.a))
	if w.fault != nil || e.closing || len(e.streams) == 0 {
		return
	}
	s := w.anyStream(act.a)
	if s.closing || w.capturedAny() {
		return
	}
	w.do("rehearse", func() {
		w.playScore(s, w.shape.score(act.b), 14, uint64(act.c), false)
		w.playScore(s, w.shape.score(act.b), int(1+act.c%5), uint64(act.c), true)
	})
	w.report.Rehearsed++
}

// playScore plays a step so many times, with a tick after each. One request in thirty strays: it is left out, has another
// length, changes places with the next one, is made twice, or lives longer.
func (w *world) playScore(s *stream, notes score, rounds int, draw uint64, strays bool) {
	ends := map[int][]*buffer{} // by the number of the request before which they are freed
	at := 0
	end := func(due []*buffer) {
		for _, b := range due {
			if b.held { // nobody else has freed it
				w.free(b, uint32(draw)) //nolint:gosec // some of it
			}
		}
	}
	request := func(n note) {
		end(ends[at])
		delete(ends, at)
		b, err := s.Alloc(n.bytes)
		if got := w.answered(s, nil, b, n.bytes, 0, err); got != nil {
			ends[at+n.life] = append(ends[at+n.life], got)
		}
		at++
	}
	for round := 0; round < rounds && !s.closing; round++ {
		for i := 0; i < len(notes) && !s.closing; i++ {
			n := notes[i]
			d := mixed(draw, uint64(round)<<16|uint64(i)) //nolint:gosec // small
			if strays && d%30 == 0 {
				switch d / 30 % 5 {
				case 0:
					continue
				case 1:
					n.bytes = n.bytes/2 + sizeclass.MaxBytes
				case 2:
					if i+1 < len(notes) {
						request(notes[i+1])
						i++
					}
				case 3:
					request(n)
				case 4:
					n.life += len(notes)
				}
			}
			request(n)
		}
		s.Tick()
	}
	for ; len(ends) > 0; at++ {
		end(ends[at])
		delete(ends, at)
	}
}
