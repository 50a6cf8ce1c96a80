package vram

import "github.com/go-vram/vram/streams"

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
//   - [streams.Stream.Lane](budgetBytes int64) (*Lane, error): a lease of its memory for one
//     goroutine at a time.
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

// Lane is an exclusive lease of a stream's memory for one goroutine at a time; see
// [streams.Stream.Lane]. The full documentation of its methods is in package streams: go doc
// vram/streams.Lane.Alloc.
//
//   - [streams.Lane.Alloc](bytes int64) (Buffer, error): Stream.Alloc from the lane's memory,
//     without an atomic operation that writes.
//   - [streams.Lane.Free](b Buffer) error: Buffer.Free on plain memory, for buffers of the lane's.
//   - [streams.Lane.Close]() error: gives back all that it has; live buffers stay valid.
//   - [streams.Lane.String]() string: its stream.
//   - [streams.Lane.MarshalText]() ([]byte, error): the same, for JSON and logs.
type Lane = streams.Lane

// Batch is the buffers that one request has allocated together, all or nothing: see Stream.AllocBatchFor.
//
//   - [streams.Batch.Buffers]() []Buffer: in the order of the sizes.
//   - [streams.Batch.Free]() error: frees all of them.
//   - [streams.Batch.String]() string: counts them.
//   - [streams.Batch.MarshalText]() ([]byte, error): the same, for JSON and logs.
type Batch = streams.Batch
