package trace

import (
	"fmt"
	"math"
	"time"
)

// ledger holds the rules between rows: who is live, in which order ids come, how much is held.
//
// Invariant: events keep every rule of the package doc except the density of streams, which only the
// last row decides.
type ledger struct {
	events []Event
	micros []int64
	begin  int64 // of the first row: recordings of other tools have the time of day

	sizes         []int64 // by id; negative once freed
	streamLine    []int   // by stream: the line of its first row, 0 where it has none yet
	freeCount     int
	liveBytes     int64
	peakLiveBytes int64
}

// longestMicros is how long a trace may be: no more fit into a time.Duration.
const longestMicros = int64(math.MaxInt64 / time.Microsecond)

func newLedger() *ledger {
	// Room for an ordinary trace; append takes it from there.
	const usual = 1 << 15
	return &ledger{events: make([]Event, 0, usual), micros: make([]int64, 0, usual), sizes: make([]int64, 0, usual/2)}
}

// add checks the row that stands on the given line against all rows before it and takes it. The
// result names the rule that the row breaks; the ledger must not be used after that.
func (l *ledger) add(r row, line int) (what string) {
	if len(l.micros) == 0 {
		l.begin = r.micros
	} else if last := l.begin + l.micros[len(l.micros)-1]; r.micros < last {
		return fmt.Sprintf("t_us goes back from %d to %d", last, r.micros)
	}
	if r.micros-l.begin > longestMicros {
		return fmt.Sprintf("t_us is %d, and %d in the first row: want less than 292 years", r.micros, l.begin)
	}
	if r.stream >= maxStreams {
		return fmt.Sprintf("stream is %d, want less than %d", r.stream, maxStreams)
	}
	if r.sizeBytes == 0 {
		return "size is 0: every request has at least 1 byte"
	}
	if r.op == Alloc {
		what = l.alloc(r)
	} else {
		what = l.free(r)
	}
	if what != "" {
		return what
	}
	for int64(len(l.streamLine)) <= r.stream {
		l.streamLine = append(l.streamLine, 0)
	}
	if l.streamLine[r.stream] == 0 {
		l.streamLine[r.stream] = line
	}
	l.events = append(l.events, Event{Bytes: r.sizeBytes, ID: uint32(r.id), Stream: uint16(r.stream), Op: r.op})
	l.micros = append(l.micros, r.micros-l.begin)
	return ""
}

func (l *ledger) alloc(r row) (what string) {
	want := int64(len(l.sizes))
	switch {
	case r.id < want:
		return fmt.Sprintf("id %d is allocated a second time", r.id)
	case r.id > want:
		return fmt.Sprintf("id %d is allocated before id %d: ids are dense and in order of allocation", r.id, want)
	case r.id > math.MaxUint32:
		return fmt.Sprintf("id is %d: more than 2^32 buffers", r.id)
	case r.sizeBytes > math.MaxInt64-l.liveBytes:
		return fmt.Sprintf("size is %d: with the %d bytes held already more than 2^63", r.sizeBytes, l.liveBytes)
	}
	l.sizes = append(l.sizes, r.sizeBytes)
	l.liveBytes += r.sizeBytes
	l.peakLiveBytes = max(l.peakLiveBytes, l.liveBytes)
	return ""
}

func (l *ledger) free(r row) (what string) {
	if r.id >= int64(len(l.sizes)) {
		return fmt.Sprintf("id %d is freed before it is allocated", r.id)
	}
	held := l.sizes[r.id]
	switch {
	case held < 0:
		return fmt.Sprintf("id %d is freed a second time", r.id)
	case held != r.sizeBytes:
		return fmt.Sprintf("size is %d, but id %d was allocated with %d", r.sizeBytes, r.id, held)
	}
	l.sizes[r.id] = -held
	l.liveBytes -= held
	l.freeCount++
	return ""
}

// finish checks the rules that only the end decides; line has the fault, 0 for the last line.
func (l *ledger) finish() (line int, what string) {
	if len(l.events) == 0 {
		return 0, "no events"
	}
	missing := -1
	for stream, first := range l.streamLine {
		if first == 0 && missing < 0 {
			missing = stream
		}
		if first != 0 && missing >= 0 && (line == 0 || first < line) {
			line = first
		}
	}
	if missing >= 0 {
		return line, fmt.Sprintf("stream is above %d, but no row is on stream %d: streams are dense", missing, missing)
	}
	return 0, ""
}

func (l *ledger) trace(name string) *Trace {
	return &Trace{
		Name:   name,
		Events: l.events,
		Micros: l.micros,
		Info: Info{
			EventCount:    len(l.events),
			AllocCount:    len(l.sizes),
			FreeCount:     l.freeCount,
			StreamCount:   len(l.streamLine),
			PeakLiveBytes: l.peakLiveBytes,
			LeftoverBytes: l.liveBytes,
		},
	}
}
