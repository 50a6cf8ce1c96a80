package simulation

import (
	"errors"

	poolcore "github.com/go-vram/vram/pool/core"
	"github.com/go-vram/vram/streams/magazine"
)

// closer is a caller inside Stream.Close.
type closer struct {
	w      *world
	stream *stream
	stage  int
	open   bool // a letter of the closer's is not received yet
	synced bool
}

// close begins Stream.Close.
func (w *world) close(s *stream) {
	if s.shut {
		return
	}
	s.shut = true
	w.closers = append(w.closers, &closer{w: w, stream: s})
}

// ready reports whether the closer can go on: it waits for its letters and for fences to be recorded.
func (c *closer) ready() bool {
	return !c.open && (c.stage != 4 || c.stream.records == 0) && c.stage < 5
}

// order posts a letter that the closer waits for.
func (c *closer) order(name string, receive func()) {
	c.open = true
	done := func() { c.open = false }
	c.w.post(&c.stream.actor, letter{name: name, receive: func() { receive(); done() }, fail: done})
}

// advance makes the next step of the close.
func (c *closer) advance() {
	w, s := c.w, c.stream
	w.note("close of stream %d: stage %d", s.id, c.stage)
	c.stage++
	switch c.stage {
	case 1:
		c.order("close", func() {
			s.draining = true
			for len(s.waiting) > 0 {
				if r := s.take(s.waiting[0].token); !r.answered {
					r.refuse(errClosed)
				}
			}
			s.core.Close()
		})
	case 2:
		c.synced = w.device.StreamSynchronize(s.handle) == nil
	case 3:
		if c.synced {
			c.order("trim", func() {
				s.synced = true
				s.giveUp()
			})
		}
	case 4:
		w.pool.tell(poolcore.Leave{Client: s.id, Synced: c.synced}, noMark)
	case 5:
		s.destroyed = true
		w.must(w.watch.StreamDestroy(s.handle), "destroy")
	}
}

// finish closes everything, and holds the end against what must be then.
func (w *world) finish() error {
	if w.chance(50) {
		w.settle()
	}
	early := w.chance(50) // the driver keeps failing during the close
	if !early {
		w.faults.Clear()
	}
	for _, s := range w.streams {
		w.close(s)
	}
	w.run(func() bool {
		for _, c := range w.closers {
			if c.stage < 5 {
				return false
			}
		}
		return true
	})
	w.closing = true
	w.must(w.watch.CtxSynchronize(), "synchronise")
	for _, s := range w.streams {
		w.post(&s.actor, letter{name: "end", receive: s.core.End})
		for len(s.mail) > 0 {
			w.receive(&s.actor)
		}
		w.end(&s.actor)
	}
	injected, ended := w.faults.Injected(), false
	w.pool.ask("close", func(token uint64) poolcore.Message { return poolcore.Close{Token: token} }, func(_ int64, err error) {
		ended = true
		if err != nil && w.faults.Injected() == injected && w.pool.core.LostBytes() == 0 {
			w.broken("close without a failure of the driver: %w", err)
		}
	})
	w.run(func() bool { return ended })
	w.end(&w.pool.actor)
	w.faults.Clear()
	for w.fault == nil && w.machinery() { // what was still to be performed
		continue
	}
	w.ended()
	return w.fault
}

// run lets what is under way go on until done says so.
func (w *world) run(done func() bool) {
	for n := 0; !done() && w.fault == nil; n++ {
		if !w.machinery() && !done() {
			w.broken("it hangs: nothing is under way, pool %v", w.pool.core)
		}
		if n > settleLimit {
			w.broken("it goes in circles: pool %v", w.pool.core)
		}
	}
}

// ended is what must hold after the close of the device.
func (w *world) ended() {
	if w.fault != nil {
		return
	}
	if n := len(w.requests); n > 0 {
		w.broken("%d requests were never answered", n)
	}
	for _, e := range w.pool.waiting {
		w.broken("a %s was never answered", e.name)
	}
	if used, lost := w.usedBytes(), w.pool.core.LostBytes(); used != lost {
		w.broken("%d bytes are in use after the close, %d of them lost", used, lost)
	}
	for _, s := range w.streams {
		for _, b := range s.held {
			if err := b.slot.Free(b.word); !errors.Is(err, magazine.ErrClosed) {
				w.broken("free after the end says %v", err)
			}
		}
	}
	w.must(w.watch.Audit(), "audit")
	if w.usedBytes() == 0 {
		w.must(w.device.MemAddressFree(w.base, int64(w.shape.arenaPages)*w.shape.pageBytes), "arena")
	}
}
