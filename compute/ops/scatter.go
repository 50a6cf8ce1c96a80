package ops

import (
	"errors"
	"math"
	"math/bits"

	"github.com/go-vram/vram/compute/kernel/routine"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/layout"
	"github.com/go-vram/vram/cuda"
)

// ScatterAdd is x with an element of source added for each index: to the element whose place along the axis is the index, and
// which has the same place as the index in other dimensions. Errors: as ScatterAddInto.
func (o Indexing) ScatterAdd(at tensor.Context, x, indices, source *tensor.Tensor, axis int) (*tensor.Tensor, error) {
	out, err := Makers(o).Copy(at, x)
	if err != nil {
		return nil, renamed(opScatterAdd, err)
	}
	if err := o.ScatterAddInto(at, out, indices, source, axis); err != nil {
		return nil, errors.Join(err, out.Free())
	}
	return out, nil
}

// ScatterAddInto adds to the elements of a tensor, as ScatterAdd does. Indices and source have one shape, and all but the
// indices one type.
//
// The result repeats bit for bit: the numbers that are added to one element are added in row-major order of the indices, one
// after the other, in float32 for types of 16 bits. So the indices are sorted, in temporary memory of 16 bytes for each and 2
// KiB for each 512 of them at most, by two launches and three for each byte of the number of elements along which indices lead;
// dimensions along which the indices are broadcast do not count. An element with very many indices takes as long as these
// additions.
//
// Errors: ErrAxes, ErrShape, ErrEmpty, a *tensor.TypeError for bools, tensor.ErrTooLarge for 2^31 indices or 2^32 elements.
func (o Indexing) ScatterAddInto(at tensor.Context, out, indices, source *tensor.Tensor, axis int) error {
	return o.set.scatterAdd(at, opScatterAdd, false, out, indices, source, axis)
}

// scatterAdd is ScatterAddInto a tensor as it is, or into zeros.
func (s *set) scatterAdd(at tensor.Context, op operation, zeroed bool, out, indices, source *tensor.Tensor, axis int) error {
	err := indexed(op, indices, out, source)
	if err == nil {
		axis, err = axisOf(out.Rank(), axis)
	}
	if err == nil && (!fitsIn(indices, out, axis) || !sameShape(source, indices)) {
		err = ErrShape
	}
	if err == nil {
		to, from, by := out.Layout(), source.Layout(), indices.Layout()
		err = s.scatter(at, op, zeroed, noKey, out, source, indices, axis, func(d int) [maxOperands]int {
			target := to.Stride(d)
			if d == axis {
				target = 0
			}
			return [maxOperands]int{target, from.Stride(d), by.Stride(d)}
		})
	}
	if err != nil {
		return failed(op, err, []*tensor.Tensor{out}, indices, source)
	}
	return nil
}

// EmbeddingOption changes the gradient of a table.
type EmbeddingOption struct{ padding int64 }

// Padding leaves out the rows of grad whose index is the padding's, as PyTorch's padding_idx does: the row of the table has
// no gradient. It is an argument of the launch.
func Padding(index int64) EmbeddingOption { return EmbeddingOption{index} }

// noKey is a key that no index has: there are fewer.
const noKey = math.MaxUint32

// paddingKey returns the key that is left out. Errors: ErrNumber for an index that the table does not have.
func paddingKey(rows int, options []EmbeddingOption) (int, error) {
	key := noKey
	for _, o := range options {
		if o.padding < 0 || o.padding >= int64(rows) {
			return 0, badNumber("the index of the padding", float64(o.padding))
		}
		key = int(o.padding)
	}
	return key, nil
}

// EmbeddingBackward returns the gradient of the table of Embedding. It uses only the type and shape of the table.
func (o Indexing) EmbeddingBackward(at tensor.Context, grad, table, indices *tensor.Tensor, options ...EmbeddingOption) (*tensor.Tensor, error) {
	return create(at, like(opEmbeddingBackward, table), func(dx *tensor.Tensor) error { return o.EmbeddingBackwardInto(at, dx, grad, indices, options...) })
}

// EmbeddingBackwardInto writes EmbeddingBackward to a tensor of the same type. It is EmbeddingBackwardAdd after a launch that
// writes zeros.
func (o Indexing) EmbeddingBackwardInto(at tensor.Context, dtable, grad, indices *tensor.Tensor, options ...EmbeddingOption) error {
	return o.set.embeddingBackward(at, true, dtable, grad, indices, options)
}

// EmbeddingBackwardAdd adds the gradient of the table of Embedding to a tensor: to each row the rows of grad with its index.
// Order, memory, launches and errors are as for ScatterAddInto: of 8,192 indices into 50,304 rows, six launches sort 64 KiB twice,
// and the last one reads grad once and reads and writes the rows that have indices. It has 8 rows of one index in flight.
// ErrNumber for a padding that the table does not have.
func (o Indexing) EmbeddingBackwardAdd(at tensor.Context, dtable, grad, indices *tensor.Tensor, options ...EmbeddingOption) error {
	return o.set.embeddingBackward(at, false, dtable, grad, indices, options)
}

func (s *set) embeddingBackward(at tensor.Context, zeroed bool, dtable, grad, indices *tensor.Tensor, options []EmbeddingOption) error {
	err := indexed(opEmbeddingBackward, indices, dtable, grad)
	if err == nil && !ofRows(grad, dtable, indices) {
		err = ErrShape
	}
	left := 0
	if err == nil {
		left, err = paddingKey(dtable.Dim(0), options)
	}
	if err == nil {
		to, from, by := dtable.Layout(), grad.Layout(), indices.Layout()
		err = s.scatter(at, opEmbeddingBackward, zeroed, left, dtable, grad, indices, 0, func(d int) [maxOperands]int {
			if d < by.Rank() {
				return [maxOperands]int{0, from.Stride(d), by.Stride(d)}
			}
			return [maxOperands]int{to.Stride(d - by.Rank() + 1), from.Stride(d), 0}
		})
	}
	if err != nil {
		return failed(opEmbeddingBackward, err, []*tensor.Tensor{dtable}, grad, indices)
	}
	return nil
}

// The operands of a sum at indices.
const (
	sumOut = iota
	sumSource
	sumIndices
	sumFactors // of keys: no tensor
)

// scatter adds each element of source to the element of out that its index selects, after setting out to 0 if zeroed. strides
// returns the strides of out, source and indices; out's stride is 0 in dimensions where the index alone decides the place.
// Items whose key is left are left out.
func (s *set) scatter(
	at tensor.Context, op operation, zeroed bool, left int, out, source, indices *tensor.Tensor, axis int, strides func(dim int) [maxOperands]int,
) error {
	c, err := tensor.ContextOf(at)
	if err != nil {
		return err
	}
	if out.Type() == tensor.Bool {
		return &tensor.TypeError{Op: op.String(), Types: []tensor.Type{tensor.Bool}}
	}
	f := s.frame()
	defer f.release()
	if err := f.bindOut(sumOut, out, cuda.InOut); err != nil {
		return err
	}
	if err := f.bind(sumSource, source, cuda.In); err != nil {
		return err
	}
	if err := f.bind(sumIndices, indices, cuda.In); err != nil {
		return err
	}
	if err := f.apart(sumOut, sumFactors); err != nil {
		return err
	}
	sum := sum{
		in: at, at: c, op: op, set: s, frame: f, of: out.Type(), by: indices.Type(), length: out.Dim(axis), step: out.Layout().Stride(axis), left: left,
	}
	if zeroed {
		sum.zeroed = out
	}
	if source.Len() == 0 {
		return sum.zero()
	}
	if sum.length == 0 {
		return ErrEmpty
	}
	from := source.Layout()
	sum.factor = 1
	for d := from.Rank() - 1; d >= 0; d-- {
		n, all := from.Dim(d), strides(d)
		switch {
		case n == 1:
		case all[sumOut] != 0 && all[sumIndices] == 0:
			f.columns.add(n, all)
		default:
			if all[sumOut] != 0 {
				all[sumFactors] = sum.factor
				sum.factor *= n
			}
			f.items.add(n, all)
		}
	}
	for _, d := range []*dims{&f.items, &f.columns} {
		d.reverse()
		d.merge()
	}
	return sum.compute()
}

// reverse turns the order of the dimensions round.
func (d *dims) reverse() {
	for i, j := 0, d.rank-1; i < j; i, j = i+1, j-1 {
		d.shape[i], d.shape[j] = d.shape[j], d.shape[i]
		d.strides[i], d.strides[j] = d.strides[j], d.strides[i]
	}
}

// sum is a sum at indices.
type sum struct {
	in     tensor.Context // of temporary memory, which has the tag of a scope
	at     *cuda.Context
	op     operation
	set    *set
	frame  *routineFrame
	of, by tensor.Type    // of elements and of indices
	length int            // of the dimension along which indices lead
	step   int            // the output's stride along it
	factor int            // of the index in a key
	left   int            // the key that is left out, or noKey
	zeroed *tensor.Tensor // that is set to 0 before, or nil
	memory scratch
}

// scratch is the temporary memory of a sum.
type scratch struct {
	buffer               cuda.Buffer
	wordsBytes, tileSums int64 // of keys, or numbers; of counts
}

// words returns part i of the memory: keys (0 and 2) or numbers (1 and 3).
func (m *scratch) words(i int64, of func(cuda.Buffer) cuda.Arg) cuda.Arg {
	return of(m.buffer).Of(i*m.wordsBytes, m.wordsBytes)
}

func (m *scratch) counts(of func(cuda.Buffer) cuda.Arg) cuda.Arg {
	return of(m.buffer).Of(4*m.wordsBytes, m.tileSums)
}

func (m *scratch) totals(of func(cuda.Buffer) cuda.Arg) cuda.Arg {
	return of(m.buffer).Of(4*m.wordsBytes+m.tileSums, digitBytes)
}

// digitBytes is the size of a number for each digit.
const digitBytes = 4 << routine.DigitBits

// zero sets the output to 0, if it is to be.
func (s *sum) zero() error {
	if s.zeroed == nil {
		return nil
	}
	return s.set.into(s.at, key{op: opFill}, s.zeroed)
}

// compute takes the temporary memory and submits the launches.
func (s *sum) compute() error {
	f := s.frame
	count, columns := f.items.elements(), f.columns.elements()
	const maxItems, maxKeys = 1 << 31, 1 << 32
	if count >= maxItems || s.factor >= maxKeys || s.length >= maxKeys || s.factor*s.length >= maxKeys {
		return tensor.ErrTooLarge
	}
	f.wide = f.wide || count*columns >= maxItems
	tiles := (count + routine.TileLen - 1) / routine.TileLen
	const align = 256
	s.memory.wordsBytes, s.memory.tileSums = (int64(count)*4+align-1)&^(align-1), int64(tiles)*digitBytes
	l, err := layout.Of(int(4*s.memory.wordsBytes + s.memory.tileSums + digitBytes))
	if err != nil {
		return err
	}
	return temporary(s.in, tensor.Uint8, l, func(memory *tensor.Tensor) error {
		if s.memory.buffer, err = memory.Buffer(); err != nil {
			return err
		}
		return s.submit(count, columns, tiles)
	})
}

// submit submits the launches with the memory.
func (s *sum) submit(count, columns, tiles int) error {
	if err := s.zero(); err != nil {
		return err
	}
	if err := s.keys(count); err != nil {
		return err
	}
	sorted := int64(0)
	for shift := 0; shift < bits.Len(uint(s.factor*s.length-1)); shift += routine.DigitBits { //nolint:gosec // positive
		if err := s.sort(sorted, count, shift, tiles); err != nil {
			return err
		}
		sorted = 2 - sorted
	}
	return s.segments(sorted, count, columns)
}

// keys writes the key and the number of each index.
func (s *sum) keys(count int) error {
	f := s.frame
	f.size(count)
	f.shape(&f.items)
	f.operand(sumIndices, &f.items)
	for _, strides := range f.items.strides[:f.items.rank] {
		f.value(word(strides[sumFactors]))
	}
	f.value(word(s.factor))
	f.size(s.length)
	f.value(s.memory.words(0, cuda.Out))
	f.value(s.memory.words(1, cuda.Out))
	k := routine.Kernel{Kind: routine.Keys, For: s.op.indexing(), Of: [4]tensor.Type{s.by}, Rank: uint8(f.items.rank)} //nolint:gosec // small
	return f.run(s.at, s.set, k, blocksOf(count))
}

// sort sorts keys and numbers by one digit, to the other place.
func (s *sum) sort(from int64, count, shift, tiles int) error {
	f, m, to := s.frame, &s.memory, 2-from
	wide := f.wide
	defer func() { f.wide = wide }()
	f.wide = false
	f.args = append(f.args, m.words(from, cuda.In), m.counts(cuda.Out), word(count), word(shift), word(tiles))
	if err := f.run(s.at, s.set, routine.Kernel{Kind: routine.Histogram}, tiles); err != nil {
		return err
	}
	if tiles > 1 {
		f.args = append(f.args, m.counts(cuda.InOut), m.totals(cuda.Out), word(tiles))
		if err := f.run(s.at, s.set, routine.Kernel{Kind: routine.Scan}, 1<<routine.DigitBits); err != nil {
			return err
		}
	}
	f.args = append(f.args, m.words(from, cuda.In), m.words(from+1, cuda.In), m.words(to, cuda.Out), m.words(to+1, cuda.Out),
		m.counts(cuda.In), m.totals(cuda.In), word(count), word(shift), word(tiles))
	return f.run(s.at, s.set, routine.Kernel{Kind: routine.Reorder, Single: tiles == 1}, tiles)
}

// segments adds the elements of equal keys.
func (s *sum) segments(sorted int64, count, columns int) error {
	f := s.frame
	for _, n := range [...]int{count * columns, count, columns} {
		f.size(n)
	}
	f.value(s.memory.words(sorted, cuda.In))
	f.value(s.memory.words(sorted+1, cuda.In))
	f.shape(&f.items)
	f.shape(&f.columns)
	f.operand(sumOut, &f.items, &f.columns)
	f.operand(sumSource, &f.items, &f.columns)
	f.operand(sumIndices, &f.items)
	f.size(s.step)
	f.value(word(s.left))
	k := routine.Kernel{
		Kind: routine.Segments, Of: [4]tensor.Type{s.of, s.by},
		Rank: uint8(f.items.rank), Columns: uint8(f.columns.rank), //nolint:gosec // small
	}
	return f.run(s.at, s.set, k, blocksOf(count*columns))
}
