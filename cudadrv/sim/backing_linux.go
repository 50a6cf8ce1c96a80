package sim

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// memfd is a backing of the kernel's memory. Pages that nobody wrote to cost nothing, so a device may be larger than
// the host's memory.
type memfd struct{ fd int }

// newBacking makes the file. It has all the length that a file can need: its holes are free.
func newBacking() (backing, error) {
	fd, err := unix.MemfdCreate("vram-sim", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("memfd_create: %w", err)
	}
	if err := unix.Ftruncate(fd, spaceEnd); err != nil {
		_ = unix.Close(fd) // the file is lost either way
		return nil, fmt.Errorf("ftruncate: %w", err)
	}
	return memfd{fd}, nil
}

const ownFlags = unix.MAP_PRIVATE | unix.MAP_ANON | unix.MAP_NORESERVE

func (memfd) reserve(bytes int64) (unsafe.Pointer, error) {
	return unix.MmapPtr(-1, 0, nil, uintptr(bytes), unix.PROT_NONE, ownFlags)
}

func (memfd) allocate(bytes int64) (unsafe.Pointer, error) {
	return unix.MmapPtr(-1, 0, nil, uintptr(bytes), unix.PROT_READ|unix.PROT_WRITE, ownFlags)
}

func (memfd) release(base unsafe.Pointer, bytes int64) error {
	return unix.MunmapPtr(base, uintptr(bytes))
}

func (m memfd) show(at unsafe.Pointer, bytes, offsetBytes int64) error {
	_, err := unix.MmapPtr(m.fd, offsetBytes, at, uintptr(bytes), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_SHARED|unix.MAP_FIXED|unix.MAP_NORESERVE)
	return err
}

func (memfd) hide(at unsafe.Pointer, bytes int64) error {
	_, err := unix.MmapPtr(-1, 0, at, uintptr(bytes), unix.PROT_NONE, ownFlags|unix.MAP_FIXED)
	return err
}

func (m memfd) empty(bytes, offsetBytes int64) error {
	return unix.Fallocate(m.fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, offsetBytes, bytes)
}

func (m memfd) close() error { return unix.Close(m.fd) }
