// Package cuda puts work on the streams of vram: kernels from PTX, copies, fills, events and captured graphs, with the driver alone.
// It needs no cgo and no toolkit.
//
// # Use
//
//	c := must(cuda.NewContext(stream)) // stream is a *vram.Stream
//	m := must(c.LoadModule([]byte(ptx)))
//	scale := must(m.Function("scale"))
//	x := must(c.Alloc(4 * n))
//	cuda.CopyIn(c, x, values)
//	c.Launch(scale, cuda.Cover(n, 256), cuda.InOut(x), cuda.Value(float32(2)), cuda.Value(uint32(n)))
//	cuda.CopyOut(c, values, x) // waits
//
// # Words
//
// A Context is a stream with what is needed to submit work to it. A Module is loaded code, a Function a kernel of it, a Launch one
// run of a kernel; its Geometry is the grid, the block and the dynamic shared memory. An argument that is a buffer is In, Out or
// InOut: what the kernel reads, writes, or both. A Graph is captured work that can be launched again; its hold is the memory that
// it keeps.
//
// # Work and memory
//
// A launch or a copy looks at each of its buffers, in constant time: one that was freed, that is a stale copy, or that belongs to
// another device is refused with a typed error, and nothing is submitted. A buffer of another stream needs no more than its name:
// the work is put, on the device, behind what was submitted to that stream, and behind works of others on that stream's
// buffers; the use is announced (Buffer.RecordStream), so that a free waits for it; and a later launch, copy or fill of
// this package behind it on the other stream waits for it in turn. That costs one event for each pair of streams and
// work. Work that is submitted past this package, by the handle of a stream, is ordered by whoever submits it.
//
// # Memory that sleeps
//
// Buffers of an arena (package cuda/sleep) are used as any others. While the arena sleeps work on them, launches of graphs that have
// their addresses and captures that touch them are refused with ErrAsleep.
//
// # Several devices
//
// Context.CopyPeer copies between buffers of two devices, and Context.TransferPeer hands a buffer over to another device. The copy is
// work of the receiving context; a context of the other device stands for the source there: it is made to wait, on the device, for
// the copy, so that a free of the source waits, too. A launch takes buffers of another device once vram.Device.EnablePeerAccess has given
// its device access to that one's memory, and is ordered with the streams of those buffers as a copy is; other work takes buffers of its
// own device alone. Close waits for the launches on a device's memory; so devices may be closed in any order.
//
// # Graphs
//
//	capturing --Capture returns--> open --Close--> closed
//
// What a graph touches is its own until it is closed and its last launch has finished, and arguments of Graph.SetArgs until they are
// replaced and the launches that had them have finished: memory that Context.Alloc gave inside the
// capture comes from the hold, and returns to it when it is freed, then or later; a buffer from outside may be freed at any time, and
// its memory is not given to anybody before the graph is closed. Inside a capture freed memory of the hold is used again by a
// stream that is behind all work on it: by the captured stream, and by a branch behind a Context.Wait for the others that had it. So a
// graph needs what its work needs at once, not the sum. Work of a branch on a buffer that another one has allocated is put behind the
// allocation. Work that is submitted past this package to another stream than the one that has allocated a buffer is not known: wait
// for that stream, and have it wait, around the buffer's life.
//
// # Concurrency properties
//
// Any goroutine may call anything at any time. A launch on buffers of the context's own stream takes no lock and no actor's turn, makes one
// driver call, and allocates nothing. Whoever submits to one stream from several goroutines orders them. A capture is one goroutine's:
// what others submit to the captured contexts meanwhile becomes part of the graph. Nothing waits for the device but what says so.
//
// A capture announces itself before it begins. It waits until the driver calls that others make on its stream have ended, a Synchronize
// among them; and from the announcement to its end, calls of others that would record an event on the stream, or wait for it, are
// refused with a *vram.CaptureError (errors.Is with ErrCapturing). So no work is lost: it is part of the graph, or it runs, or it is
// refused. That holds for a launch on a buffer of a stream that is being captured, too: make it again after the capture. Of captures
// that are begun past this module, one that begins while such a call is made may refuse it in the same way.
package cuda
