package tensor

import (
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-vram/vram/compute/tensor/half"
	"github.com/go-vram/vram/compute/tensor/layout"
)

const (
	// elideAbove is the number of elements beyond which the middle of long dimensions is left out, as in NumPy.
	elideAbove = 1000
	// edge is how many indices are shown at each end of a dimension that is elided.
	edge = 3
	// lineWidth is the number of columns after which a row continues in the next line.
	lineWidth = 80
)

// Sprint returns the text that Fprint writes.
func Sprint(t *Tensor) (string, error) {
	var b strings.Builder
	err := Fprint(&b, t)
	return b.String(), err
}

// Fprint writes the values of a tensor in nested brackets, aligned, and below them its String. Of more than 1000 elements it
// shows three at each end of a dimension, and reads no others. It waits. Errors: as Read, and the writer's.
func Fprint(w io.Writer, t *Tensor) error {
	if err := t.usable("print"); err != nil {
		return err
	}
	p := &printer{elides: t.Len() > elideAbove}
	for d := range t.Rank() {
		p.dims = append(p.dims, p.axisOf(t.Dim(d)))
	}
	var err error
	if p.cells, err = p.read(t); err != nil {
		return err
	}
	for _, c := range p.cells {
		p.width = max(p.width, utf8.RuneCountInString(c))
	}
	p.nested(0, 0)
	_, err = io.WriteString(w, p.text.String()+"\n"+t.String()+"\n")
	return err
}

// axis is a dimension as it is shown.
type axis struct {
	length int // of the dimension
	shown  int // the first and the last of them
}

func (a axis) elided() bool { return a.shown < a.length }

type printer struct {
	elides bool
	dims   []axis
	cells  []string // that are shown, in row-major order
	width  int      // of a cell
	text   strings.Builder
}

func (p *printer) axisOf(length int) axis {
	if p.elides && length > 2*edge {
		return axis{length, 2 * edge}
	}
	return axis{length, length}
}

// read returns the texts of the elements that are shown. Each corner of the tensor is read by itself.
func (p *printer) read(t *Tensor) ([]string, error) {
	shown := make([]int, len(p.dims))
	for i, a := range p.dims {
		shown[i] = a.shown
	}
	l, err := layout.Of(shown...)
	if err != nil {
		return nil, err
	}
	switch t.of {
	case Bool:
		return texts(p, t, l, each(strconv.FormatBool))
	case Uint8:
		return texts(p, t, l, each(decimal[uint8]))
	case Int8:
		return texts(p, t, l, each(decimal[int8]))
	case Int16:
		return texts(p, t, l, each(decimal[int16]))
	case Int32:
		return texts(p, t, l, each(decimal[int32]))
	case Int64:
		return texts(p, t, l, each(decimal[int64]))
	case Float16:
		return texts(p, t, l, floats(func(x half.Float16) float64 { return float64(x.Float32()) }))
	case BFloat16:
		return texts(p, t, l, floats(func(x half.BFloat16) float64 { return float64(x.Float32()) }))
	case Float32:
		return texts(p, t, l, floats(func(x float32) float64 { return float64(x) }))
	case Float64:
		return texts(p, t, l, floats(func(x float64) float64 { return x }))
	}
	return nil, &TypeError{"print", []Type{t.of}}
}

// texts reads the corners of a tensor into a slice with the layout of the elements that are shown.
func texts[T Element](p *printer, t *Tensor, shown layout.Layout, format func([]T) []string) ([]string, error) {
	values := make([]T, shown.Len())
	var corner func(t *Tensor, to layout.Layout, dim int) error
	corner = func(t *Tensor, to layout.Layout, dim int) error {
		if dim == len(p.dims) {
			part, err := Read[T](t)
			i := 0
			for place := range to.Places() {
				if err == nil {
					values[place] = part[i]
				}
				i++
			}
			return err
		}
		if !p.dims[dim].elided() {
			return corner(t, to, dim+1)
		}
		for _, begin := range [][2]int{{0, 0}, {p.dims[dim].length - edge, edge}} {
			part, err := t.Narrow(dim, begin[0], edge)
			if err != nil {
				return err
			}
			at, err := to.Narrow(dim, begin[1], edge)
			if err != nil {
				return err
			}
			if err := corner(part, at, dim+1); err != nil {
				return err
			}
		}
		return nil
	}
	if err := corner(t, shown, 0); err != nil {
		return nil, err
	}
	return format(values), nil
}

// each formats values one by one.
func each[T Element](format func(T) string) func([]T) []string {
	return func(values []T) []string {
		all := make([]string, len(values))
		for i, v := range values {
			all[i] = format(v)
		}
		return all
	}
}

func decimal[T uint8 | int8 | int16 | int32 | int64](v T) string {
	return strconv.FormatInt(int64(v), 10)
}

// floats formats numbers with as many decimals as the one that needs the most, up to four, and with exponents
// where the numbers are very large or small.
func floats[T Element](value func(T) float64) func([]T) []string {
	return func(values []T) []string {
		format, decimals, point := formatOf(values, value)
		return each(func(v T) string {
			x := value(v)
			switch {
			case math.IsNaN(x):
				return "NaN"
			case math.IsInf(x, 0):
				return strings.TrimPrefix(strconv.FormatFloat(x, 'f', -1, 64), "+")
			}
			return strconv.FormatFloat(x, format, decimals, 64) + point
		})(values)
	}
}

func formatOf[T Element](values []T, value func(T) float64) (format byte, decimals int, point string) {
	const maxDecimals, tooLarge, tooSmall = 4, 1e8, 1e-4
	largest, smallest := 0.0, math.Inf(1)
	for _, v := range values {
		x := math.Abs(value(v))
		if math.IsNaN(x) || math.IsInf(x, 0) || x == 0 {
			continue
		}
		largest, smallest = max(largest, x), min(smallest, x)
		text := strings.TrimRight(strconv.FormatFloat(x, 'f', maxDecimals, 64), "0")
		decimals = max(decimals, len(text)-strings.IndexByte(text, '.')-1)
	}
	switch {
	case largest >= tooLarge || smallest < tooSmall:
		return 'e', maxDecimals, ""
	case decimals == 0:
		return 'f', 0, "." // as 2., so that it is seen to be no integer
	}
	return 'f', decimals, ""
}

// nested writes the elements of a dimension in brackets. first is the number of the first one among those
// that are shown.
func (p *printer) nested(dim, first int) {
	if dim == len(p.dims) {
		p.text.WriteString(p.cells[first])
		return
	}
	stride := 1
	for _, a := range p.dims[dim+1:] {
		stride *= a.shown
	}
	a := p.dims[dim]
	p.text.WriteByte('[')
	if dim == len(p.dims)-1 {
		p.row(a, first)
	} else {
		between := strings.Repeat("\n", len(p.dims)-1-dim) + strings.Repeat(" ", dim+1)
		for i := range a.shown {
			if i > 0 {
				p.text.WriteString(between)
			}
			if a.elided() && i == edge {
				p.text.WriteString("…" + between)
			}
			p.nested(dim+1, first+i*stride)
		}
	}
	p.text.WriteByte(']')
}

// row writes the elements of the last dimension.
func (p *printer) row(a axis, first int) {
	indent := len(p.dims)
	column := indent
	for i := range a.shown {
		between := " "
		switch {
		case i == 0:
			between = ""
		case a.elided() && i == edge:
			between = " … "
		}
		width := utf8.RuneCountInString(between) + p.width
		if i > 0 && column+width > lineWidth {
			between = strings.TrimRight(between, " ") + "\n" + strings.Repeat(" ", indent)
			column, width = indent, p.width
		}
		cell := p.cells[first+i]
		p.text.WriteString(between + strings.Repeat(" ", p.width-utf8.RuneCountInString(cell)) + cell)
		column += width
	}
}
