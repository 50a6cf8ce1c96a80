package tape

// Request is an entry of a step: its length, and how many requests later its memory is free again.
type Request struct {
	Units uint32
	Life  uint32 // 1 to the length of the step; 0: longer, so that it has no place
}

// stepShare is the least part of what lived during a step that must live and end inside it: one of so many. Not
// smaller: what little a loop over small buffers would gain is not worth to lose the step around it.
const stepShare = 4

// step is the last step. When its requests end the same ones of the step before tell, since not all of the last
// have ended.
func (f *finder) step() []Request {
	first := f.next - f.lag
	step := make([]Request, f.lag)
	for i := range step {
		position := first + uint32(i) //nolint:gosec // bounded by historyLimit
		now, before := f.at(position), f.at(position-f.lag)
		life := now.life
		if now.units == before.units && life == 0 {
			life = before.life
		}
		if life > f.lag {
			life = 0
		}
		step[i] = Request{Units: now.units, Life: life}
	}
	return step
}

// worth reports whether what a step could place is a good part of what lived.
func (f *finder) worth(step []Request) bool {
	var most uint32
	for back := range f.lag {
		most = max(most, f.at(f.next-1-back).liveUnits)
	}
	peak, _ := tides(step)
	return peak*stepShare >= uint64(most)
}

// tides are the most units that the placed requests of a step hold at once, and the index before which they hold least.
func tides(step []Request) (peakUnits uint64, calm uint32) {
	n := len(step)
	change := make([]int64, n+1)
	var live int64 // before the first request: what began in the step before
	for i, r := range step {
		if r.Life == 0 {
			continue
		}
		end := i + int(r.Life)
		change[i] += int64(r.Units)
		if end >= n {
			live += int64(r.Units)
			end -= n
		}
		change[end] -= int64(r.Units)
	}
	var peak int64
	least := int64(-1)
	for i := range n {
		// Between the frees that come before request i and the request itself least lives.
		live += change[i]
		peak = max(peak, live)
		before := live
		if step[i].Life != 0 {
			before -= int64(step[i].Units)
		}
		if least < 0 || before < least {
			least, calm = before, uint32(i) //nolint:gosec // bounded by historyLimit
		}
	}
	return uint64(max(peak, 0)), calm
}
