// Package share shares device memory between two processes of one machine: the memory goes over a unix socket as a file
// descriptor, and fences between the two are events of the driver.
//
// # Use
//
// One process makes the memory and exports it, the other one imports it. From then on both are alike.
//
//	m := must(share.New(c, bytes))       // c is a *cuda.Context
//	check(m.Export(conn))                // conn is a *net.UnixConn; the other process calls share.Import(c, conn)
//	check(m.CopyFrom(c, 0, cuda.Whole(x)))
//	check(m.Publish(c))                  // the peer may wait for c's work so far
//	check(m.Await(ctx, c))               // later work of c waits for the peer's next fence
//	check(m.CopyTo(c, 0, cuda.Whole(y)))
//	check(m.Close())
//
// # Words
//
// Memory is one physical allocation with a handle and a range of addresses of its own. It is not a vram buffer: a handle of
// vram may hold several buffers. It counts in the limit and the statistics of the device, in each process that has it:
// vram.Stats.SharedBytes, which is a part of ReservedBytes. If the limit leaves too little room New and Import release free
// memory of the device first, and fail with a *vram.OutOfMemoryError if that is not enough; until Close the allocator has less
// memory. The peer is the process at the other end of the connection. A fence is a point in the order of the peer's work:
// Publish makes one, Await waits for one. The way of a fence is its mechanism: an event of the driver, or a wait on the host.
//
// # States
//
//	New --> alone --Export--> linked --Close--> closed
//	Import ------------------> linked --Close--> closed
//
// Alone, the memory can be used by this process, and there are no fences (ErrNotLinked). It is linked once, to one peer
// (ErrLinked); an Export that failed leaves it alone, and another connection may be tried, also while an Export waits:
// the first whose peer answers links it, and the others end with ErrLinked. The link ends before the
// memory does where the peer closes or dies: the memory stays mapped, with its bytes, until Close. Closed memory
// refuses all calls with ErrClosed.
//
// # Ownership
//
// The connection belongs to the Memory from the call of Export or Import on: Close closes it, and so does an Export or Import
// that fails, which notifies the peer. Descriptors are closed on every path, and other programs that this process starts do not
// inherit them. The physical memory is freed when both processes have closed it, or have ended.
//
// Close the memory before the device of its context. Close waits, on the host, for all contexts that were passed to CopyFrom,
// CopyTo, Publish and Await. Work on other streams with the address from Ptr must have finished by then.
//
// # Fences
//
// The n-th Await of a process waits for the n-th Publish of its peer: on the host until the peer has made the call, and then on
// the device until the event is reached. A fence covers all earlier ones of the same process, whatever their contexts. Await
// returns before the peer's work has finished; only later work of the context of the call waits for it.
//
// If a process's driver cannot share events (the capability cudadrv.EventSharing), the two agree when they are linked that
// Publish waits on the host until the context's work has finished, and then notifies the peer: Await then needs no event.
// Memory.Ways says which way each direction takes, Memory.Stats how many calls of Publish have waited. A driver that has the
// capability and whose call fails is an error of Export and Import; there is no automatic fallback.
//
// # Blocking calls
//
// Export and Import wait for the peer: a deadline of the connection ends that, and is cleared when they succeed. Await waits
// until the peer publishes, closes or dies, or its context ends. Publish waits for work only by the other way. Messages have a
// few bytes; a peer that does not read them for ten seconds counts as dead. Close waits for work, and then, at most ten
// seconds, until the peer has closed this process's event.
//
// # When the peer dies
//
// A connection that ends without a goodbye means that the peer died, for any reason (ErrPeerDied in a *PeerError). An Export or
// Import in progress fails, and leaves nothing allocated. Publish and Await fail, and stop waiting at once; the memory, and
// copies from and to it, remain usable. Published fences that this process has not awaited are lost if they are events: their
// work may be half done. If Publish waits on the host, such fences are valid, and Await returns them. A peer that closes has
// finished its work, so its fences are valid; after them Await and Publish return ErrPeerClosed.
//
// Bytes that a dead peer was writing are undefined. If a peer dies before its event is reached, work that waits for the event
// never runs (on an H200, driver 580), nor does later work of that context: its stream is stranded. A stream counts as stranded
// if it has reached a wait for the peer's event and is not past it a second later. From eleven seconds after the death calls no
// longer wait for stranded streams. Other work of the stream, before the wait or between two, has no limit. Close of the
// memory, cuda.Context.Synchronize without a deadline, CopyIn, CopyOut, Close of the stream and Close of its device return a
// *vram.StrandedError. Then the memory stays mapped, and the stream, the device's memory and its context stay until this
// process ends: the program should exit. If the event is reached after all, calls wait for the stream as usual, and Close may
// be called again. Goroutines that waited for the stream stay blocked in the driver. Streams that wait for a stranded one are
// not detected, nor are CopyInAsync and CopyOutAsync with host memory that is not page-locked. A live peer that does not reach
// its fence has no time limit: end it.
//
// # Trust
//
// The peer is checked (magic, version, sizes, GPU), but not its intentions: it can write the memory at any time. The
// permissions of the socket decide which processes may be the peer.
//
// # Concurrency properties
//
// All calls are safe for concurrent use. Calls of Publish are ordered by their returns, and so are calls of Await. The caller
// orders copies on several contexts of one process (cuda.Context.Wait). A linked Memory has one goroutine, which reads the
// connection and ends with Close.
package share
