package core

import (
	"math"

	"github.com/go-vram/vram/internal/stream/magazine"
)

const (
	// stableTurns is the minimum number of requests by turn since the pool was last needed; the requirement
	// grows to the number of turns until then. Not fewer: the first pass of a loop still decides how much
	// memory the stream holds, and a block that is reused before it was merged splits the range around it.
	// Not more: short programs would never reach it.
	stableTurns = 256
	// stableFactor is the multiple of those turns after which a stream is stable without having been
	// quiescent. Not fewer: a step that starts with different placement than it continues with needs more
	// than either; traces grew by up to two percent in their third round.
	stableFactor = 4
)

// stability reports when callers may pop the freed list directly (magazine.Cache.TakeBack): the stream needed
// no pool memory for a whole step, so speed matters more than placement. It also bounds the length of such
// blocks by the limit of the magazines, for the same reason.
type stability struct {
	owner     *magazine.Owner
	usage     *usage
	retention *retention
	wanted    *wanted
	at        uint64 // turns; the maximum once the stream is stable
}

// restart makes every freed block pass the owner again: the pool was needed.
func (s *stability) restart(turns uint64) {
	s.at = turns + max(turns, stableTurns)
	s.owner.LetTakeBack(0)
}

// begin lets callers pop the list once the stream is quiescent, unless every free must wake the owner.
func (s *stability) begin(turns uint64) {
	if !s.usage.quiescent() && turns/stableFactor < s.at {
		return
	}
	s.at = math.MaxUint64
	if !s.usage.exact && !s.wanted.on {
		s.owner.LetTakeBack(uint32(min(s.retention.limit(), math.MaxUint32))) //nolint:gosec // bounded
	}
}
