package ptx

import (
	"fmt"
	"math"
	"strings"
)

// Module is one text of PTX: a translation unit of variables and functions.
type Module struct {
	Version     Version
	Target      Target
	AddressSize int // in bits, 32 or 64; 0 where the text does not name it
	Files       []File
	Variables   []*Variable
	Functions   []*Function

	VersionPos, TargetPos Pos // of .version and .target; zero of a tree that a program made
}

// Version is the version of the language that the text asks for.
type Version struct {
	Major, Minor int
}

// String returns the version as .version has it: 7.0.
func (v Version) String() string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }

// Before reports whether v is older than other.
func (v Version) Before(other Version) bool {
	return v.Major < other.Major || v.Major == other.Major && v.Minor < other.Minor
}

// Target is the architecture that the text is for.
type Target struct {
	SM      int      // 80 of sm_80
	Variant string   // "a" of sm_90a, whose instructions no other architecture has, "f" of sm_100f, whose family has them
	Options []string // "debug", "texmode_independent"
}

// String returns the target as .target has it.
func (t Target) String() string {
	return strings.Join(append([]string{t.architecture()}, t.Options...), ", ")
}

// architecture returns the target without its options.
func (t Target) architecture() string { return fmt.Sprintf("sm_%d%s", t.SM, t.Variant) }

// File is a source file that .loc refers to by its index.
type File struct {
	Pos   Pos
	Index int
	Name  string
}

// Pos is a place in the text of PTX; lines and columns count from 1, and columns count bytes. A node that a program
// made has none.
type Pos struct {
	Line, Column int
}

// String is line:column.
func (p Pos) String() string { return fmt.Sprintf("%d:%d", p.Line, p.Column) }

// Linkage says how a variable or a function is seen by other modules.
type Linkage uint8

// The linkages.
const (
	Internal Linkage = iota
	Visible
	Extern
	Weak
	Common
	linkageCount
)

//nolint:gochecknoglobals // constant table of linkages
var linkageNames = [linkageCount]string{Visible: ".visible", Extern: ".extern", Weak: ".weak", Common: ".common"}

// String returns the directive of the linkage with its dot; Internal has none.
func (l Linkage) String() string {
	if l >= linkageCount {
		return ""
	}
	return linkageNames[l]
}

// MarshalText implements encoding.TextMarshaler: the text of String.
func (l Linkage) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// Variable is a named place in memory: of a module, of a function's body, or a parameter.
type Variable struct {
	Pos     Pos
	Linkage Linkage
	Space   Space
	Align   int // in bytes; 0 where the text does not name it
	Vector  int // 2 or 4 elements of .v2 and .v4, else 0
	Type    Type
	Name    string
	Dims    []int    // of an array; Unsized where the brackets are empty
	Init    *Operand // nil without an initialiser; OperandVector where it has braces
	Pointer *Pointer // of a parameter with .ptr
}

// Unsized is the dimension of an array with empty brackets: memory that the launch sizes.
const Unsized = -1

// Pointer is the promise that a parameter of an entry makes about the memory it points to.
type Pointer struct {
	Space Space
	Align int // in bytes; 0 where the text does not name it
}

// Bytes returns the size of the variable, at most the largest int; 0 for an array of unknown length.
func (v *Variable) Bytes() int {
	if v == nil {
		return 0
	}
	bytes := v.Type.Bytes() * max(v.Vector, 1)
	for _, dim := range v.Dims {
		switch {
		case dim == Unsized:
			return 0
		case dim > 0 && bytes > math.MaxInt/dim:
			bytes = math.MaxInt // Check refuses it
		default:
			bytes *= dim
		}
	}
	return bytes
}

// Alignment returns the address's alignment in bytes: the declared one, or else the type's.
func (v *Variable) Alignment() int {
	if v == nil {
		return 1
	}
	if v.Align > 0 {
		return v.Align
	}
	return max(v.Type.Bytes()*max(v.Vector, 1), 1)
}

// Function is an .entry, which a launch starts, or a .func, which an instruction calls.
type Function struct {
	Pos        Pos
	Linkage    Linkage
	Entry      bool
	Name       string
	Results    []*Variable // of a .func
	Params     []*Variable
	Directives []Directive
	Body       *Block      // nil of a declaration
	Registers  []*Register // those that the body uses, each at its Index
}

// Directive is a limit or a hint that stands between the parameters and the body, or a .pragma.
type Directive struct {
	Pos    Pos
	Name   string // "maxntid", "reqntid", "minnctapersm", "maxnreg", "pragma", "noreturn"
	Values []int
	Text   string // of a pragma
}

// Function finds the function of that name: its definition where there is one, else its declaration, else nil.
func (m *Module) Function(name string) *Function {
	if m == nil {
		return nil
	}
	var declared *Function
	for _, f := range m.Functions {
		switch {
		case f.Name != name:
		case f.Body != nil:
			return f
		case declared == nil:
			declared = f
		}
	}
	return declared
}

// Variable finds the module's variable of that name, or nil.
func (m *Module) Variable(name string) *Variable {
	if m == nil {
		return nil
	}
	for _, v := range m.Variables {
		if v.Name == name {
			return v
		}
	}
	return nil
}

// File returns the name of the source file with that index, or "".
func (m *Module) File(index int) string {
	if m == nil {
		return ""
	}
	for _, f := range m.Files {
		if f.Index == index {
			return f.Name
		}
	}
	return ""
}
