package core

const (
	// quiescentShare is the part of the live peak below which almost nothing lives: an eighth. Not
	// larger: a loop whose phases use more would close what it needs at once again. Not smaller:
	// weights that stay may be as much.
	quiescentShare = 8
	// quiescentTurns is how many requests must have taken a turn since the last sweep: a sweep looks
	// at every magazine. Not fewer: a program with one buffer at a time is quiescent after each. Not
	// more: short rounds would miss their moment.
	quiescentTurns = 128
)

// quiescence notices that almost all buffers are gone: a step has ended, and what the next one allocates
// first should find long ranges. A free slot in the middle of a range cuts it in two for as long as the
// blocks beside it live.
type quiescence struct {
	belowUnits uint64 // quiescent with fewer units in use; 0: not armed since the last sweep
	turns      uint64 // when the last sweep was
}

// arm prepares the next sweep once the use has risen well above the threshold.
func (q *quiescence) arm(usedUnits, peakUnits uint64) {
	if q.belowUnits == 0 && usedUnits > peakUnits/quiescentShare*2 {
		q.belowUnits = peakUnits / quiescentShare
	}
}

// due reports whether it is time to sweep, and then counts from anew.
func (q *quiescence) due(usedUnits, turns uint64) bool {
	if usedUnits >= q.belowUnits || turns-q.turns < quiescentTurns {
		return false
	}
	q.belowUnits, q.turns = 0, turns
	return true
}
