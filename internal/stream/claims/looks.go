package claims

// Searched is the step that a search follows.
type Searched uint8

// The steps before a search.
const (
	First       Searched = iota // none
	AfterFences                 // a look that was due in any case
	AfterLook                   // a query for the claim, of the recorded fences
	AfterTake                   // a query of fences that were recorded for it
)

// MaxRest is how many consecutive misses go to the pool without a query of fences, after several queries have
// failed. Not more: memory whose fence has passed need not come from the pool. Not fewer: each look queries
// the driver about every stream that blocks wait for.
const MaxRest = 31

// Looks decides whether a failed search is repeated after a query of fences, before the pool is asked. After
// queries without success it rests: for 1, 3, 7, ... MaxRest misses.
type Looks struct {
	backoff int // misses to rest after the next failed look
	rest    int // misses left of the current rest
}

// Due reports whether a look may help after a failed search. A miss during a rest counts.
func (l *Looks) Due(after Searched) bool {
	if after == First && l.rest > 0 {
		l.rest--
		return false
	}
	return after == First || after == AfterLook
}

// Line decides about one line of fences that keep memory: record the missing fence and query; only query,
// which comes first; or nothing. next is the step that the next search follows.
func Line(after Searched, missing bool) (take, look bool, next Searched) {
	switch {
	case missing:
		return true, true, AfterTake
	case after == First:
		return false, true, AfterLook
	default:
		return false, false, First
	}
}

// Learn records whether a search succeeded, and so whether the look before it helped.
func (l *Looks) Learn(after Searched, found bool) {
	if after < AfterLook {
		return
	}
	if found {
		l.backoff = 0
	} else {
		l.backoff = min(l.backoff*2+1, MaxRest)
	}
	l.rest = l.backoff
}
