// Package sim is a simulated GPU driver in pure Go: address space, capacity, virtual memory management, plain allocations,
// streams, events, kernels and graphs on virtual time, and a cost for each call as measured on an H200. An address is a number
// without memory, unless Config.Bytes is set: then memory has contents, for tests that check bytes.
//
// # Words
//
// Drivers are independent: devices of different Drivers share nothing, and refuse each other's streams, events, contexts and
// other ids. Only their addresses overlap. Devices of one Driver share one address space. A Device is a view of a simulated
// GPU: Driver.Open gives one that counts as opened, Driver.Device one for tests and programs that observe or control the GPU.
// All views share their objects, as in a primary context, until the last opened view is closed.
//
// Device time is virtual, and one for all devices of a Driver. On the Stepped clock it does not move until Advance or AdvanceTo
// move it, or a call that waits (MemFree and the synchronising calls) moves it to the end of the wait. On the Running clock it
// is the wall clock since New, and a call that waits sleeps.
//
// Modelled time is separate: the sum of the host time of all calls on real hardware. The simulator neither sleeps nor advances
// its clock for it.
//
// # Order of work
//
// A stream is a queue: work starts once the work before it has finished, and not before now. Streams made by StreamCreate are
// non-blocking, so they and the legacy default stream, 0 or 1, do not wait for one another; only events order them. Streams of
// StreamCreateBlocking and the legacy default stream do. An event records the end of its stream's work so far. Work of a
// destroyed stream still runs to its end.
//
// # Kernels and graphs
//
// A module is PTX text. The simulator reads the declarations of kernels: names, parameters, and the limit of threads of a
// block. A launch is checked against the declaration and takes Config.KernelTime of the device's time. Config.Executor executes
// kernels; without one a device that has bytes refuses launches with ErrNoExecutor, unless Config.TimedKernels says that they
// only take time. The simulator does not see the accesses of a kernel; package cudadrv/hazard does if they are declared.
//
// From StreamBeginCapture to StreamEndCapture work of a stream goes into a graph: it takes no time before the graph is
// launched. Each launch of a kernel, memset and copy is a node. An event that is recorded there is a point of the graph:
// another stream that waits for it joins the capture, and is captured, too, until that ends; querying the event, or waiting for
// it on the host, is refused, and invalidates a capture in progress. So does a call that waits for a captured stream or for the
// whole device, or makes one wait for something outside, or orders the legacy default stream with a blocking one that is
// captured. A launch queues the nodes one after the other, in the order of the capture, after the last launch of the same
// graph.
//
// As cudadrv requires, calls are made also during captures, in any mode. Except with CaptureRelaxed, the thread that began a
// capture must end it. Threads are the operating system's on Linux; on other systems all goroutines are one thread.
//
// BeginCapture, EndCapture and LaunchGraph are relaxed captures for tests that inspect the graph.
//
// # Bytes
//
// With Config.Bytes memsets and copies, and kernels with an executor, change host memory: at once, at the virtual time of their
// end, in the order of their ends. So work that ends later overwrites memory that was reused too early. Bytes belong to handles and follow them from address to address. Work that
// finds its memory unmapped when it runs changes nothing, and from then on every call but Close fails with
// CUDA_ERROR_ILLEGAL_ADDRESS, as on hardware. Close releases the memory and drops unfinished work; slices of
// MemHostAlloc must not be touched after it.
//
// Memory of MemHostAlloc is known to the GPU that made it, which has it at an address that is not the host's. Copies between
// the device and memory that is not page-locked are waited for, but in a graph, which copies at each launch and does not wait.
//
// Without Config.Bytes none of this costs anything, and the calls of cudadrv.HostMemory are not supported.
//
// # Where it says more than hardware does
//
// The results are those of a real driver (580, CUDA 13.0 on an H200), except where that driver is silent or crashes:
//   - MemUnmap over a range with holes fails here with CUDA_ERROR_NOT_MAPPED, and past the end of a reservation
//     with CUDA_ERROR_INVALID_VALUE; hardware unmaps the mappings in it.
//   - MemSetAccess over a hole between mappings is CUDA_ERROR_INVALID_VALUE here; hardware passes over it.
//   - MemMap past the end of a reservation fails here at once; hardware rounds reservations up.
//   - MemMap over a mapping is CUDA_ERROR_ALREADY_MAPPED here and CUDA_ERROR_INVALID_VALUE there.
//   - A memset or copy outside accessible memory is CUDA_ERROR_ILLEGAL_ADDRESS here and
//     CUDA_ERROR_INVALID_VALUE there; here an overrun by one byte is seen, and the refusal is not sticky.
//   - MemHostAlloc of no bytes, and MemFreeHost of none, are CUDA_ERROR_INVALID_VALUE here; there they succeed.
//   - A destroyed stream, event, module, function, graph or node is CUDA_ERROR_INVALID_HANDLE here; there its use is undefined.
//   - ModuleUnload is CUDA_ERROR_ILLEGAL_STATE here while a launch of the module's kernels has not finished, and a graph with
//     kernels of a module that was unloaded is CUDA_ERROR_INVALID_HANDLE; there both are undefined.
//   - LaunchKernel wants exactly the bytes of the parameters here; hardware refuses more of them, and launches with fewer.
//   - GraphExecUpdate wants the same order of the nodes here; hardware finds it.
//
// # Where it is simpler than hardware
//
//   - Modules are PTX text only, of which only variables take memory. Linked images are text, too.
//   - Attributes of kernels are constants where the text and FuncSetAttribute say nothing; occupancy counts threads alone.
//   - The nodes of a graph run one after the other, also where streams forked in the capture.
//   - A capture forbids calls on its own GPU only.
//   - Memsets and other copies reach the memory of their own GPU only, regardless of MemSetPeerAccess. Streams wait for
//     events of any GPU of the Driver; all other calls take events of their own GPU, or opened ones of EventCreateShared.
//   - There are no other processes: the name of a shared event is known to all GPUs of the Driver, and to no others. It may
//     be opened where it was made.
//
// One granule of address space after each reservation and plain allocation stays empty, so that an
// overrun never meets a neighbour.
//
// # Concurrency properties
//
// All methods may be called from any goroutine. The GPUs of a Driver share one mutex; calls on them
// happen one after the other, in the order in which they get it. No goroutine is ever started.
package sim
