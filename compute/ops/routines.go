package ops

import (
	"maps"
	"sync"

	"github.com/go-vram/vram/compute/kernel"
	"github.com/go-vram/vram/compute/kernel/routine"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/layout"
	"github.com/go-vram/vram/cuda"
)

// function returns a compiled routine. The first call compiles it.
func (s *set) function(k routine.Kernel) (*cuda.Function, error) {
	if s == nil {
		return nil, ErrNotOpen
	}
	if f := (*s.functions.Load())[k]; f != nil {
		return f, nil
	}
	f, err := s.compiler.Function(k.Text(), k.Entry())
	if err != nil {
		return nil, err
	}
	if bytes := k.SharedBytes(); bytes > routine.UsualSharedBytes {
		if err := f.SetMaxSharedBytes(bytes); err != nil {
			return nil, err
		}
	}
	for {
		old := s.functions.Load()
		next := maps.Clone(*old)
		next[k] = f
		if s.functions.CompareAndSwap(old, &next) {
			return f, nil
		}
	}
}

// maxOperands is the number of tensors of the routine with the most of them.
const maxOperands = 5

// dims are the dimensions over which a routine goes, with the strides that each operand has along them.
type dims struct {
	rank    int
	shape   [layout.MaxRank]int
	strides [layout.MaxRank][maxOperands]int
}

func (d *dims) add(length int, strides [maxOperands]int) {
	d.shape[d.rank], d.strides[d.rank] = length, strides
	d.rank++
}

// elements returns the number of elements.
func (d *dims) elements() int {
	n := 1
	for _, length := range d.shape[:d.rank] {
		n *= length
	}
	return n
}

// merge joins neighbouring dimensions that all operands can address as one, and drops dimensions of one element. None is
// empty.
func (d *dims) merge() {
	to := 0
	for from := range d.rank {
		n, strides := d.shape[from], d.strides[from]
		if n == 1 {
			continue
		}
		merges := to > 0
		for k, stride := range strides {
			merges = merges && d.strides[to-1][k] == stride*n
		}
		if merges {
			d.shape[to-1] *= n
			d.strides[to-1] = strides
			continue
		}
		d.shape[to], d.strides[to] = n, strides
		to++
	}
	d.rank = to
}

// place is where an operand of a routine is.
type place struct {
	arg   cuda.Arg
	at    cuda.Range
	start int // of the first element, from the start of the range
}

// address of the range in memory.
func (p *place) address() uint64 { return uint64(p.at.Buffer.Ptr()) + uint64(p.at.Offset) } //nolint:gosec // within the buffer

// overlaps reports whether two ranges share memory.
func (p *place) overlaps(other *place) bool {
	if p.at.Bytes == 0 || other.at.Bytes == 0 {
		return false
	}
	a, b := p.address(), other.address()
	return a < b+uint64(other.at.Bytes) && b < a+uint64(p.at.Bytes) //nolint:gosec // not negative
}

// routineFrame is the memory of a call of a routine, which allocates nothing so.
type routineFrame struct {
	items, columns dims
	operands       [maxOperands]place
	wide           bool // sizes have 64 bits
	always         bool // they have, also where the tensors are small
	args           []cuda.Arg
	spans          []span // of many tensors
}

var routineFrames sync.Pool //nolint:gochecknoglobals // of *routineFrame, made on first use: memory that one call uses at a time

// frame returns a frame for one call.
func (s *set) frame() *routineFrame {
	f, found := routineFrames.Get().(*routineFrame)
	if !found {
		f = new(routineFrame)
	}
	f.always = s != nil && s.wide
	f.wide = f.always
	return f
}

// release clears references to memory and returns the frame to the pool.
func (f *routineFrame) release() {
	clear(f.args)
	*f = routineFrame{args: f.args[:0], spans: f.spans[:0]}
	routineFrames.Put(f)
}

// bind adds a tensor as operand k. Errors: as tensor.Tensor.Range.
func (f *routineFrame) bind(k int, t *tensor.Tensor, of func(cuda.Buffer) cuda.Arg) error {
	r, err := t.Range()
	if err != nil {
		return err
	}
	l := t.Layout()
	first, _ := l.Bounds()
	f.operands[k] = place{arg: of(r.Buffer).Of(r.Offset, r.Bytes), at: r, start: l.Offset() - first}
	if r.Bytes == 0 {
		f.operands[k].arg = cuda.Value(uint64(0))
	}
	f.wide = f.wide || !l.Fits32()
	return nil
}

// bindOut is bind of a tensor that a routine writes. Errors: kernel.ErrRepeats.
func (f *routineFrame) bindOut(k int, t *tensor.Tensor, of func(cuda.Buffer) cuda.Arg) error {
	if t.Layout().MayOverlap() {
		return kernel.ErrRepeats
	}
	return f.bind(k, t, of)
}

// apart returns an error where an operand that is written shares memory with one of those before a number. Errors:
// kernel.ErrOverlap.
func (f *routineFrame) apart(out, count int) error {
	for k := range count {
		if k != out && f.operands[out].overlaps(&f.operands[k]) {
			return kernel.ErrOverlap
		}
	}
	return nil
}

// goes has the routine go over all elements of a layout.
func (f *routineFrame) goes(shape layout.Layout, strides func(dim int) [maxOperands]int) {
	for d := range shape.Rank() {
		f.items.add(shape.Dim(d), strides(d))
	}
}

// value appends an argument.
func (f *routineFrame) value(a cuda.Arg) { f.args = append(f.args, a) }

// size appends a size, as wide as the kernel has it.
func (f *routineFrame) size(n int) {
	if f.wide {
		f.value(cuda.Value(int64(n)))
	} else {
		f.value(cuda.Value(int32(n))) //nolint:gosec // it fits where the kernel is not wide
	}
}

func (f *routineFrame) shape(d *dims) {
	for _, n := range d.shape[:d.rank] {
		f.size(n)
	}
}

// operand appends an operand: its strides are those along items, and then along columns.
func (f *routineFrame) operand(k int, all ...*dims) {
	o := &f.operands[k]
	f.value(o.arg)
	f.size(o.start)
	for _, d := range all {
		for _, strides := range d.strides[:d.rank] {
			f.size(strides[k])
		}
	}
}

// run launches a kernel with the arguments so far, and clears them.
func (f *routineFrame) run(at *cuda.Context, s *set, k routine.Kernel, blocks int) error {
	k.Wide = f.wide
	function, err := s.function(k)
	if err == nil {
		threads := k.BlockThreads()
		geometry := cuda.Cover(blocks*threads, threads)
		geometry.SharedBytes = k.SharedBytes()
		err = at.Launch(function, geometry, f.args...)
	}
	clear(f.args)
	f.args = f.args[:0]
	return err
}

// vectorBytes is the largest alignment that a vector needs.
const vectorBytes = 16

// blocksOf returns the number of blocks for so many threads.
func blocksOf(threads int) int { return (threads + routine.BlockThreads - 1) / routine.BlockThreads }

// word returns an argument of 32 bits.
func word(n int) cuda.Arg { return cuda.Value(uint32(n)) } //nolint:gosec // below 2^32

// span is the memory of a tensor.
type span struct {
	first, end uint64
	state      int
	written    bool
}
