package pool

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/order"
	"github.com/go-vram/vram/internal/units"
	"github.com/go-vram/vram/pool/core"
)

// ErrOutOfMemory is the kind of every *OutOfMemoryError.
var ErrOutOfMemory = errors.New("vram: out of memory")

// ErrClosed says that the pool was closed.
var ErrClosed = core.ErrClosed

// ErrDriverPanic says that a driver call panicked. What it was part of failed as a whole.
var ErrDriverPanic = errors.New("pool: a driver call panicked")

// ErrNotOpen refuses a call on a nil or zero Tenant or Reservation.
var ErrNotOpen = cudadrv.ErrNotOpen

// ErrForeign refuses what is of another device.
var ErrForeign = errors.New("vram: of another device")

// ErrNegative refuses a negative size.
var ErrNegative = errors.New("vram: negative size")

// LimitError says that memory cannot be mapped ahead, since the limit leaves no room.
type LimitError = core.LimitError

// OutOfMemoryError says why a request could not be served, as the books stood when it was refused.
type OutOfMemoryError struct {
	RequestedBytes   int64 // all that the caller asked for, of a batch the sum
	FreeBytes        int64 // mapped, and held by no stream
	LargestFreeBytes int64 // the longest run of it
	PendingBytes     int64 // of FreeBytes: a fence has not passed yet
	ReservedBytes    int64 // held from the driver
	LimitBytes       int64
	DriverBytes      int64 // that the driver could give in all when it refused, those reserved included; 0 if it did not refuse
	MissingBytes     int64 // pages that were looked for in vain: whole ones, without what the stream has and what was found of a batch
	Waited           bool  // it was refused after it had waited, since nobody holds anything that could come back
	Streams          []Holding
	Cause            error // what the driver said, if it refused; else nil
}

// Holding is what a stream held when it last spoke to the pool.
type Holding struct {
	Stream    uint32
	HeldBytes int64 // pages lent to it
	LiveBytes int64 // of them in buffers, or cached by magazines: nothing of what was asked for
	LaneCount int   // of its lanes: each gives back what it does not use when it is called next
	LaneBytes int64 // of LiveBytes: what the lanes have, in use or not
	// UncoveredBytes are free in an adopted stream, and stay there until its callers' next request, or their
	// Stream.Return, records the fence that others need.
	UncoveredBytes int64
	UnpassedBytes  int64 // that it returned: free for others once its fence has passed
	Reservation    bool  // it is no stream: what is held is set aside by Reserve
}

// mostHolders is how many of those that hold memory the text of a refusal names, and mostRemedies how many remedies: all are in the
// fields.
const (
	mostHolders  = 3
	mostRemedies = 4
)

// Error says the facts in one line, and what would help, of many streams and remedies the first. Exact numbers are in the fields.
func (e *OutOfMemoryError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "vram: out of memory: requested %s", units.Bytes(e.RequestedBytes))
	if e.MissingBytes < e.RequestedBytes {
		fmt.Fprintf(&b, " (%s of it missing)", units.Bytes(e.MissingBytes))
	}
	fmt.Fprintf(&b, ", free %s", units.Bytes(e.FreeBytes))
	switch largest, pending := units.Bytes(e.LargestFreeBytes), units.Bytes(e.PendingBytes); {
	case e.LargestFreeBytes < e.FreeBytes && e.PendingBytes > 0:
		fmt.Fprintf(&b, " (largest %s, %s behind fences)", largest, pending)
	case e.LargestFreeBytes < e.FreeBytes:
		fmt.Fprintf(&b, " (largest %s)", largest)
	case e.PendingBytes > 0:
		fmt.Fprintf(&b, " (%s behind fences)", pending)
	}
	fmt.Fprintf(&b, ", reserved %s of a limit of %s", units.Bytes(e.ReservedBytes), units.Bytes(e.LimitBytes))
	if e.DriverBytes > 0 {
		fmt.Fprintf(&b, ", of which the driver has %s", units.Bytes(e.DriverBytes))
	}
	e.describeHolders(&b)
	e.describeRemedies(&b)
	if e.Cause != nil {
		fmt.Fprintf(&b, ": %v", e.Cause)
	}
	return b.String()
}

// describeHolders names those that hold most, and sums up the others.
func (e *OutOfMemoryError) describeHolders(b *strings.Builder) {
	holders := slices.Clone(e.Streams)
	order.Stably(holders, func(x, y *Holding) int { return cmp.Compare(y.HeldBytes, x.HeldBytes) })
	holders = slices.DeleteFunc(holders, func(h Holding) bool { return h.HeldBytes == 0 })
	for i := range holders[:min(len(holders), mostHolders)] {
		b.WriteString("; " + holders[i].text())
	}
	if len(holders) <= mostHolders {
		return
	}
	var bytes int64
	for _, h := range holders[mostHolders:] {
		bytes += h.HeldBytes
	}
	fmt.Fprintf(b, "; %d more hold %s", len(holders)-mostHolders, units.Bytes(bytes))
}

// text says what is held.
func (h *Holding) text() string {
	if h.Reservation {
		return "a reservation holds " + units.Bytes(h.HeldBytes)
	}
	text := fmt.Sprintf("stream %d holds %s, %s live", h.Stream, units.Bytes(h.HeldBytes), units.Bytes(h.LiveBytes))
	if h.LaneCount > 0 {
		text += fmt.Sprintf(" (lanes: %d, with %s)", h.LaneCount, units.Bytes(h.LaneBytes))
	}
	if h.UncoveredBytes > 0 {
		text += fmt.Sprintf(" (%s stay until its callers' next request or Return)", units.Bytes(h.UncoveredBytes))
	}
	return text
}

// describeRemedies names what would help: of many the cheapest, and the last, which is always of use.
func (e *OutOfMemoryError) describeRemedies(b *strings.Builder) {
	all := e.Remedies()
	if n := len(all); n > mostRemedies {
		all = append(all[:mostRemedies-1:mostRemedies-1], all[n-1])
	}
	for i, r := range all {
		if i == 0 {
			b.WriteString("; what would help: ")
		} else {
			b.WriteString("; ")
		}
		b.WriteString(r.String())
	}
}

// Is makes errors.Is(err, ErrOutOfMemory) hold.
func (e *OutOfMemoryError) Is(target error) bool { return target == ErrOutOfMemory }

// Unwrap is the driver's error, if the driver refused.
func (e *OutOfMemoryError) Unwrap() error { return e.Cause }

// denialError is the error of a denial.
func (q *quotas) denialError(d core.Denial) error {
	if errors.Is(d.Err, core.ErrClosed) {
		return ErrClosed
	}
	if d.Err != nil && !errors.Is(d.Err, cudadrv.OutOfMemory) {
		return fmt.Errorf("vram: %w", d.Err)
	}
	if d.Deadlock != nil {
		return q.deadlockError(d)
	}
	s := d.Shortage
	e := &OutOfMemoryError{
		RequestedBytes: s.RequestedBytes, FreeBytes: s.FreeBytes, LargestFreeBytes: s.LargestFreeBytes,
		PendingBytes: s.PendingBytes, ReservedBytes: s.ReservedBytes, LimitBytes: s.LimitBytes, Cause: d.Err,
		DriverBytes:  s.DriverBytes,
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
