// Package gpus lists who else uses the GPUs of this machine: devices, their memory, and the processes with memory there, each
// with its command and its container, pod or unit. It reads NVIDIA's management library NVML without cgo.
//
//	reader, err := gpus.Open(gpus.Config{})
//	...
//	defer vram.CloseInto(&err, reader)
//	devices, err := reader.Devices(ctx)
//
// A device of package vram names the largest other processes in its out-of-memory errors, and shows all on its page, with
//
//	vram.Config{Processes: gpus.OnDemand(gpus.Config{}).Processes}
//
// # Words
//
// A device is a GPU, with its number, UUID and PCI address. CUDA numbers devices in another order than NVML and nvidia-smi:
// Find matches them by UUID, or by PCI address. A process is an entry of NVML's lists: of processes with a context for compute,
// for graphics, or as a client of MPS. A process with several contexts is listed once. A reading is one pass over all devices.
//
// # States of a Reader
//
//	not opened --Open, or the first question of OnDemand--> open --Close--> closed
//
// Importing the package, New and OnDemand open nothing. Open loads the library and calls nvmlInit_v2; without the library it
// returns a *LibraryError. Close calls nvmlShutdown. The code of the library stays loaded, as a driver's does. An OnDemand
// that fails to open tries again at the next reading.
//
// # Values that are not known
//
// Each is missing, never guessed:
//
//   - Bytes of a process that NVML reports as not available (all bits set), or that exceed the device's memory: BytesKnown is false.
//   - In a container with PIDs of its own, drivers translate PIDs and list only processes that the container can see. Older ones
//     give PIDs of the host, which another process may have here. A PID that /proc does not show has no command.
//   - Commands have no arguments, which may contain secrets. A pod has its UID; its name is known to Kubernetes alone.
//   - A GPU in MIG mode is one device: its memory is the whole GPU's, and Process.Instance is the number of the instance.
//     Drivers give both only to privileged callers. A CUDA device on an instance has another UUID, and is found by PCI address.
//   - GPUs that share the host's memory have no memory of their own: MemoryKnown is false.
//   - Between a list and the reading of /proc a process may end, and its PID be used again.
//
// # Trust
//
// A library may be older than this package, and its answers wrong. A list that grows between two calls is asked for again, a
// few times, up to 4096 processes. Counts above the room, memory above the total, PIDs above Linux's and PCI addresses
// out of range are an *AnswerError. Text ends at its buffer. Drivers 535.43 to 535.86 write records of 32 bytes where all others
// write 24: the room is for 32, and the written bytes show which. A failed question is a problem of its device; the others
// have answers.
//
// # Concurrency properties
//
// Any number of goroutines may use a Reader. A reading runs on a goroutine of its own, one at a time, and its answer serves all
// questions for Config.Fresh. A caller whose context ends stops waiting; the reading ends by itself, and serves later questions. Close
// waits for a reading in progress.
package gpus
