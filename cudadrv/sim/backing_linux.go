//go:build amd64 || arm64 || loong64 || ppc64le || riscv64

package sim

import (
	"fmt"
	"runtime"
	"syscall"
	"unsafe"
)

// memfd is a backing of the kernel's memory. Unwritten pages cost nothing, so a device may be larger than the host's memory.
type memfd struct{ fd int }

// newBacking makes the file. It has all the length that a file can need: its holes are free.
func newBacking() (backing, error) {
	const closeOnExec = 1 // MFD_CLOEXEC
	name, err := syscall.BytePtrFromString("vram-sim")
	if err != nil {
		return nil, err
	}
	fd, _, errno := syscall.Syscall(memfdCreate(), uintptr(unsafe.Pointer(name)), closeOnExec, 0)
	if errno != 0 {
		return nil, fmt.Errorf("memfd_create: %w", errno)
	}
	if err := syscall.Ftruncate(int(fd), spaceEnd); err != nil {
		_ = syscall.Close(int(fd)) // the file is lost either way
		return nil, fmt.Errorf("ftruncate: %w", err)
	}
	return memfd{int(fd)}, nil
}

// memfdCreate returns the number of the system call, which package syscall does not have on all of these processors.
func memfdCreate() uintptr {
	switch runtime.GOARCH {
	case "amd64":
		return 319
	case "ppc64le":
		return 360
	default:
		return 279 // where the kernel numbers its calls alike
	}
}

const (
	ownFlags    = syscall.MAP_PRIVATE | syscall.MAP_ANON | syscall.MAP_NORESERVE
	sharedFlags = syscall.MAP_SHARED | syscall.MAP_NORESERVE
	readWrite   = syscall.PROT_READ | syscall.PROT_WRITE
	noFile      = -1
)

// mapped maps memory at an address, or anywhere if that is nil. The function of package syscall has no address.
func mapped(at unsafe.Pointer, bytes int64, access, flags, fd int, offsetBytes int64) (unsafe.Pointer, error) {
	if at != nil {
		flags |= syscall.MAP_FIXED
	}
	address, _, errno := syscall.Syscall6(syscall.SYS_MMAP, uintptr(at), uintptr(bytes), uintptr(access), uintptr(flags), uintptr(fd),
		uintptr(offsetBytes))
	if errno != 0 {
		return nil, errno
	}
	return *(*unsafe.Pointer)(unsafe.Pointer(&address)), nil // memory that the Go heap knows nothing of
}

func (memfd) reserve(bytes int64) (unsafe.Pointer, error) {
	return mapped(nil, bytes, syscall.PROT_NONE, ownFlags, noFile, 0)
}

func (memfd) allocate(bytes int64) (unsafe.Pointer, error) {
	return mapped(nil, bytes, readWrite, ownFlags, noFile, 0)
}

func (memfd) release(base unsafe.Pointer, bytes int64) error {
	if _, _, errno := syscall.Syscall(syscall.SYS_MUNMAP, uintptr(base), uintptr(bytes), 0); errno != 0 {
		return errno
	}
	return nil
}

func (m memfd) show(at unsafe.Pointer, bytes, offsetBytes int64) error {
	_, err := mapped(at, bytes, readWrite, sharedFlags, m.fd, offsetBytes)
	return err
}

func (memfd) hide(at unsafe.Pointer, bytes int64) error {
	_, err := mapped(at, bytes, syscall.PROT_NONE, ownFlags, noFile, 0)
	return err
}

func (m memfd) empty(bytes, offsetBytes int64) error {
	const keepSize, punchHole = 1, 2 // FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE
	return syscall.Fallocate(m.fd, punchHole|keepSize, offsetBytes, bytes)
}

func (m memfd) close() error { return syscall.Close(m.fd) }
