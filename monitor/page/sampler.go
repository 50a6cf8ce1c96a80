package page

import (
	"context"
	"errors"
	"time"
)

// errClosed is the error of requests after Page.Close.
var errClosed = errors.New("page: closed")

// Point is a sample as the history keeps it.
type Point struct {
	UnixMillis int64     `json:"unixMillis"`
	Devices    []Figures `json:"devices"`
}

// History is the last samples, the oldest first. Between two of them lies more than the interval where nobody watched.
type History struct {
	Points []Point `json:"points"`
}

// sampler takes samples while it has viewers. Its state is in a channel: the goroutine that has received it owns it.
type sampler struct {
	interval time.Duration
	read     func() Sample // the number is the sampler's
	reading  chan struct{} // has room for the goroutine that reads
	state    chan *sampling
}

// sampling is the state of a sampler.
type sampling struct {
	viewers map[*viewer]struct{}
	stop    context.CancelFunc // of the goroutine; nil while there is none
	ended   chan struct{}      // closed by the goroutine
	closed  bool
	last    *Sample // the newest
	points  []Point // a ring
	oldest  int     // index into it, once it is full
	most    int
}

// viewer gets the newest sample that it has not received.
type viewer struct{ samples chan *Sample }

func newSampler(interval time.Duration, historyCount int, read func() Sample) *sampler {
	s := &sampler{interval: interval, read: read, reading: make(chan struct{}, 1), state: make(chan *sampling, 1)}
	s.state <- &sampling{viewers: map[*viewer]struct{}{}, most: historyCount}
	return s
}

// take receives the state; its holder puts it back.
func (s *sampler) take(ctx context.Context) (*sampling, error) {
	select {
	case st := <-s.state:
		if !st.closed {
			return st, nil
		}
		s.state <- st
		return nil, errClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// newest returns a sample that is younger than the interval: the last one, or a new one.
func (s *sampler) newest(ctx context.Context) (*Sample, error) {
	if last, err := s.fresh(ctx); last != nil || err != nil {
		return last, err
	}
	select {
	case s.reading <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-s.reading }()
	if last, err := s.fresh(ctx); last != nil || err != nil { // another goroutine has read it
		return last, err
	}
	sample := s.read()
	st, err := s.take(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { s.state <- st }()
	st.add(sample)
	return st.last, nil
}

// fresh returns the last sample if it is younger than the interval, else nil.
func (s *sampler) fresh(ctx context.Context) (*Sample, error) {
	st, err := s.take(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { s.state <- st }()
	if st.last == nil || time.Since(st.last.Time) >= s.interval {
		return nil, nil //nolint:nilnil // there is none, and that is no error
	}
	return st.last, nil
}

// history returns the last samples.
func (s *sampler) history(ctx context.Context) (History, error) {
	st, err := s.take(ctx)
	if err != nil {
		return History{}, err
	}
	defer func() { s.state <- st }()
	return st.history(), nil
}

// watch adds a viewer, and starts the goroutine for the first one. The history ends before the first sample that the viewer
// gets.
func (s *sampler) watch(ctx context.Context) (*viewer, History, error) {
	st, err := s.take(ctx)
	if err != nil {
		return nil, History{}, err
	}
	defer func() { s.state <- st }()
	v := &viewer{make(chan *Sample, 1)}
	st.viewers[v] = struct{}{}
	if st.stop == nil {
		running, stop := context.WithCancel(context.WithoutCancel(ctx)) // it outlives the viewer that starts it
		st.stop, st.ended = stop, make(chan struct{})
		go s.run(running, st.ended)
	}
	return v, st.history(), nil
}

// leave removes a viewer, and ends the goroutine after the last one.
func (s *sampler) leave(v *viewer) {
	st := <-s.state
	delete(st.viewers, v)
	if len(st.viewers) == 0 && st.stop != nil {
		st.stop()
		st.stop = nil
	}
	s.state <- st
}

// close ends the goroutine and every viewer. It waits for the sample that is being taken for viewers. It does not wait for newest, whose
// caller gets errClosed when it has read.
func (s *sampler) close() {
	st := <-s.state
	st.closed = true
	if st.stop != nil {
		st.stop()
		st.stop = nil
	}
	for v := range st.viewers {
		v.end()
	}
	clear(st.viewers)
	ended := st.ended
	s.state <- st
	if ended != nil {
		<-ended
	}
}

// run takes samples until ctx ends.
func (s *sampler) run(ctx context.Context, ended chan<- struct{}) {
	defer close(ended)
	ticks := time.NewTicker(s.interval)
	defer ticks.Stop()
	for {
		if !s.sample(ctx) {
			return
		}
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return
		}
	}
}

// sample takes a sample for the viewers, and returns false once ctx has ended. Nobody else reads before it is entered: the history is in the
// order of the reads.
func (s *sampler) sample(ctx context.Context) bool {
	s.reading <- struct{}{}
	defer func() { <-s.reading }()
	if ctx.Err() != nil { // nobody waits for a sample
		return false
	}
	sample := s.read() // outside the state: it may wait for a stream
	st := <-s.state
	defer func() { s.state <- st }()
	if ctx.Err() != nil {
		return false
	}
	st.add(sample)
	for v := range st.viewers {
		v.offer(st.last)
	}
	return true
}

// offer replaces the sample that the viewer has not received.
func (v *viewer) offer(s *Sample) {
	select {
	case <-v.samples:
	default:
	}
	v.samples <- s
}

// end tells the viewer that no sample comes any more.
func (v *viewer) end() {
	select {
	case <-v.samples:
	default:
	}
	close(v.samples)
}

// add numbers a sample, and enters it into the history.
func (st *sampling) add(s Sample) {
	s.Number = 1
	if before := st.last; before != nil {
		s.Number = before.Number + 1
		for i := range s.Devices {
			if d, had := &s.Devices[i], &before.Devices[i]; d.Name == "" { // it has been closed
				d.Name, d.Driver, d.TotalBytes = had.Name, had.Driver, had.TotalBytes
			}
		}
	}
	st.last = &s
	p := Point{UnixMillis: s.Time.UnixMilli()}
	for i := range s.Devices {
		p.Devices = append(p.Devices, s.Devices[i].Figures)
	}
	if len(st.points) < st.most {
		st.points = append(st.points, p)
		return
	}
	st.points[st.oldest] = p
	st.oldest = (st.oldest + 1) % st.most
}

func (st *sampling) history() History {
	return History{append(append([]Point{}, st.points[st.oldest:]...), st.points[:st.oldest]...)}
}
