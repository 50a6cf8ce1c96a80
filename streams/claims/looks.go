package claims

// Searched is what has happened before a search.
type Searched uint8

// What may have happened.
const (
	First       Searched = iota // nothing
	AfterFences                 // a look that was due in any case
	AfterLook                   // a look for the claim's sake, at the fences that there were
	AfterTake                   // a look at fences that were taken for its sake
)

// String says what has happened.
func (s Searched) String() string {
	return [...]string{"first", "after fences", "after a look", "after taking fences"}[s]
}

// MaxRest is how many misses in a row go to the pool without a look at fences, after several looks have failed. Not more: what has
// passed meanwhile is memory that the pool need not give. Not fewer: each look asks the driver about every stream that is waited for.
const MaxRest = 31

// Looks decides whether a search that found nothing is made once more after a look at fences, before the pool is asked. After looks
// that found nothing either it rests: for 1, 3, 7, ... MaxRest misses.
type Looks struct {
	backoff int // misses to rest for after the next look that fails
	rest    int // misses that are left of the rest
}

// Due reports whether a look may help, after a search that found nothing. A miss in a rest counts.
func (l *Looks) Due(after Searched) bool {
	if after == First && l.rest > 0 {
		l.rest--
		return false
	}
	return after == First || after == AfterLook
}

// Line says what a look does about one of the lines of fences that keep memory: take a fence, where one is missing, and look at
// it; look only, which comes first; or nothing. next is what the next search comes after.
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

// Learn notes whether a search found something, and so whether the look before it was of use.
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
