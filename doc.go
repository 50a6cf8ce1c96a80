// Package vram is a GPU memory allocator: each CUDA stream has a cache of free memory, each device
// a pool under the caches. An allocation that the cache serves costs three atomic operations, and
// no operation takes a shared lock.
//
// # Use
//
//	dev := must(vram.Open(vram.Config{Driver: sim.New(sim.Config{})})) // vram.Config{} is the first NVIDIA GPU
//	s := must(dev.NewStream())
//	x := must(s.Alloc(64 << 20)) // kernels on s.Handle() may use x.Ptr()
//	fmt.Println("x:", x.Bytes(), "bytes")
//	fmt.Println("free x:", x.Free()) // the last kernel that uses x has been submitted
//
// Here must is a function that ends the program on an error. [Open] opens a device, [Device.NewStream] makes a stream with its
// cache, and [streams.Stream.Alloc] a buffer: Stream, Buffer and other types of this package are aliases of types in packages
// streams and pool, whose documentation has their fields and methods: go doc vram/streams.Stream.Alloc, go doc
// vram/pool.WaitError. [streams.Stream.AllocAsync] returns a future, [streams.Stream.AllocBatch] many buffers or none,
// [streams.Stream.AllocFor] waits for memory, aligns and zeroes it.
//
// [streams.Buffer.Free] means that the last use of the buffer has been submitted to its stream.
// Announce uses on other streams before it: by [streams.Buffer.RecordStream], Use or Transfer.
// [Device.Tenant] divides memory between customers, [Device.Warm] maps it ahead of need, [Device.Stats]
// counts it by state. All functions and methods are safe for concurrent use.
//
// Errors are typed and work with errors.Is and errors.As. Nothing here prints, exits, or panics on
// a caller's mistake.
//
// # Packages
//
// A package imports only packages below it. Each stream is an actor, and so is each pool.
//
//	cmd/vram, examples       programs
//	warm                     demands to map ahead, from a shape or a recording
//	cuda                     kernels, copies, events and graphs on streams, with the driver alone
//	host                     host memory, pageable or page-locked, with one interface
//	vram                     this package: the interface for callers
//	streams                  the cache of a stream: actor, buffers, requests
//	  internal/stream/core             its decisions: spans, splits, the cached blocks
//	  internal/stream/magazine         the words that callers and actor share
//	batch                    plans of requests that are wanted together
//	pool                     the memory of a device: actor, driver goroutine
//	  internal/pool/core                its decisions: pages, handles, growth, recycling
//	internal/fence           points in a stream's order, and their numbers (line)
//	internal/heap            best fit over index-linked ranges
//	internal/sizeclass       rounding
//	actors, futures, cudadrv foundations that know nothing of each other
//	  cudadrv/dynamic            libcuda, loaded at run time without cgo
//	  cudadrv/gorgonia           libcuda through gorgonia.org/cu, with a build tag
//	  cudadrv/{sim,fault,meter}  the simulated device; scripted failures; counting
//	  cudadrv/hazard             work that touches memory which it must not; vramtest is made of it
//
// Cores decide and perform nothing; actors run them one turn at a time and leave effects; effects
// are performed outside every turn. One goroutine of the pool takes, maps and releases memory; the
// goroutine that performs a turn's effects submits fences and memsets, or the caller that wants
// zeroed memory.
//
// # Memory and its states
//
//	reserved --Map--> free --Refill--> cached --Alloc--> live
//	reserved <-Unmap- free <-Return--- cached <--Free--- live
//	                                   cached <- pending <--Free--- live, used by other streams
//
// Open touches no GPU; the first use of the device does. The pool maps and unmaps pages of the driver's
// granularity, or holds plain segments if the device has no virtual memory management. The pool lends
// pages to a stream (Refill). The stream keeps freed blocks in magazines and free ranges (cached), and
// returns pages with a fence at a reclaim request or over its budget. A freed block with announced uses
// on other streams (Buffer.RecordStream, Use, Transfer) is pending until those uses have passed.
//
// # Path of an allocation
//
// Read the packages in this order: streams (fast path, turn, request), internal/stream/magazine (the
// two words), internal/stream/core (spans, ranges), internal/pool/core (the ladder of a Refill), pool (jobs). A free
// puts its slot back into a magazine, or on a list that the stream's next turn takes.
//
// # Mapping ahead, and releasing
//
// All these calls are optional: requests map the memory that they need, and ticks, ten times a second,
// release the excess over cache bounds.
//
//	Warm      maps memory for buffers of given sizes; any request may use it           waits for the driver
//	Reserve   takes memory for the requests that name the reservation                  waits for the driver
//	Trim      releases free memory to the driver, down to a size; 0: empty_cache       waits for the driver and for streams
//	Coalesce  merges free memory in streams, magazines included; releases nothing      waits for streams
//
// # Close
//
// Device.Close waits for the device, releases all memory, and returns an *InUseError that lists the
// buffers that were not freed. Keep the error of a deferred call, as here or with CloseInto:
//
//	defer func() { err = errors.Join(err, dev.Close()) }() // err is the function's named result
//
// Events.Leak and Config.Logger get it, too.
//
// # Promises
//
//   - Live buffers never overlap, and a buffer's memory is not handed to another stream, unmapped
//     or freed before the work that was submitted to its stream, and to the streams that were
//     announced, before its Free has finished.
//   - Every request gets exactly one answer, even if an actor panics, a driver call fails or the
//     device is closed.
//   - Bytes by state always add up to the bytes mapped.
//   - An allocation or free that the cache serves makes no driver call, no heap allocation and no
//     goroutine switch.
//   - A double free, a stale copy and a free after Close are refused with a typed error, always.
//   - An unused stream returns its cache within two seconds; an adopted one the part that was freed
//     before the last fence of its callers' requests.
//   - Driver calls on an adopted stream are made only in its callers' requests, and none on a stream
//     that is being captured.
//   - The simulated device is used only if it is named.
//
// # Not promised
//
//   - An order between requests of different goroutines.
//   - That the cache serves a size twice in a row.
//   - The contents of a fresh buffer.
//   - That Stats of several streams belong to one moment.
package vram
