package interp

import "github.com/go-vram/vram/compute/ptx"

// fragment is the part of a matrix that each thread of a warp holds for wmma. PTX leaves open which elements those are.
// Here thread t has those from t*own on, row by row, and where its registers have room for more it has them again.
type fragment struct {
	rows, columns int
	element       ptx.Type
	own           int // elements of a thread
	each          int // elements in a register
	slots         []int
}

// warpFragment returns the fragment of an operand.
func warpFragment(rows, columns int, element ptx.Type, slots []int) fragment {
	each := max(32/element.Bits(), 1) //nolint:mnd // a register
	return fragment{rows: rows, columns: columns, element: element, own: rows * columns / warpThreads, each: each, slots: slots}
}

// get returns an element of the matrix, by its number, in the registers of a frame.
func (g *fragment) get(f *frame, n int) uint64 {
	thread, at := n/g.own, n%g.own
	bits := g.element.Bits()
	return f.regs[g.slots[at/g.each]][thread] >> (at % g.each * bits) & mask(bits)
}

// put fills the registers of a thread with its elements, as often as there is room.
func (g *fragment) put(f *frame, thread int, elements []uint64) {
	bits := g.element.Bits()
	for k, slot := range g.slots {
		var v uint64
		for part := range g.each {
			v |= elements[(k*g.each+part)%g.own] & mask(bits) << (part * bits)
		}
		f.regs[slot][thread] = v
	}
}

// lowerFragment translates loads and stores of fragments.
func lowerFragment(c *lowering, i *ptx.Instruction) {
	t := c.wholeWarp()
	rows, columns, depth := i.Mod(ptx.KindShape).Shape()
	of, at := &i.Operands[0], &i.Operands[1]
	slot, write := c.out, i.Op == ptx.OpWmmaStoreD
	switch i.Op {
	case ptx.OpWmmaLoadA:
		columns = depth
	case ptx.OpWmmaLoadB:
		rows = depth
	case ptx.OpWmmaStoreD:
		of, at = at, of
		slot = func(o *ptx.Operand) int { return c.in(o, registerOf(i.Type(0))) }
	default:
	}
	p := c.pointer(at, i.Space())
	g := warpFragment(rows, columns, i.Type(0), c.vector(of, slot))
	t.meet = eachElement(c, i, p, &g, 2, write) //nolint:mnd // the third operand
}

// eachElement loads or stores a fragment: an address is the matrix's own, which all threads name, plus the stride between rows or columns.
func eachElement(c *lowering, i *ptx.Instruction, p pointer, g *fragment, stride int, write bool) func(w *warp, members uint32) {
	bytes := g.element.Bytes()
	c.narrow(p.space, bytes)
	byColumn := i.Mod(ptx.KindLayout) == ptx.ModCol
	line := c.constant(constant{value: uint64(g.columns)}) //nolint:gosec // at most 32
	if byColumn {
		line = c.constant(constant{value: uint64(g.rows)}) //nolint:gosec // at most 32
	}
	if stride < len(i.Operands) {
		line = c.in(&i.Operands[stride], ptx.B32)
	}
	return func(w *warp, members uint32) {
		f := w.frame
		if !together(w, members) {
			return
		}
		start, step := p.of(f, 0), f.regs[line][0]&mask(32) //nolint:mnd // a number of 32 bits
		for n := range warpThreads {
			if p.of(f, n) != start || f.regs[line][n]&mask(32) != step { //nolint:mnd // likewise
				w.fail(&Fault{Kind: DivergentWarp, Detail: "the threads of the warp have different addresses or strides of the matrix"}, n)
				return
			}
		}
		elements := make([]uint64, g.own)
		for thread := range warpThreads {
			for k := range elements {
				n := thread*g.own + k
				major, minor := n/g.columns, n%g.columns
				if byColumn {
					major, minor = minor, major
				}
				offset := (uint64(major)*step + uint64(minor)) * uint64(bytes) //nolint:gosec // not negative
				a := access{space: p.space, address: (start + offset) & p.ones, bytes: bytes, thread: thread, read: !write, write: write}
				var value [8]byte
				if write {
					store(value[:], bytes, g.get(f, n))
					a.value = value[:bytes]
				}
				at := w.memory.reach(&a)
				switch {
				case at == nil:
					return
				case write:
					copy(at, a.value)
				default:
					elements[k] = load(at, bytes)
				}
			}
			if !write {
				g.put(f, thread, elements)
			}
		}
	}
}

// lowerWmma translates D = A*B + C. Products of numbers are exact and their sum is rounded once; integers wrap, or are
// cut to their range.
func lowerWmma(c *lowering, i *ptx.Instruction) {
	t := c.wholeWarp()
	rows, columns, depth := i.Mod(ptx.KindShape).Shape()
	element, result, addend := ptx.F16, i.Type(0), i.Type(1)
	if len(i.Types) > 2 { //nolint:mnd // of D, A, B and C
		element, addend = i.Type(1), i.Type(3)
	}
	o := i.Operands
	d := warpFragment(rows, columns, result, c.vector(&i.Operands[0], c.out))
	a, b := warpFragment(rows, depth, element, c.vectorIn(&o[1], ptx.B32)), warpFragment(depth, columns, element, c.vectorIn(&o[2], ptx.B32))
	e := warpFragment(rows, columns, addend, c.vectorIn(&o[3], registerOf(addend)))
	read, readAddend := elementReader(element), elementReader(addend)
	write := elementWriter(result, i.Has(ptx.ModSatfinite))
	t.meet = func(w *warp, members uint32) {
		f := w.frame
		if !together(w, members) {
			return
		}
		x, y := make([]float64, rows*depth), make([]float64, depth*columns)
		for n := range x {
			x[n] = read(a.get(f, n))
		}
		for n := range y {
			y[n] = read(b.get(f, n))
		}
		results := make([]uint64, rows*columns) // written at the end: D may have the registers of C
		for n := range results {
			sum := 0.0
			for k := range depth {
				sum += x[n/columns*depth+k] * y[k*columns+n%columns]
			}
			results[n] = write(sum + readAddend(e.get(f, n)))
		}
		for thread := range warpThreads {
			d.put(f, thread, results[thread*d.own:(thread+1)*d.own])
		}
	}
}

// elementReader reads an element of a fragment; integers of 32 bits are exact in double precision.
func elementReader(t ptx.Type) func(uint64) float64 {
	switch {
	case t == ptx.F32:
		return func(v uint64) float64 { return float64(f32(v)) }
	case t.IsInteger():
		n := integerOf(t)
		return func(v uint64) float64 { return float64(n.value(v)) }
	}
	return elementOf(t)
}

// elementWriter rounds an element of a result; an integer wraps, or is cut to its range.
func elementWriter(t ptx.Type, satfinite bool) func(float64) uint64 {
	switch t {
	case ptx.F32:
		return func(x float64) uint64 { return bits32(float32(x)) }
	case ptx.F16:
		return halfOf(ptx.F16, nil).pack
	}
	n := integerOf(t)
	if satfinite {
		return func(x float64) uint64 { return n.pack(n.fromFloat(x)) }
	}
	return func(x float64) uint64 { return n.pack(int64(x)) } // the sums are far below 2^53
}
