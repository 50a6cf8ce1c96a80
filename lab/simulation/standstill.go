package simulation

import (
	"context"

	"github.com/go-vram/vram/streams"
)

// mostRefusals is how often a caller of a standstill is refused until it stands still itself.
const mostRefusals = 3

// standstill has every stream's caller allocate until it has to wait, and refused callers stop: in the end all holders of
// memory wait, and each must be refused. Nobody may wait forever.
func (w *world) standstill(act action) {
	if !w.emptied(uint64(act.a)&^3, uint64(act.b)&^3) || w.fault != nil || w.lossy || w.unfinished() || w.waits() {
		return
	}
	e := w.era
	over, standing, begun := make(chan struct{}), 0, 0
	stand := func(s *stream) {
		resume := s.standStill()
		standing++
		w.wait([]<-chan struct{}{over})
		resume()
	}
	for i, s := range e.streams {
		if s.closing || s.closed {
			continue
		}
		begun++
		draw := mixed(uint64(act.c), uint64(i))
		w.start(mixed(uint64(act.number), uint64(i)|1<<62), "stand still", func() {
			if !s.shares { // else nobody knows whether it frees
				w.takeAll(s, draw)
			}
			stand(s)
		})
	}
	draw := uint64(act.b)
	for n := uint64(0); w.fault == nil; n++ {
		ready := w.runnable()
		if len(ready) == 0 {
			break
		}
		if n > settleLimit {
			w.broken("circles", "a standstill does not end: %v", w.labels())
			return
		}
		draw = mixed(draw, n)
		w.resumeAny(ready, draw)
	}
	if w.fault == nil && standing != begun {
		w.broken("wait", "everybody waits and nobody is refused: %d streams of %d stand still, and %v", standing, begun, w.labels())
	}
	w.report.Standstills++
	close(over)
	w.drain(draw)
}

// takeAll is a caller that takes memory and waits for it until it was refused often enough.
func (w *world) takeAll(s *stream, draw uint64) {
	var mine []*buffer
	for n, refusals := uint64(0), 0; refusals < mostRefusals; n++ {
		draw := mixed(draw, n)
		if draw%4 == 0 { // an input is waited for, or the like
			resume := s.Suspend()
			w.reach("suspended")
			resume()
		}
		want := streams.Request{Bytes: 1 + int64(draw>>8%uint64(max(w.era.limit.Load()/4, 1))), Wait: true}
		f := s.AllocAsync(context.Background(), want)
		p := w.expect(f.Cancel, nil)
		b, err := f.Await(context.Background())
		w.cease(p)
		switch got := w.answered(s, p, b, want.Bytes, 0, err); {
		case got != nil:
			mine = append(mine, got)
		case w.fault != nil:
			return
		default:
			refusals++
			if last := len(mine) - 1; last >= 0 && mine[last].held {
				w.free(mine[last], 0)
				mine = mine[:last]
			}
		}
	}
}
