package interp

import "github.com/go-vram/vram/compute/ptx"

// Fragments say which elements of a matrix a thread holds: group is its number divided by 4, and member the remainder.
// Registers of 16-bit elements hold two, the lower half first; registers of tf32 hold one. The layout follows the PTX
// manual, chapter "Matrix Fragments for mma.m16n8k4", "…k8" and "…k16".

// lowerMma translates a multiplication of matrices that the threads of a warp hold together.
func lowerMma(c *lowering, i *ptx.Instruction) {
	t := c.wholeWarp()
	depth := map[ptx.Modifier]int{ptx.ModM16n8k4: 4, ptx.ModM16n8k8: 8, ptx.ModM16n8k16: 16}[i.Mod(ptx.KindShape)]
	o := i.Operands
	p := &mmaForm{elements: elementsOf(i.Type(1)), depth: depth, half: i.Type(0) == ptx.F16, d: c.vector(&o[0], c.out)}
	p.a, p.b, p.c = c.vectorIn(&o[1], ptx.B32), c.vectorIn(&o[2], ptx.B32), c.vectorIn(&o[3], registerOf(i.Type(0)))
	t.meet = func(w *warp, members uint32) {
		f := w.frame
		if !together(w, members) {
			return
		}
		var x [rowsA]line
		var y [columnsB]line
		p.fragmentOfA(f, p.a, &x)
		for k, slot := range p.b {
			for n, v := range &f.regs[slot] {
				p.put(&y[n/4], v, n%4, k) //nolint:mnd // threads of a group
			}
		}
		for n := range warpThreads {
			p.multiply(f, n, &x, &y)
		}
	}
}

// mmaForm is an mma.
type mmaForm struct {
	elements

	d, a, b, c []int // slots
	depth      int
	half       bool // the elements of C and D
}

// line is a row of A, or a column of B.
type line [maxProductDepth]float64

// elements describes the elements of A and B.
type elements struct {
	tf32 bool                 // else 16 bits
	read func(uint64) float64 // the lower one of a register
}

func elementsOf(t ptx.Type) elements { return elements{t == ptx.TF32, elementOf(t)} }

// put writes the elements of a register to a line: of a member of the group, which has several registers for the line.
func (e *elements) put(to *line, v uint64, member, register int) {
	if e.tf32 {
		to[member+register*4] = e.read(v) //nolint:mnd // the next ones
		return
	}
	at := member*2 + register*8 //nolint:mnd // pairs; the next ones
	to[at] = e.read(v)
	to[at+1] = e.read(v >> 16) //nolint:mnd // the upper half
}

// fragmentOfA reads the elements of A that the threads hold.
func (e *elements) fragmentOfA(f *frame, slots []int, x *[rowsA]line) {
	for k, slot := range slots {
		for n, v := range &f.regs[slot] {
			e.put(&x[n/4+k%2*8], v, n%4, k/2) //nolint:mnd // threads of a group; the lower half of the rows
		}
	}
}

// registerOf returns the type of the registers of a result.
func registerOf(t ptx.Type) ptx.Type {
	if t == ptx.F16 {
		return ptx.B32
	}
	return ptx.F32
}

// elementOf reads an element of a matrix.
func elementOf(t ptx.Type) func(uint64) float64 {
	switch t {
	case ptx.TF32:
		return func(v uint64) float64 { return float64(f32(v &^ 0x1fff)) } //nolint:mnd // the hardware reads 19 bits
	case ptx.BF16:
		return func(v uint64) float64 { return float64(f32(v & 0xffff << 16)) } //nolint:mnd // the upper half of single precision
	default:
		return func(v uint64) float64 { return fromF16(v & 0xffff) } //nolint:mnd // the lower half
	}
}

// tile returns the sums of products of two rows of A, eight apart, and two columns of B, in the order in which a thread holds them.
func tile(x *[rowsA]line, row int, y []line, column, depth int) (sums [4]float64) {
	upper, lower, left, right := x[row][:depth], x[row+8][:depth], y[column][:depth], y[column+1][:depth] //nolint:mnd // the lower half
	var a, b, c, d float64
	for k, u := range upper {
		a += u * left[k]
		b += u * right[k]
		c += lower[k] * left[k]
		d += lower[k] * right[k]
	}
	return [4]float64{a, b, c, d}
}

// multiply computes the elements of a thread: products are exact, and their sum is rounded to single precision once.
func (p *mmaForm) multiply(f *frame, n int, x *[rowsA]line, y *[columnsB]line) {
	var results [4]uint64                                    // written at the end: D may have the registers of C in another order
	for k, sum := range tile(x, n/4, y[:], n%4*2, p.depth) { //nolint:mnd // threads of a group; pairs
		if p.half {
			h, slot, shift := halfOf(ptx.F16, nil), k/2, k%2*16 //nolint:mnd // two in a register
			results[slot] |= h.pack(sum+h.value(f.regs[p.c[slot]][n]>>shift&0xffff)) << shift
			continue
		}
		results[k] = bits32(float32(sum + float64(f32(f.regs[p.c[k]][n]))))
	}
	for k, slot := range p.d {
		f.regs[slot][n] = results[k]
	}
}

// lowerLdmatrix loads matrices of 8x8 elements of 16 bits: each 8 threads name the rows of one.
func lowerLdmatrix(c *lowering, i *ptx.Instruction) {
	d := c.vector(&i.Operands[0], c.out)
	p := c.pointer(&i.Operands[1], ptx.Shared)
	if i.Space() == ptx.Generic {
		p.space = ptx.Generic
	}
	c.narrow(ptx.Shared, 4)
	t := c.wholeWarp()
	transposed := i.Has(ptx.ModTrans)
	t.meet = func(w *warp, members uint32) {
		f := w.frame
		if !together(w, members) {
			return
		}
		for k, slot := range d {
			var rows [8][]byte
			for r := range rows {
				n := k*8 + r
				a := access{space: p.space, address: p.of(f, n), bytes: 16, thread: n, read: true}
				if rows[r] = w.memory.reach(&a); rows[r] == nil {
					return
				}
			}
			for n := range warpThreads {
				f.regs[slot][n] = matrixElement(&rows, n, transposed)
			}
		}
	}
}

// matrixElement returns the two elements of a matrix that a thread gets.
func matrixElement(rows *[8][]byte, n int, transposed bool) uint64 {
	row, column := n/4, n%4*2
	if transposed {
		return load(rows[column][2*row:], 2) | load(rows[column+1][2*row:], 2)<<16
	}
	return load(rows[row][2*column:], 4)
}
