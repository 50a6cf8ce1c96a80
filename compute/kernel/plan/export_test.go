package plan

import (
	"github.com/go-vram/vram/compute/kernel/expr"
	"github.com/go-vram/vram/compute/kernel/internal/code"
)

// TilePitch is the bytes from one line of a tile to the next.
func TilePitch(side, size int) int { return tilePitch(side, size) }

// Evaluate computes a kernel's result for one element, as bits of the class of its type. leaf returns the bits of inputs and
// indices.
func Evaluate(n *expr.Node, leaf func(n *expr.Node) code.Value) code.Value {
	e := &element{Machine: code.Evaluator{}, known: map[*expr.Node]code.Value{}, leaf: leaf}
	v := e.value(n)
	if n.Type.Size() == 2 && n.Type.Kind() == expr.Number(0.5).Typed().Type.Kind() {
		v = e.rounded(n.Type, v)
	}
	return v
}

// Visits is how many nodes a walk through an expression visits.
func Visits(e expr.Expr) (count int) {
	walk(e.Node, func(*expr.Node) bool { count++; return true })
	return count
}
