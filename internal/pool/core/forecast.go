package core

// forecast learns when a loop will need memory, and how much, from what is lent: a program that works in steps, or in bursts,
// takes pages and gives them back again and again. Time is ticks. It is at one of two places:
//
//	ebb   --what is lent comes to half of what the last rise added-->    rise
//	rise  --what is lent falls below three quarters of its most-->       ebb
//
// A rise is foreseen one interval after the last one began, once as many intervals in a row were alike as are asked for: one, and
// after a rise that did not come twice as many as before. From shortly before that moment on until shortly after it,
// what was reserved in the last rise is wanted. If the driver was needed in it, as much more is as it was more than the one
// before, and the longest request once more, within bounds: what comes in another order leaves other pieces over.
type forecast struct {
	tick uint64
	high uint64 // pages lent, most since the last tick
	most uint64 // pages reserved, likewise
	long uint64 // pages of the longest request that the driver was needed for, since the last tick

	rising      bool
	ebb         uint64 // pages lent, least since the last rise
	peak        uint64 // pages lent, most in the last rise
	began       uint64 // tick of the last rise
	interval    uint64 // ticks, between the last two; 0: there were not so many
	alike       int    // intervals in a row
	asked       int    // of those before a rise is foreseen, beyond the first
	spoiled     bool   // nothing is wanted before the next rise
	last, older uint64 // pages reserved, most in the last two rises
	grown       uint64 // pages of the longest request of the last rise that the driver was needed for

	hits, misses uint64
}

const (
	// leastRise is what must be lent, in pages, for a rise. Not more: a page is 2 MiB. Not less: one small buffer is no step.
	leastRise = 4
	// leadTicks is how long before a rise its memory is wanted, and after, beside a part of the interval. Not shorter: a tick
	// comes as late as the next one, and the mapping takes its time. Not longer: until then it serves nobody.
	leadTicks = 2
	// spareShare bounds the longest request that is wanted once more, by a part of what was reserved: a sixteenth. Not more: where
	// a step is one request there is no other order. Not less: steps of a few dozen requests would miss theirs.
	spareShare = 16
	// mostAsked bounds what a run of misses asks for.
	mostAsked = 8
)

// note takes what is lent and reserved, in pages, after a step.
func (f *forecast) note(lentPages, reservedPages uint64) {
	f.high = max(f.high, lentPages)
	f.most = max(f.most, reservedPages)
	if !f.rising {
		f.ebb = min(f.ebb, lentPages)
	}
}

// grow notes that the driver is needed for a request of so many pages.
func (f *forecast) grow(pages uint32) { f.long = max(f.long, uint64(pages)) }

// beat goes to the next tick.
func (f *forecast) beat(lentPages, reservedPages uint64) {
	f.tick++
	high, most, long := f.high, f.most, f.long
	f.high, f.most, f.long = lentPages, reservedPages, 0
	if !f.rising && high >= f.ebb+max(leastRise, (max(f.peak, f.ebb)-f.ebb)/2) {
		f.begin()
	}
	if f.rising {
		f.peak = max(f.peak, high)
		f.last = max(f.last, most)
		f.grown = max(f.grown, long)
		if lentPages <= f.peak-f.peak/4 {
			f.rising, f.ebb = false, lentPages
		}
		return
	}
	if _, closes := f.window(); f.sure() && f.tick > closes {
		f.misses++
		f.alike, f.asked = 0, min(max(1, 2*f.asked), mostAsked)
	}
}

// begin notes a rise.
func (f *forecast) begin() {
	interval := f.tick - f.began
	opens, closes := f.window()
	switch {
	case f.last == 0: // the first
	case f.sure() && f.tick >= opens && f.tick <= closes:
		f.hits++
		f.alike, f.asked = f.alike+1, 0
	case f.interval > 0 && distance(interval, f.interval) <= slackTicks(f.interval):
		f.alike++
	default:
		f.alike = 1
	}
	if f.last > 0 {
		f.interval = interval
	}
	f.began = f.tick
	f.rising, f.spoiled = true, false
	f.older, f.last, f.peak, f.grown = f.last, 0, 0, 0
}

// sure reports whether the next rise is foreseen.
func (f *forecast) sure() bool { return f.interval > 0 && f.alike > f.asked }

// window is from when until when the next rise is looked for, in ticks.
func (f *forecast) window() (opens, closes uint64) {
	due, slack := f.began+f.interval, slackTicks(f.interval)
	return due - min(due, slack), due + slack
}

// slackTicks is how far a rise may be from where it is foreseen.
func slackTicks(interval uint64) uint64 { return leadTicks + interval/8 }

func distance(a, b uint64) uint64 { return max(a, b) - min(a, b) }

// wanted is how many pages should be reserved now; 0: it does not matter. Where the last rise found all that it needed it
// is what it had.
func (f *forecast) wanted() uint64 {
	opens, closes := f.window()
	if f.rising || f.spoiled || !f.sure() || f.tick < opens || f.tick > closes {
		return 0
	}
	spare := min(f.grown, f.last/spareShare)
	switch {
	case f.grown == 0:
		return f.last
	case f.older == 0 || f.older > f.last:
		return f.last + spare
	}
	return f.last + spare + (f.last - f.older)
}

// spoil lets nothing be wanted before the next rise, if anything is now.
func (f *forecast) spoil() { f.spoiled = f.spoiled || f.wanted() > 0 }

// held is how many reserved pages may not go back to the driver for being more than the pool is to keep. In a rise that is
// what it has needed: whether the next one is near is seen at its end.
func (f *forecast) held() uint64 {
	if f.rising && f.sure() && !f.spoiled {
		return max(f.last, f.most)
	}
	return f.wanted()
}
