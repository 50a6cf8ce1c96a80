package ptx

// Type is the type of a register, a variable or an instruction: .u32, .f16x2, .pred.
type Type uint8

// The types of PTX. Untyped bits come first, then integers, floating point, and predicates.
const (
	NoType Type = iota
	B8
	B16
	B32
	B64
	B128
	U8
	U16
	U32
	U64
	S8
	S16
	S32
	S64
	F16
	F16x2
	BF16
	BF16x2
	TF32
	F32
	F64
	Pred
	TexRef
	SamplerRef
	SurfRef
	typeCount
)

// Class says how the bits of a type are read.
type Class uint8

// The classes of types.
const (
	NoClass Class = iota
	Untyped
	Unsigned
	Signed
	Float
	Predicate
	Opaque // of a variable that stands for a texture, a sampler or a surface
)

type typeEntry struct {
	name  string
	bits  int
	class Class
	lanes int
}

//nolint:gochecknoglobals // constant table of types
var typeTable = [typeCount]typeEntry{
	B8:     {"b8", 8, Untyped, 1},
	B16:    {"b16", 16, Untyped, 1},
	B32:    {"b32", 32, Untyped, 1},
	B64:    {"b64", 64, Untyped, 1},
	B128:   {"b128", 128, Untyped, 1},
	U8:     {"u8", 8, Unsigned, 1},
	U16:    {"u16", 16, Unsigned, 1},
	U32:    {"u32", 32, Unsigned, 1},
	U64:    {"u64", 64, Unsigned, 1},
	S8:     {"s8", 8, Signed, 1},
	S16:    {"s16", 16, Signed, 1},
	S32:    {"s32", 32, Signed, 1},
	S64:    {"s64", 64, Signed, 1},
	F16:    {"f16", 16, Float, 1},
	F16x2:  {"f16x2", 32, Float, 2},
	BF16:   {"bf16", 16, Float, 1},
	BF16x2: {"bf16x2", 32, Float, 2},
	TF32:   {"tf32", 32, Float, 1},
	F32:    {"f32", 32, Float, 1},
	F64:    {"f64", 64, Float, 1},
	Pred:   {"pred", 1, Predicate, 1},

	TexRef: {"texref", 64, Opaque, 1}, SamplerRef: {"samplerref", 64, Opaque, 1}, SurfRef: {"surfref", 64, Opaque, 1},
}

//nolint:gochecknoglobals // constant table of types by name
var typeByName = func() map[string]Type {
	byName := map[string]Type{}
	for t := NoType + 1; t < typeCount; t++ {
		byName[typeTable[t].name] = t
	}
	return byName
}()

// String returns the name of the type without its dot.
func (t Type) String() string { return t.entry().name }

// MarshalText implements encoding.TextMarshaler: the text of String.
func (t Type) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// Bits returns the width of the type; 1 of a predicate and 0 of NoType.
func (t Type) Bits() int { return t.entry().bits }

// Bytes returns the size of the type in memory; 0 of a predicate, which has no place there.
func (t Type) Bytes() int { return t.entry().bits / 8 }

// Class says how the bits of the type are read.
func (t Type) Class() Class { return t.entry().class }

// Lanes returns the number of values that one register of the type packs: 2 of f16x2 and bf16x2, else 1.
func (t Type) Lanes() int { return t.entry().lanes }

// IsInteger reports whether the type is a signed or unsigned integer.
func (t Type) IsInteger() bool { return t.Class() == Signed || t.Class() == Unsigned }

func (t Type) entry() typeEntry {
	if t >= typeCount {
		return typeEntry{}
	}
	return typeTable[t]
}

// Space is the state space that a variable or an address belongs to.
type Space uint8

// The state spaces. An instruction that names none has Generic.
const (
	Generic Space = iota
	Global
	Shared
	Local
	Const
	Param
	spaceCount
)

//nolint:gochecknoglobals // constant table of state spaces
var spaceNames = [spaceCount]string{Generic: "generic", Global: "global", Shared: "shared", Local: "local", Const: "const", Param: "param"}

// String returns the name of the space without its dot.
func (s Space) String() string {
	if s >= spaceCount {
		return ""
	}
	return spaceNames[s]
}

// MarshalText implements encoding.TextMarshaler: the text of String.
func (s Space) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
