// Package sleep provides arenas: device memory whose physical part can be released to the driver while its buffers stay live
// and keep their addresses. Services that share a GPU put the weights and the key-value cache of a model to sleep while another
// model works.
//
// # Use
//
//	a := must(sleep.New(c, sleep.Options{})) // c is a *cuda.Context
//	w := must(a.Alloc(bytes))                // a buffer like any other
//	check(cuda.CopyIn(c, w, weights))
//	check(a.Sleep(ctx, sleep.Save))          // the memory is free for others; launches on w are refused
//	check(a.Wake(ctx))                       // w is at the same address, with the same bytes
//	check(a.Close())
//
// # Words
//
// An Arena is a stream of its own from which buffers are allocated, and which sleeps and wakes as a whole. It sleeps: its
// buffers live, their addresses stay reserved, and no physical memory is mapped there. Contents are the bytes of live buffers
// at the call of Sleep, and of buffers that were freed and that a graph still holds: they are saved in page-locked memory of
// the host, or dropped. Work is all that package cuda submits: launches, copies, fills and launches of graphs.
//
// # States
//
//	awake --Sleep--> asleep --Wake--> awake
//	awake, asleep --Close--> closed
//
// From the begin of Sleep until the end of Wake work on the arena's buffers, Arena.Alloc, and captures that touch them are
// refused with ErrAsleep, in constant time and with nothing submitted. A buffer may be freed at any time. Sleep of a sleeping
// arena releases memory that the driver refused at the first call, and with Drop it drops the saved contents. Wake of an awake
// arena does nothing. An arena that is closed while it sleeps drops its contents; its live buffers stay asleep until they are
// freed. Closed arenas refuse calls with ErrClosed; live buffers of an arena that is closed awake remain usable.
//
// # Memory
//
// Buffers of an arena share pages with each other, never with others, and the driver's handles of the pages hold nothing else.
// So Sleep releases all of the arena's physical memory: its buffers, and the unused memory between them. Memory of freed
// buffers stays in the arena, for its next buffers, until Close. An arena counts in the device's limit while it is awake; the
// device's Stats count sleeping memory in SleepingBytes, not in ReservedBytes.
//
// An arena is for buffers that live long: one that was used comes back to it when the device is known to have finished with it,
// as memory of another stream does, and not in the order of the work. Work on an arena's buffers makes no driver call beyond
// its own while one context uses them.
//
// # Failures
//
// Sleep waits for the device, and then copies, one block after the other. If it fails, or its context ends, before that is
// done, the arena stays awake, with nothing lost. Then the driver unmaps and releases memory, without interruption. If a driver
// call fails, the arena is asleep with part of its memory released: Sleep continues with the rest, Wake restores everything.
//
// Wake needs as much memory as Sleep has released. It lets other streams, and other devices of the process on the same GPU,
// release unused memory. If that is not enough, it returns a *vram.OutOfMemoryError. After any error, and if its context ends,
// the arena is asleep as before, and Wake releases its memory again as far as the driver permits: nothing is lost, and Wake may
// be called again. If the driver cannot confirm the end of a copy, its memory is kept until a later call can.
//
// The device may be closed while an arena sleeps, and its contents go. Close of the arena then returns memory of Options.Host;
// the arena's own page-locked memory has gone with the device.
//
// # How long a call waits
//
// Sleep waits until all work on the buffers that was submitted before it has finished: its context ends that wait. A stream
// that is being captured cannot be waited for, and the error is a *vram.CaptureError, also where the capture has ended within
// the call. Work that is submitted past package cuda, by the handle of a stream, is not seen: it must have finished before the
// call. The end of the context is seen between two blocks of a copy (BlockBytes), and while Wake waits for memory. Of several
// calls on one arena each waits for the one before it, or its context.
//
// # Concurrency properties
//
// All functions are safe for concurrent use. Alloc, frees and work take no lock: each adds to one counter and takes from it
// again. Programs without an arena pay nothing.
package sleep
