// Package limits finds the bounds that a process's surroundings set on its memory of a GPU: variables of MPS and HAMi, and control
// groups of Linux.
//
// # Words
//
// A Limit is a number of bytes and its source: the name of a variable, or the path of a file. The least of several counts.
//
// # Sources
//
//   - CUDA_MPS_PINNED_DEVICE_MEM_LIMIT, "0=8G,1=10GB": bytes by device. The MPS server enforces them.
//   - CUDA_DEVICE_MEMORY_LIMIT, and CUDA_DEVICE_MEMORY_LIMIT_<n> for one device, which takes precedence: HAMi enforces them.
//   - dmem.max of the process's control group (version 2) and of those above it: "nvidia/0000:3b:00.0/vidmem 8589934592", or
//     "drm/0000:3b:00.0/vram0 max". The least of a device's regions counts.
//   - dmem.capacity of the root alone: the bytes of a region that control groups may give out, without those that the kernel reserves.
//   - memory.max of the same groups, for a GPU that uses the host's memory.
//
// A device has the number that the process sees, which CUDA_VISIBLE_DEVICES changes. Units are powers of 1024, as MPS and HAMi have them.
//
// # Trust
//
// Nothing from outside is believed: a text that cannot be read, a negative number, one above 2^62 in a variable, or a file above 64 KiB
// is a problem, which the caller logs, and sets no limit. A number above 2^62 in a file counts as 2^62. The package is pure: it reads
// through the functions and the fs.FS that it is given. It is safe for concurrent use.
package limits
