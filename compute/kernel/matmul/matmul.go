package matmul

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-vram/vram/compute/kernel"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cuda/cublaslt"
	"github.com/go-vram/vram/cuda/gemm"
)

// Problem and Operands are types of package gemm.
type (
	// Problem is gemm.Problem.
	Problem = gemm.Problem
	// Operands is gemm.Operands.
	Operands = gemm.Operands
)

// Choice says which ways a product may take.
type Choice uint8

// The choices.
const (
	// Any takes the library if it is present and computes the product, else own kernels. Path.Refused has the reason.
	Any Choice = iota
	// Own takes own kernels alone.
	Own
	// Library takes the library alone, and fails if it is absent or does not compute the product. A product with K 0 takes no
	// library.
	Library
)

var choiceNames = [...]string{"any", "own", "library"} //nolint:gochecknoglobals // constant table, by number

// String is the name.
func (c Choice) String() string {
	if int(c) < len(choiceNames) {
		return choiceNames[c]
	}
	return fmt.Sprintf("Choice(%d)", uint8(c))
}

// MarshalText implements encoding.TextMarshaler: the text of String.
func (c Choice) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler: it reads the text of String. With an error the value stays.
func (c *Choice) UnmarshalText(text []byte) error {
	for i, name := range choiceNames {
		if string(text) == name {
			*c = Choice(i)
			return nil
		}
	}
	return fmt.Errorf("matmul: invalid Choice %q: want %s", text, strings.Join(choiceNames[:], ", "))
}

// Path is how a product was computed.
type Path struct {
	// Library is the library with its version; "" for own kernels.
	Library string
	// Kernel is the own kernel; "" for the library, and for a product without elements.
	Kernel string
	// Parts is the number of parts of sums: 1 if they were not split.
	Parts int
	// Converted says that operands were rounded into a workspace first.
	Converted bool
	// Refused is why the library did not compute a product with the choice Any; nil if it was not asked.
	Refused error
}

// String is the path in a word or three.
func (p Path) String() string {
	name := p.Kernel
	switch {
	case p.Library != "":
		name = p.Library
	case name == "":
		return "nothing"
	}
	if p.Parts > 1 {
		name = fmt.Sprintf("%s in %d parts", name, p.Parts)
	}
	if p.Converted {
		name += " of rounded operands"
	}
	return name
}

// ErrUnsupported refuses a product that the device has no instructions for: matrix units need compute capability 8.0.
var ErrUnsupported = errors.New("matmul: the device cannot compute this")

// Multiplier has the loaded kernels of a device, and its handle of the library. Make one with New, and close it.
type Multiplier struct {
	kernels *kernels
	library library
}

// Option changes a multiplier.
type Option func(*settings)

type settings struct{ compiler *kernel.Compiler }

// WithCompiler makes a multiplier take own kernels from a compiler of the same device, which must be closed after the last
// product: its store has their code beyond the process, kernel.Compiler.WarmUp prepares those that Multiplier.Needs lists, and
// with kernel.Prepared a product whose kernels were not prepared is refused with kernel.ErrNotPrepared.
func WithCompiler(k *kernel.Compiler) Option { return func(s *settings) { s.compiler = k } }

// New makes a multiplier for the device of a context, for all contexts of it. It makes no driver call. The context must stay
// open as long as the multiplier: modules and the library's handle are its. Without WithCompiler it has a compiler of its own,
// without a store.
func New(c *cuda.Context, with ...Option) *Multiplier {
	var s settings
	for _, option := range with {
		if option != nil {
			option(&s)
		}
	}
	return &Multiplier{kernels: newKernels(c, s.compiler), library: library{on: c}}
}

// Prepare opens the library, if the choice allows it, and loads the kernels that the product takes without it. Nothing is
// computed. It blocks: a program that does not want to wait calls it from a goroutine. Errors: *gemm.ProblemError,
// ErrUnsupported, errors of loading modules, and of the library with the choice Library.
func (m *Multiplier) Prepare(p Problem, choice Choice) error {
	if m == nil || m.kernels == nil {
		return cuda.ErrNotOpen
	}
	p, _, err := p.Check()
	if err != nil {
		return err
	}
	if choice != Own {
		if _, err := m.library.open(); err != nil && choice == Library {
			return err
		}
	}
	if choice == Library || p.Empty() {
		return nil
	}
	inner, _ := rounded(p)
	l, err := m.kernels.plan(inner, aligned)
	if err != nil {
		return err
	}
	return m.kernels.prepare(l, inner != p, true)
}

// Needs lists the texts of the own kernels that products take where the library does not compute them, each once, for
// kernel.Compiler.WarmUp of the multiplier's compiler: operands are taken to be aligned. Errors: *gemm.ProblemError,
// ErrUnsupported.
func (m *Multiplier) Needs(problems ...Problem) ([]kernel.Need, error) {
	if m == nil || m.kernels == nil {
		return nil, cuda.ErrNotOpen
	}
	var all []kernel.Need
	listed := map[string]bool{}
	for _, p := range problems {
		p, _, err := p.Check()
		if err != nil {
			return nil, err
		}
		if p.Empty() {
			continue
		}
		inner, _ := rounded(p)
		l, err := m.kernels.plan(inner, aligned)
		if err != nil {
			return nil, err
		}
		for _, u := range kernelsOf(l, inner != p) {
			if u.variant == "" || listed[u.variant] {
				continue
			}
			text, err := ptx(u.variant)
			if err != nil {
				return nil, err
			}
			listed[u.variant] = true
			all = append(all, kernel.Need{Text: text})
		}
	}
	return all, nil
}

// maxBatch is how many products one launch has: a grid's third direction has no more.
const maxBatch = 65535

// Multiply submits D = f(alpha·op(A)·op(B) + beta·C + bias), where D is stored over C. It does not wait. Buffers are checked,
// ordered and announced as in cuda.Context.Launch, and captured in graphs. Errors: *gemm.ProblemError, *gemm.OverlapError,
// ErrUnsupported, those of Launch and of loading modules; with the choice Library *cublaslt.StatusError, *cublaslt.AbsentError.
// A call that fails has stored nothing, unless the driver refused a launch after another one of the same product.
func (m *Multiplier) Multiply(c *cuda.Context, p Problem, o Operands, choice Choice) (Path, error) {
	if m == nil || m.kernels == nil {
		return Path{}, cuda.ErrNotOpen
	}
	p, e, err := p.Check()
	if err == nil {
		err = p.CheckOperands(e, o)
	}
	if err != nil {
		return Path{}, err
	}
	if p.Empty() {
		return Path{Parts: 1}, nil
	}
	if p.K == 0 { // no operand is read
		p.StrideA, p.StrideB, p.Precision, choice = 0, 0, gemm.IEEE, Own
	}
	if p.Batch <= maxBatch {
		return m.multiply(c, p, e, o, choice)
	}
	var path Path
	for first := int64(0); first < p.Batch; first += maxBatch {
		part, its := batchFrom(p, o, first)
		_, e, err := part.Check()
		if err != nil {
			return path, err
		}
		if path, err = m.multiply(c, part, e, its, choice); err != nil {
			return path, err
		}
	}
	return path, nil
}

// batchFrom returns the products of a batch from one on, as many as a launch computes, and their operands.
func batchFrom(p Problem, o Operands, first int64) (part Problem, its Operands) {
	part, its = p, o
	part.Batch = min(maxBatch, p.Batch-first)
	its.A = from(o.A, first*p.StrideA*p.In.Bytes())
	its.B = from(o.B, first*p.StrideB*p.In.Bytes())
	its.C = from(o.C, first*p.StrideC*p.Out.Bytes())
	its.Aux = from(o.Aux, first*p.StrideAux*p.Out.Bytes())
	return part, its
}

// from returns a range without its first bytes.
func from(r cuda.Range, bytes int64) cuda.Range {
	return cuda.Part(r.Buffer, r.Offset+bytes, max(r.Bytes-bytes, 0))
}

// rounded returns the problem that a precision which rounds operands to 16 bits leads to: of operands in the workspace, without
// gaps except for the alignment of rows. bytes is the size of each operand. Other problems are returned as they are.
func rounded(p Problem) (inner Problem, bytes [2]int64) {
	if p.Precision != gemm.RoundedBF16 && p.Precision != gemm.RoundedF16 || p.K == 0 || p.M == 1 || p.N == 1 {
		return p, bytes
	}
	inner = p
	inner.In, inner.Precision = gemm.BFloat16, gemm.IEEE
	if p.Precision == gemm.RoundedF16 {
		inner.In = gemm.Float16
	}
	rows, columns := shapeA(p)
	inner.LDA = (columns + 7) &^ 7
	bytes[0] = rows * inner.LDA
	rows, columns = shapeB(p)
	inner.LDB = (columns + 7) &^ 7
	bytes[1] = rows * inner.LDB
	for i, stride := range []*int64{&inner.StrideA, &inner.StrideB} {
		one := bytes[i]
		if p.Batch > 1 && *stride != 0 {
			bytes[i], *stride = one*p.Batch, one
		}
		bytes[i] = (2*bytes[i] + workAlign - 1) &^ (workAlign - 1)
	}
	return inner, bytes
}

// shapeA and shapeB return the rows and columns of the operands in memory.
func shapeA(p Problem) (rows, columns int64) {
	if p.TransposeA {
		return p.K, p.M
	}
	return p.M, p.K
}

func shapeB(p Problem) (rows, columns int64) {
	if p.TransposeB {
		return p.N, p.K
	}
	return p.K, p.N
}

// workAlign is the alignment of each part of the workspace: the library needs no more.
const workAlign = 256

// multiply computes a problem of at most maxBatch products.
func (m *Multiplier) multiply(c *cuda.Context, p Problem, e gemm.Extent, o Operands, choice Choice) (Path, error) {
	inner, converted := rounded(p)
	path := Path{Parts: 1, Converted: inner != p}
	alignment := alignmentOf(inner, o, path.Converted)
	var plan *cublaslt.Plan
	if choice != Own {
		var err error
		plan, err = m.plan(inner, o, alignment, choice)
		if err != nil && choice == Library {
			return path, err
		}
		path.Refused = err
	}
	var l launch
	workBytes := converted[0] + converted[1]
	if plan != nil {
		workBytes += plan.WorkspaceBytes
	} else {
		var err error
		if l, err = m.kernels.plan(inner, alignment); err != nil {
			return path, err
		}
		if err := m.kernels.prepare(l, path.Converted, false); err != nil {
			return path, err
		}
		workBytes += l.workBytes + l.turnedBytes
	}
	var work cuda.Range
	if workBytes > 0 {
		b, err := c.Workspace(workBytes)
		if err != nil {
			return path, err
		}
		work = cuda.Part(b, 0, workBytes)
	}
	if path.Converted {
		var err error
		if o, e, err = m.convert(c, p, inner, e, o, work, converted); err != nil {
			return path, err
		}
		work = from(work, converted[0]+converted[1])
	}
	if plan != nil {
		path.Library = plan.Library
		return path, plan.Launch(c, o, e, work)
	}
	path.Kernel, path.Parts = l.kernel, l.parts
	return path, m.kernels.launch(c, inner, e, o, l, work)
}

// Close unloads the kernels and ends the library's handle. Products must have finished, and graphs with them be closed. Idempotent.
// After an error another call tries again.
func (m *Multiplier) Close() error {
	if m == nil || m.kernels == nil {
		return cuda.ErrNotOpen
	}
	return errors.Join(m.kernels.close(), m.library.close())
}
