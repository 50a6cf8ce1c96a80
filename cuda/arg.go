package cuda

import (
	"encoding/binary"
	"sync"

	"github.com/go-vram/vram/cudadrv"
)

// Geometry is the shape of a launch: grid, block and dynamic shared memory.
type Geometry = cudadrv.Geometry

// Dim3 is a size in three directions.
type Dim3 = cudadrv.Dim3

// Cover returns the geometry of a kernel with a thread for each of n elements, in blocks of blockThreads threads: at least one
// block.
func Cover(n, blockThreads int) Geometry {
	blockThreads = max(blockThreads, 1)
	blocks := max((n+blockThreads-1)/blockThreads, 1)
	return Geometry{Grid: Dim3{X: uint32(blocks), Y: 1, Z: 1}, Block: Dim3{X: uint32(blockThreads), Y: 1, Z: 1}} //nolint:gosec // CUDA refuses larger values
}

// mode is how a kernel uses an argument.
type mode uint8

const (
	byValue mode = iota
	reads
	writes
	readsAndWrites
)

// Arg is an argument of a launch: make it with In, Out, InOut or Value.
type Arg struct {
	buffer Buffer
	bits   uint64
	long   *longValue // by value, of another size than 1, 2, 4 or 8 bytes
	offset int64      // of the part; the kernel gets the address of its begin
	bytes  int64      // of the part
	size   int32      // of the parameter
	align  uint8      // of the parameter, where the driver does not tell its offset
	mode   mode
}

// pointerBytes is the size of a parameter that is an address.
const pointerBytes = 8

// In marks a buffer that the kernel reads.
func In(b Buffer) Arg {
	return Arg{buffer: b, bytes: b.Bytes(), size: pointerBytes, align: pointerBytes, mode: reads}
}

// Out marks a buffer that the kernel writes.
func Out(b Buffer) Arg {
	return Arg{buffer: b, bytes: b.Bytes(), size: pointerBytes, align: pointerBytes, mode: writes}
}

// InOut marks a buffer that the kernel reads and writes.
func InOut(b Buffer) Arg {
	return Arg{buffer: b, bytes: b.Bytes(), size: pointerBytes, align: pointerBytes, mode: readsAndWrites}
}

// Of returns the argument of a part of its buffer: the kernel gets the address of the part's begin. Arguments by value stay as
// they are.
func (a Arg) Of(offsetBytes, bytes int64) Arg {
	if a.mode != byValue {
		a.offset, a.bytes = offsetBytes, bytes
	}
	return a
}

// SetBuffer puts another buffer into the argument, whose part stays: for arguments that are kept from launch to launch.
// Arguments by value stay as they are.
func (a *Arg) SetBuffer(b Buffer) {
	if a != nil && a.mode != byValue {
		a.buffer = b
	}
}

// within returns the error of a part that is not within its buffer.
func within(b Buffer, offset, bytes int64) error {
	if offset < 0 || bytes < 0 || offset > b.Bytes() || bytes > b.Bytes()-offset {
		return &RangeError{offset, bytes, b.Bytes()}
	}
	return nil
}

// maxParamBytes is the limit of all parameters of a kernel together on every device.
const maxParamBytes = 4096

// params are the arguments of a launch as the driver takes them: in the heap, since the stack of a goroutine moves.
type params struct {
	bytes [maxParamBytes]byte
	size  int
}

var freeParams = sync.Pool{New: func() any { return new(params) }} //nolint:gochecknoglobals // made on first use: memory that one launch uses at a time

// put writes an argument at an offset.
func (p *params) put(at int, a *Arg, value uint64) {
	if a.long != nil {
		copy(p.bytes[at:], a.long.bytes)
		return
	}
	switch to := p.bytes[at:]; a.size {
	case 1:
		to[0] = byte(value)
	case 2:
		binary.LittleEndian.PutUint16(to, uint16(value)) //nolint:gosec // its low bits
	case 4:
		binary.LittleEndian.PutUint32(to, uint32(value)) //nolint:gosec // its low bits
	default:
		binary.LittleEndian.PutUint64(to, value)
	}
}

// place writes the arguments where the kernel has its parameters. plain says that no buffer needs more than its name: see
// streams.Submitter.Check.
func (c *submission) place(f *Function, p *params, args []Arg) (plain bool, err error) {
	if f.known && len(args) != len(f.params) {
		return false, &ArgumentError{Kernel: f.name, Err: ErrArgumentCount, Bytes: int64(len(args)), Want: int64(len(f.params))}
	}
	at := 0
	plain = true
	for i := range args {
		a := &args[i]
		size := int(a.size)
		switch {
		case a.long != nil && a.long.refused != nil:
			return false, &ArgumentError{Kernel: f.name, Index: i, Err: a.long.refused, Bytes: int64(size), Want: f.sizeOf(i)}
		case size == 0:
			return false, &ArgumentError{Kernel: f.name, Index: i, Err: ErrArgumentSize, Want: f.sizeOf(i)}
		case !f.known:
			at = (at + int(a.align) - 1) &^ (int(a.align) - 1)
		case f.params[i].bytes != size:
			return false, &ArgumentError{Kernel: f.name, Index: i, Err: ErrArgumentSize, Bytes: int64(size), Want: int64(f.params[i].bytes)}
		default:
			at = f.params[i].offset
		}
		if at+size > maxParamBytes {
			return false, &ArgumentError{Kernel: f.name, Index: i, Err: ErrArgumentSize, Bytes: int64(at + size), Want: maxParamBytes}
		}
		value := a.bits
		if a.mode != byValue {
			own, err := c.work.Check(a.buffer)
			if err == nil && (a.offset != 0 || a.bytes != a.buffer.Bytes()) {
				err = within(a.buffer, a.offset, a.bytes)
			}
			if err != nil {
				if err = c.reachable(a, err); err != nil {
					return false, &ArgumentError{Kernel: f.name, Index: i, Err: err}
				}
			}
			plain = plain && own
			value = uint64(a.buffer.Ptr()) + uint64(a.offset) //nolint:gosec // within the buffer
		}
		p.put(at, a, value)
		at += size
	}
	p.size = at
	if f.known {
		p.size = f.paramBytes
	}
	return plain, nil
}
