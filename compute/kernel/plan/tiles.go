package plan

import (
	"slices"

	"github.com/go-vram/vram/compute/kernel/expr"
	"github.com/go-vram/vram/compute/kernel/internal/code"
)

// An input that lies across the outputs, as a transposed matrix, is read along its own neighbours into a tile of shared memory,
// and read from there along the rows of the outputs: both sides of the copy are contiguous.
const (
	smallTile = warpLanes     // elements of a side
	largeTile = 2 * warpLanes // more loads of a thread on their way at once
	tileWarps = 8             // of a block: each takes a line of the tile at a time
	// minTileSide is the least length of both dimensions: of a shorter one most of a tile is idle.
	minTileSide = 16
	// maxLargeTileBytes lets each multiprocessor run several blocks at once.
	maxLargeTileBytes = 24 << 10
	// maxTileBytes is the shared memory that a kernel has without asking for more.
	maxTileBytes = 48 << 10
)

// tilePitch is the bytes from one line of a tile to the next: an odd number of words, or of elements of 8 bytes, so that a warp
// that goes across the lines meets each bank once.
func tilePitch(side, size int) int { return side*size + max(size, 4) }

// tileBytes is the shared memory of a tile.
func tileBytes(side, size int) int { return (side*tilePitch(side, size) + 7) &^ 7 }

// layAcross has inputs that lie across the outputs be read by tiles: the dimension in which they are contiguous becomes the
// last but one.
func (p *Program) layAcross(g *Geometry) {
	last := int(g.Inner) - 1
	if p.depth > 0 || p.indexed || last < 1 {
		return
	}
	for k := p.Inputs; k < len(p.Operands); k++ {
		if g.Steps[k] != Unit {
			return
		}
	}
	across := p.across(g, last)
	if across < 0 || g.InnerShape[last] < minTileSide || g.InnerShape[across] < minTileSide {
		return
	}
	bytes := 0
	for k := range p.Inputs {
		if g.Steps[k] == Any && g.InnerStrides[k][across] == 1 {
			bytes += tileBytes(smallTile, p.Operands[k].Type.Size())
		}
	}
	if bytes > maxTileBytes {
		return
	}
	at := last - 1
	g.InnerShape[at], g.InnerShape[across] = g.InnerShape[across], g.InnerShape[at]
	for k := range p.Operands {
		strides := &g.InnerStrides[k]
		strides[at], strides[across] = strides[across], strides[at]
		if k < p.Inputs && g.Steps[k] == Any && strides[at] == 1 {
			g.Steps[k] = Across
		}
	}
}

// tile is the side of a tile: 0 where no input lies across the outputs.
func (p *Program) tile(g *Geometry) uint8 {
	bytes := p.tileBytes(g, largeTile)
	switch {
	case bytes == 0:
		return 0
	case g.tileGrid(largeTile) < splitBlocks || bytes > maxLargeTileBytes:
		return smallTile
	}
	return largeTile
}

// tileBytes is the shared memory of the tiles of all inputs that lie across the outputs.
func (p *Program) tileBytes(g *Geometry, side int) (bytes int) {
	for k := range p.Inputs {
		if g.Steps[k] == Across {
			bytes += tileBytes(side, p.Operands[k].Type.Size())
		}
	}
	return bytes
}

// across is the dimension in which an input is contiguous that is not so in the last one; -1 for none.
func (p *Program) across(g *Geometry, last int) int {
	for k := range p.Inputs {
		if g.Steps[k] != Any {
			continue
		}
		for d := range last {
			if g.InnerStrides[k][d] == 1 {
				return d
			}
		}
	}
	return -1
}

// tiles returns how many tiles of a side cover a dimension.
func (g *Geometry) tiles(d, side int) int { return (g.InnerShape[d] + side - 1) / side }

// tileGrid returns the number of blocks: one for each tile.
func (g *Geometry) tileGrid(side int) int {
	last := int(g.Inner) - 1
	return g.tiles(last, side) * g.tiles(last-1, side) * (g.Cols / g.InnerShape[last] / g.InnerShape[last-1])
}

// tile is one that a block computes.
type tile struct {
	w           *writer
	side        int
	rest        []code.Value // indices in the dimensions before the last two
	row, col    code.Value   // of the first element, in the last two dimensions
	rows, cols  code.Value   // lengths of these
	lane, warp  code.Value   // of the thread, 32 bits
	shared      code.Value   // the begin of shared memory
	sharedStart [MaxOperands]int
}

// tiled writes an element-wise kernel with a block for each tile.
func (w *writer) tiled() {
	t := w.newTile()
	for k := range w.p.Inputs {
		if w.v.Steps[k] == Across {
			t.fill(k)
		}
	}
	w.Barrier()
	end := w.Constant(t.side - 1)
	whole := w.Op2(code.AndPred, w.Less(w.Add(t.row, end), t.rows), w.Less(w.Add(t.col, end), t.cols))
	w.If(whole, func() {
		var all []*batch
		for line := 0; line < t.side; line += tileWarps {
			for col := 0; col < t.side; col += warpLanes {
				all = append(all, t.batch(t.plus(t.warp, line), t.plus(t.lane, col)))
			}
		}
		w.outputs(all...)
	})
	w.If(w.Op1(code.NotPred, whole), t.edge)
}

func (w *writer) newTile() *tile {
	last := int(w.v.Inner) - 1
	t := &tile{w: w, side: int(w.v.Tile), rows: w.param(InnerShape, 0, last-1), cols: w.param(InnerShape, 0, last)}
	thread := w.Special("tid.x")
	t.lane, t.warp = w.Op2(code.And32, thread, code.U32(warpLanes-1)), w.Op2(code.ShrU32, thread, code.U32(5))
	t.shared = w.SharedBase()
	at := w.Index(w.Special("ctaid.x"))
	at, t.col = t.first(at, t.cols)
	at, t.row = t.first(at, t.rows)
	t.rest = w.split(at, uint8(last-1), InnerShape) //nolint:gosec // small
	w.bases(w.Constant(0))
	return t
}

// first splits the last dimension off the number of a tile: it returns the rest, and the first element of the tile in the
// dimension.
func (t *tile) first(at, length code.Value) (rest, first code.Value) {
	w, side := t.w, t.w.Constant(t.side)
	divide := w.Pick(code.DivU32, code.DivU64)
	tiles := w.Op2(divide, w.Add(length, t.w.Constant(t.side-1)), side)
	rest = w.Op2(divide, at, tiles)
	return rest, w.Mul(w.Op2(w.Pick(code.SubS32, code.SubS64), at, w.Mul(rest, tiles)), side)
}

// plus adds n to a number of 32 bits.
func (t *tile) plus(v code.Value, n int) code.Value {
	if n == 0 {
		return v
	}
	return t.w.Op2(code.AddS32, v, code.U32(uint32(n))) //nolint:gosec // small
}

// indices returns the indices of an element of the tile, in all dimensions.
func (t *tile) indices(row, col code.Value) []code.Value {
	return append(slices.Clone(t.rest), t.w.Add(t.row, t.w.Index(row)), t.w.Add(t.col, t.w.Index(col)))
}

// inside reports whether an element of the tile is one of the tensor.
func (t *tile) inside(at []code.Value) code.Value {
	last := len(at) - 1
	return t.w.Op2(code.AndPred, t.w.Less(at[last-1], t.rows), t.w.Less(at[last], t.cols))
}

// slot returns the address in shared memory of an element of an operand: neighbours in a line are rows of the tile.
func (t *tile) slot(k int, row, col code.Value) code.Value {
	w, size := t.w, t.w.p.Operands[k].Type.Size()
	line := w.Op2(code.MulS32, col, code.U32(uint32(tilePitch(t.side, size)))) //nolint:gosec // small
	at := w.Op2(code.AddS32, line, w.Op2(code.MulS32, row, code.U32(uint32(size))))
	return t.plus(w.Op2(code.AddS32, t.shared, at), t.sharedStart[k])
}

// fill copies an operand's elements of the tile to shared memory, as they are: all loads first.
func (t *tile) fill(k int) {
	w, size := t.w, t.w.p.Operands[k].Type.Size()
	t.sharedStart[k] = w.Reserve(tileBytes(t.side, size))
	class, bits := code.B32, 8*size
	if size == 8 {
		class = code.B64
	}
	var stores []func()
	for line := 0; line < t.side; line += tileWarps {
		for row := 0; row < t.side; row += warpLanes {
			row, col := t.plus(t.lane, row), t.plus(t.warp, line)
			at := t.indices(row, col)
			inside, v := t.inside(at), w.New(class)
			w.Line("@%v ld.global.u%d %v, [%v]", inside, bits, v, w.place(k, at))
			stores = append(stores, func() { w.Line("@%v st.shared.u%d [%v], %v", inside, bits, t.slot(k, row, col), v) })
		}
	}
	for _, store := range stores {
		store()
	}
}

// batch returns a batch of one element of the tile.
func (t *tile) batch(row, col code.Value) *batch {
	w, at := t.w, t.indices(row, col)
	b := &batch{}
	for k := range w.p.Operands {
		if w.v.Steps[k] != Across {
			b.places[k] = w.place(k, at)
		}
	}
	loaded := map[int]code.Value{}
	b.elements = []*element{{
		Machine: w.Emitter, known: map[*expr.Node]code.Value{}, around: w.row,
		leaf: func(n *expr.Node) code.Value {
			if n.Op == expr.OpCount {
				return w.rowLeaf(n)
			}
			v, ok := loaded[n.At]
			if !ok {
				if w.v.Steps[n.At] == Across {
					v = w.load("shared", n.Type, t.slot(n.At, row, col), 1)[0]
				} else {
					v = w.load("global", n.Type, b.places[n.At], 1)[0]
				}
				loaded[n.At] = v
			}
			return v
		},
	}}
	return b
}

// edge writes the computation of a tile that is partly outside the tensor: line by line.
func (t *tile) edge() {
	w := t.w
	row := w.Variable(t.warp)
	w.Loop(func(bottom string) {
		now := w.Get(row)
		w.Line("@!%v bra %s", w.Op2(code.LtU32, now, code.U32(uint32(t.side))), bottom) //nolint:gosec // small
		for col := 0; col < t.side; col += warpLanes {
			col := t.plus(t.lane, col)
			w.If(t.inside(t.indices(now, col)), func() { w.outputs(t.batch(now, col)) })
		}
		w.Set(row, t.plus(now, tileWarps))
	})
}
