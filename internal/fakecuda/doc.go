// Package fakecuda builds a fake of NVIDIA's driver library libcuda.so.1, in C over host memory, for machines without
// a GPU. Programs for the real driver run on it unchanged: by dlopen without cgo, or linked with gorgonia.org/cu.
//
// It proves symbol names, structure layouts, results, rules about contexts, captures and the order of streams, and it
// moves real bytes. It is no model of time, and it runs two kernels, which it knows by name.
//
// # Words
//
// The source in source/ is C11; Build compiles it with the system's C compiler. The library exports the driver's
// versioned names (cuMemAlloc_v2, not the old cuMemAlloc) and also the names of source/include/fakecuda.h for
// tests: to set the number and the size of devices, to take abilities and symbols away, to make the next or the n-th
// call of a function fail, to count calls and live objects, and to step streams. source/include/cuda.h is a minimal header, written by hand, that gorgonia.org/cu compiles against.
//
// Programs that link the library instead of opening it are built and run with CGO_CFLAGS=-I dir/source/include,
// CGO_LDFLAGS=-L dir and LD_LIBRARY_PATH=dir, where dir is Build's argument.
//
// # Memory
//
// A device address is an address of the process. A reservation is address space without rights; a handle is a file in
// memory (and costs a file descriptor), mapped where it is mapped; plain and pinned memory is anonymous. Only
// touched pages take memory of the host, so a device may be larger than the host.
//
// # Work
//
// Streams are queues. In immediate mode, the default, work is performed when it is submitted, as far as no event, word
// in memory or host function delays it. In queued mode it waits until somebody waits for it, has queried it often
// enough, or steps; then exactly the needed work is performed, in an order that depends on nothing else. In threaded mode
// a thread performs it. Host functions always run on a thread of the library.
//
// # Kernels and graphs
//
// A module is PTX text, of which the fake reads the kernels, their parameters and the variables; it finds unknown
// instructions and missing ends, and says so in the log. It accepts only cubins that it has linked itself. Launches run
// in the order of their stream. They do nothing, except the kernels vram_fill32 and vram_add32 of package
// cudadrv/drivertest, one word a thread, which write real bytes, and kernels that a test performs itself
// (fakecuda_set_runner): kernels of CUDA C++ compiled for the host, say. A graph is the list of its captured work in
// the order of submission, so an update compares nodes one by one and ignores dependencies. Launches of an executable
// graph run one after the other, on any streams.
//
// Results follow an H200 (driver 580, CUDA 13.0). Where that driver leaves things undefined the fake is strict: a call
// on a stream, an event or a graph that was destroyed, or on a link that another thread made, which mostly ends the
// process there, always ends it here, with a line on the standard error; another stale handle is refused; rows without
// a pitch lie in one place; and work that touches memory that was unmapped or freed before it ran fails its context
// with CUDA_ERROR_LAUNCH_FAILED from then on.
//
// # Where it says less than hardware does
//
//   - The per-thread default stream is one stream of the context for all threads.
//   - No managed memory, no arrays, no hand-made nodes of graphs, no rows from or to the host: CUDA_ERROR_NOT_SUPPORTED.
//   - All devices reach each other, and an access by a kernel needs cuMemSetAccess as it does elsewhere.
//   - Each kernel has the attributes and the occupancy of a small kernel on an H200.
//   - An event of another process, which is another copy of the library, has always passed, or with fakecuda_hold_events never.
//   - No stream-ordered memory, no cuGetProcAddress: no program of this repository calls them.
//   - No attributes of pointers: CUDA_ERROR_NOT_SUPPORTED.
//
// # Concurrency properties
//
// The library is safe for threads: one mutex guards all of it, and a call that waits unlocks it while waiting. Opened
// twice by one path it is one driver; a copy under another path is a driver of its own. It is never unloaded.
// fakecuda_reset wants that no other call runs. Build may be called from any goroutine, for different directories.
//
// # Answers
//
// testdata/answers.txt lists the answers of the fake, mainly to mistakes. The test that holds it runs on real hardware
// with -tags gpu (make test-gpu-carry): where the hardware answers otherwise, fix the fake. A line with a star is
// asked of the fake only, for the reason that it ends with: hardware crashes, fails its context, or is less strict. A
// question that crashes hardware otherwise is reported as one. Figures of the machine are only held to be plausible.
//
// # Environment
//
// Read when the library is first used, and again after a reset: FAKECUDA_DEVICES (1), FAKECUDA_BYTES (16 GiB for each
// device), FAKECUDA_VERSION (13000), FAKECUDA_MODE (0 immediate, 1 queued, 2 threaded) and FAKECUDA_UNREACHED (1: as
// fakecuda_hold_events).
package fakecuda
