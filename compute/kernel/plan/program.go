package plan

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-vram/vram/compute/kernel/expr"
	"github.com/go-vram/vram/compute/tensor"
)

const (
	// MaxOutputs is how many outputs a kernel may have.
	MaxOutputs = 8
	// MaxOperands are inputs and outputs together.
	MaxOperands = expr.MaxInputs + MaxOutputs
)

var (
	// ErrOutputs refuses a kernel without outputs, or with too many.
	ErrOutputs = errors.New("plan: a kernel has 1 to 8 outputs")
	// ErrInput refuses a kernel whose inputs have no numbers from 0 on, or two types.
	ErrInput = errors.New("plan: the inputs of a kernel are numbered from 0 on, each with one type")
	// ErrReducedIndex refuses the index of an element in a kernel with reductions.
	ErrReducedIndex = errors.New("plan: the index of an element is not supported with reductions")
	// ErrAxes refuses the axes of a reduction.
	ErrAxes = errors.New("plan: these axes cannot be reduced")
)

// Operand is a tensor that the kernel reads or writes.
type Operand struct {
	Type tensor.Type
	Out  bool
	Row  bool // an output with one element for each row
}

// Program is the computation of a kernel. It does not change.
type Program struct {
	Operands []Operand // inputs, then outputs
	Inputs   int

	name       string
	axes       []int // that are reduced, counted from the end; nil for all
	outputs    []*expr.Node
	reductions []*reduction
	depth      int  // of the reductions
	elements   bool // some output has an element for each element
	indexed    bool // an element's index is used
	hash       uint64
}

// All stands for all axes.
var All []int //nolint:gochecknoglobals // a constant: nil

// New makes the program of some outputs. Axes are those that are reduced, counted from the end: -1 is the last one; All is all
// of them. Errors: of the expressions, ErrOutputs, ErrInput, ErrAxes, ErrReducedIndex.
func New(axes []int, outputs ...expr.Expr) (*Program, error) {
	if len(outputs) == 0 || len(outputs) > MaxOutputs {
		return nil, fmt.Errorf("%w, not %d", ErrOutputs, len(outputs))
	}
	p := &Program{axes: slices.Clone(axes)}
	for i, a := range axes {
		if a >= 0 || slices.Contains(axes[:i], a) {
			return nil, fmt.Errorf("%w: %v: each is named once, and counted from the end: -1 is the last one", ErrAxes, axes)
		}
	}
	g := gather{program: p, known: map[string]*expr.Node{}, numbers: map[*expr.Node]int{}, done: map[*expr.Node]*expr.Node{}}
	for i, e := range outputs {
		if err := e.Err(); err != nil {
			return nil, fmt.Errorf("output %d: %w", i, err)
		}
		p.outputs = append(p.outputs, g.node(e.Typed().Node))
		p.depth = max(p.depth, e.Depth())
	}
	for i, of := range g.inputs {
		if of == 0 {
			return nil, fmt.Errorf("%w: there is no input %d", ErrInput, i)
		}
		p.Operands = append(p.Operands, Operand{Type: of})
	}
	p.Inputs = len(g.inputs)
	g.mix(fmt.Append(nil, axes))
	p.name = g.name(p.outputs[0].Type)
	for _, n := range p.outputs {
		g.mix(strconv.AppendInt(nil, int64(g.numbers[n]), 10))
	}
	p.hash = g.hash
	for i, n := range p.outputs {
		row := p.depth > 0 && outputs[i].Typed().Row()
		p.elements = p.elements || !row
		p.Operands = append(p.Operands, Operand{Type: n.Type, Out: true, Row: row})
	}
	switch {
	case g.twoTypes:
		return nil, fmt.Errorf("%w: one input has two types", ErrInput)
	case p.indexed && p.depth > 0:
		return nil, ErrReducedIndex
	}
	return p, nil
}

// Reduces reports whether the program has reductions.
func (p *Program) Reduces() bool { return p != nil && p.depth > 0 }

// Name is the begin of the names of the program's kernels, which profiles show: the operations in their order, each once, the
// type of the first output, and a hash of the expressions: "vram_sub_exp_sum_div_float32_1f3a". The same expressions have the
// same name.
func (p *Program) Name() string {
	if p == nil {
		return ""
	}
	return p.name
}

// gather makes equal nodes one.
type gather struct {
	program  *Program
	known    map[string]*expr.Node
	numbers  map[*expr.Node]int
	done     map[*expr.Node]*expr.Node
	inputs   []tensor.Type
	twoTypes bool
	ops      []string // the names of the operations that were met
	hash     uint64   // of the keys of all nodes
	buffer   []byte   // of keys
}

// maxNamed bounds the operations in a name: more are not readable.
const maxNamed = 6

// name returns the name of the program, whose first output has a type.
func (g *gather) name(of tensor.Type) string {
	ops := g.ops
	if len(ops) == 0 {
		ops = []string{"copy"}
	}
	return fmt.Sprintf("vram_%s_%v_%04x", strings.Join(ops[:min(len(ops), maxNamed)], "_"), of, uint16(g.hash^g.hash>>16^g.hash>>32^g.hash>>48)) //nolint:gosec // the low bits
}

// mix takes a text into the hash: FNV-1a.
func (g *gather) mix(text []byte) {
	const offset, prime = 14695981039346656037, 1099511628211
	if g.hash == 0 {
		g.hash = offset
	}
	for _, c := range text {
		g.hash = (g.hash ^ uint64(c)) * prime
	}
}

// named takes a node into the name.
func (g *gather) named(n *expr.Node, key []byte) {
	g.mix(key)
	switch n.Op { //nolint:exhaustive // those that say little
	case expr.OpInput, expr.OpConst, expr.OpCount:
		return
	}
	if name := n.Op.String(); !slices.Contains(g.ops, name) {
		g.ops = append(g.ops, name)
	}
}

// node is the one node that is equal.
func (g *gather) node(n *expr.Node) *expr.Node {
	if one, ok := g.done[n]; ok {
		return one
	}
	args := make([]expr.Expr, len(n.Args))
	for i, a := range n.Args {
		args[i] = expr.Expr{Node: g.node(a.Node)}
	}
	key := g.key(n, args)
	one, ok := g.known[string(key)]
	if !ok {
		next := *n
		next.Args = args
		one = &next
		g.known[string(key)] = one
		g.numbers[one] = len(g.numbers)
		g.named(one, key)
		g.add(one)
	}
	g.done[n] = one
	return one
}

// key is the same for nodes that are equal: the operation, with the numbers of its operands. The next call overwrites it.
func (g *gather) key(n *expr.Node, args []expr.Expr) []byte {
	b := append(g.buffer[:0], n.Op.String()...)
	b = append(append(b, ' '), n.Type.String()...)
	b = strconv.AppendUint(append(b, ' '), n.Bits, 10)
	b = strconv.AppendInt(append(b, ' '), int64(n.At), 10)
	for _, a := range args {
		b = strconv.AppendInt(append(b, ' '), int64(g.numbers[a.Node]), 10)
	}
	g.buffer = b
	return b
}

// walk visits a node and all that it is made of, once each: an operation that is used many times has one node. visit reports
// whether the walk goes below the node.
func walk(n *expr.Node, visit func(n *expr.Node) (below bool)) {
	seen := map[*expr.Node]bool{}
	var next func(n *expr.Node)
	next = func(n *expr.Node) {
		if seen[n] {
			return
		}
		seen[n] = true
		if !visit(n) {
			return
		}
		for _, a := range n.Args {
			next(a.Node)
		}
	}
	next(n)
}

// add takes a node in that is equal to no other one.
func (g *gather) add(n *expr.Node) {
	switch {
	case n.Op == expr.OpInput:
		for len(g.inputs) <= n.At {
			g.inputs = append(g.inputs, 0)
		}
		g.twoTypes = g.twoTypes || g.inputs[n.At] != 0
		g.inputs[n.At] = n.Type
	case n.Op == expr.OpIndex:
		g.program.indexed = true
	case n.Op.Reduces():
		g.program.reduce(n)
	}
}

// reduce adds a reduction, or another result of one that is there.
func (p *Program) reduce(n *expr.Node) {
	kind := n.Op
	if kind == expr.OpRunningSum {
		kind = expr.OpRunningMax
	}
	for _, r := range p.reductions {
		if r.op == kind && r.of == n.Args[0].Node {
			r.results = append(r.results, n)
			return
		}
	}
	p.reductions = append(p.reductions, &reduction{
		op: kind, of: n.Args[0].Node, results: []*expr.Node{n}, depth: expr.Expr{Node: n}.Depth(), kind: n.Args[0].Type,
	})
}
