package tape

// State is what a tape is at.
type State uint8

// The states of a tape.
const (
	Watching State = iota // for sizes that come again
	Learning              // they do: for the step to come again whole
	Packing               // the step is known, the plan is in the making
	Ready                 // the plan is made: for the place in the step where least lives
	Playing
	Lost // the requests are not those of the plan: for a place where they are
)

// String is the state's name.
func (s State) String() string {
	return [...]string{"watching", "learning", "packing", "ready", "playing", "lost"}[s]
}

// Want is what a tape wants of its owner, once the request at hand is served.
type Want uint8

// The wants of a tape.
const (
	WantNothing Want = iota
	WantGround       // call Survey with the free ranges
	WantClaim        // call Begin
	WantEnd          // call Drop, after Place said no
)

// Counts say what a tape has done.
type Counts struct {
	Requests uint64 // that it saw
	Expected uint64 // of them those that came where the plan had them
	Placed   uint64 // of them those that got their place
	Blocked  uint64 // of them those whose place was still taken
	Plans    uint64 // that were begun
}

// Tape learns the step of a stream and plays it. The zero value is ready. It is plain memory: it runs in the stream's
// turn.
type Tape struct {
	finder
	state    State
	want     Want
	cursor   cursor
	packer   *Packer
	plan     *Plan
	since    uint32 // position from which on the plan is followed
	entry    uint32 // of the plan for the request at hand, plus one; 0: none
	learns   uint8  // times round that lives are still to be heard before the plan is packed
	hand     uint32 // request of the plan that Place followed last
	done     uint32 // request of the plan: all before it are served or skipped
	tried    uint32 // units of a request that has been followed and is not served yet
	astray   uint64 // requests in a row for which the cursor has been lost
	lap      lap
	rival    rival
	failures uint8     // of the plan
	setbacks uint8     // plans in a row that were dropped for their failures
	rests    uint32    // requests for which nothing is learned
	longer   []Request // the step that takes the place of the plan's
	todo     []uint32
	counts   Counts
}

// State is what the tape is at.
func (t *Tape) State() State { return t.state }

// Counts are those since the tape began.
func (t *Tape) Counts() Counts { return t.counts }

// Want is what the tape wants now.
func (t *Tape) Want() Want { return t.want }

// Rests reports whether nothing is learned for a while. Nothing is played then.
func (t *Tape) Rests() bool { return t.rests > 0 }

// Knows reports whether the tape knows a sequence, or is about to: then its owner shall not cache what comes back.
func (t *Tape) Knows() bool { return t.state != Watching }

// Place is where a request goes that the plan has at this place, and the entry with which to give it back. ok is false if it
// has no place: it is to be served the ordinary way. Either way it is told to Served once it is. A request that could not be served
// may be tried again.
func (t *Tape) Place(units uint32) (index, first uint32, ok bool) {
	if t.state < Packing || t.tried == units {
		return 0, 0, false
	}
	t.tried = units
	if t.want == WantEnd {
		return 0, 0, false
	}
	index, ok = t.cursor.follow(units)
	if t.entry = 0; ok {
		t.entry = index + 1
	}
	t.stray()
	if t.state < Playing {
		t.await(index, ok)
		return 0, 0, false
	}
	if !ok {
		if t.state == Playing && t.cursor.lost() {
			t.state = Lost
		}
		return 0, 0, false
	}
	t.counts.Expected++
	ahead := t.advance(index)
	return t.take(index, ahead)
}

// take places the request of the plan that is at hand. One behind which the tape is already was skipped before: to skip
// it twice would take its turn in the step that follows, and in each one from then on.
func (t *Tape) take(index uint32, ahead bool) (entry, first uint32, ok bool) {
	if t.plan.take(index) {
		t.counts.Placed++
		t.lap.placed++
		t.rival.placed++
		return index, t.plan.entries[index].first, true
	}
	if t.plan.entries[index].first != none {
		t.counts.Blocked++
		t.lap.blocked++
	}
	if ahead {
		t.todo = t.plan.skip(index, t.todo)
	}
	return 0, 0, false
}

// advance skips what came between the last request of the plan and this one. It reports whether this one lies ahead.
func (t *Tape) advance(index uint32) (ahead bool) {
	n := t.plan.length()
	if t.state == Lost {
		t.state = Playing
	} else if (index+n-t.done)%n > n/2 {
		return false
	}
	for t.done != index {
		t.todo = t.plan.skip(t.done, t.todo)
		t.done = t.cursor.behind(t.done, 1)
	}
	t.done = t.cursor.behind(index, 1)
	return true
}

// Served notes the request at hand, once it has its memory. The position is for Ended; 0: it need not be told.
func (t *Tape) Served(units uint32) (position uint32) {
	t.tried = 0
	t.counts.Requests++
	if t.rests > 0 {
		t.rests--
		return 0
	}
	if t.state > Learning {
		if t.round(); t.lap.content {
			return 0
		}
	}
	position = t.observe(units)
	t.at(position).entry = t.entry
	if t.rival.seen++; t.rival.lag != t.lag {
		t.rival = rival{lag: t.lag}
	}
	switch {
	case t.lag != 0 && t.found():
		t.learned()
	case t.state > Learning:
	case t.lag == 0:
		t.state = Watching
	default:
		t.state = Learning
	}
	if t.plan == nil && t.next-t.first >= watchMost {
		t.rests = restSteps * watchMost
		t.restart()
		t.state = Watching
	}
	return position
}

// Ended notes that the memory of a request that was served is free for the next.
func (t *Tape) Ended(position, units uint32) {
	t.ended(position, units)
	if t.plan == nil || !t.has(position) || t.next-position > t.next-t.since {
		return
	}
	n := t.plan.length()
	if entry := t.at(position).entry; entry != 0 && t.next-position <= n {
		life := (t.cursor.at + n - (entry - 1)) % n
		if life == 0 {
			life = n
		}
		e := &t.plan.entries[entry-1]
		e.heard = max(e.heard, life)
	}
}

// Leave gives a place back.
func (t *Tape) Leave(index uint32) { t.todo = t.plan.leave(index, t.todo) }

// learned looks whether the step that was found is worth a plan.
func (t *Tape) learned() {
	if t.plan != nil && !t.reconsiders() {
		return
	}
	step := t.step()
	if !t.worth(step) {
		t.again()
		return
	}
	if t.plan != nil {
		t.longer, t.want = step, WantEnd
		return
	}
	t.learns = rehearsals
	if t.bad == 0 {
		t.learns = 0
	}
	t.follow(step)
}

// follow lets the cursor follow a step that has no places yet. The next request is its first.
func (t *Tape) follow(step []Request) {
	plan := &Plan{entries: make([]entry, len(step)+1)}
	for i, r := range step {
		plan.entries[i] = entry{units: r.Units, life: r.Life, first: none}
	}
	plan.peak, plan.calm = tides(step)
	plan.grams.fill(plan)
	t.plan = plan
	t.cursor = cursor{plan: plan, trust: trustFull}
	t.astray, t.lap, t.since = 0, lap{}, t.next
	t.state = Packing
}

// await looks, before a plan is played, whether this is the place in the step for what is due.
func (t *Tape) await(index uint32, ok bool) {
	if !ok {
		return
	}
	n := t.plan.length()
	before := (t.hand + n - t.plan.calm) % n
	t.hand = index
	if (index+n-t.plan.calm)%n >= aheadReach || before < aheadReach {
		return
	}
	switch {
	case t.state == Packing && t.learns > 0:
		t.learns--
	case t.state == Packing && t.packer == nil:
		t.want = WantGround
	case t.state == Ready:
		t.want = WantClaim
	}
}

// Passing reports whether what serves a request is free again within a step. It is for the time of WantGround.
func (t *Tape) Passing(position uint32) bool {
	n := t.plan.length()
	age := t.next - position
	return position != 0 && t.has(position) && age <= n && t.plan.entries[(t.hand+n-age%n)%n].life >= age
}

// Survey takes the ranges that are free, or will be within a step, at the place in the step where least lives, and
// begins the packing. If they are too short the tape asks again a step later. The result is the work, for any goroutine; it comes back by Packed.
func (t *Tape) Survey(free []Range) *Packer {
	t.want = WantNothing
	var sum uint64
	for _, r := range free {
		sum += uint64(r.Units)
	}
	if sum < t.plan.peak {
		return nil // what lives besides is going, or the pool must help first
	}
	step := make([]Request, t.plan.length())
	for i := range step {
		e := &t.plan.entries[i]
		if e.heard != 0 {
			e.life = e.heard
		}
		step[i] = Request{e.units, e.life}
	}
	t.packer = newPacker(step, free)
	t.state = Packing
	return t.packer
}

// Packed takes a plan that was made. One that the tape does not wait for any more is ignored.
func (t *Tape) Packed(p *Packer) {
	if p != t.packer || p.plan == nil {
		return
	}
	t.packer = nil
	t.plan = p.plan
	t.cursor.plan = p.plan
	t.state = Ready
}

// Ground is the memory that the plan needs.
func (t *Tape) Ground() []Range { return t.plan.ground }

// GroundUnits is the sum of it.
func (t *Tape) GroundUnits() uint64 { return t.plan.GroundUnits() }

// PeakUnits are in use at once, if the step repeats exactly.
func (t *Tape) PeakUnits() uint64 { return t.plan.peak }

// Length is the number of requests of the plan.
func (t *Tape) Length() int { return int(t.plan.length()) }

// First is the first unit of a place.
func (t *Tape) First(index uint32) uint32 { return t.plan.entries[index].first }

// Begin plays the plan: its ground is the tape's from now until Yield or Drop, but for the missing ranges of it, in
// rising order, of which Came tells when they are there. Nothing of it is taken. The result is that of Place, for the
// request at hand.
func (t *Tape) Begin(missing []Range) (index, first uint32, ok bool) {
	t.want = WantNothing
	t.plan.missing = missing
	t.plan.lay(t.hand)
	t.done = t.cursor.behind(t.hand, 1)
	t.lap = lap{}
	t.counts.Plans++
	t.state = Playing
	return t.take(t.hand, true)
}

// Missing are the parts of the ground that are not there yet. It is valid until the next call.
func (t *Tape) Missing() []Range { return t.plan.missing }

// Came takes a part of a missing range.
func (t *Tape) Came(part Range) { t.plan.came(part) }

// Yield gives the ground back to its owner, also what is taken of it. The plan waits for it to be free again.
func (t *Tape) Yield() {
	if t.state >= Playing {
		t.state = Ready
		if t.lap.seen > 0 {
			t.failures += failuresWithin - 1
		}
		t.fail()
	}
}

// Drop forgets the plan. The ground is its owner's again, also what is taken of it. A longer step that was found takes
// its place.
func (t *Tape) Drop() {
	if t.failures >= failuresMost {
		t.longer = nil
		t.rests = uint32(min(uint64(t.plan.length())*restSteps<<t.setbacks, restMost)) //nolint:gosec // bounded
		t.setbacks = min(t.setbacks+1, 16)
	}
	t.failures = 0
	step := t.longer
	if t.plan != nil && step == nil {
		if t.least = 2 * t.plan.length(); t.least > historyLimit/2 {
			t.least = 0
		}
	}
	t.want, t.packer, t.plan, t.cursor, t.longer = WantNothing, nil, nil, cursor{}, nil
	t.tried = 0
	if step == nil {
		t.restart()
		t.state = Watching
		return
	}
	t.follow(step)
	t.cursor.at = 1 % t.plan.length() // the request at hand is the first
}
