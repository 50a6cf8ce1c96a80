package pool

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/pool/core"
)

// ErrOutOfMemory is the kind of every *OutOfMemoryError.
var ErrOutOfMemory = errors.New("vram: out of memory")

// ErrClosed says that the pool was closed.
var ErrClosed = core.ErrClosed

// ErrDriverPanic says that a driver call panicked. What it was part of failed as a whole.
var ErrDriverPanic = errors.New("pool: a driver call panicked")

// LimitError says that memory cannot be mapped ahead, since the limit leaves no room.
type LimitError = core.LimitError

// OutOfMemoryError says why a request could not be served, as the books stood when it was refused.
type OutOfMemoryError struct {
	RequestedBytes   int64
	FreeBytes        int64 // mapped, and held by no stream
	LargestFreeBytes int64 // the longest run of it
	PendingBytes     int64 // of FreeBytes: a fence has not passed yet
	ReservedBytes    int64 // held from the driver
	LimitBytes       int64
	MissingBytes     int64 // pages that were looked for in vain: whole ones, without what the stream has and what was found of a batch
	Waited           bool  // it was refused after it had waited, since nobody holds anything that could come back
	Streams          []Holding
	Cause            error // what the driver said, if it refused; else nil
}

// Holding is what a stream held when it last spoke to the pool.
type Holding struct {
	Stream    uint32
	HeldBytes int64 // pages lent to it
	LiveBytes int64 // of them in use, or asked for
	LaneCount int   // of its lanes: each gives back what it does not use when it is called next
	LaneBytes int64 // of LiveBytes: what the lanes have, in use or not
	// UncoveredBytes are free in an adopted stream, and stay there until its callers' next request, or their
	// Stream.Return, records the fence that others need.
	UncoveredBytes int64
	UnpassedBytes  int64 // that it returned: free for others once its fence has passed
	Reservation    bool  // it is no stream: what is held is set aside by Reserve
}

// Error says the facts in one line, and what would help.
func (e *OutOfMemoryError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "vram: out of memory: requested %d bytes, free %d (largest %d, pending %d), reserved %d of a limit of %d",
		e.RequestedBytes, e.FreeBytes, e.LargestFreeBytes, e.PendingBytes, e.ReservedBytes, e.LimitBytes)
	for _, s := range e.Streams {
		if s.Reservation {
			fmt.Fprintf(&b, "; a reservation holds %d", s.HeldBytes)
			continue
		}
		fmt.Fprintf(&b, "; stream %d holds %d, live %d", s.Stream, s.HeldBytes, s.LiveBytes)
		if s.LaneCount > 0 {
			fmt.Fprintf(&b, " (lanes: %d, with %d)", s.LaneCount, s.LaneBytes)
		}
		if s.UncoveredBytes > 0 {
			fmt.Fprintf(&b, " (%d stay until its callers' next request or Return)", s.UncoveredBytes)
		}
	}
	for i, r := range e.Remedies() {
		if i == 0 {
			b.WriteString("; what would help: ")
		} else {
			b.WriteString(", ")
		}
		b.WriteString(r.String())
	}
	if e.Cause != nil {
		fmt.Fprintf(&b, ": %v", e.Cause)
	}
	return b.String()
}

// Is makes errors.Is(err, ErrOutOfMemory) hold.
func (e *OutOfMemoryError) Is(target error) bool { return target == ErrOutOfMemory }

// Unwrap is the driver's error, if the driver refused.
func (e *OutOfMemoryError) Unwrap() error { return e.Cause }

// denialError is the error of a denial.
func denialError(d core.Denial) error {
	if errors.Is(d.Err, core.ErrClosed) {
		return ErrClosed
	}
	if d.Err != nil && !errors.Is(d.Err, cudadrv.OutOfMemory) {
		return fmt.Errorf("vram: %w", d.Err)
	}
	if d.Deadlock != nil {
		return deadlockError(d)
	}
	s := d.Shortage
	e := &OutOfMemoryError{
		RequestedBytes: s.RequestedBytes, FreeBytes: s.FreeBytes, LargestFreeBytes: s.LargestFreeBytes,
		PendingBytes: s.PendingBytes, ReservedBytes: s.ReservedBytes, LimitBytes: s.LimitBytes, Cause: d.Err,
		MissingBytes: s.MissingBytes, Waited: s.Waited,
	}
	for _, h := range s.Holdings {
		e.Streams = append(e.Streams, holding(h))
	}
	return e
}

func holding(h core.Holding) Holding {
	return Holding{uint32(h.Client), h.HeldBytes, h.LiveBytes, h.Lanes.Count, h.Lanes.Bytes, h.UncoveredBytes, h.UnpassedBytes, h.Reserves}
}
