package core

const (
	// quiescentShare is the divisor of the live peak below which almost nothing lives: an eighth. Not larger
	// a part: a loop whose phases use more would immediately close magazines that it needs. Not smaller: permanent
	// weights may take as much.
	quiescentShare = 8
	// quiescentTurns is the minimum number of requests by turn between sweeps; a sweep visits every magazine.
	// Not fewer: a program with one buffer at a time is quiescent after each. Not more: short rounds would
	// miss their sweep.
	quiescentTurns = 128
)

// quiescence detects that almost all buffers are freed: a step has ended, and the first allocations of the
// next one should find long ranges. A free slot in the middle of a range splits it while the neighbouring
// blocks live.
type quiescence struct {
	belowUnits uint64 // quiescent with fewer units in use; 0: not armed since the last sweep
	turns      uint64 // at the last sweep
}

// arm prepares the next sweep once usage exceeds twice the threshold.
func (q *quiescence) arm(usedUnits, peakUnits uint64) {
	if q.belowUnits == 0 && usedUnits > peakUnits/quiescentShare*2 {
		q.belowUnits = peakUnits / quiescentShare
	}
}

// due reports whether a sweep is due, and if so restarts the count.
func (q *quiescence) due(usedUnits, turns uint64) bool {
	if usedUnits >= q.belowUnits || turns-q.turns < quiescentTurns {
		return false
	}
	q.belowUnits, q.turns = 0, turns
	return true
}
