package ops

import (
	"github.com/go-vram/vram/compute/kernel/routine"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cuda"
)

// Indexing are operations that read, or add, at places that a tensor of int32 or int64 has. An index that is negative, or not
// below the length of its dimension, ends the launch by a trap, before memory is touched with it: as with PyTorch the device's
// context is lost then. On the simulated device the fault names the operation, the index and the length. A GPU tells none of
// them: run the program there on the simulated device, or compare with Lt and Ge. Indices that are not trusted are to be
// clamped, or compared, before.
type Indexing struct{ set *set }

// indexing returns the name of an operation with indices in the names of its kernels.
func (op operation) indexing() string {
	switch op { //nolint:exhaustive // those with indices
	case opGatherBackward:
		return "gather_backward"
	case opScatterAdd:
		return "scatter_add"
	case opEmbeddingBackward:
		return "embedding_backward"
	}
	return op.String()
}

// indexed returns the error of tensors that cannot be operands of an indexing operation. Errors: tensor.ErrNoTensor,
// *tensor.TypeError.
func indexed(op operation, indices *tensor.Tensor, all ...*tensor.Tensor) error {
	if !indices.Type().Valid() {
		return tensor.ErrNoTensor
	}
	if of := indices.Type(); of != tensor.Int32 && of != tensor.Int64 {
		return &tensor.TypeError{Op: "indices of " + op.String(), Types: []tensor.Type{of}}
	}
	for _, t := range all {
		if !t.Type().Valid() {
			return tensor.ErrNoTensor
		}
		if t.Type() != all[0].Type() {
			return &tensor.TypeError{Op: op.String(), Types: []tensor.Type{all[0].Type(), t.Type()}}
		}
	}
	return nil
}

// fitsIn reports whether indices have the rank of a tensor, and are not longer than it but along the axis.
func fitsIn(indices, x *tensor.Tensor, axis int) bool {
	if indices.Rank() != x.Rank() {
		return false
	}
	for d := range x.Rank() {
		if d != axis && indices.Dim(d) > x.Dim(d) {
			return false
		}
	}
	return true
}

// Gather has for each index the element of x whose place along the axis is the index, and which has the same place as the index
// in other dimensions. Errors: ErrAxes, ErrShape for indices that are longer than x in these, ErrEmpty.
func (o Indexing) Gather(at tensor.Context, x, indices *tensor.Tensor, axis int) (*tensor.Tensor, error) {
	to := sized(opGather, x.Type(), indices.Shape(), x, indices)
	to.err = indexed(opGather, indices, x)
	return create(at, to, func(out *tensor.Tensor) error { return o.GatherInto(at, out, x, indices, axis) })
}

// GatherInto writes Gather to a tensor of the same type.
func (o Indexing) GatherInto(at tensor.Context, out, x, indices *tensor.Tensor, axis int) error {
	err := indexed(opGather, indices, out, x)
	if err == nil {
		axis, err = axisOf(x.Rank(), axis)
	}
	if err == nil && (!fitsIn(indices, x, axis) || !sameShape(out, indices)) {
		err = ErrShape
	}
	if err == nil {
		to, from, by := out.Layout(), x.Layout(), indices.Layout()
		err = o.set.gather(at, opGather, out, x, indices, x.Dim(axis), x.Layout().Stride(axis), func(d int) [maxOperands]int {
			source := from.Stride(d)
			if d == axis {
				source = 0
			}
			return [maxOperands]int{to.Stride(d), by.Stride(d), source}
		})
	}
	if err != nil {
		return failed(opGather, err, []*tensor.Tensor{out}, x, indices)
	}
	return nil
}

// Embedding has for each index the row of a table: its elements at that place of the first dimension. Errors: ErrShape for a
// table without dimensions, ErrEmpty.
func (o Indexing) Embedding(at tensor.Context, table, indices *tensor.Tensor) (*tensor.Tensor, error) {
	to := sized(opEmbedding, table.Type(), indices.Shape(), table, indices)
	if to.err = indexed(opEmbedding, indices, table); to.err == nil && table.Rank() == 0 {
		to.err = ErrShape
	}
	if to.err == nil {
		to.shape = append(to.shape, table.Shape()[1:]...)
	}
	return create(at, to, func(out *tensor.Tensor) error { return o.EmbeddingInto(at, out, table, indices) })
}

// EmbeddingInto writes Embedding to a tensor of the same type.
func (o Indexing) EmbeddingInto(at tensor.Context, out, table, indices *tensor.Tensor) error {
	err := indexed(opEmbedding, indices, out, table)
	if err == nil && !ofRows(out, table, indices) {
		err = ErrShape
	}
	if err == nil {
		to, from, by := out.Layout(), table.Layout(), indices.Layout()
		err = o.set.gather(at, opEmbedding, out, table, indices, table.Dim(0), from.Stride(0), func(d int) [maxOperands]int {
			if d < by.Rank() {
				return [maxOperands]int{to.Stride(d), by.Stride(d), 0}
			}
			return [maxOperands]int{to.Stride(d), 0, from.Stride(d - by.Rank() + 1)}
		})
	}
	if err != nil {
		return failed(opEmbedding, err, []*tensor.Tensor{out}, table, indices)
	}
	return nil
}

// ofRows reports whether a tensor has the shape of rows of a table, one for each index.
func ofRows(rows, table, indices *tensor.Tensor) bool {
	if table.Rank() == 0 || rows.Rank() != indices.Rank()+table.Rank()-1 {
		return false
	}
	for d := range rows.Rank() {
		n := 0
		if d < indices.Rank() {
			n = indices.Dim(d)
		} else {
			n = table.Dim(d - indices.Rank() + 1)
		}
		if rows.Dim(d) != n {
			return false
		}
	}
	return true
}

// gather copies to each element of out the element of source that its index selects. strides returns the strides of out,
// indices and source.
func (s *set) gather(
	at tensor.Context, op operation, out, source, indices *tensor.Tensor, length, step int, strides func(dim int) [maxOperands]int,
) error {
	c, err := tensor.ContextOf(at)
	if err != nil {
		return err
	}
	f := s.frame()
	defer f.release()
	if err := f.bindOut(0, out, cuda.Out); err != nil {
		return err
	}
	if err := f.bind(1, indices, cuda.In); err != nil {
		return err
	}
	if err := f.bind(2, source, cuda.In); err != nil {
		return err
	}
	if err := f.apart(0, 3); err != nil {
		return err
	}
	if out.Len() == 0 {
		return nil
	}
	if length == 0 {
		return ErrEmpty
	}
	f.goes(out.Layout(), strides)
	f.items.merge()
	unit, step := f.widened(out.Type().Size(), step)
	count := f.items.elements()
	f.size(count)
	f.shape(&f.items)
	for k := range 3 {
		f.operand(k, &f.items)
	}
	f.size(length)
	f.size(step)
	k := routine.Kernel{
		Kind: routine.Gather, For: op.indexing(), Of: [4]tensor.Type{indices.Type()}, Rank: uint8(f.items.rank), Unit: uint8(unit), //nolint:gosec // small
	}
	return f.run(c, s, k, blocksOf(count))
}

// widened makes one element of several neighbours that out and source have, of which one index says where they are. It returns
// the bytes of an element and the source's stride along the axis.
func (f *routineFrame) widened(size, step int) (unit, newStep int) {
	d := &f.items
	last := d.rank - 1
	if last < 0 || d.strides[last] != [maxOperands]int{1, 0, 1} {
		return size, step
	}
	by := vectorBytes / size
	whole := func() bool {
		ok := d.shape[last]%by == 0 && step%by == 0
		for _, k := range [...]int{0, 2} {
			o := &f.operands[k]
			ok = ok && o.start%by == 0 && o.address()%uint64(by*size) == 0 //nolint:gosec // small
			for _, strides := range d.strides[:last] {
				ok = ok && strides[k]%by == 0
			}
		}
		return ok
	}
	for by > 1 && !whole() {
		by /= 2
	}
	d.shape[last] /= by
	for _, k := range [...]int{0, 2} {
		f.operands[k].start /= by
		for i := range last {
			d.strides[i][k] /= by
		}
	}
	return size * by, step / by
}
