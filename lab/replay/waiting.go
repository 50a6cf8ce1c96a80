package replay

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"

	"github.com/go-vram/vram"
)

// WaitFigures counts the results of the allocations that waited, over all rounds.
type WaitFigures struct {
	WaitCount     uint64 `json:"waits"`
	DeadlockCount uint64 `json:"deadlocks"` // waits that were refused with vram.ErrWouldDeadlock
	RestartCount  uint64 `json:"restarts"`  // rounds that a copy restarted after a refusal as a deadlock
	LongestWaitNs int64  `json:"longest_wait_ns"`
}

// allocWaiting allocates and waits for other players' frees. It returns a refusal as a deadlock if no other copy plays;
// otherwise the copy gives up its round.
func (p *player) allocWaiting(ctx context.Context, s *step) (vram.Buffer, error) {
	gs := p.session.groups
	for {
		freedCount := gs.freedCount()
		b, err := p.session.streams[s.stream].AllocFor(ctx, vram.Request{Bytes: s.bytes, Wait: true})
		if err == nil || !errors.Is(err, vram.ErrWouldDeadlock) {
			return b, causeOf(ctx, err)
		}
		switch v, changed := gs.refused(p, freedCount); v {
		case fails:
			return b, err
		case givesUp, stops:
			return b, errGaveUp
		case awaits:
			select {
			case <-changed:
			case <-ctx.Done():
				return b, context.Cause(ctx)
			}
		case again:
		}
	}
}

// causeOf is an error of a call, or why its context has ended.
func causeOf(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// isShort reports whether an allocation has found no memory.
func isShort(err error) bool {
	return errors.Is(err, vram.ErrOutOfMemory) || errors.Is(err, vram.ErrTooLarge) || errors.Is(err, vram.ErrWouldDeadlock)
}

// standing is a player that waits for another at a gate. The player that opens the gate resumes it first.
type standing struct{ resume func() }

// stand records that a player waits at the gate, and returns a function to end that.
func (g *gate) stand(s, opener *vram.Stream) (resume func()) {
	resume = s.Suspend(opener)
	g.waiting.Store(&standing{resume})
	if g.passable.Load() { // opened since: nobody else may have seen it
		resume()
	}
	return resume
}

// release resumes the player that waits at the gate.
func (g *gate) release() {
	if w := g.waiting.Load(); w != nil {
		w.resume()
	}
}

// interleave lets other players go first at times, as the seed has it.
type interleave struct{ random *rand.Rand }

// newInterleave returns the interleaving of one player in one attempt at a round; nil without a seed.
func newInterleave(seed uint64, player, round, attempt int) *interleave {
	if seed == 0 {
		return nil
	}
	return &interleave{rand.New(rand.NewPCG(seed, uint64(attempt)<<48|uint64(player)<<32|uint64(round)))} //nolint:gosec // reproducible is the point, and all are positive
}

// mostYields is how often a player lets others go first at a step, at most; one step in sixteen does.
const mostYields = 64

func (i *interleave) step() {
	if i == nil || i.random.IntN(16) > 0 {
		return
	}
	for range i.random.IntN(mostYields) {
		runtime.Gosched()
	}
}
