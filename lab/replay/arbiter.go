package replay

import "slices"

// arbiter decides which copy of a trace gives up its round where a wait was refused as a deadlock, and when that copy plays it
// again. It knows the copies by their numbers only.
//
// There is no livelock. The last copy that plays does not give up, so that one always comes to the end of its round; a copy
// that has come to the end plays no more in this round; and one that gave up plays again only after another has come to the
// end. Between two ends each copy gives up at most once, and so n copies give up at most n(n-1)/2 times in a round.
//
// Invariant: at most one copy is stopping, and while one stands aside another plays.
type arbiter struct {
	stages       []stage // by copy
	freedCount   uint64  // how often a copy has freed all that it held
	restartCount uint64
}

// stage is how far a copy is with its round.
type stage uint8

const (
	playing  stage = iota
	stopping       // it gives up its round: its players stop, and then its memory is freed
	aside          // it holds nothing, and plays again when another has come to the end
	ended          // it holds nothing, and waits for the next round
)

func newArbiter(copies int) arbiter { return arbiter{stages: make([]stage, copies)} }

// begin is the start of a round.
func (a *arbiter) begin() { clear(a.stages) }

// verdict decides about a wait that was refused as a deadlock.
type verdict uint8

const (
	fails   verdict = iota // for good: nobody else holds anything that could come back
	givesUp                // its copy gives up the round
	stops                  // its copy does so already
	awaits                 // repeat it when the copy that gives up has freed its memory
	again                  // repeat it at once: memory was freed since the refusal
)

// refused judges a refused wait of a copy. freedCount is the count at the begin of the wait.
func (a *arbiter) refused(number int, freedCount uint64) verdict {
	switch {
	case a.stages[number] == stopping:
		return stops
	case slices.Contains(a.stages, stopping):
		return awaits
	case a.freedCount != freedCount:
		return again
	case !a.othersPlay(number):
		return fails
	}
	a.stages[number] = stopping
	return givesUp
}

func (a *arbiter) othersPlay(number int) bool {
	for other, s := range a.stages {
		if other != number && s == playing {
			return true
		}
	}
	return false
}

// freed records that a copy whose players have all stopped, or finished, has freed all its memory. It returns the copies that
// now play their round again.
func (a *arbiter) freed(number int) (restarts []int) {
	a.freedCount++
	if a.stages[number] == stopping {
		a.stages[number] = aside
		if a.othersPlay(number) {
			return nil
		}
	} else {
		a.stages[number] = ended
	}
	for other, s := range a.stages {
		if s == aside {
			a.stages[other] = playing
			restarts = append(restarts, other)
		}
	}
	a.restartCount += uint64(len(restarts))
	return restarts
}
