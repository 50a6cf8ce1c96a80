package tape

const (
	// patience is how many steps a plan may be lost before it is dropped. Not smaller: a program evaluates between
	// epochs. Not larger: the ground is memory that nobody else has.
	patience = 2
	// strayLeast is the least number of requests for that, where the step is short.
	strayLeast = 1 << 10
	// contentShare is the most that may go without its place before a better step is looked for: one of so many.
	contentShare = 32
	// contentLaps is how many laps in a row must have been so. Not fewer: the steps of an epoch, which may repeat as a
	// whole, are a few. Not more: watching costs a quarter of a placed request.
	contentLaps = 16
	// rehearsals is how often a step that did not come exactly as before is followed with no plan, so that the longest lives
	// are heard. Not more: each is a step that could be played.
	rehearsals = 2
	// rivalShare: another plan is worth its packing if more than one in so many requests had no place meanwhile.
	rivalShare = 16
	// dullLaps is how many laps in a row too many places may be taken when they are wanted before the step is packed anew
	// with the lives of now. Not fewer: the first laps wait for the ground.
	dullLaps = 3
	// poorShare is the most that may go without its place in a lap that is not poor: one of so many. Not larger: what the
	// plan's ground does not hold needs other memory, and the stream would hold more than without a plan.
	poorShare = 8
	// failuresMost is how many poor laps and yields a plan may have before it is dropped. Not fewer: the first laps wait for
	// the ground, and a program begins more than once.
	failuresMost = 4
	// failuresWithin is what a yield counts that comes when a part of the step was played: what lives then lies where the plan had
	// it, and the heap has ranges that suit nobody. Not fewer: each may have the stream grow. Not more: once is chance.
	failuresWithin = failuresMost - 1
	// restSteps is how many steps a tape rests after that, twice as many each time in a row, up to restMost requests. Not
	// fewer: learning what will not hold costs time and memory.
	restSteps = 16
	restMost  = 1 << 24
	// watchMost is how many requests are watched without a plan before the tape rests, for restSteps times as many. Not fewer:
	// the longest step must come twice, magazines hide a part of it at first, and shorter ones come before. Not more: what does
	// not repeat by then is watched in vain.
	watchMost = 4 * historyLimit
)

// lap is what became of the last requests, as many as the plan has.
type lap struct {
	seen, placed, blocked uint32

	// Laps in a row: of which nearly all had their places, and of which too many found their place taken.
	good, dull uint32
	content    bool // enough of them were good: nothing better is looked for
}

// rival is how the plan did since the lag is what it is.
type rival struct{ lag, seen, placed uint32 }

// better reports whether the lag explains much more than the plan.
func (r *rival) better(bad uint32) bool {
	without := r.seen - min(r.placed, r.seen)
	return without > r.seen/rivalShare && bad < without/2
}

// round counts the lap. Where the last one was as the plan has it, the sequence is not watched.
func (t *Tape) round() {
	if t.lap.seen++; t.lap.seen < t.plan.length() {
		return
	}
	last := t.lap
	t.lap = lap{}
	switch {
	case t.state != Playing:
	case last.placed >= last.seen-last.seen/contentShare:
		t.lap.good = last.good + 1
	case last.blocked > last.seen/rivalShare:
		t.lap.dull = last.dull + 1
	}
	if t.state == Playing && last.placed < last.seen-last.seen/poorShare {
		t.fail()
	}
	if t.state == Playing && t.want == WantNothing && t.outdated() {
		t.longer, t.want, t.learns = t.heard(t.cursor.at), WantEnd, 0
	}
	if t.lap.good > 0 {
		t.failures = 0
	}
	if t.lap.content = t.lap.good >= contentLaps; t.lap.content {
		t.setbacks = 0
	}
	if last.content && !t.lap.content {
		t.restart()
	}
}

// stray drops a plan that has been lost too long.
func (t *Tape) stray() {
	if !t.cursor.lost() {
		t.astray = 0
		return
	}
	if t.astray++; t.astray > patience*uint64(t.plan.length())+strayLeast {
		t.want = WantEnd
	}
}

// fail counts what did not go well. A plan that does not hold is dropped, and the tape rests.
func (t *Tape) fail() {
	if t.failures++; t.failures >= failuresMost {
		t.want = WantEnd
	}
}

// reconsiders reports whether a step that was found may take the place of the plan's.
func (t *Tape) reconsiders() bool { return t.lag >= 2*t.plan.length() && t.rival.better(t.bad) }

// outdated reports whether the plan is to be made anew, for the same step with the lives of now.
func (t *Tape) outdated() bool {
	if t.lap.dull >= dullLaps {
		return true
	}
	var now uint64 // units whose end was not known
	for i := range t.plan.entries {
		if e := &t.plan.entries[i]; e.life == 0 && e.heard != 0 {
			now += uint64(e.units)
		}
	}
	return now > t.plan.peak/contentShare
}

// heard is the step of the plan with the lives of now, from a request on.
func (t *Tape) heard(from uint32) []Request {
	step := make([]Request, t.plan.length())
	for i := range step {
		e := &t.plan.entries[t.cursor.behind(from, uint32(i))] //nolint:gosec // bounded by historyLimit
		step[i] = Request{Units: e.units, Life: e.heard}
		if e.heard == 0 {
			step[i].Life = e.life
		}
	}
	return step
}
