package attention

import (
	"github.com/go-vram/vram/compute/kernel/attention/internal/variant"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
)

// maxGroupRows bounds the rows of numbers of a backward pass by warpgroups, which the copy engine finds by an int32.
const maxGroupRows = 1 << 30

// padded is the number of rows that a head has numbers for: whole tiles.
func padded(p Problem) int64 {
	const rows = 2 * variant.GroupRows
	return (p.Queries + rows - 1) / rows * rows
}

// groupRows is the number of rows of all heads that have numbers.
func groupRows(p Problem) int64 { return p.Batch * p.Heads * padded(p) }

// groups submits the backward pass by warpgroups: the numbers of each query, then the gradients.
func (b *backward) groups(a *Attention) error {
	p, x := &b.p, &b.x
	if err := b.load(a, variant.GroupQueries, variant.GroupKeys); err != nil {
		return err
	}
	rows := groupRows(*p)
	bytes := rows * variant.NumberBytes
	work, err := b.c.Workspace(bytes)
	if err != nil {
		return err
	}
	queries, keys := []*operand{&x.q, &x.grad}, []*operand{&x.k, &x.v}
	byQueries, err := b.group(a, b.byQueries, queries, keys, work, p.Heads, p.Queries, &x.dq, nil)
	if err != nil {
		return err
	}
	byKeys, err := b.group(a, b.byKeys, keys, queries, work, p.KeyHeads, p.Keys, &x.dk, &x.dv)
	if err != nil {
		return err
	}
	v := b.byQueries
	v.SharedBytes = 0
	perBlock := int64(v.Threads) * 8 / p.Dim // a thread has 8 elements
	err = b.c.Launch(b.rows, geometry((rows+perBlock-1)/perBlock, v), x.o.arg(cuda.In), x.grad.arg(cuda.In), x.lse.arg(cuda.In), cuda.Out(work).Of(0, bytes),
		x.o.strides(), x.grad.strides(), x.lse.strides(), word(p.Heads), word(p.Queries), word(padded(*p)), word(rows))
	if err != nil {
		return err
	}
	if err := b.c.Launch(b.queries, byQueries.geometry, byQueries.args...); err != nil {
		return err
	}
	return b.c.Launch(b.keys, byKeys.geometry, byKeys.args...)
}

// prepared is a launch whose tensor maps are encoded.
type prepared struct {
	geometry cuda.Geometry
	args     []cuda.Arg
}

// group prepares the launch for gradients of so many rows for each of the heads, from operands that blocks own and others that
// stream past.
func (b *backward) group(a *Attention, v variant.Variant, own, streamed []*operand, work cuda.Buffer, heads, rows int64,
	first, second *operand,
) (prepared, error) {
	p := &b.p
	args := make([]cuda.Arg, 0, 32)
	for n, x := range [...]*operand{own[0], own[1], streamed[0], streamed[1]} {
		boxRows := variant.GroupRows
		if n > 1 {
			boxRows = v.Streamed
		}
		box, err := a.box(b.c, p.Type, x, boxRows)
		if err != nil {
			return prepared{}, err
		}
		args = append(args, box)
	}
	numbers, err := a.maps.Arg(b.c, &cudadrv.TensorMap{
		Ptr: work.Ptr(), Type: cudadrv.TensorFloat32, Rank: 1,
		Dims: [cudadrv.MaxTensorRank]int64{2 * groupRows(*p)}, Box: [cudadrv.MaxTensorRank]int32{int32(2 * v.Streamed)}, //nolint:gosec // of a variant
	})
	if err != nil {
		return prepared{}, err
	}
	args = append(args, numbers, own[0].arg(cuda.In), own[1].arg(cuda.In), streamed[0].arg(cuda.In), streamed[1].arg(cuda.In),
		cuda.In(work).Of(0, groupRows(*p)*variant.NumberBytes), first.arg(cuda.Out))
	if second == nil {
		args, second = append(args, cuda.Null()), first
	} else {
		args = append(args, second.arg(cuda.Out))
	}
	blocks, items := tasks(*p, rows, v)
	items *= heads * p.Batch
	args = append(args, first.strides(), second.strides(), word(p.Heads), word(p.group()), word(p.Queries), word(p.Keys), flag(p.Causal),
		cuda.Value(float32(p.Scale)), word(padded(*p)), word(blocks), word(items))
	return prepared{geometry(min(items, a.multiprocessors), v), args}, nil
}
