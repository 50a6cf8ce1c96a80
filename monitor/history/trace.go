package history

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/go-vram/vram"
)

// ErrEmpty says that nothing was recorded: there is no trace without an event.
var ErrEmpty = errors.New("history: nothing was recorded")

// WriteTrace writes the recording as a trace that vram replay reads. Errors: ErrEmpty, and the writer's.
func (r *Recorder) WriteTrace(w io.Writer) error {
	s := r.Snapshot()
	return s.WriteTrace(w)
}

// WriteTrace writes the snapshot as a trace that vram replay reads. Errors: ErrEmpty, and the writer's.
func (s *Snapshot) WriteTrace(w io.Writer) error {
	if s == nil {
		return ErrEmpty
	}
	t := tracer{w: bufio.NewWriter(w), live: map[vram.Ptr]held{}, streams: map[uint32]int{}}
	_, _ = fmt.Fprintln(t.w, "t_us,op,id,size,stream")
	for _, e := range s.before() {
		t.allocate(0, e)
	}
	var began time.Time
	var micros int64
	for i := range s.Events {
		e := &s.Events[i]
		if i == 0 {
			began = e.Time
		}
		micros = max(micros, e.Time.Sub(began).Microseconds()) // goroutines may enter events out of their order in time
		switch e.Kind {
		case Allocated:
			t.allocate(micros, *e)
		case Freed:
			t.free(micros, e.Ptr)
		case OutOfMemory, Growth, Trim, Mapped, Unmapped:
		}
	}
	if t.next == 0 {
		return ErrEmpty
	}
	if err := t.w.Flush(); err != nil {
		return fmt.Errorf("history: %w", err)
	}
	return nil
}

// before returns the buffers that were allocated before the first event, by their addresses: those that are freed, or live at
// the end, and are not allocated in the recording.
func (s *Snapshot) before() (all []Event) {
	known := map[vram.Ptr]bool{}
	note := func(e *Event) {
		if !known[e.Ptr] {
			known[e.Ptr] = true
			if e.Kind == Freed {
				all = append(all, *e)
			}
		}
	}
	for i := range s.Events {
		if e := &s.Events[i]; e.Kind == Allocated || e.Kind == Freed {
			note(e)
		}
	}
	for _, e := range s.Live {
		if !known[e.Ptr] {
			known[e.Ptr] = true
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(a, b Event) int { return cmp.Or(cmp.Compare(a.Stream, b.Stream), cmp.Compare(a.Ptr, b.Ptr)) })
	return all
}

// held is a buffer of a trace.
type held struct {
	id, stream int
	bytes      int64
}

// tracer writes the lines of a trace.
type tracer struct {
	w       *bufio.Writer
	live    map[vram.Ptr]held
	streams map[uint32]int // dense, by their IDs
	next    int            // id
}

func (t *tracer) allocate(micros int64, e Event) {
	t.free(micros, e.Ptr) // one that was not told
	stream, known := t.streams[e.Stream]
	if !known {
		stream = len(t.streams)
		t.streams[e.Stream] = stream
	}
	h := held{t.next, stream, max(1, e.Bytes)}
	t.next++
	t.live[e.Ptr] = h
	t.line(micros, "a", h)
}

func (t *tracer) free(micros int64, p vram.Ptr) {
	if h, live := t.live[p]; live {
		delete(t.live, p)
		t.line(micros, "f", h)
	}
}

func (t *tracer) line(micros int64, op string, h held) {
	_, _ = fmt.Fprintf(t.w, "%d,%s,%d,%d,%d\n", micros, op, h.id, h.bytes, h.stream)
}
