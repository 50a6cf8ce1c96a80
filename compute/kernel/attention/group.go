package attention

import (
	"github.com/go-vram/vram/compute/kernel/attention/internal/variant"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cuda/gemm"
	"github.com/go-vram/vram/cudadrv"
)

// bulk reports whether the warpgroups of this device take these operands: those whose rows the copy engine brings, of sequences
// that all have as many rows.
func (a *Attention) bulk(o *Operands, copied ...*operand) bool {
	none := cuda.Range{}
	if !a.groups || o.QueryOffsets != none || o.KeyOffsets != none || o.KeyLengths != none || o.Table != none {
		return false
	}
	for _, x := range copied {
		if x.first == x.end {
			return false
		}
		for n, stride := range [...]int64{x.matrix.Row, x.matrix.Head, x.matrix.Batch} {
			if count := [...]int64{x.rows, x.heads, x.batch}[n]; count > 1 && (stride <= 0 || stride*x.bytes >= cudadrv.MaxTensorStrideBytes) {
				return false
			}
		}
	}
	return true
}

// box returns the argument of a tensor map for an operand of which copies bring so many rows at once.
func (a *Attention) box(c *cuda.Context, t gemm.Type, x *operand, rows int) (cuda.Arg, error) {
	const elements = 64 // as many as a line of the swizzle has
	m := cudadrv.TensorMap{
		Ptr: cudadrv.Ptr(x.first), Type: cudadrv.TensorBFloat16, Swizzle: cudadrv.Swizzle128, Rank: 4, //nolint:mnd // dimensions
		Dims: [cudadrv.MaxTensorRank]int64{x.dim, x.rows, x.heads, x.batch},
		Box:  [cudadrv.MaxTensorRank]int32{elements, int32(rows), 1, 1}, //nolint:gosec // of a variant
	}
	if t == gemm.Float16 {
		m.Type = cudadrv.TensorFloat16
	}
	bytes := x.dim * x.bytes
	for n, stride := range [...]int64{x.matrix.Row, x.matrix.Head, x.matrix.Batch} {
		if m.Dims[n+1] > 1 { // else the stride may be any number
			bytes = stride * x.bytes
		}
		m.Strides[n] = bytes
	}
	return a.maps.Arg(c, &m)
}

// groupForward submits the forward pass by warpgroups: each multiprocessor has one block, which takes one tile of rows after the
// other, and with the causal mask two that have about as many keys together as any other two.
func (a *Attention) groupForward(c *cuda.Context, p Problem, x *all) error {
	v, err := a.variant(variant.GroupForward, p)
	if err != nil {
		return err
	}
	f, err := a.function(v, v.Name, false)
	if err != nil {
		return err
	}
	args := make([]cuda.Arg, 0, 32)
	for n, x := range [...]*operand{&x.q, &x.k, &x.v} {
		box, err := a.box(c, p.Type, x, [...]int{variant.GroupRows, v.Streamed, v.Streamed}[n])
		if err != nil {
			return err
		}
		args = append(args, box)
	}
	blocks, items := tasks(p, p.Queries, v)
	items *= p.Heads * p.Batch
	args = append(args, x.q.arg(cuda.In), x.k.arg(cuda.In), x.v.arg(cuda.In), x.o.arg(cuda.Out), x.lse.arg(cuda.Out), x.o.strides(), x.lse.strides(),
		word(p.Heads), word(p.group()), word(p.Queries), word(p.Keys), flag(p.Causal), cuda.Value(float32(p.Scale*log2E)), word(blocks), word(items))
	return c.Launch(f, geometry(min(items, a.multiprocessors), v), args...)
}

// tasks returns the tiles of so many rows, and the items of work that they are for a head: one, or two under the causal mask.
func tasks(p Problem, rows int64, v variant.Variant) (blocks, items int64) {
	blocks = (rows + int64(v.Rows) - 1) / int64(v.Rows)
	if p.Causal {
		return blocks, (blocks + 1) / 2 //nolint:mnd // halves
	}
	return blocks, blocks
}
