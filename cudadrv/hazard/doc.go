// Package hazard wraps a driver and reports invalid memory accesses of work: to memory that is not mapped, not allocated or
// freed, that other work accesses without an order, and that the allocator reuses or unmaps too early.
//
// # How it is used
//
// The program opens the device by the Driver of Wrap, the allocator by that Driver's Allocator. Memory that is mapped through
// the second belongs to the allocator; the program's kernels must stay within its buffers, which Allocated and Freed report to
// the Checker.
//
//	checked := hazard.Wrap(sim.New(sim.Config{}))
//	dev, err := vram.Open(vram.Config{Driver: checked.Allocator(), Observer: ...})
//	gpu, err := checked.View(0) // kernels, events, copies
//
// The package vramtest does this for tests.
//
// The checker sees only calls through these devices. It does not see the accesses of kernels: Device.LaunchKernelTouching
// launches a kernel and declares them (cudadrv.CheckedKernels), Device.Kernel queues a simulated one that needs no code.
// Device.LaunchKernel is work without known accesses. Memsets and copies are accesses by themselves, copies of rows an access
// of each row. Calls by which a program learns of progress past the driver (host functions, words in memory, the driver's own
// pool) are removed from the device's capabilities, because the checker could not see their order.
//
// # Order
//
// There are two hosts, sides from which calls come: the program and the allocator. Each stream counts the work submitted to it.
// A point is a count for each stream (a vector clock), and an access comes before a point if the point's count for its stream
// has reached it.
//
//	call                                         order
//	work on a stream                             after that stream's earlier work, and all work that the program knew to be over
//	record of an event                           the event stands for the stream's point
//	wait of a stream for an event                the stream's later work after the event's point
//	query that said "over", synchronisation      all later work of this host after the point of the query
//	time between two events                      the same, after the points of both
//	launch of a graph                            after the last launch of the same graph
//	work on a blocking stream                    after the default stream's earlier work
//	work on the default stream                   after all blocking streams' earlier work
//
// Elapsed time orders nothing: a program that got the right answer by luck is reported. All goroutines are one host, as if they
// shared their knowledge. So there are no false reports, and wrong order between goroutines is left to the race detector. The
// end of work that only the allocator knows of does not order the program's work: it orders allocation and unmapping by the
// allocator.
//
// # Graphs
//
// While a stream is captured its work is part of the graph: its accesses are checked against each other, so that two branches
// of a graph that race are reported when they are captured. Each GraphLaunch is then all accesses of the graph's nodes, on the
// stream of the launch, one node after the other in the order of their capture: a graph that is launched after one of its
// buffers was freed is a UseAfterFree, and after its memory was given to another stream a Race or an EarlyReuse. Such a report
// is placed at the launch, and names the place where the node was captured.
//
// KernelNodeSetParamsTouching replaces the accesses of a kernel for later launches; reports name the place of that call. After
// GraphExecKernelNodeSetParams the accesses are unknown, and the kernel has none. The checker identifies the node by
// GraphGetNodes; if that was not called, or returned more nodes than the checker has recorded, the whole graph has no accesses
// until GraphExecUpdate. A graph that is launched while another one is captured is one node of it. Captures past the checker,
// as with the methods of cudadrv/sim's Device, are not seen: their work counts as if it ran at once.
//
// # Memory that sleeps
//
// Between SleepBegins and SleepEnds of a stream, memory of its live buffers may be unmapped once the accesses are known to be
// over, and work on the stream itself may touch all memory: it saves and restores contents. Work of others on memory that is
// unmapped is reported as Unmapped.
//
// # Several devices
//
// Each device has a Checker of its own, and does not see the order of events between two devices. A copy between devices is an
// access of the memory of the called device, unless its stream belongs to the other device. Memory to which MemSetPeerAccess
// gave another device access is checked there as if its program had mapped it. An event that was opened by its name for other
// processes is the same event on the device that made the name; elsewhere it orders nothing.
//
// # The kinds of hazards
//
//	kind             report
//	Unmapped         an access of, or an allocation in, memory that is not mapped
//	UseAfterFree     an access of memory whose buffer was freed
//	NeverAllocated   an access of the allocator's memory that no buffer had yet
//	Race             two accesses of which one writes, without an order
//	EarlyReuse       memory reallocated on a stream that is not ordered after the accesses of the former allocation
//	EarlyUnmap       memory unmapped that a buffer has, or before it was known that its accesses are over
//	Overlap          memory allocated that another buffer has
//
// Memory that the program maps by itself is watched for Unmapped, Race and EarlyUnmap, and so are variables of modules from
// ModuleGetGlobal to ModuleUnload.
//
// # Composition
//
// Any driver can be wrapped, and the result be wrapped in turn: fault.Wrap(checked.Allocator()) makes the allocator's
// calls fail before the checker sees them. Kernel needs a device that has Launch, as cudadrv/sim's.
//
// # Concurrency properties
//
// All methods may be called from any goroutine. Calls are recorded in the order of the device. Calls that wait for the device
// block no others, except that cuMemFree blocks cuMemAlloc.
package hazard
