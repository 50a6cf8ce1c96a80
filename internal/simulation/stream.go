package simulation

import (
	"fmt"
	"slices"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/fence"
	poolcore "github.com/go-vram/vram/pool/core"
	streamcore "github.com/go-vram/vram/streams/core"
	"github.com/go-vram/vram/streams/magazine"
)

// noMark stands for a return whose uses have all finished.
var noMark fence.Mark //nolint:gochecknoglobals // an identity, never written

// stream is the shell of a stream's core.
type stream struct {
	w *world
	actor
	id     poolcore.Client
	handle cudadrv.Stream
	cache  magazine.Cache
	core   *streamcore.Core

	waiting   []*request // for the pool's answer
	lastToken uint64
	lastFence poolcore.Fence
	records   int // fences that turns have ordered and performers not recorded yet
	draining  bool
	synced    bool
	shut      bool // callers were told that it closes
	destroyed bool

	// What callers know.
	held             []*buffer // live
	stale            []handle  // freed
	counts, reported counts
}

type counts struct{ allocs, frees, magazine, ranges, refill uint64 }

// buffer is a live allocation.
type buffer struct {
	handle
	stream *stream
	span   span
}

// handle is what a caller holds.
type handle struct {
	slot *magazine.Slot
	word uint64
}

func (w *world) openStream() {
	h, err := w.watch.StreamCreate()
	if err != nil {
		w.broken("stream: %w", err)
		return
	}
	s := &stream{w: w, id: poolcore.Client(len(w.streams) + 1), handle: h}
	s.name = fmt.Sprintf("stream %d", s.id)
	budget := streamcore.Budget{}
	if w.chance(25) {
		budget.CacheBytes = w.shape.pageBytes * int64(1+w.random.IntN(6))
	}
	if w.chance(15) {
		budget.CacheRanges = 1 + w.random.IntN(4)
	}
	s.core = streamcore.New(streamcore.Config{Base: w.base, PageBytes: w.shape.pageBytes, Budget: budget}, &s.cache, s)
	w.streams = append(w.streams, s)
	w.pool.clients[s.id] = s
	w.pool.tell(poolcore.Join{Client: s.id}, noMark)
}

// Wake implements magazine.Waker.
func (s *stream) Wake() {
	s.w.post(&s.actor, letter{name: "woken", receive: s.giveUp})
}

// serve answers a request, or sends it to the pool and keeps it.
func (s *stream) serve(r *request) {
	if r.answered {
		return
	}
	if s.draining {
		r.refuse(errClosed)
		return
	}
	slot, pages := s.core.Alloc(max(r.bytes, 1), r.hint)
	if slot != nil {
		s.complete(r, slot)
		return
	}
	s.lastToken++
	r.token = s.lastToken
	s.waiting = append(s.waiting, r)
	s.core.Wait(r.bytes)
	refill := poolcore.Refill{Client: s.id, Token: r.token, Pages: pages, LiveBytes: s.core.LiveBytes(), Bytes: r.bytes}
	s.left = append(s.left, func() { s.w.pool.tell(refill, noMark) })
}

func (s *stream) complete(r *request, slot *magazine.Slot) {
	s.core.Served(r.token != 0)
	if r.answered {
		s.core.Undo(slot)
		return
	}
	if r.token != 0 {
		s.counts.refill++
	} else {
		s.counts.ranges++
	}
	r.answer(slot)
	s.shed()
}

func (s *stream) take(token uint64) *request {
	for i, r := range s.waiting {
		if r.token == token {
			s.waiting = slices.Delete(s.waiting, i, i+1)
			s.core.Wait(-r.bytes)
			return r
		}
	}
	return nil
}

// grantedBy is the pool's answer, or what goes home, or what the stream had to keep.
func (s *stream) grantedBy(token uint64, runs []poolcore.Run, kept bool) {
	s.w.post(&s.actor, letter{
		name: fmt.Sprintf("granted %d %v", token, runs),
		receive: func() {
			for _, r := range runs {
				s.core.Grant(streamcore.Run(r))
				s.w.underway -= int64(r.Pages)
			}
			s.giveUp()
			if r := s.take(token); r != nil {
				s.serve(r)
			} else if !kept && !s.draining {
				s.shed()
			}
		},
		fail: func() {
			if s.synced {
				s.w.pool.tell(poolcore.Return{Client: s.id, Runs: runs}, noMark)
				return
			}
			if !s.w.closing { // with the device the pages go, too
				s.w.broken("a grant to a stream that ended without being closed")
			}
		},
	})
}

func (s *stream) denied(token uint64, err error) {
	s.w.post(&s.actor, letter{name: fmt.Sprintf("denied %d", token), receive: func() {
		r := s.take(token)
		if r == nil || r.answered {
			return
		}
		if !s.draining {
			if slot, _ := s.core.Alloc(max(r.bytes, 1), r.hint); slot != nil {
				s.complete(r, slot)
				return
			}
		}
		r.refuse(err)
	}})
}

// askedBy is the pool's wish for what the stream does not use.
func (s *stream) askedBy() {
	s.w.post(&s.actor, letter{
		name:    "asked",
		receive: s.surrender,
		fail:    func() { s.w.pool.tell(poolcore.Return{Client: s.id, Answer: true}, noMark) },
	})
}

func (s *stream) surrender() {
	var runs []streamcore.Run
	if !s.draining || s.synced {
		runs = s.core.Surrender(^uint32(0))
	}
	s.giveBack(runs, poolcore.Return{Answer: true})
}

// tick is what is due without a request.
func (s *stream) tick() {
	if s.over {
		return
	}
	s.core.Drain()
	if s.draining {
		s.giveUp()
	} else {
		s.shed()
	}
	s.w.detach(&s.actor)
}

func (s *stream) shed() {
	if s.core.Over() {
		s.giveBack(s.core.Excess(), poolcore.Return{})
	}
}

// giveUp returns what came home to a closed stream once the device has finished its work.
func (s *stream) giveUp() {
	if !s.synced {
		return
	}
	s.giveBack(s.core.Return(), poolcore.Return{})
	if s.core.HeldBytes() == 0 {
		s.left = append(s.left, func() { s.w.end(&s.actor) })
	}
}

// giveBack leaves a Return as an effect, if there is something to say.
func (s *stream) giveBack(runs []streamcore.Run, r poolcore.Return) {
	if len(runs) == 0 && !r.Answer {
		return
	}
	for _, run := range runs {
		r.Runs = append(r.Runs, poolcore.Run(run))
		s.w.underway += int64(run.Pages)
	}
	r.Client, r.LiveBytes = s.id, s.core.LiveBytes()
	if len(runs) > 0 && !s.synced {
		s.lastFence++
		r.Fence = s.lastFence
		s.records++
	}
	var mark fence.Mark
	s.left = append(s.left, func() { mark = s.record(&r) }, func() { s.w.pool.tell(r, mark) })
}

// record takes the fence of a return, or waits for the device instead, or keeps the pages.
func (s *stream) record(r *poolcore.Return) fence.Mark {
	if r.Fence == 0 {
		return noMark
	}
	s.records--
	mark, err := s.w.fences.Record(s.handle)
	if err == nil {
		s.w.note("stream %d records fence %d", s.id, r.Fence)
		return mark
	}
	if s.destroyed {
		s.w.broken("a record on a destroyed stream")
	}
	if s.w.device.StreamSynchronize(s.handle) == nil {
		r.Fence = 0
		return noMark
	}
	s.w.report.Kept++
	runs := r.Runs
	r.Runs, r.Fence = nil, 0
	s.grantedBy(0, runs, true)
	return noMark
}
