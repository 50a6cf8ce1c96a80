package plan

import (
	"github.com/go-vram/vram/compute/kernel/expr"
	"github.com/go-vram/vram/compute/kernel/internal/code"
	"github.com/go-vram/vram/compute/tensor"
)

// kept is a vector of a row that a thread keeps: its elements are loaded once, and values that a scan computes of them are
// there for the next.
type kept struct {
	col   code.Value
	whole code.Value // the vector is within the row: else it is left out
	batch *batch
}

// scanKept is scan where a thread keeps all its elements of a row.
func (w *writer) scanKept(body func(all ...*batch)) {
	if w.kept == nil {
		w.keepRow()
	}
	for _, k := range w.kept {
		w.If(k.whole, func() { body(k.batch) })
	}
}

// keepRow loads the operands of the first reductions, for all elements, before the first of them is used.
func (w *writer) keepRow() {
	vector, lanes := int(w.v.Vector), int(w.v.Lanes)
	first := w.Add(w.begin, w.Mul(w.Index(w.lane), w.Constant(vector)))
	inputs := map[int]*expr.Node{}
	for _, r := range w.p.at(1) {
		inputsOf(r.of, inputs)
	}
	for i := range int(w.v.Repeat) {
		k := &kept{col: w.Add(first, w.Constant(i*lanes*vector))}
		k.whole = w.Less(w.Add(k.col, w.Constant(vector-1)), w.end)
		w.If(k.whole, func() {
			k.batch = w.batch(k.col, vector)
			for operand := range w.p.Inputs {
				if n := inputs[operand]; n != nil {
					k.batch.elements[0].value(n)
				}
			}
		})
		w.kept = append(w.kept, k)
	}
}

// inputsOf notes the inputs that a node needs of an element.
func inputsOf(n *expr.Node, found map[int]*expr.Node) {
	walk(n, func(n *expr.Node) (below bool) {
		if n.Op == expr.OpInput {
			found[n.At] = n
		}
		return true
	})
}

// apart replaces reductions that find a maximum and a sum at once by two, of which the second one's exponentials are kept for
// the outputs: over elements that are kept, going twice costs less than moving sums to new maxima.
func (w *writer) apart(all []*reduction) (first, second []*reduction) {
	for _, r := range all {
		if r.op != expr.OpRunningMax {
			first = append(first, r)
			continue
		}
		top := &reduction{op: expr.OpMax, of: r.of, kind: r.kind, depth: r.depth}
		sum := &reduction{op: expr.OpSum, kind: tensor.Float32, depth: r.depth}
		for _, n := range r.results {
			if n.Op == expr.OpRunningMax {
				top.results = append(top.results, n)
			} else {
				sum.results = append(sum.results, n)
			}
		}
		if top.results == nil {
			top.results = []*expr.Node{{Op: expr.OpRunningMax, Type: r.kind}}
		}
		first = append(first, top)
		if sum.results != nil {
			sum.of = w.p.exponential(r.of, top.results[0])
			second = append(second, sum)
		}
	}
	return first, second
}

// exponential is the node of exp(x-top): the one that an output has, if one has it.
func (p *Program) exponential(x, top *expr.Node) *expr.Node {
	var found *expr.Node
	for _, n := range p.outputs {
		walk(n, func(n *expr.Node) (below bool) {
			if n.Op == expr.OpExpBelow {
				d := n.Args[0].Node
				if d.Op == expr.OpSub && d.Type == tensor.Float32 && d.Args[0].Node == x && d.Args[1].Node == top {
					found = n
				}
			}
			return true
		})
	}
	if found == nil {
		distance := &expr.Node{Op: expr.OpSub, Type: tensor.Float32, Args: []expr.Expr{{Node: x}, {Node: top}}}
		found = &expr.Node{Op: expr.OpExpBelow, Type: tensor.Float32, Args: []expr.Expr{{Node: distance}}}
	}
	return found
}
