package cuda

import (
	"encoding/binary"
	"reflect"
	"sync"
	"unsafe"
)

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

// writes reports whether the kernel may write the buffer.
func (a *Arg) writes() bool { return a.mode == writes || a.mode == readsAndWrites }

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

// Value returns an argument by value: a bool, a number of a fixed size, or a struct or array of such, of up to 4 KiB. Its size
// must be that of the kernel's parameter: Value(uint32(n)), not Value(n). A struct has the layout of a C struct with the same
// fields. Values of up to 8 bytes are not allocated; larger ones are copied to the heap. A launch refuses values of other
// types, such as types with pointers, with a *ValueError, and values of another size than the parameter with ErrArgumentSize.
func Value[T any](v T) Arg {
	size := unsafe.Sizeof(v)
	a := Arg{size: int32(min(size, maxParamBytes+1)), align: uint8(unsafe.Alignof(v))} //nolint:gosec // both are small
	kind := reflect.TypeFor[T]().Kind()
	if kind < reflect.Bool || kind > reflect.Float64 || kind == reflect.Int || kind == reflect.Uint || kind == reflect.Uintptr {
		if refused := refusedValue(reflect.TypeFor[T]()); refused != nil {
			a.long = &longValue{refused: refused}
			return a
		}
	}
	switch at := unsafe.Pointer(&v); size {
	case 1:
		a.bits = uint64(*(*byte)(at))
	case 2:
		a.bits = uint64(binary.LittleEndian.Uint16((*[2]byte)(at)[:]))
	case 4:
		a.bits = uint64(binary.LittleEndian.Uint32((*[4]byte)(at)[:]))
	case 8:
		a.bits = binary.LittleEndian.Uint64((*[8]byte)(at)[:])
	default:
		if size <= maxParamBytes { // else the launch is refused for the size
			a.long = &longValue{bytes: append([]byte(nil), unsafe.Slice((*byte)(at), size)...)}
		}
	}
	return a
}
