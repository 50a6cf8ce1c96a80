package replay

import (
	"context"
	"time"

	"github.com/go-vram/vram"
)

// playWatched is playBare with the parts that slow a run down: the virtual clock, the kernels, the observer.
func (p *player) playWatched(ctx context.Context, round, first, last int) (int, error) {
	for i := first; i < last; i++ {
		if err := p.watchedStep(ctx, round, i); err != nil {
			return i, err
		}
	}
	return last, nil
}

func (p *player) watchedStep(ctx context.Context, round, i int) error {
	se, s := p.session, &p.program.steps[i]
	event := p.program.events[i]
	if se.clock != nil {
		se.clock.AdvanceTo(p.begun + time.Duration(se.trace.Micros[event])*time.Microsecond)
	}
	p.order.step()
	if p.group != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	failedBefore := p.failedCount
	var err error
	switch s.kind {
	case stepAlloc:
		err = p.alloc(ctx, s)
	case stepAllocShared:
		// Entered before the gate opens: a foreign free must find the range.
		if err = p.alloc(ctx, s); err == nil {
			err = p.entered(s)
		}
		if err == nil {
			se.gates[s.id].open()
		}
	case stepFree:
		err = p.watchedFree(s)
	case stepFreeForeign:
		if err = p.pass(ctx, se.gates[s.id], se.streams[s.stream]); err == nil {
			err = p.watchedFree(s)
		}
	}
	if s.kind == stepAlloc && err == nil {
		err = p.entered(s)
	}
	if se.observe != nil && err == nil {
		o := Observation{Round: round, Attempt: p.attempt, Index: event, Event: se.trace.Events[event], Buffer: se.buffers[s.id]}
		if p.failedCount > failedBefore {
			o.Err = vram.ErrOutOfMemory
		}
		se.observe(o)
	}
	return err
}

// watchedFree is free with the last use of the buffer on its stream before it.
func (p *player) watchedFree(s *step) error {
	se := p.session
	if se.missing[s.id] {
		return nil
	}
	stream := se.streams[s.stream].Handle()
	if se.clock != nil {
		if err := se.clock.Occupy(stream, se.lag); err != nil {
			return err
		}
	}
	if err := se.kernels.touch(se.buffers[s.id], stream, false); err != nil {
		return err
	}
	return p.free(s)
}

// entered has a kernel write a buffer that was allocated.
func (p *player) entered(s *step) error {
	se := p.session
	if se.missing[s.id] {
		return nil
	}
	return se.kernels.touch(se.buffers[s.id], se.streams[s.stream].Handle(), true)
}
