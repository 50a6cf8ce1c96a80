package pool

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/inventory"
	"github.com/go-vram/vram/internal/pool/core"
	"github.com/go-vram/vram/internal/units"
)

// ErrOutOfMemory is the kind of every *OutOfMemoryError.
var ErrOutOfMemory = errors.New("vram: out of memory")

// ErrClosed reports that the pool was closed.
var ErrClosed = core.ErrClosed

// ErrDriverPanic reports that a driver call panicked. Its job failed.
var ErrDriverPanic = errors.New("pool: a driver call panicked")

// ErrNotOpen refuses a call on a nil or zero Tenant or Reservation.
var ErrNotOpen = cudadrv.ErrNotOpen

// ErrForeign refuses an object of another device.
var ErrForeign = errors.New("vram: of another device")

// ErrNegative refuses a negative size.
var ErrNegative = errors.New("vram: negative size")

// LimitError reports that memory cannot be mapped ahead, since the limit leaves no room.
type LimitError = core.LimitError

// OutOfMemoryError describes why a request was refused, with the figures of that moment.
type OutOfMemoryError struct {
	RequestedBytes   int64  `json:"requested_bytes"` // by the caller; of a batch the sum
	Stream           uint32 `json:"stream"`          // of the request, by its ID; 0: Reserve's
	Tag              string `json:"tag"`
	Tenant           string `json:"tenant"`             // of the request; Events.OutOfMemory, which is told before, has neither
	FreeBytes        int64  `json:"free_bytes"`         // mapped, and lent to no stream
	LargestFreeBytes int64  `json:"largest_free_bytes"` // the longest run of it
	PendingBytes     int64  `json:"pending_bytes"`      // of FreeBytes: under a fence that has not passed
	ReservedBytes    int64  `json:"reserved_bytes"`     // held from the driver
	LimitBytes       int64  `json:"limit_bytes"`
	// the variable or the file that sets the limit; "": the device's memory, or the program
	LimitSource string `json:"limit_source"`
	SharedBytes int64  `json:"shared_bytes"` // of ReservedBytes: shared with other processes, by package cuda/share
	DriverBytes int64  `json:"driver_bytes"` // if the driver refused: all that it could give, reserved bytes included; else 0
	// whole pages that were not found, without the stream's own and the found part of a batch
	MissingBytes int64     `json:"missing_bytes"`
	Waited       bool      `json:"waited"` // refused after a wait, since no holder is left whose frees could serve it
	Streams      []Holding `json:"streams"`
	Tenants      []Holder  `json:"tenants"` // that have buffers: part of the streams' memory
	// Largest are at most ten live buffers with the most bytes, the largest first, as of at most a tenth
	// of a second before: in a storm of refusals the streams are looked through that often, and no more
	// than 65,536 buffers of each.
	Largest []inventory.Buffer `json:"largest"`
	// Processes are at most ten other processes on the GPU, the largest first, if the driver refused and
	// vram.Config.Processes lists them; ProcessesErr is why it could not.
	Processes    []GPUProcess `json:"processes"`
	ProcessesErr error        `json:"processes_err"`
	Cause        error        `json:"cause"` // the driver's error, if it refused; else nil

	reserves bool // refused by Reserve, which cannot wait for frees
}

// LiveBuffer is a live buffer, in an error.
type LiveBuffer = inventory.Buffer

// LargestOf returns the list of the largest live buffers in a refusal of the pool's, which its reader
// fills in outside every turn; nil: the error has none.
func LargestOf(err error) *[]LiveBuffer {
	switch e := err.(type) { //nolint:errorlint // unwrapped errors of the pool
	case *OutOfMemoryError:
		return &e.Largest
	case *DeadlockError:
		return &e.Largest
	}
	return nil
}

// Holding is the memory of a stream, as of its last message to the pool.
type Holding struct {
	Stream    uint32 `json:"stream"`
	HeldBytes int64  `json:"held_bytes"` // pages lent to it
	LiveBytes int64  `json:"live_bytes"` // of them in buffers, or cached by magazines; without the refused request
	// UncoveredBytes are free in an adopted stream, and stay there until its callers' next request,
	// or Stream.Trim, records the fence that others need.
	UncoveredBytes int64 `json:"uncovered_bytes"`
	UnpassedBytes  int64 `json:"unpassed_bytes"` // returned: free for others once its fence has passed
	Reservation    bool  `json:"reservation"`    // not a stream: memory set aside by Reserve
}

// maxHolders and maxRemedies are how many holders and remedies the text of a refusal names: all are
// in the fields.
const (
	maxHolders  = 3
	maxRemedies = 4
)

// Error formats the figures and the remedies in one line; of many streams and remedies only the first. The fields have exact
// numbers.
func (e *OutOfMemoryError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "vram: out of memory: requested %s", units.Bytes(e.RequestedBytes))
	if e.MissingBytes < e.RequestedBytes {
		fmt.Fprintf(&b, " (%s of it missing)", units.Bytes(e.MissingBytes))
	}
	b.WriteString(requester(e.Stream, e.Tag, e.Tenant))
	fmt.Fprintf(&b, ", free %s", units.Bytes(e.FreeBytes))
	switch largest, pending := units.Bytes(e.LargestFreeBytes), units.Bytes(e.PendingBytes); {
	case e.LargestFreeBytes < e.FreeBytes && e.PendingBytes > 0:
		fmt.Fprintf(&b, " (largest %s, %s pending)", largest, pending)
	case e.LargestFreeBytes < e.FreeBytes:
		fmt.Fprintf(&b, " (largest %s)", largest)
	case e.PendingBytes > 0:
		fmt.Fprintf(&b, " (%s pending)", pending)
	}
	fmt.Fprintf(&b, ", reserved %s%s of a limit of %s%s", units.Bytes(e.ReservedBytes), e.shared(), units.Bytes(e.LimitBytes), e.limitedBy())
	if e.DriverBytes > 0 {
		fmt.Fprintf(&b, ", of which the driver has %s", units.Bytes(e.DriverBytes))
	}
	e.describeHolders(&b)
	inventory.Describe(&b, e.Largest)
	e.describeProcesses(&b)
	e.describeRemedies(&b)
	if e.Cause != nil {
		fmt.Fprintf(&b, ": %v", e.Cause)
	}
	return b.String()
}

// requester names the stream, the tag and the tenant of a request.
func requester(stream uint32, tag, tenant string) (text string) {
	if stream != 0 {
		text = fmt.Sprintf(" on stream %d", stream)
	}
	if tag != "" {
		text += fmt.Sprintf(" with tag %q", tag)
	}
	if tenant != "" {
		text += fmt.Sprintf(" for tenant %q", tenant)
	}
	return text
}

// describeHolders names the largest holders, and sums up the others.
func (e *OutOfMemoryError) describeHolders(b *strings.Builder) {
	var holders []Holding
	for _, h := range e.Streams {
		if h.HeldBytes != 0 {
			holders = append(holders, h)
		}
	}
	slices.SortFunc(holders, func(a, b Holding) int {
		return cmp.Or(cmp.Compare(b.HeldBytes, a.HeldBytes), cmp.Compare(a.Stream, b.Stream))
	})
	for i := range holders[:min(len(holders), maxHolders)] {
		b.WriteString("; " + holders[i].String())
	}
	if len(holders) <= maxHolders {
		return
	}
	var bytes int64
	for _, h := range holders[maxHolders:] {
		bytes += h.HeldBytes
	}
	fmt.Fprintf(b, "; %d more hold %s", len(holders)-maxHolders, units.Bytes(bytes))
}

// String formats the holder and its memory.
func (h Holding) String() string {
	if h.Reservation {
		return "a reservation holds " + units.Bytes(h.HeldBytes)
	}
	text := fmt.Sprintf("stream %d holds %s, %s live", h.Stream, units.Bytes(h.HeldBytes), units.Bytes(h.LiveBytes))
	if h.UncoveredBytes > 0 {
		text += fmt.Sprintf(" (%s stay until its callers' next request or Trim)", units.Bytes(h.UncoveredBytes))
	}
	return text
}

// describeRemedies names the cheapest remedies, and the last one, which always helps.
func (e *OutOfMemoryError) describeRemedies(b *strings.Builder) {
	all := e.Remedies()
	if n := len(all); n > maxRemedies {
		all = append(all[:maxRemedies-1:maxRemedies-1], all[n-1])
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

// Unwrap returns the driver's error, if the driver refused.
func (e *OutOfMemoryError) Unwrap() error { return e.Cause }

// denialError returns the error of a denial to a client.
func (q *quotas) denialError(d core.Denial, to Client) error {
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
		PendingBytes: s.PendingBytes, ReservedBytes: s.ReservedBytes, LimitBytes: s.LimitBytes, LimitSource: s.LimitSource, SharedBytes: s.SharedBytes, Cause: d.Err,
		DriverBytes:  s.DriverBytes,
		MissingBytes: s.MissingBytes, Waited: s.Waited,
	}
	if _, e.reserves = to.(*reservationClient); !e.reserves {
		e.Stream = uint32(d.Client)
	}
	for _, h := range s.Holdings {
		e.Streams = append(e.Streams, holding(h))
	}
	e.Tenants = q.holders()
	return e
}

func holding(h core.Holding) Holding {
	return Holding{uint32(h.Client), h.HeldBytes, h.LiveBytes, h.UncoveredBytes, h.UnpassedBytes, h.Reserves}
}
