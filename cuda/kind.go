package cuda

import (
	"fmt"
	"math/bits"
	"reflect"
	"strings"
)

// kind is the kind of an argument, as far as PTX tells types of parameters apart.
type kind uint8

const (
	noKind      kind = iota // of no argument, or one of a type or a size that no kernel takes
	addressKind             // a buffer, a nil pointer, a cudadrv.Ptr
	boolKind
	int8Kind
	int16Kind
	int32Kind
	int64Kind
	uint8Kind
	uint16Kind
	uint32Kind
	uint64Kind
	float32Kind
	float64Kind
	complex64Kind
	complex128Kind
	bytes1Kind // a struct or an array that is aligned to 1 byte, and so on
	bytes2Kind
	bytes4Kind
	bytes8Kind
	kindCount
)

// kinds is a set of kinds: bit k is kind k.
type kinds uint32

// anyKind are the arguments of a parameter whose type is not known.
const anyKind = kinds(1)<<kindCount - 1<<(noKind+1)

// of returns the set of some kinds.
func of(all ...kind) (set kinds) {
	for _, k := range all {
		set |= 1 << k
	}
	return set
}

// has reports whether a kind is in the set.
func (s kinds) has(k kind) bool { return s>>(k&31)&1 != 0 }

// numberKinds are the kinds of bools and numbers of a fixed size, by reflect.Kind; noKind for other types.
//
//nolint:gochecknoglobals // a constant
var numberKinds = [reflect.UnsafePointer + 1]kind{
	reflect.Bool: boolKind, reflect.Int8: int8Kind, reflect.Int16: int16Kind, reflect.Int32: int32Kind, reflect.Int64: int64Kind,
	reflect.Uint8: uint8Kind, reflect.Uint16: uint16Kind, reflect.Uint32: uint32Kind, reflect.Uint64: uint64Kind,
	reflect.Float32: float32Kind, reflect.Float64: float64Kind, reflect.Complex64: complex64Kind, reflect.Complex128: complex128Kind,
}

// bytesKind returns the kind of a struct or an array with that alignment.
func bytesKind(align int) kind {
	return bytes1Kind + kind(bits.TrailingZeros8(uint8(min(align, 8)))) //nolint:gosec // 1, 2, 4 or 8
}

// alignedTo returns the structs and arrays that are aligned to at most that many bytes.
func alignedTo(align int) kinds {
	set := of(bytes1Kind)
	for k := bytes2Kind; k <= bytes8Kind && 1<<(k-bytes1Kind) <= align; k++ {
		set |= 1 << k
	}
	return set
}

// String names the arguments of the kind.
func (k kind) String() string {
	switch {
	case k == addressKind:
		return "a buffer, a nil pointer or a cudadrv.Ptr"
	case k >= boolKind && k < bytes1Kind:
		return goNames[k-boolKind]
	case k >= bytes1Kind && k <= bytes8Kind:
		return "a struct or an array"
	}
	return "no argument"
}

// goNames are the names of the numbers, from boolKind on.
//
//nolint:gochecknoglobals // a constant
var goNames = [...]string{"bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64", "complex64", "complex128"}

// String lists the kinds.
func (s kinds) String() string {
	var all []string
	for k := noKind + 1; k < kindCount; k++ {
		if s.has(k) && k <= bytes1Kind { // bytes2Kind and so on have its name
			all = append(all, k.String())
		}
	}
	switch n := len(all); n {
	case 0:
		return "nothing"
	case 1:
		return all[0]
	default:
		return fmt.Sprintf("%s or %s", strings.Join(all[:n-1], ", "), all[n-1])
	}
}

// A textType is a type of parameters in PTX: its size, and the arguments that it takes. Compilers of C write .u for integers of
// both signs, so only .s says that the sign matters; .b says nothing but the size.
type textType struct {
	name  string
	bytes int
	takes kinds
}

// textTypes are the types of parameters.
//
//nolint:gochecknoglobals // a constant
var textTypes = [...]textType{
	{".b8", 1, of(boolKind, int8Kind, uint8Kind) | alignedTo(1)},
	{".u8", 1, of(boolKind, int8Kind, uint8Kind)},
	{".s8", 1, of(int8Kind)},
	{".b16", 2, of(int16Kind, uint16Kind) | alignedTo(2)},
	{".u16", 2, of(int16Kind, uint16Kind)},
	{".s16", 2, of(int16Kind)},
	{".f16", 2, of(uint16Kind)}, // its bits: Go has no such number
	{".bf16", 2, of(uint16Kind)},
	{".b32", 4, of(int32Kind, uint32Kind, float32Kind) | alignedTo(4)},
	{".u32", 4, of(int32Kind, uint32Kind)},
	{".s32", 4, of(int32Kind)},
	{".f32", 4, of(float32Kind)},
	{".f16x2", 4, of(uint32Kind)},
	{".bf16x2", 4, of(uint32Kind)},
	{".b64", 8, of(addressKind, int64Kind, uint64Kind, float64Kind, complex64Kind) | alignedTo(8)},
	{".u64", 8, of(addressKind, int64Kind, uint64Kind)},
	{".s64", 8, of(int64Kind)},
	{".f64", 8, of(float64Kind)},
	{".b128", 16, of(complex128Kind) | alignedTo(16)},
}
