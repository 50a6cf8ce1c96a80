package cuda

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"sync"
	"unsafe"
)

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

// longValue is an argument by value of another size than a scalar's, or a refused one.
type longValue struct {
	bytes   []byte
	refused *ValueError
}

// ValueError refuses an argument by value of a type that means nothing to a kernel: it has a pointer inside, as a slice has, or
// a number whose size depends on the machine.
type ValueError struct {
	Type   string `json:"type"`   // of the argument
	Inside string `json:"inside"` // the type in it that is refused
}

// Error names both types.
func (e *ValueError) Error() string {
	if e.Type == e.Inside {
		return fmt.Sprintf("cuda: a kernel takes no %s by value: it takes numbers of a fixed size, and structs and arrays of them", e.Type)
	}
	return fmt.Sprintf("cuda: a kernel takes no %s by value: it has a %s inside", e.Type, e.Inside)
}

// valueTypes caches the results of refusedValue: *ValueError by reflect.Type, nil for valid types.
var valueTypes sync.Map //nolint:gochecknoglobals // made on first use: facts about types, which do not change; read without a lock

// refusedValue returns the error of a type that a kernel does not take by value, nil if it does.
func refusedValue(t reflect.Type) *ValueError {
	if known, ok := valueTypes.Load(t); ok {
		return known.(*ValueError) //nolint:forcetypeassert // nothing else is in the map
	}
	var refused *ValueError
	if inside := refusedInside(t); inside != nil {
		refused = &ValueError{t.String(), inside.String()}
	}
	valueTypes.Store(t, refused)
	return refused
}

// refusedInside returns the first type within t that a kernel does not take, nil if there is none.
func refusedInside(t reflect.Type) reflect.Type {
	switch t.Kind() {
	case reflect.Bool, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64,
		reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128:
		return nil
	case reflect.Array:
		return refusedInside(t.Elem())
	case reflect.Struct:
		for field := range t.Fields() {
			if inside := refusedInside(field.Type); inside != nil {
				return inside
			}
		}
		return nil
	case reflect.Invalid, reflect.Int, reflect.Uint, reflect.Uintptr, reflect.Chan, reflect.Func, reflect.Interface, reflect.Map, reflect.Pointer,
		reflect.Slice, reflect.String, reflect.UnsafePointer:
	}
	return t
}
