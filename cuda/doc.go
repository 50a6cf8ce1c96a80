// Package cuda submits work to the streams of vram: kernels from PTX, copies, fills, events and captured graphs. It needs only
// the driver: no cgo, no toolkit.
//
// # Use
//
//	c := must(cuda.Open(vram.Config{})) // the first GPU, a stream, and this context; NewContext is for a stream that exists
//	scale := must(c.Kernel(ptx, "scale"))
//	x := must(cuda.From(c, values))
//	check(c.Launch(scale, cuda.Cover(n), cuda.InOut(x), cuda.Value(float32(2)), cuda.Value(uint32(n))))
//	values = must(cuda.Load[float32](c, cuda.Whole(x), n)) // waits
//	check(x.Free())
//	check(c.Close()) // gives back what Open has opened
//
// Context.NewQueue makes the same calls without an error each: the first one is kept.
//
// # Words
//
// A Context submits work to a stream. A Module is loaded code, a Function a kernel of it, a Variable one of its variables, a
// Launch one run of a kernel; its Geometry is the grid, the block and the dynamic shared memory. An argument that is a buffer is
// In, Out or InOut, as the kernel reads it, writes it, or both; Null is a nil pointer, and Value and Struct are numbers and
// structs by value. A Parameter is an argument's place in the kernel. A Graph is captured work that can be launched again; its
// hold is the memory that it keeps.
//
// # Work and memory
//
// A launch or a copy checks each of its buffers, in constant time. It refuses freed buffers, stale copies, and buffers of
// another device with a typed error, and submits nothing. A buffer of another stream needs no wait by the caller. Reads of a
// buffer run side by side. On the device, a read waits for the last write to the buffer, by any stream, and a write for the
// reads since, too; what the buffer's own stream did before the first use by another one counts as a write. The use is recorded
// (Buffer.RecordStream), so that a free waits for it. An order costs one event for each pair of streams, when it is needed: none
// if a wait of the stream covers the other work already, so that the second read after a write makes no further driver call.
// What a kernel does with a buffer follows from In, Out and InOut; Submit counts as a write. Callers that submit work past this
// package, with the handle of a stream, must order it themselves.
//
// Context.Freeze is for what is never written again, as weights and tables: after a stream's first read its launches take the
// way of launches on its own buffers.
//
// # Types of arguments
//
// A launch holds each argument against the kernel's parameter: its size, which the driver tells (CUDA 12.4 and later), and its
// type, which PTX tells. So an int32 for a .f32 is refused (ErrArgumentType). Of a cubin no types are known. A raw address
// (cudadrv.Ptr), and an address in a struct, are passed unchecked: the caller keeps and orders their memory, or launches with
// LaunchPacked, which takes a list of buffers.
//
// # Memory that sleeps
//
// Buffers of an arena (package cuda/sleep) are like any others. While the arena sleeps, work on them, launches of graphs with
// their addresses, and captures that touch them are refused with ErrAsleep.
//
// # Several devices
//
// Context.CopyPeer copies between buffers of two devices, and Context.TransferPeer moves a buffer to another device. The copy
// is work of the receiving context. A context of the source's device waits for it, on the device, so that a free of the source
// waits, too. A launch takes buffers of another device after vram.Device.EnablePeerAccess has given its device access to the
// memory, and is ordered with the streams of those buffers as a copy is. Other work takes only buffers of its own device. Close
// waits for the launches on a device's memory, so devices may be closed in any order.
//
// # Graphs
//
//	capturing --Capture returns--> open --Close--> closed
//
// A graph keeps the memory that its work touches until it is closed and its last launch has finished. It keeps arguments of
// Graph.SetArgs until they are replaced and the launches with them have finished. Memory from Context.Alloc inside the capture
// comes from the hold, and returns to it when it is freed, then or later. A buffer from outside may be freed at any time, but
// its memory is not reused before the graph is closed. Inside a capture a stream may reuse freed memory of the hold after all
// work on it: the captured stream, and a branch after a Context.Wait for the streams that used it. So a graph needs the peak of
// its work's memory, not the sum. Work of a branch on a buffer of another branch waits for its allocation. The package does not
// see work that is submitted by a stream's handle. If such work uses a buffer of another stream, order both streams before the
// work and after it.
//
// # Concurrency properties
//
// All functions are safe for concurrent use. A launch on buffers of the context's own stream, and on frozen ones that the stream
// has read, takes no lock and no actor's turn, makes one driver call, and allocates nothing. A call that submits work on a
// buffer of several streams waits on the host for calls that submit other work on it, if one of the two writes; the first such
// call also waits for launches that the buffer's own stream is submitting, and for its copies of the buffer to or from host memory,
// in which the driver may wait for the device. So of a read and a write at the same time, from two goroutines, one is first on the
// device. Only a CopyPeer, or a launch of another device, is not in order with a call at the same time by the buffer's own stream,
// while no other stream of its device has used the buffer: the caller orders the two. Callers that submit to one stream from several goroutines must order
// them. A capture belongs to one goroutine, but work that others submit to the captured contexts becomes part of the graph.
// Calls wait for the device only where their documentation says so.
//
// A capture is announced before it begins. It waits until other goroutines' driver calls on its stream have ended, a
// Synchronize included. From the announcement to its end, calls of others that would record an event on the stream, or wait
// for it, are refused with a *vram.CaptureError (errors.Is with ErrCapturing). So no work is lost: it is part of the graph, or
// it runs, or it is refused, as is a launch on a buffer of a captured stream: submit it again after the capture. A capture that
// another library begins during such a call may refuse it in the same way.
package cuda
