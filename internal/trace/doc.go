// Package trace reads recordings of the requests of a workload to its GPU allocator: every
// allocation and every free, in program order.
//
// # Format
//
// A trace is comma-separated text, plain or gzip, with the header line
//
//	t_us,op,id,size,stream
//
// and one line an event:
//
//   - t_us: microseconds since any moment, as 1970 or the first event; never goes backwards. A Trace has those since its first event.
//   - op: a for an allocation, f for a free.
//   - id: the buffer. Ids are dense, from 0, in order of allocation; an id is allocated once and
//     freed at most once, after its allocation.
//   - size: the bytes asked for, before any rounding, at least 1; a free repeats it.
//   - stream: dense index of a CUDA stream, 0 is the default stream. On an allocation it is the
//     stream that the buffer belongs to. On a free it is the stream whose program frees the buffer,
//     which is the same one in all recordings of a caching allocator, and may be another one.
//
// Lines end with LF or CR LF, the last one too: without it the trace was cut off. A byte order mark may stand before the first.
//
// A buffer without a free was still held when the recording stopped: a leftover.
//
// # Promises
//
// The reader is strict. It refuses a text that breaks a rule above with a *ParseError that names the
// file, the line and the rule; a Trace that it returns keeps all of them, so code that walks a
// Trace checks nothing again. It holds a trace in 24 bytes an event.
//
// A Trace is a plain value: it may be read from any number of goroutines.
package trace
