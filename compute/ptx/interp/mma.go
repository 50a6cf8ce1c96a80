package interp

import "github.com/go-vram/vram/compute/ptx"

// Fragments say which elements of a matrix a thread holds: group is its number divided by 4, and member the remainder.
// Registers of 16-bit elements hold two, the lower half first; registers of tf32 hold one. The layout follows the PTX
// manual, chapter "Matrix Fragments for mma.m16n8k4", "…k8" and "…k16".

// lowerMma translates a multiplication of matrices that the threads of a warp hold together.
func lowerMma(c *lowering, i *ptx.Instruction) {
	t := c.wholeWarp()
	depth := map[ptx.Modifier]int{ptx.ModM16n8k4: 4, ptx.ModM16n8k8: 8, ptx.ModM16n8k16: 16}[i.Mod(ptx.KindShape)]
	d := c.vector(&i.Operands[0], c.out)
	o := i.Operands
	a, b, e := c.vectorIn(&o[1], ptx.B32), c.vectorIn(&o[2], ptx.B32), c.vectorIn(&o[3], registerOf(i.Type(0)))
	element := elementOf(i.Type(1))
	tf32, half := i.Type(1) == ptx.TF32, i.Type(0) == ptx.F16
	t.meet = func(w *warp, members uint32) {
		f := w.frame
		if !together(w, members) {
			return
		}
		var x [rowsA][maxProductDepth]float64
		var y [16][columnsB]float64
		for n := range warpThreads {
			group, member := n/4, n%4 //nolint:mnd // threads of a group
			fragmentOfA(f, a, n, tf32, element, &x)
			for k, slot := range b {
				if tf32 {
					y[member+k*4][group] = element(f.regs[slot][n]) //nolint:mnd // the next rows
					continue
				}
				row := member*2 + k*8 //nolint:mnd // pairs; the next rows
				y[row][group] = element(f.regs[slot][n])
				y[row+1][group] = element(f.regs[slot][n] >> 16) //nolint:mnd // the upper half
			}
		}
		for n := range warpThreads {
			multiply(f, d, e, n, depth, half, &x, &y)
		}
	}
}

// fragmentOfA reads the elements of A that thread n holds.
func fragmentOfA(f *frame, slots []int, n int, tf32 bool, element func(uint64) float64, x *[rowsA][maxProductDepth]float64) {
	group, member := n/4, n%4 //nolint:mnd // threads of a group
	for k, slot := range slots {
		row := &x[group+k%2*8] //nolint:mnd // the lower half of the rows
		if tf32 {
			row[member+k/2*4] = element(f.regs[slot][n]) //nolint:mnd // the next columns
			continue
		}
		column := member*2 + k/2*8 //nolint:mnd // pairs; the next columns
		row[column] = element(f.regs[slot][n])
		row[column+1] = element(f.regs[slot][n] >> 16) //nolint:mnd // the upper half
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
	default:
		h := halfOf(t, nil)
		return func(v uint64) float64 { return h.value(v & 0xffff) } //nolint:mnd // the lower half
	}
}

// multiply computes the elements of a thread: products are exact, and their sum is rounded to single precision once.
func multiply(f *frame, d, e []int, n, depth int, half bool, x *[rowsA][maxProductDepth]float64, y *[16][columnsB]float64) {
	group, member := n/4, n%4 //nolint:mnd // threads of a group
	h := halfOf(ptx.F16, nil)
	var results [4]uint64 // written at the end: D may have the registers of C in another order
	for k := range 4 {
		row, column := group+k/2*8, member*2+k%2 //nolint:mnd // the lower half; pairs
		slot, shift := k, 0
		if half {
			slot, shift = k/2, k%2*16 //nolint:mnd // two in a register
		}
		var sum float64
		for j := range depth {
			sum += x[row][j] * y[j][column]
		}
		old := f.regs[e[slot]][n]
		if half {
			results[slot] |= h.pack(sum+h.value(old>>shift&0xffff)) << shift //nolint:mnd // one half
			continue
		}
		results[slot] = bits32(float32(sum + float64(f32(old))))
	}
	for k, slot := range d {
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
