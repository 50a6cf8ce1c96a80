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
//	check(m.Publish(c))                  // "what c has submitted so far is yours to wait for"
//	check(m.Await(ctx, c))               // later work of c is behind the peer's next fence
//	check(m.CopyTo(c, 0, cuda.Whole(y)))
//	check(m.Close())
//
// # Words
//
// Memory is one physical allocation with a handle and a range of addresses of its own. It is no buffer of vram's: a
// handle of vram's holds buffers of others. It counts in the limit and the statistics of the device, in each process
// that has it: vram.Stats.SharedBytes, which are a part of ReservedBytes. Where the limit leaves too little room New and
// Import release free memory of the device first, and fail with a *vram.OutOfMemoryError where that is not enough; the
// allocator has so much less until Close. The peer is the
// process at the other end of the connection. A fence is a point in the order of the peer's work: Publish makes one,
// Await waits for one. The way of a fence is how its order comes about: by an event of the driver, or by a host that
// waits.
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
// The connection belongs to the Memory from the call of Export or Import on: it is closed by Close, and by an Export or
// Import that fails, so that the peer is told. Descriptors are closed on every path, and other programs that this
// process starts do not inherit them. The physical memory goes back to the driver when both processes have closed it,
// or have ended.
//
// Memory is closed before the device of its context is. Close waits, on the host, for all contexts that the memory was
// used with: those of CopyFrom, CopyTo, Publish and Await. Work that is put on another stream with the address from Ptr
// must be over by then.
//
// # Fences
//
// The n-th Await of a process waits for the n-th Publish of its peer: on the host until the peer has made the call, and
// then, by the event, on the device until it has got there. A fence covers all earlier ones of the same process,
// whatever their contexts. Await returns before the peer's work has finished; only work that is submitted later to the
// context of the call is behind it.
//
// Where a process's driver has no events for others (the capability cudadrv.EventSharing), the two agree when they are
// linked that Publish waits on the host until the context's work has finished, and then tells the peer: Await then
// needs no event. Memory.Ways says which way each direction takes, Memory.Stats how many calls of Publish have waited.
// A driver that has the capability and whose call fails is an error of Export and Import; nothing falls back by itself.
//
// # What blocks
//
// Export and Import wait for the peer: a deadline of the connection ends that, and is cleared when they succeed. Await
// waits until the peer publishes, closes or dies, or its context ends. Publish waits for work only by the other way.
// All that is sent is a few bytes; a peer that does not take them for ten seconds counts as dead. Close waits for work,
// and then, at most ten seconds, until the peer has let go of the event that it would wait for.
//
// # When the peer dies
//
// The end of the connection without a goodbye is the death of the peer, whatever the cause (ErrPeerDied in a
// *PeerError). An Export or Import that is under way fails, and leaves nothing. Publish and Await fail, at once also
// where they wait; the memory, and copies from and to it, go on. Fences that the peer had published and nobody has
// awaited are lost with it, where they are events: their work may have ended with the process, half done. Where Publish
// waits on the host such fences are valid, and Await returns them. A process that closes is another matter: its work
// has finished by then, so that its fences are valid, and then Await and Publish return ErrPeerClosed.
//
// Bytes that a dead peer was writing are in no defined state. Work that was put behind the event of a peer that dies
// before the event is reached never runs (on an H200, driver 580), nor does later work of that context: its stream is
// stranded. Eleven seconds after the death nobody waits for such a stream any more: one that has come to a wait for the
// peer's event and a second later not past it. Work of the stream's own ahead of the wait, or between two, takes as long
// as it takes. Close of the memory,
// cuda.Context.Synchronize without an end of its own, CopyIn, CopyOut, Close of the stream and Close of its device return
// a *vram.StrandedError. The memory stays mapped then, and the stream, the device's memory and its context stay, until
// this process ends: the program should end it. Where the event comes all the same the stream is waited for like others
// again, and Close may be called again. Goroutines that waited for the stream wait on in the driver. Streams that
// were made to wait for a stranded one are not looked after, nor is CopyInAsync or CopyOutAsync with host memory that is
// not page-locked. A peer that lives and does not come to its fence is waited for as long as that takes: end it.
//
// # Trust
//
// The peer is checked (magic, version, sizes, GPU), but not its intentions: it can write the memory at any time. The
// permissions of the socket say who may be the peer.
//
// # Concurrency properties
//
// Any goroutine may call anything at any time. Calls of Publish are in the order in which they return, and so are calls
// of Await. Copies on several contexts of one process are ordered by whoever submits them (cuda.Context.Wait). A linked
// Memory has one goroutine, which reads the connection and ends with Close.
package share
