package tensor

import (
	"fmt"

	"github.com/go-vram/vram/compute/tensor/half"
)

// Type is the type of the elements of a tensor. The zero value is none.
type Type uint8

// The element types. Bool has one byte, 0 or 1.
const (
	Bool Type = iota + 1
	Uint8
	Int8
	Int16
	Int32
	Int64
	Float16
	BFloat16
	Float32
	Float64
)

// Kind is the family of an element type.
type Kind uint8

// The kinds.
const (
	Boolean Kind = iota + 1
	Unsigned
	Signed
	Floating
)

// String returns the kind's name.
func (k Kind) String() string {
	names := [...]string{"no kind", "boolean", "unsigned", "signed", "floating"}
	if int(k) >= len(names) {
		return fmt.Sprintf("kind %d", uint8(k))
	}
	return names[k]
}

// MarshalText implements encoding.TextMarshaler: the text of String.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// properties describes a type.
type properties struct {
	name string
	size int
	kind Kind
}

//nolint:gochecknoglobals // constant table, by number
var typeProperties = [...]properties{
	Bool: {"bool", 1, Boolean}, Uint8: {"uint8", 1, Unsigned}, Int8: {"int8", 1, Signed}, Int16: {"int16", 2, Signed},
	Int32: {"int32", 4, Signed}, Int64: {"int64", 8, Signed}, Float16: {"float16", 2, Floating}, BFloat16: {"bfloat16", 2, Floating},
	Float32: {"float32", 4, Floating}, Float64: {"float64", 8, Floating},
}

func (t Type) properties() properties {
	if !t.Valid() {
		return properties{name: fmt.Sprintf("type %d", uint8(t))}
	}
	return typeProperties[t]
}

// Valid reports whether it is one of the types.
func (t Type) Valid() bool { return t >= Bool && t <= Float64 }

// String returns the type's name in lower case: "bfloat16".
func (t Type) String() string { return t.properties().name }

// MarshalText implements encoding.TextMarshaler: the text of String.
func (t Type) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// Size returns the number of bytes of an element, and 0 for no type.
func (t Type) Size() int { return t.properties().size }

// Kind returns the type's family, and 0 for no type.
func (t Type) Kind() Kind { return t.properties().kind }

// Types returns all element types.
func Types() []Type {
	return []Type{Bool, Uint8, Int8, Int16, Int32, Int64, Float16, BFloat16, Float32, Float64}
}

// Element is the types of Go that the element types have on the host.
type Element interface {
	bool | uint8 | int8 | int16 | int32 | int64 | half.Float16 | half.BFloat16 | float32 | float64
}

// TypeOf returns the element type of a type of Go.
func TypeOf[T Element]() Type {
	var zero T
	switch any(zero).(type) {
	case bool:
		return Bool
	case uint8:
		return Uint8
	case int8:
		return Int8
	case int16:
		return Int16
	case int32:
		return Int32
	case int64:
		return Int64
	case half.Float16:
		return Float16
	case half.BFloat16:
		return BFloat16
	case float32:
		return Float32
	}
	return Float64
}
