package cuda

import (
	"encoding/binary"
	"math"
	"reflect"
	"sync"
	"unsafe"

	"github.com/go-vram/vram/cudadrv"
)

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

// Arg is an argument of a launch: make it with In, Out, InOut, OrNull, Null, Value or Struct.
type Arg struct {
	buffer Buffer
	bits   uint64     // by value; a struct or an array of at most inlineBytes lies here, and in the two fields that follow
	offset int64      // of the part; the kernel gets the address of its begin
	bytes  int64      // of the part
	typ    *valueType // by value, no number; nil otherwise
	size   int32      // of the parameter
	align  uint8      // of the parameter, where the driver does not tell its offset
	mode   mode
	kind   kind
}

// pointerBytes is the size of a parameter that is an address.
const pointerBytes = 8

// In marks a buffer that the kernel reads.
func In(b Buffer) Arg {
	return Arg{buffer: b, bytes: b.Bytes(), size: pointerBytes, align: pointerBytes, mode: reads, kind: addressKind}
}

// Out marks a buffer that the kernel writes.
func Out(b Buffer) Arg {
	return Arg{buffer: b, bytes: b.Bytes(), size: pointerBytes, align: pointerBytes, mode: writes, kind: addressKind}
}

// InOut marks a buffer that the kernel reads and writes.
func InOut(b Buffer) Arg {
	return Arg{buffer: b, bytes: b.Bytes(), size: pointerBytes, align: pointerBytes, mode: readsAndWrites, kind: addressKind}
}

// Null is a nil pointer for a parameter that is a pointer.
func Null() Arg { return Arg{size: pointerBytes, align: pointerBytes, kind: addressKind} }

// OrNull is mark(b), as OrNull(b, In), or Null where b is the zero Buffer: for a pointer that a kernel tests. A buffer that was
// freed is not the zero Buffer. A launch refuses the argument of a nil mark.
func OrNull(b Buffer, mark func(Buffer) Arg) Arg {
	switch {
	case b == Buffer{}:
		return Null()
	case mark == nil:
		return Arg{}
	}
	return mark(b)
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

// maxValueBytes bounds the size of a value, which is refused above maxParamBytes.
const maxValueBytes = 1 << 30

// params are the arguments of a launch as the driver takes them: in the heap, since the stack of a goroutine moves.
type params struct {
	bytes [maxParamBytes]byte
	size  int
}

// borrow returns memory for parameters: mostly the submission's own, which takes less of a processor's caches than a pool does.
// giveBack ends its use.
func (c *submission) borrow() *params {
	if p := c.spare.Swap(nil); p != nil {
		return p
	}
	return freeParams.Get().(*params) //nolint:forcetypeassert // of this pool
}

func (c *submission) giveBack(p *params) {
	if !c.spare.CompareAndSwap(nil, p) {
		freeParams.Put(p)
	}
}

var freeParams = sync.Pool{New: func() any { return new(params) }} //nolint:gochecknoglobals // made on first use: memory that one launch uses at a time

// put writes an argument at an offset.
func (p *params) put(at int, a *Arg, value uint64) {
	switch to := p.bytes[at:]; a.size {
	case 1:
		to[0] = byte(value)
	case 2:
		binary.LittleEndian.PutUint16(to, uint16(value)) //nolint:gosec // its low bits
	case 4:
		binary.LittleEndian.PutUint32(to, uint32(value)) //nolint:gosec // its low bits
	case 8:
		binary.LittleEndian.PutUint64(to, value)
	default:
		copy(to, a.memory())
	}
}

// inlineBytes is the size of the largest struct or array that lies in its Arg: of the fields that only buffers have otherwise.
const inlineBytes = 24

// The fields of inline follow each other.
var _ [unsafe.Offsetof(Arg{}.bits) + inlineBytes - unsafe.Sizeof(Arg{}.bytes)]byte = [unsafe.Offsetof(Arg{}.bytes)]byte{}

// inline is the memory of a small struct or array, or a complex128.
func (a *Arg) inline() *[inlineBytes]byte { return (*[inlineBytes]byte)(unsafe.Pointer(&a.bits)) }

// memory returns the bytes of a value that does not lie in bits alone.
func (a *Arg) memory() []byte {
	if a.typ != nil && a.typ.long != nil {
		return unsafe.Slice(a.typ.long, a.size)
	}
	return a.inline()[:a.size]
}

// Value returns an argument by value: a bool, a number of a fixed size, or a struct or array of such, of up to 4 KiB. It
// must have the size of the kernel's parameter: Value(uint32(n)), not Value(n). If the kernel's PTX is known, it must also have
// the parameter's type: see ErrArgumentType. A struct has the layout of a C struct with the same fields. Values of up to 24 bytes are not
// allocated; larger ones are copied to the heap. A launch refuses values of other types, such as types with pointers, with a
// *ValueError, and values of another size than the parameter with ErrArgumentSize.
//
// An address in device memory, as of Variable.Ptr, is a cudadrv.Ptr. The launch does not know the memory at that address: the
// caller keeps and orders that.
func Value[T any](v T) Arg {
	switch v := any(&v).(type) { // most values, without reflection
	case *int32:
		return Arg{bits: uint64(uint32(*v)), size: 4, align: 4, kind: int32Kind} //nolint:gosec // its bits
	case *uint32:
		return Arg{bits: uint64(*v), size: 4, align: 4, kind: uint32Kind}
	case *float32:
		return Arg{bits: uint64(math.Float32bits(*v)), size: 4, align: 4, kind: float32Kind}
	}
	size := unsafe.Sizeof(v)
	a := Arg{
		size: int32(min(size, maxValueBytes)), align: uint8(unsafe.Alignof(v)), //nolint:gosec // both are small
		kind: numberKinds[reflect.TypeFor[T]().Kind()],
	}
	if a.kind == noKind || a.kind == uint64Kind {
		if a.describe(reflect.TypeFor[T]()); a.kind == noKind {
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
		if size <= inlineBytes {
			copy(a.inline()[:], unsafe.Slice((*byte)(at), size))
			break
		}
		held := &struct {
			valueType
			value T
		}{*a.typ, v}
		held.long = (*byte)(unsafe.Pointer(&held.value))
		a.typ = &held.valueType
	}
	return a
}

// describe sets the kind of an argument that is no number, or an address.
func (a *Arg) describe(t reflect.Type) {
	if a.kind != noKind {
		if t == reflect.TypeFor[cudadrv.Ptr]() {
			a.kind = addressKind
		}
		return
	}
	a.typ = typeOf(t)
	a.kind = a.typ.kind
}

// Struct is Value for a struct: as a kernel takes a struct by value. T has numbers of a fixed size, bools, and arrays and
// structs of them; a launch refuses others, and types that are no struct, with a *ValueError. Go aligns complex64 to 4 bytes and
// CUDA's float2 to 8, and CUDA's types of 16 bytes, as float4, are aligned to 16: put a blank field where C has padding. If the
// kernel's PTX is known, the launch refuses a struct that is aligned to more bytes than the parameter.
//
// Up to 24 bytes are not allocated; larger structs are copied to the heap, once. A launch does not see addresses in a struct:
// submit a kernel that follows them with LaunchPacked, which takes a list of buffers.
func Struct[T any](v T) Arg {
	if t := reflect.TypeFor[T](); t.Kind() != reflect.Struct {
		return Arg{size: int32(min(unsafe.Sizeof(v), maxValueBytes)), typ: notStruct(t)} //nolint:gosec // small
	}
	return Value(v)
}
