package tape

const (
	// gramLength is the number of sizes by which a place in a sequence is recognised. Six predicted best on real
	// traces: fewer occur in many places, more are seldom whole where steps differ a little.
	gramLength = 6
	// phraseLength is the number of sizes by which a lag is found: more than a gram has, since inside a step many grams
	// come again. Not more: of two steps that differ in one request of fifty, half of the phrases are the same.
	phraseLength = 16
	// leastStep is the shortest step. Not smaller: magazines serve a loop of a few sizes with less work.
	leastStep = 16
	// driftReach is how many requests a step may be longer or shorter than the one before at one place.
	driftReach = 8
	// shiftProof is how many requests must match for that.
	shiftProof = 3
	// driftLimit is the number of requests in a row that may differ before the lag is given up.
	driftLimit = 2 * gramLength
	// latchTries and latchLimit bound what is looked at for a new lag: occurrences of the last sizes, and requests before
	// each. Not fewer: the loop that goes round an inner one is as many occurrences away as the inner one repeats, and
	// only what came before it tells them apart. Not more: a sequence that hardly repeats looks often.
	latchTries = 32
	latchLimit = 2048
	// strayShare bounds the requests that differ at a lag that is kept: one in so many.
	strayShare = 8
	// exactShare bounds those that differ between two steps of which a plan is made: one in so many. Not smaller: a plan of
	// real traces with one allocation of fifty changed places four of five requests, and those that it does not place have
	// the stream hold up to three percent more. Not larger: a step may begin or end with something else.
	exactShare = 64
	// closedShare says how much less or more may live after a step than before: one in so many of the units.
	closedShare = 64

	hashFactor = 0x9E3779B97F4A7C15
)

// What a size that leaves the hash of a gram or a phrase counts there: factors to the power of their length.
const (
	hashFactor2  = hashFactor * hashFactor % (1 << 64)
	hashFactor4  = hashFactor2 * hashFactor2 % (1 << 64)
	hashFactor8  = hashFactor4 * hashFactor4 % (1 << 64)
	gramFactor   = hashFactor4 * hashFactor2 % (1 << 64)
	phraseFactor = hashFactor8 * hashFactor8 % (1 << 64)
)

// finder finds the lag at which a sequence repeats.
//
// A lag that matches is kept: the lag of an inner loop ends with the loop. What comes then has come before where the
// outer loop was at the same place, and that lag has matched for longest.
type finder struct {
	history
	index []uint32 // by hash: the position of the last size of the last phrase with it
	hash  uint64

	least     uint32 // shortest lag that is looked for, where that is more than leastStep
	lag       uint32 // 0: none
	good, bad uint32 // requests since the lag began that matched, and that did not
	missed    uint32 // in a row
}

// observe notes a request and looks whether the sequence repeats.
func (f *finder) observe(units uint32) (position uint32) {
	position = f.note(units)
	f.roll(position, units)
	if len(f.index) < len(f.ring) {
		f.reindex()
	}
	slot := &f.index[f.hash>>32&uint64(len(f.index)-1)]
	f.at(position).before = *slot
	*slot = position
	if f.lag != 0 {
		f.track(position, units)
	}
	if f.lag == 0 || f.missed >= driftLimit/2 {
		f.latch(position)
	}
	return position
}

// latch takes the lag that has matched for longest, of those at which the last phrase came before.
func (f *finder) latch(position uint32) {
	var best, bestLag uint32
	least := max(leastStep, f.least)
	at := position
	for range latchTries {
		before := f.at(at).before
		if before == 0 || !f.has(before) || position-before <= position-at {
			break // not remembered any more
		}
		at = before
		if lag := position - at; lag >= least {
			if count := f.repeats(lag, latchLimit); count > best {
				best, bestLag = count, lag
			}
		}
	}
	if best < phraseLength { // hashes met
		return
	}
	if f.lag == 0 || max(bestLag, f.lag)-min(bestLag, f.lag) > 2*driftReach { // else the same step has drifted
		f.good, f.bad = best, 0
	}
	f.lag, f.missed = bestLag, 0
}

func (f *finder) roll(position, units uint32) {
	f.hash = f.hash*hashFactor + uint64(units)
	if out := position - phraseLength; f.has(out) {
		f.hash -= uint64(f.at(out).units) * phraseFactor
	}
}

// reindex makes the index as long as the history. The old grams are found again when they recur.
func (f *finder) reindex() { f.index = make([]uint32, len(f.ring)) }

// track follows the lag by one request.
func (f *finder) track(position, units uint32) {
	if f.has(position-f.lag) && f.at(position-f.lag).units == units {
		f.good++
		f.missed = 0
		return
	}
	f.bad++
	f.missed++
	if f.missed > 1 {
		for d := uint32(1); d <= driftReach; d++ {
			if f.shift(f.lag+d) || f.lag > d+leastStep && f.shift(f.lag-d) {
				return
			}
		}
	}
	if f.missed > driftLimit || f.bad > f.good/strayShare+driftLimit {
		f.lag = 0
	}
}

// shift takes another lag if the last requests match it.
func (f *finder) shift(lag uint32) bool {
	if f.repeats(lag, shiftProof) < shiftProof {
		return false
	}
	f.lag, f.missed = lag, 0
	return true
}

// found reports whether the last lag requests are a step that came twice.
func (f *finder) found() bool {
	if f.lag == 0 || f.missed != 0 || f.good+f.bad < f.lag || f.bad > f.good/exactShare {
		return false
	}
	last := f.next - 1
	if !f.has(last - 2*f.lag) {
		return false
	}
	before, now := f.at(last-f.lag).liveUnits, f.at(last).liveUnits
	most := max(before, now)
	return most-min(before, now) <= most/closedShare
}

// again makes found look at the next repetition.
func (f *finder) again() { f.good, f.bad = 0, 0 }

// restart forgets all that was observed.
func (f *finder) restart() {
	f.history.restart()
	f.hash, f.lag, f.missed = 0, 0, 0
}
