package plan

import (
	"errors"
	"fmt"
	"math"

	"github.com/go-vram/vram/compute/tensor/layout"
)

// ErrTooLarge refuses more rows, or dimensions, than a kernel can have.
var ErrTooLarge = errors.New("plan: too many rows")

// ShapeError refuses the shape of an operand.
type ShapeError struct {
	Operand int // inputs first
	Shape   []int
	Want    []int
}

// Error names the operand and the shapes.
func (e *ShapeError) Error() string {
	return fmt.Sprintf("plan: operand %d has shape %v, which does not fit %v", e.Operand, e.Shape, e.Want)
}

// space is the shape of all elements, before dimensions are merged.
type space struct {
	rank    int
	shape   [layout.MaxRank]int
	reduced [layout.MaxRank]bool
	strides [MaxOperands][layout.MaxRank]int
}

// Fit computes the geometry of operands with these layouts, whose lowest places have these addresses. It allocates nothing but
// errors: *ShapeError, ErrAxes, ErrTooLarge; ErrOutputs of a program that New did not make; and one for a list that does not have
// an element for each of p.Operands.
func (p *Program) Fit(g *Geometry, layouts []layout.Layout, addresses []uint64) error {
	if p == nil || g == nil || len(p.outputs) == 0 {
		return ErrOutputs
	}
	if n := len(p.Operands); len(layouts) != n || len(addresses) != n {
		return fmt.Errorf("plan: %d layouts and %d addresses of %d operands", len(layouts), len(addresses), n)
	}
	var s space
	if err := p.elementShape(&s, layouts); err != nil {
		return err
	}
	if err := p.reduceAxes(&s); err != nil {
		return err
	}
	for k := range layouts {
		if err := p.strides(&s, k, layouts[k]); err != nil {
			return err
		}
	}
	*g = Geometry{Rows: 1, Cols: 1, Splits: 1}
	order := p.order(&s)
	g.merge(p, &s, order[:s.rank])
	for k := range layouts {
		first, _ := layouts[k].Bounds()
		g.Start[k] = layouts[k].Offset() - first
	}
	if g.Rows > math.MaxInt32 {
		return ErrTooLarge
	}
	p.choose(g, layouts, addresses)
	return nil
}

// elementShape returns the shape of the first output that has elements, or the broadcast shape of the inputs.
func (p *Program) elementShape(s *space, layouts []layout.Layout) error {
	for k, o := range p.Operands {
		if o.Out && !o.Row {
			l := layouts[k]
			s.rank = l.Rank()
			for d := range s.rank {
				s.shape[d] = l.Dim(d)
			}
			return nil
		}
	}
	for k := range p.Inputs {
		s.rank = max(s.rank, layouts[k].Rank())
	}
	for d := range s.rank {
		s.shape[d] = 1
	}
	for k := range p.Inputs {
		l := layouts[k]
		from := s.rank - l.Rank()
		for d := range l.Rank() {
			switch n := l.Dim(d); {
			case s.shape[from+d] == 1:
				s.shape[from+d] = n
			case n != 1 && n != s.shape[from+d]:
				return s.mismatch(k, l)
			}
		}
	}
	return nil
}

func (s *space) mismatch(k int, l layout.Layout) error {
	want := append([]int{}, s.shape[:s.rank]...)
	return &ShapeError{Operand: k, Shape: l.Shape(), Want: want}
}

// rowMismatch returns the mismatch of an operand with one element for each row, which may have the reduced dimensions with
// length 1.
func (s *space) rowMismatch(k int, l layout.Layout, kept bool) error {
	want := []int{}
	for d := range s.rank {
		switch {
		case !s.reduced[d]:
			want = append(want, s.shape[d])
		case kept:
			want = append(want, 1)
		}
	}
	return &ShapeError{Operand: k, Shape: l.Shape(), Want: want}
}

func (p *Program) reduceAxes(s *space) error {
	if p.depth == 0 {
		return nil
	}
	if p.axes == nil {
		for d := range s.rank {
			s.reduced[d] = true
		}
		return nil
	}
	for _, a := range p.axes {
		if -a > s.rank {
			return fmt.Errorf("%w: %v of a tensor of %d dimensions", ErrAxes, p.axes, s.rank)
		}
		s.reduced[s.rank+a] = true
	}
	return nil
}

// strides returns the strides of an operand in the shape of all elements: 0 where it is broadcast, or has one element for a
// row.
func (p *Program) strides(s *space, k int, l layout.Layout) error {
	o := p.Operands[k]
	if !o.Row {
		from := s.rank - l.Rank()
		if from < 0 || o.Out && from > 0 {
			return s.mismatch(k, l)
		}
		for d := range l.Rank() {
			switch n := l.Dim(d); {
			case n == s.shape[from+d] && n != 1:
				s.strides[k][from+d] = l.Stride(d)
			case n != 1 || o.Out && s.shape[from+d] != 1:
				return s.mismatch(k, l)
			}
		}
		return nil
	}
	kept := l.Rank() == s.rank // reduced dimensions have length 1
	at := 0
	for d := range s.rank {
		if s.reduced[d] {
			if kept {
				if l.Dim(at) != 1 {
					return s.rowMismatch(k, l, kept)
				}
				at++
			}
			continue
		}
		if at >= l.Rank() || l.Dim(at) != s.shape[d] {
			return s.rowMismatch(k, l, kept)
		}
		if s.shape[d] != 1 {
			s.strides[k][d] = l.Stride(at)
		}
		at++
	}
	if at != l.Rank() {
		return s.rowMismatch(k, l, kept)
	}
	return nil
}

// order is the order in which the dimensions are gone over: as in memory of the first output, where it does not matter.
func (p *Program) order(s *space) (order [layout.MaxRank]int) {
	for d := range order {
		order[d] = d
	}
	if p.depth > 0 || p.indexed {
		return order
	}
	out := &s.strides[p.Inputs]
	for i := 1; i < s.rank; i++ {
		for j := i; j > 0 && distance(out[order[j-1]]) < distance(out[order[j]]); j-- {
			order[j-1], order[j] = order[j], order[j-1]
		}
	}
	return order
}

func distance(stride int) int { return max(stride, -stride) }

// merge takes the dimensions over, rows and columns apart, and merges neighbours where all strides allow it.
func (g *Geometry) merge(p *Program, s *space, order []int) {
	outer, inner := 0, 0
	for _, d := range order {
		if p.depth > 0 && !s.reduced[d] {
			g.Rows *= s.shape[d]
			outer = merged(p, s, d, outer, &g.OuterShape, &g.OuterStrides)
		} else {
			g.Cols *= s.shape[d]
			inner = merged(p, s, d, inner, &g.InnerShape, &g.InnerStrides)
		}
	}
	if inner == 0 {
		g.InnerShape[0], inner = 1, 1
		for k := range p.Operands {
			g.InnerStrides[k][0] = 1
		}
	}
	g.Outer, g.Inner = uint8(outer), uint8(inner) //nolint:gosec // at most MaxRank
}

func merged(p *Program, s *space, d, count int, shape *[layout.MaxRank]int, strides *[MaxOperands][layout.MaxRank]int) int {
	n := s.shape[d]
	if n == 1 && !p.indexed {
		return count
	}
	joins := count > 0 && !p.indexed
	for k := range p.Operands {
		joins = joins && strides[k][count-1] == s.strides[k][d]*n
	}
	if !joins {
		count++
		shape[count-1] = 1
	}
	shape[count-1] *= n
	for k := range p.Operands {
		strides[k][count-1] = s.strides[k][d]
	}
	return count
}
