// Package cudadrv is the boundary between vram and a GPU driver: one method for each driver call that
// an allocator needs, plain 64-bit ids instead of C pointers, and errors that carry CUDA's own names.
//
// # Words
//
// A Driver knows devices; Open gives one Device, which stands for the device's primary context. A
// reservation is a range of device address space; a handle is a physical allocation that is mapped
// into a reservation as a whole and unmapped as a whole; a plain allocation is address space and
// memory in one (cuMemAlloc). An event marks a point in a stream's order.
//
// # Rules that every implementation keeps
//
//   - Every failure is a *CallError that names the call and CUDA's result; nothing panics on a
//     caller's mistake and nothing is printed.
//   - A failed call changes nothing.
//   - Allocations, reservations and handles of zero or negative bytes are CUDA_ERROR_INVALID_VALUE; a memset or
//     copy of zero bytes is no work, MemFree of address 0 does nothing.
//   - After Close every call on that Device fails; the Driver can open the device again.
//   - All methods may be called from any goroutine at any time, on any OS thread.
//   - Calls work during captures of any thread: a driver sets the mode of the calling thread for
//     the time of the call. A capture in a mode but CaptureRelaxed forbids calls that are made past the Device.
//   - MemFree waits for all queued work of the device; MemUnmap does not, so the caller unmaps only
//     memory that no queued work touches.
//   - Opening a driver or a device is the first moment that anything touches a GPU: importing the
//     package and constructing a Driver value do not.
//
// The conformance suite in package cudadrv/drivertest checks these rules for each driver. Implementations:
// cudadrv/dynamic (libcuda, loaded at run time), cudadrv/gorgonia (through gorgonia.org/cu, with a build tag), cudadrv/sim (no
// GPU). Wrappers: cudadrv/fault (scripted failures), cudadrv/meter (counts calls and their time), cudadrv/hazard (checks the
// accesses of work); they forward the optional interfaces, too.
package cudadrv
