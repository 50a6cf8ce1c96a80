package binding

import (
	"errors"
	"fmt"
	"slices"

	"github.com/go-vram/vram/compute/ptx"
)

// Text is a text of PTX with the name of its file, for comments and errors. Source may have CUDA C++ that declares kernels of the
// text: then their parameters have the names of the source, and the types that PTX does not tell.
type Text struct{ Name, PTX, Source string }

// Errors of Generate.
var (
	ErrNoKernel = errors.New("no kernel")
	ErrPackage  = errors.New("no name of a Go package")
)

// DuplicateError says that two texts have a kernel of one name.
type DuplicateError struct{ Kernel, First, Second string }

// Error names both files.
func (e *DuplicateError) Error() string {
	return fmt.Sprintf("kernel %s is in %s and in %s", e.Kernel, e.First, e.Second)
}

// ParameterError says that a parameter of a kernel has no type in Go.
type ParameterError struct{ File, Kernel, Parameter, Reason string }

// Error names the parameter.
func (e *ParameterError) Error() string {
	return fmt.Sprintf("%s: kernel %s, parameter %s: %s", e.File, e.Kernel, e.Parameter, e.Reason)
}

// kernel is an entry of a text.
type kernel struct {
	text       int // its index
	entry      string
	cpp        string // the name in C++, or the entry's
	method     string // in Go
	field      string
	parameters []parameter
}

// parameter is a parameter of a kernel.
type parameter struct {
	name     string
	numbered string // the compiler's name in the text, where the source gives the name
	goType   string
	mode     string   // In, Out or InOut of a buffer, else ""
	unknown  string   // why the mode is not known
	null     bool     // a buffer that the kernel compares with a nil pointer
	bytes    int      // of a struct
	words    bool     // the struct is aligned as a word
	inside   []string // sentences about pointers in a struct
	note     string   // about the type
}

// Generate returns a Go file of a package with a method for each kernel of the texts, formatted, and the same for the same texts.
// Errors: of ptx.Parse and ptx.Check with the name of the file, ErrNoKernel, ErrPackage, *DuplicateError, *ParameterError.
func Generate(packageName string, texts []Text) ([]byte, error) {
	if !isPackageName(packageName) {
		return nil, fmt.Errorf("%w: %q", ErrPackage, packageName)
	}
	var kernels []*kernel
	texts = slices.Clone(texts)
	first := map[string]string{}
	for n, t := range texts {
		m, err := parse(t)
		if err != nil {
			return nil, err
		}
		before, sources := len(kernels), declarationsIn(t.Source)
		for _, f := range m.Functions {
			if !f.Entry || f.Body == nil {
				continue
			}
			if other, again := first[f.Name]; again {
				return nil, &DuplicateError{f.Name, other, t.Name}
			}
			first[f.Name] = t.Name
			k, err := newKernel(n, t.Name, m, f, sources)
			if err != nil {
				return nil, err
			}
			kernels = append(kernels, k)
		}
		if len(kernels) == before {
			return nil, fmt.Errorf("%s: %w", t.Name, ErrNoKernel)
		}
		texts[n].PTX = renamed(t.PTX, m, kernels[before:])
	}
	if len(kernels) == 0 {
		return nil, ErrNoKernel
	}
	nameKernels(kernels)
	return write(packageName, texts, kernels)
}

// parse returns the module of a text. A finding of the check about a thing that package ptx does not know is none: the driver may
// take it.
func parse(t Text) (*ptx.Module, error) {
	m, err := ptx.Parse(t.PTX)
	if err == nil && m.AddressSize == 32 { //nolint:mnd // bits
		err = errors.New("addresses of 32 bits")
	}
	if err == nil {
		err = refused(ptx.Check(m))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.Name, err)
	}
	return m, nil
}

// refused returns the findings that a driver would have, too.
func refused(err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, e := range joined.Unwrap() {
			all = append(all, refused(e))
		}
		return errors.Join(all...)
	}
	if finding, ok := errors.AsType[*ptx.CheckError](err); ok && finding.Lacking {
		return nil
	}
	return err
}

// newKernel describes an entry.
func newKernel(text int, file string, m *ptx.Module, f *ptx.Function, sources declarations) (*kernel, error) {
	k := &kernel{text: text, entry: f.Name}
	signature := demangled(f.Name)
	k.cpp = signature.name
	source := sources.of(k.cpp, len(f.Params))
	uses := map[int][]ptx.Use{}
	for _, u := range ptx.Uses(m, f) {
		uses[u.Param] = append(uses[u.Param], u)
	}
	for n, v := range f.Params {
		inCPP := signature.at(n)
		if inCPP == "" {
			inCPP = source.parameters[n].inCPP
		}
		p, err := newParameter(v, uses[n], inCPP)
		if err != nil {
			return nil, &ParameterError{file, f.Name, v.Name, err.Error()}
		}
		k.parameters = append(k.parameters, p)
	}
	nameParameters(f, source, k.parameters)
	return k, nil
}

// newParameter chooses the Go type of a parameter. inCPP is its type in the C++ name of the kernel, or in the source, or "".
func newParameter(v *ptx.Variable, uses []ptx.Use, inCPP string) (p parameter, err error) {
	switch {
	case v.Type.Class() == ptx.Opaque:
		return p, fmt.Errorf("a .%v has no value: use a texture object", v.Type)
	case len(v.Dims) > 0 || v.Vector > 1 || v.Type == ptx.B128:
		return newStruct(v, uses)
	case len(uses) > 0 && (!uses[0].Maybe || cppTypes[inCPP].bytes != wordBytes) || v.Pointer != nil || v.Bytes() == wordBytes && isPointer(inCPP):
		return newBuffer(uses), nil
	}
	p.goType = goTypes[v.Type]
	if p.goType == "" {
		return p, fmt.Errorf("there is no Go type for .%v", v.Type)
	}
	if refined := cppTypes[inCPP]; refined.bytes == v.Bytes() && (v.Type.Class() == ptx.Unsigned || v.Type.Class() == ptx.Untyped) {
		p.goType, p.note = refined.goType, refined.note
	}
	if v.Type == ptx.F16 || v.Type == ptx.BF16 {
		p.note = "the bits of a ." + v.Type.String()
	}
	return p, nil
}

const wordBytes = 8

// newBuffer is a parameter that is a pointer.
func newBuffer(uses []ptx.Use) parameter {
	p := parameter{goType: "cuda.Memory", mode: "InOut"}
	if len(uses) == 0 {
		p.mode = "In"
		return p
	}
	p.null = uses[0].Tested
	switch u := uses[0]; {
	case u.Unknown != "":
		p.unknown = u.Unknown
	case u.Writes && !u.Reads:
		p.mode = "Out"
	case !u.Writes:
		p.mode = "In"
	}
	return p
}

// newStruct is a parameter that is an array of bytes.
func newStruct(v *ptx.Variable, uses []ptx.Use) (p parameter, err error) {
	p.bytes = v.Bytes()
	if p.bytes <= 0 || p.bytes > maxStructBytes {
		return p, fmt.Errorf("%d bytes are no size of a parameter by value", p.bytes)
	}
	p.words = v.Alignment() >= wordBytes && p.bytes%wordBytes == 0
	for _, u := range uses {
		how := "is read"
		switch {
		case u.Unknown != "":
			how = "may be read and written (" + u.Unknown + ")"
		case u.Reads && u.Writes:
			how = "is read and written"
		case u.Writes:
			how = "is written"
		case !u.Reads:
			how = "is not touched"
		}
		p.inside = append(p.inside, fmt.Sprintf("the memory at the pointer in bytes %d to %d %s", u.Offset, u.Offset+wordBytes-1, how))
	}
	return p, nil
}

// maxStructBytes is the limit of all parameters of a kernel together.
const maxStructBytes = 4096

// goTypes are the Go types of parameters.
//
//nolint:gochecknoglobals // constant table of types
var goTypes = map[ptx.Type]string{
	ptx.B8: "uint8", ptx.B16: "uint16", ptx.B32: "uint32", ptx.B64: "uint64", ptx.U8: "uint8", ptx.U16: "uint16", ptx.U32: "uint32", ptx.U64: "uint64",
	ptx.S8: "int8", ptx.S16: "int16", ptx.S32: "int32", ptx.S64: "int64", ptx.F16: "uint16", ptx.BF16: "uint16", ptx.F16x2: "uint32", ptx.BF16x2: "uint32",
	ptx.F32: "float32", ptx.F64: "float64",
}
