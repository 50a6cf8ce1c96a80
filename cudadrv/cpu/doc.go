// Package cpu is a driver whose device computes on this machine's processor: a simulated device (cudadrv/sim) that executes
// kernels in PTX on real bytes (compute/ptx/interp). It needs no GPU. An import gives it a name:
//
//	import _ "github.com/go-vram/vram/cudadrv/cpu"
//
// vram.DriverNamed and the environment variable VRAM_DRIVER then take "cpu", and "gpu-or-cpu": a GPU where there is one, this
// device elsewhere. New makes a driver with a Config.
//
// Kernels run in the order of their streams, thousands of times slower than on a GPU; results are the same up to the rounding
// of approximate instructions. A launch runs at the first driver call after its turn, so a program that only waits for other
// goroutines makes no progress on the device. Modules are PTX text: cubins and CUDA C++ are refused.
//
// # Mistakes of kernels
//
// A mistake of a kernel, as an access past the end of a buffer, ends the work of the device as on a GPU: the next calls fail
// with CUDA_ERROR_ILLEGAL_ADDRESS or another result, and their text has the line, the thread, and the buffer with its size, its
// tag and the place of its allocation. Driver.Faults returns the errors. docs/kernels-in-tests.md lists the mistakes that are
// found. The device learns of the buffers from the allocator; memory past the allocator is checked by its mapping alone.
//
// # Limits
//
// It needs Linux on a 64-bit processor, as sim.Config.Bytes does: elsewhere the first use fails with sim.ErrNoBytes. Device
// memory is memory of this process; only written pages take any.
//
// # Concurrency properties
//
// All methods may be called from any goroutine. Kernels run one at a time, under the lock of the driver. Importing the package
// registers two names and starts nothing.
package cpu
