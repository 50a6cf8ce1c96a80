package vram

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/go-vram/vram/cudadrv"
	poolcore "github.com/go-vram/vram/internal/pool/core"
	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/pool"
	"github.com/go-vram/vram/streams"
)

// Stream is the cache of one CUDA stream; see NewStream and AdoptStream. It is a type of package
// streams, where go doc finds the documentation of its methods: go doc vram/streams.Stream.Alloc.
// The list below has one line for each.
//
// One buffer:
//
//   - [streams.Stream.Alloc](bytes int64) (Buffer, error): it does not wait for other callers'
//     frees.
//   - [streams.Stream.AllocFor](ctx context.Context, want Request) (Buffer, error): aligned,
//     zeroed, tagged, charged; it may wait for frees.
//   - [streams.Stream.AllocAsync](ctx context.Context, want Request) futures.Future[Buffer]:
//     AllocFor as a future.
//   - [streams.Stream.Lookup](p Ptr) (Buffer, bool): the live buffer that has an address.
//
// Many buffers, all or none:
//
//   - [streams.Stream.AllocBatch](dst []Buffer, bytes []int64) error: cheaper than as many Allocs,
//     and side by side where possible.
//   - [streams.Stream.AllocBatchFor](ctx context.Context, want BatchRequest) (Batch, error): with
//     options; it may wait for frees.
//   - [streams.Stream.AllocBatchAsync](ctx context.Context, bytes []int64) futures.Future[Batch]:
//     AllocBatch as a future.
//   - [streams.Stream.AllocBatchForAsync](ctx context.Context, want BatchRequest)
//     futures.Future[Batch]: AllocBatchFor as a future.
//   - [streams.Stream.FreeBatch](buffers []Buffer) error: of any streams of the device.
//
// Declarations of use:
//
//   - [streams.Stream.Exclusive](): declares that one goroutine uses it, so that deadlocks can be
//     recognised.
//   - [streams.Stream.Suspend](by ...*Stream) func(): declares that its caller waits for others
//     until the result is called.
//   - [streams.Stream.WaitStream](other *Stream) error: its later work waits, on the device, for the
//     other's work so far.
//   - [streams.Stream.ExcludeFromWaits](exclude bool): declares that its kernels may run without
//     end.
//
// The stream and its memory:
//
//   - [streams.Stream.Handle]() StreamHandle: the CUDA stream.
//   - [streams.Stream.ID]() uint32: its number in reports.
//   - [streams.Stream.Trim](ctx context.Context) error: returns its free memory to the pool.
//   - [streams.Stream.Stats](ctx context.Context) (StreamStats, error): its statistics.
//   - [streams.Stream.String]() string: its number, and whether it is adopted or closed.
//   - [streams.Stream.MarshalText]() ([]byte, error): the same, for JSON and logs.
//   - [streams.Stream.Close]() error: waits for the stream and ends its service; live buffers stay
//     valid.
type Stream = streams.Stream

// Buffer is device memory that a caller owns: a small value whose copies name one allocation. The
// full documentation of its methods is in package streams: go doc vram/streams.Buffer.Free.
//
//   - [streams.Buffer.Ptr]() Ptr: the device address, aligned to 512 bytes.
//   - [streams.Buffer.Bytes]() int64: the size that was asked for.
//   - [streams.Buffer.Live]() bool: whether it has not been freed.
//   - [streams.Buffer.Free]() error: the last use has been submitted to its stream, and to those
//     that were announced.
//   - [streams.Buffer.RecordStream](s *Stream) error: announces work of another stream, until the
//     free.
//   - [streams.Buffer.Use](s *Stream) (Use, error): announces work of another stream, until
//     [streams.Use.Done].
//   - [streams.Buffer.Transfer](to *Stream) (Buffer, error): hands it over to another stream for
//     good.
//   - [streams.Buffer.String]() string: its size and address, and whether it lives.
//   - [streams.Buffer.MarshalText]() ([]byte, error): the same, for JSON and logs.
//   - [streams.Buffer.Uintptr]() uintptr: Ptr for gorgonia.org/tensor's Memory.
//   - [streams.Buffer.MemSize]() uintptr: Bytes for the same.
type Buffer = streams.Buffer

// Use is a use of a buffer on a stream other than its own; see [streams.Buffer.Use].
//
//   - [streams.Use.Done]() error: its last work has been submitted.
//   - [streams.Use.String]() string: whose use it is.
//   - [streams.Use.MarshalText]() ([]byte, error): the same, for JSON and logs.
type Use = streams.Use

// Batch is the buffers that one request has allocated together, all or nothing: see Stream.AllocBatchFor.
//
//   - [streams.Batch.Buffers]() []Buffer: in the order of the sizes.
//   - [streams.Batch.Free]() error: frees all of them.
//   - [streams.Batch.String]() string: counts them.
//   - [streams.Batch.MarshalText]() ([]byte, error): the same, for JSON and logs.
type Batch = streams.Batch

// The handles that name a context's own streams.
const (
	legacyStream    StreamHandle = 1 // CU_STREAM_LEGACY, as 0
	perThreadStream StreamHandle = 2 // CU_STREAM_PER_THREAD
)

// HandleError refuses to adopt a stream handle.
type HandleError struct {
	Handle StreamHandle `json:"handle"`
	Stream uint32       `json:"stream"` // the stream that has the handle already; 0: none has
	Want   string       `json:"want"`   // handles that can be adopted instead
}

// Error names the handle, and those that can be adopted.
func (e *HandleError) Error() string {
	text := fmt.Sprintf("vram: handle %#x", uint64(e.Handle))
	if e.Stream != 0 {
		text += fmt.Sprintf(" is stream %d's already", e.Stream)
	}
	return text + ": want " + e.Want
}

// CaptureError refuses a request that would need a driver call on a stream that is being captured
// into a graph.
type CaptureError = streams.CaptureError

var (
	// ErrCapturing is the kind of every *CaptureError.
	ErrCapturing = streams.ErrCapturing
	// ErrBusy says, within a *CaptureError, that a capture could not begin since a call on its
	// stream has not ended for ten seconds.
	ErrBusy = streams.ErrBusy
)

// AdoptStream makes a cache for a CUDA stream that the caller has created. The caller keeps the
// CUDA stream, and destroys it only after Stream.Close. A handle has one cache at a time. After
// Close it can be adopted again, also where the driver has given the same handle to a new stream.
// The handles 0 and 1 are the legacy default stream: its fences wait for the work of all blocking
// streams, so its memory comes back later than others'. Handle 2, the default stream of a thread,
// is refused: goroutines move between threads, and their work would go to different streams.
//
// The device calls the driver with an adopted handle only inside requests of its callers, so that a
// program may destroy or capture its stream at any other time. That has a price: memory that an
// adopted stream has freed serves other streams only from the next request on that stream, or a
// Stream.Trim, which record the fence for it.
//
// A stream that is being captured into a graph may be adopted. Until the capture ends, its requests
// are served where that takes no call on the stream, and fail with a *CaptureError where it does.
// Memory that is freed during the capture can be allocated again on the same stream at once, and on others
// once the capture has ended and a fence was recorded. Buffers that a graph uses must stay
// allocated as long as the graph is launched. Capture in the relaxed mode: in the others CUDA
// forbids, to other threads as well, calls that allocations make, and goroutines have no thread of
// their own. Package cuda announces the captures that it begins, and they may begin at any time. A
// program begins one itself while none of its calls on the stream is in progress, nor one on a buffer
// of the stream: such a call may be refused with a *CaptureError, or end the capture.
//
// Errors: *HandleError, the errors of NewStream, and the driver's for a destroyed handle, if it detects
// one.
func (d *Device) AdoptStream(h StreamHandle) (*Stream, error) {
	if h == perThreadStream {
		return nil, &HandleError{Handle: h, Want: "a stream of NewStream, or one that the program created: " +
			"the default stream of a thread is another one on each thread that a goroutine runs on"}
	}
	e, err := d.use()
	if err != nil {
		return nil, err
	}
	if !d.creations.enter() {
		return nil, deviceClosed()
	}
	defer d.creations.leave()
	if err := d.free(h); err != nil {
		return nil, err
	}
	if err := exists(e.meter, h); err != nil {
		return nil, failed(fmt.Sprintf("adopting handle %#x", uint64(h)), err)
	}
	return d.open(e, h, true)
}

// free returns nil if no open stream has the handle.
func (d *Device) free(h StreamHandle) error { return d.streams.Load().free(h) }

func (r *registry) free(h StreamHandle) error {
	for _, s := range r.open {
		if sameStream(s.Handle(), h) && !s.Closed() {
			return &HandleError{Handle: h, Stream: s.ID(), Want: "that stream, or to close it before"}
		}
	}
	return nil
}

// sameStream reports whether two handles name one stream.
func sameStream(a, b StreamHandle) bool {
	return a == b || a <= legacyStream && b <= legacyStream
}

// exists queries the driver about a handle, by a call that does no harm to a capture where there is
// one.
func exists(dev cudadrv.Device, h StreamHandle) error {
	if q, ok := dev.(cudadrv.CaptureQueries); ok && dev.Info().Capabilities.Has(cudadrv.CaptureInformation) {
		_, err := q.StreamIsCapturing(h)
		if errors.Is(err, cudadrv.CaptureImplicit) { // a blocking stream is being captured: the default stream is there
			return nil
		}
		return err
	}
	_, err := dev.StreamQuery(h)
	return err
}

// Handover carries values between the goroutines of two streams, as a channel does. It reports to the
// allocator which stream waits for the other, so that requests with Wait that can never be served are
// refused as a deadlock: see streams.Handover.
type Handover[T any] = streams.Handover[T]

// NewHandover makes a Handover with room for capacity values, at least one. A nil stream stands for
// goroutines without a stream, which count as making progress.
func NewHandover[T any](from, to *Stream, capacity int) *Handover[T] {
	return streams.NewHandover[T](from, to, capacity)
}

// A package that imports only this one gets the body of a function inlined only if this package
// inlined it itself. The use below has the calls of a pair inlined in every program.
var _ = pair

func pair(s *Stream) error {
	b, err := s.Alloc(1)
	if err != nil {
		return err
	}
	return b.Free()
}

// Reserve takes memory now and sets it aside for the requests that name the reservation
// (Request.Reservation, BatchRequest.Reservation). Such a request is served by its stream's cache
// where that has a block; else it draws from the reservation, as long as that has all it wants. So
// it succeeds however much others hold, without a driver call.
//
// A request draws whole pages (Info().GranularityBytes): buffers fit as long as their sizes, each
// rounded up to pages, add up to no more than the reservation. When they are freed their memory is
// like any other; it does not go back into the reservation. Undrawn memory counts as held
// (Stats.SetAsideBytes) until Reservation.Release or the end of the device.
//
// Reserve waits for the driver, not for other callers' frees. While a reservation has memory left,
// requests that wait are not refused as a deadlock, since its owner may release it: give their
// contexts a deadline. Errors: *ConfigError unless bytes are 1 or more, *SizeError,
// *OutOfMemoryError, the context's, ErrClosed, and the errors of the device's first use; after an error
// nothing is set aside.
func (d *Device) Reserve(ctx context.Context, bytes int64) (*Reservation, error) {
	if err := d.callable(ctx); err != nil {
		return nil, err
	}
	if bytes < 1 {
		return nil, badArgument("Device.Reserve", "bytes", bytes, "1 or more")
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	e, err := d.use() //nolint:contextcheck // the first use is not this caller's alone
	if err != nil {
		return nil, err
	}
	if limit := d.limit.Load(); bytes > limit {
		return nil, &SizeError{RequestedBytes: bytes, LimitBytes: limit, LimitSource: d.limitSource()}
	}
	for {
		r, err := e.pool.Reserve(ctx, poolcore.Client(d.lastID.Add(1)), bytes)
		if err == nil {
			return r, nil
		}
		short := (*OutOfMemoryError)(nil)
		if !errors.As(err, &short) {
			return nil, closedOr(err)
		}
		if !d.askNeighbours(ctx, short) {
			e.pool.Tally().OutOfMemory()
			short.Largest = e.peers.Largest()
			d.nameProcesses(short) //nolint:contextcheck // it has a time of its own
			return nil, err
		}
		e.pool.Tally().Retry()
	}
}

// warmRunBytes is the longest run that is mapped ahead in one piece. Not longer: a warm-up holds
// its runs until all are there, and a short run fits more holes. Not shorter: large buffers.
const warmRunBytes = 1 << 30

// Warm maps memory ahead of need for buffers of the given sizes and counts, in addition to the live ones,
// so that allocating them makes no driver call. Free memory of the pool counts; the streams' caches do
// not. Any request may take the memory, and Trim and Config.PoolCacheBytes release it. See Reserve
// for memory of certain requests alone.
//
// Warm waits until all is mapped or ctx ends; mapped memory stays. Other requests take precedence.
// Events.Warm reports the progress. Errors: *ConfigError for an invalid demand, *LimitError if the limit
// leaves no room, the context's, ErrClosed, and the errors of the device's first use.
func (d *Device) Warm(ctx context.Context, want ...Demand) error {
	if err := d.callable(ctx); err != nil {
		return err
	}
	refuse := func(i int, wanted string) error {
		return badArgument("Device.Warm", fmt.Sprintf("demand %d", i), want[i], wanted)
	}
	if err := checkDemands(want, refuse); err != nil {
		return err
	}
	e, err := d.use() //nolint:contextcheck // the first use is not this caller's alone
	if err != nil {
		return err
	}
	runs, err := warmRuns(want, e.pool.PageBytes(), d.limit.Load())
	if err != nil {
		return failed("warm", err)
	}
	_, err = e.pool.Warm(ctx, runs)
	if errors.Is(err, pool.ErrClosed) {
		return deviceClosed()
	}
	if err != nil {
		return failed("warm", err)
	}
	return nil
}

// warmRuns cuts a demand into runs of pages. Small buffers share pages; large ones begin anywhere
// in a run, but each run holds a whole number of them. A demand that exceeds the limit by itself,
// and small ones that do together, are refused here: they need not be a number that can be counted
// in pages.
func warmRuns(want []Demand, pageBytes, limitBytes int64) ([]uint32, error) {
	var runs []uint32
	var small int64
	for _, w := range want {
		if int64(w.Count) > limitBytes/w.Bytes {
			return nil, tooMuch(w, limitBytes)
		}
		if w.Bytes <= sizeclass.MaxBytes {
			class := sizeclass.Of(sizeclass.Units(w.Bytes))
			blocks := int64(sizeclass.SpanBlocks(class))
			spans := (int64(w.Count) + blocks - 1) / blocks
			if small += spans * int64(sizeclass.SpanUnits(class)) << sizeclass.UnitShift; small > limitBytes {
				return nil, tooMuch(w, limitBytes)
			}
			continue
		}
		block := int64(sizeclass.Units(w.Bytes)) << sizeclass.UnitShift
		perRun := max(1, warmRunBytes/block)
		for left := int64(w.Count); left > 0; left -= perRun {
			runs = append(runs, pagesFor(block*min(left, perRun), pageBytes))
		}
	}
	if small > 0 {
		runs = append(runs, pagesFor(small, pageBytes))
	}
	return runs, nil
}

// tooMuch refuses a demand for which the limit leaves no room, alone or after earlier demands.
func tooMuch(w Demand, limitBytes int64) error {
	wanted := int64(math.MaxInt64)
	if int64(w.Count) <= wanted/w.Bytes {
		wanted = int64(w.Count) * w.Bytes
	}
	return fmt.Errorf("%d buffers of %d bytes: %w", w.Count, w.Bytes, &LimitError{WantedBytes: wanted, LimitBytes: limitBytes})
}

func pagesFor(bytes, pageBytes int64) uint32 {
	return uint32((bytes + pageBytes - 1) / pageBytes)
}
