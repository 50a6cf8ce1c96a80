package core

import "github.com/go-vram/vram/cudadrv"

// Host is a side from which calls come.
type Host uint8

// The hosts. The allocator knows everything that the program knows, not the other way round.
const (
	Program Host = iota
	Allocator
)

// stream is one life of a stream's name.
type stream struct {
	place    int // in the clocks
	point    Clock
	known    uint64 // the version of the program's knowledge that the point has
	blocking bool   // the default stream waits for it, and it for the default stream
}

// event is the point of an event. An event can have two names.
type event struct {
	point Clock
	in    *capture // that has its last record, nil where that was none of a graph
}

// order is the order of all work.
//
// Invariant: places[i] counts the work of all streams that ever had place i; a place is idle only if the program
// knows all of it to be over.
type order struct {
	streams map[cudadrv.Stream]*stream
	events  map[cudadrv.Event]*event
	places  []uint64
	gone    []int // places of destroyed streams whose work need not be over
	idle    []int
	hosts   [2]Clock
	version uint64 // of the program's knowledge
}

// defaultStream is the legacy default stream.
const defaultStream cudadrv.Stream = 0

func newOrder() order {
	o := order{streams: map[cudadrv.Stream]*stream{}, events: map[cudadrv.Event]*event{}}
	o.begin(defaultStream, false)
	return o
}

// begin assigns a place to a new stream, if possible the place of a destroyed one.
func (o *order) begin(s cudadrv.Stream, blocking bool) *stream {
	waiting := o.gone[:0]
	for _, place := range o.gone {
		if o.hosts[Program].reaches(place, o.places[place]) {
			o.idle = append(o.idle, place)
		} else {
			waiting = append(waiting, place)
		}
	}
	o.gone = waiting
	st := &stream{blocking: blocking}
	if last := len(o.idle) - 1; last >= 0 {
		st.place, o.idle = o.idle[last], o.idle[:last]
	} else {
		st.place = len(o.places)
		o.places = append(o.places, 0)
	}
	o.streams[s] = st
	return st
}

// end forgets the name of a stream; its work still runs.
func (o *order) end(s cudadrv.Stream) {
	if st, ok := o.streams[s]; ok && s != defaultStream {
		o.gone = append(o.gone, st.place)
		delete(o.streams, s)
	}
}

// named returns the stream of that name. One that was made past the checker begins here.
func (o *order) named(s cudadrv.Stream) *stream {
	if st, ok := o.streams[s]; ok {
		return st
	}
	return o.begin(s, false)
}

// event returns the event of that name. One that was made past the checker begins here.
func (o *order) event(e cudadrv.Event) *event {
	if found, ok := o.events[e]; ok {
		return found
	}
	made := new(event)
	o.events[e] = made
	return made
}

// reach returns the stream with its point moved after everything that its next work follows.
func (o *order) reach(s cudadrv.Stream) *stream {
	st := o.named(s)
	if st.known != o.version {
		st.point.join(o.hosts[Program])
		st.known = o.version
	}
	switch {
	case s == defaultStream:
		for _, other := range o.streams {
			if other.blocking {
				st.point.join(other.point)
			}
		}
	case st.blocking:
		st.point.join(o.streams[defaultStream].point)
	}
	return st
}

// submit counts one more piece of work on the stream.
func (o *order) submit(s cudadrv.Stream) (st *stream, count uint64) {
	st = o.reach(s)
	o.places[st.place]++
	count = o.places[st.place]
	for len(st.point) <= st.place {
		st.point = append(st.point, 0)
	}
	st.point[st.place] = count
	return st, count
}

// all returns the point after all submitted work.
func (o *order) all() Clock { return append(Clock(nil), o.places...) }

// over notes that a host knows everything before the point to be over.
func (o *order) over(by Host, point Clock) {
	o.hosts[Allocator].join(point)
	if by == Program && o.hosts[Program].join(point) {
		o.version++
	}
}
