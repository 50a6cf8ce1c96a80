package memorymap

// State is the use of a range of memory.
type State uint8

// The states.
const (
	Live        State        = iota // in buffers
	Pending                         // freed, while announced uses on other streams have not finished
	CachedBlock                     // a stream's free blocks, in magazines
	CachedRange                     // a stream's free ranges
	Free                            // in the pool
	SetAside                        // of a reservation, and not drawn yet
	Busy                            // part of the driver job in flight
	Lent                            // lent to a stream that has not reported its use
	Mixed                           // neighbours of several states
	StateSize   = int(Mixed)        // the number of states without Mixed
)

// Sums are bytes by state.
type Sums struct {
	Bytes         [StateSize]int64
	AsleepBytes   int64 // of all states: without physical memory
	UnpassedBytes int64 // of Free: for one stream only
}

// Range is contiguous memory in one state.
type Range struct {
	Start, Bytes int64
	State        State
	Asleep       bool   // without physical memory; Mixed has it in its sums
	Stream       uint32 // its user; of Free: its only allowed user; 0 for none, and for several
	Tag          string // of the buffers
	Buffers      int    // that begin in it
	Sums         *Sums  // of Mixed
}

// End returns the end of the range.
func (r *Range) End() int64 { return r.Start + r.Bytes }

// AddTo adds the range to sums.
func (r *Range) AddTo(s *Sums) {
	if r.State == Mixed {
		for i, bytes := range r.Sums.Bytes {
			s.Bytes[i] += bytes
		}
		s.AsleepBytes += r.Sums.AsleepBytes
		s.UnpassedBytes += r.Sums.UnpassedBytes
		return
	}
	s.Bytes[r.State] += r.Bytes
	if r.Asleep {
		s.AsleepBytes += r.Bytes
	}
	if r.State == Free && r.Stream != 0 {
		s.UnpassedBytes += r.Bytes
	}
}

// continues reports whether the range begins at the end of another, and differs in nothing else.
func (r *Range) continues(before *Range) bool {
	return r.Start == before.End() && r.State == before.State && r.State != Mixed && r.Asleep == before.Asleep &&
		r.Stream == before.Stream && r.Tag == before.Tag
}
