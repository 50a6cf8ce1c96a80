package replay

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/go-vram/vram"
)

// contextStride is how many steps go by between two looks at the context. Not smaller: the look must
// not show in the time. Not larger: a cancel should end a slow run within milliseconds.
const contextStride = 4096

// gateLooks is how often a foreign free looks at its gate before it parks: parking costs about as
// much as this many yields.
const gateLooks = 32

// errStop ends a round at its first failed allocation where nothing but survival is asked for.
var errStop = errors.New("replay: stopped at the first failed allocation")

// player plays one program over and over. It is used by one goroutine at a time; it shares buffers and missing with the other
// players, each of which accesses its own ids, and foreign ones after a gate.
type player struct {
	number  int
	program program
	session *session
	order   *interleave   // nil: the scheduler's
	resume  func()        // it has come to the end of the round; nil where that is not told
	begun   time.Duration // when its round did, or its copy's attempt at it, on the virtual clock

	failedCount int // allocations that found no memory, or were refused as deadlocks, in this round
	deadlocked  int // of them: refused as deadlocks
	attempt     int // at the round, of its copy: from 0
	taken       int // steps of the program, in this attempt

	group *group                  // the players of its copy, where copies wait; nil otherwise
	stop  context.CancelCauseFunc // ends the attempt; guarded by groups.mu
}

// play runs all steps once. The loop is kept bare: playWatched has the rest.
func (p *player) play(ctx context.Context, round, attempt int) error {
	p.attempt, p.taken = attempt, 0
	p.order = newInterleave(p.session.seed, p.number, round, attempt)
	watched := p.session.watched()
	for first := 0; first < len(p.program.steps); first += contextStride {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		last := min(first+contextStride, len(p.program.steps))
		var at int
		var err error
		if watched || p.session.waits() {
			at, err = p.playWatched(ctx, round, first, last)
		} else {
			at, err = p.playBare(ctx, first, last)
		}
		p.taken = at
		if err != nil {
			return p.session.at(round, p.program.events[at], err)
		}
	}
	return nil
}

// suspend says that nothing is freed on the player's stream until resume is called, which any other player may bring about.
func (p *player) suspend() {
	all := p.session.streams
	p.resume = all[p.number].Suspend(slices.Concat(all[:p.number], all[p.number+1:])...)
}

// playBare runs steps first to last; on failure the first answer says which step failed.
func (p *player) playBare(ctx context.Context, first, last int) (int, error) {
	steps := p.program.steps[:last]
	streams, buffers := p.session.streams, p.session.buffers
	for i := first; i < len(steps); i++ {
		s := &steps[i]
		switch s.kind {
		case stepAlloc:
			b, err := streams[s.stream].Alloc(s.bytes)
			if err != nil {
				if err := p.failed(s, err); err != nil {
					return i, err
				}
			}
			buffers[s.id] = b
		case stepFree:
			if err := buffers[s.id].Free(); err != nil && !p.session.missing[s.id] {
				return i, fmt.Errorf("free of %d bytes: %w", s.bytes, err)
			}
		case stepAllocShared, stepFreeForeign:
			if err := p.shared(ctx, s); err != nil {
				return i, err
			}
		}
	}
	return last, nil
}

// shared runs a step of a buffer that another player shares.
func (p *player) shared(ctx context.Context, s *step) error {
	if s.kind == stepAllocShared {
		if err := p.alloc(ctx, s); err != nil {
			return err // who stands at the gate hears of it by the context
		}
		p.session.gates[s.id].open()
		return nil
	}
	if err := p.pass(ctx, p.session.gates[s.id], p.session.streams[s.stream]); err != nil {
		return err
	}
	return p.free(s)
}

// alloc and free are one step by themselves, for the paths where a call more does not matter.
func (p *player) alloc(ctx context.Context, s *step) error {
	var b vram.Buffer
	var err error
	if p.session.wait {
		b, err = p.allocWaiting(ctx, s)
	} else {
		b, err = p.session.streams[s.stream].Alloc(s.bytes)
	}
	if err != nil {
		err = p.failed(s, err)
	}
	p.session.buffers[s.id] = b
	return err
}

func (p *player) free(s *step) error {
	if p.session.missing[s.id] {
		return nil
	}
	if err := p.session.buffers[s.id].Free(); err != nil {
		return fmt.Errorf("free of %d bytes: %w", s.bytes, err)
	}
	return nil
}

// failed counts an allocation that found no memory, or was refused as a deadlock; every other error goes up.
func (p *player) failed(s *step, err error) error {
	if !isShort(err) {
		return fmt.Errorf("allocation of %d bytes on stream %d: %w", s.bytes, s.stream, err)
	}
	p.failedCount++
	if errors.Is(err, vram.ErrWouldDeadlock) {
		p.deadlocked++
	}
	p.session.missing[s.id] = true
	if p.session.stopAtFailure {
		return errStop
	}
	return nil
}

// pass waits until the gate is open, which the player of a stream opens.
func (p *player) pass(ctx context.Context, g *gate, opener *vram.Stream) error {
	for range gateLooks {
		if g.passable.Load() {
			return nil
		}
		runtime.Gosched()
	}
	if p.session.wait {
		defer g.stand(p.session.streams[p.number], opener)()
	}
	select {
	case <-g.opened:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
