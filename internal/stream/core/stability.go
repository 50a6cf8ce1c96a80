package core

import (
	"math"

	"github.com/go-vram/vram/internal/stream/magazine"
)

const (
	// stableTurns is the minimum of requests that must have taken a turn since the pool was needed last;
	// else as many as until then. Not fewer: the first pass of a loop still decides how much memory is
	// held, and a block that is taken back before it was merged cuts the range around it. Not more: short
	// programs would never come to it.
	stableTurns = 256
	// stableFactor is after how many times as many a stream is stable without having been quiescent. Not
	// fewer: a step that begins with other places than it goes on with needs more than either; traces
	// grew by up to two percent in their third round.
	stableFactor = 4
)

// stability reports when callers may pop the freed list directly (magazine.Cache.TakeBack): the stream
// needed no pool memory for a whole step, so speed matters more than placement. It also says up to which
// length: what magazines may hold, for the same reason.
type stability struct {
	owner     *magazine.Owner
	usage     *usage
	retention *retention
	wanted    *wanted
	at        uint64 // turns; the highest number once the stream is stable
}

// restart has every freed block come home first: the pool was needed.
func (s *stability) restart(turns uint64) {
	s.at = turns + max(turns, stableTurns)
	s.owner.LetTakeBack(0)
}

// due reports whether it is time to look whether the stream is stable.
func (s *stability) due(turns uint64) bool { return turns >= s.at }

// begin lets callers pop the list once the stream is quiescent, unless each of them must be seen.
func (s *stability) begin(turns uint64) {
	if !s.usage.quiescent() && turns/stableFactor < s.at {
		return
	}
	s.at = math.MaxUint64
	if !s.usage.exact && !s.wanted.on {
		s.owner.LetTakeBack(uint32(min(s.retention.limit(), math.MaxUint32))) //nolint:gosec // bounded
	}
}
