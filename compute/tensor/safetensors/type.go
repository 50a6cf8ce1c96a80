package safetensors

import "fmt"

// Type is the type of the elements of a tensor. The zero value is none.
type Type uint8

// The types of the format. A Float8 has the layout of its name: E5M2 has five bits of exponent and two of mantissa.
const (
	Bool Type = iota + 1
	Uint8
	Int8
	Float8E5M2
	Float8E4M3
	Int16
	Uint16
	Float16
	BFloat16
	Int32
	Uint32
	Float32
	Float64
	Int64
	Uint64
)

//nolint:gochecknoglobals // constant table, by number
var types = [...]struct {
	name  string
	bytes int64
}{
	Bool: {"BOOL", 1}, Uint8: {"U8", 1}, Int8: {"I8", 1}, Float8E5M2: {"F8_E5M2", 1}, Float8E4M3: {"F8_E4M3", 1},
	Int16: {"I16", 2}, Uint16: {"U16", 2}, Float16: {"F16", 2}, BFloat16: {"BF16", 2},
	Int32: {"I32", 4}, Uint32: {"U32", 4}, Float32: {"F32", 4}, Float64: {"F64", 8}, Int64: {"I64", 8}, Uint64: {"U64", 8},
}

// Valid reports whether it is one of the types.
func (t Type) Valid() bool { return t >= Bool && t <= Uint64 }

// String returns the format's name of the type: "BF16".
func (t Type) String() string {
	if !t.Valid() {
		return fmt.Sprintf("type %d", uint8(t))
	}
	return types[t].name
}

// MarshalText implements encoding.TextMarshaler: the text of String.
func (t Type) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// Size returns the number of bytes of an element, and 0 for no type.
func (t Type) Size() int64 {
	if !t.Valid() {
		return 0
	}
	return types[t].bytes
}

// UnmarshalText implements encoding.TextUnmarshaler: it reads the format's name of a type. Errors: *FormatError.
func (t *Type) UnmarshalText(name []byte) error {
	for x := Bool; x.Valid(); x++ {
		if types[x].name == string(name) {
			*t = x
			return nil
		}
	}
	return refuse("%q is not a type of the format", name)
}
