package share

import (
	"errors"
	"time"

	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/streams"
)

// A stream that was made to wait for the event of a peer waits for ever if the peer dies before the event is reached. The driver does
// not tell. So marks are put around the waits: a stream that has come to the first mark and, some time after the death of the peer, not
// to the last one is stranded, and nobody waits for it from then on.

// marks are around the waits of a stream that are not known to have passed.
type marks struct {
	work        streams.Submitter
	first, last cudadrv.Event
	recorded    bool // both are
	came        bool // to the first, when somebody looked
}

// marksOf are the marks of a context's stream, for which waits end when it is stranded.
func (m *Memory) marksOf(c *cuda.Context) (*marks, error) {
	work, err := streams.NewSubmitter(c.Stream())
	if err != nil {
		return nil, err
	}
	k := m.marked[work.Stream()]
	if k == nil {
		k = &marks{work: work}
		m.marked[work.Stream()] = k
	}
	for _, e := range []*cudadrv.Event{&k.first, &k.last} {
		if *e != 0 {
			continue
		}
		if *e, err = m.device.EventCreate(); err != nil {
			return nil, err
		}
	}
	work.MayStrand()
	return k, nil
}

// wait puts later work of a context behind the peer's event, between marks. The first one stays where it is until the last has passed.
func (m *Memory) wait(c *cuda.Context, l *link) error {
	m.marking.Lock()
	defer m.marking.Unlock()
	k, err := m.marksOf(c)
	if err != nil {
		return err
	}
	return c.Submit(func(device cudadrv.Device, on cudadrv.Stream) error {
		passed := true
		if k.recorded {
			if passed, err = device.EventQuery(k.last); err != nil {
				return err
			}
		}
		if passed {
			if err := device.EventRecord(k.first, on); err != nil {
				return err
			}
			k.came = false
		}
		if err := uncaptured(c); err != nil { // the wait for the peer's event would end the capture
			k.recorded = k.recorded && !passed
			return err
		}
		if err := device.StreamWaitEvent(on, l.theirs); err != nil {
			return err
		}
		k.recorded = true
		if err := device.EventRecord(k.last, on); err != nil {
			return err
		}
		if err := uncaptured(c); err != nil {
			k.recorded = false
			return err
		}
		return nil
	})
}

// watch ends waits for streams that wait for a dead peer. It looks at them from some time after the death on, and returns when the memory
// is settled or no stream waits.
func (m *Memory) watch(l *link) {
	if errors.Is(l.over(), ErrPeerClosed) || !l.awaitsEvents {
		return
	}
	patience := time.Duration(l.patience.Load())
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-m.settled:
			return
		}
		if !m.strand() {
			return
		}
		timer.Reset(patience/10 + 1)
	}
}

// strand looks at the streams, and reports whether one has still to be looked at.
func (m *Memory) strand() (again bool) {
	m.marking.Lock()
	defer m.marking.Unlock()
	for _, k := range m.marked {
		if !k.recorded {
			continue
		}
		passed, err := m.device.EventQuery(k.last)
		switch came := k.came; {
		case err != nil || passed:
		case came: // it was there a while ago
			k.work.Strand()
		default:
			k.came, _ = m.device.EventQuery(k.first)
			again = true
		}
	}
	return again
}

// unmark destroys the marks, of streams that have finished. It may be called again.
func (m *Memory) unmark() error {
	m.marking.Lock()
	defer m.marking.Unlock()
	for s, k := range m.marked {
		for _, e := range []*cudadrv.Event{&k.first, &k.last} {
			if *e == 0 {
				continue
			}
			if err := m.device.EventDestroy(*e); err != nil {
				return err
			}
			*e = 0
		}
		delete(m.marked, s)
	}
	return nil
}
