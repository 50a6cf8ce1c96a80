package routine

import (
	"strings"

	"github.com/go-vram/vram/compute/kernel/internal/code"
	"github.com/go-vram/vram/compute/tensor"
)

// Kind is the work of a kernel.
type Kind uint8

// The kinds of kernels.
const (
	// Gather copies elements of Unit bytes from the places that indices have along one dimension. Of is the type of the
	// indices. Parameters: count, the shape; the operands out, indices, source; the source's length and stride along the
	// dimension.
	Gather Kind = iota + 1

	// Keys are the first kernel of a sum at indices: for each index the row of the output to which it leads, and its own
	// number. Of is the type of the indices. Parameters: count, the shape; the operand indices; a factor of 32 bits for each
	// dimension, and one for the index; the length of the dimension; the addresses of keys and numbers.
	Keys
	// Histogram counts for each tile of keys how many have each digit. Parameters: the addresses of keys and counts; count,
	// the shift of the digit and the number of tiles, of 32 bits. A block for each tile.
	Histogram
	// Scan makes of these counts, for each digit, the sums of those before. Parameters: the addresses of counts and of totals,
	// the number of tiles, of 32 bits. A block for each digit.
	Scan
	// Reorder sorts keys and numbers by a digit, and keeps the order of those that have the same one. Parameters: the addresses
	// of keys, numbers, sorted keys, sorted numbers, counts, totals; count, shift, tiles. A block for each tile. It needs no
	// Scan if it is Single.
	Reorder
	// Segments add the rows of each key to the row of the output, in the order of the numbers. Of is the type of the elements,
	// and the type of the indices. Parameters: the number of threads, which is keys times columns; the numbers of keys and
	// columns; the addresses of keys and numbers; the shapes of items and of columns; the operands out, source, each with the
	// strides of items and of columns, and indices, with the strides of items alone; the output's stride along the dimension;
	// a key that is left out, of 32 bits.
	Segments

	// CrossEntropy writes the gradient of rows of logits over them, and their losses, a block for each row. Of are the types of
	// logits and targets. Parameters: the shape; the operands logits and targets, and losses or an address of 0; the number of
	// columns, of 32 bits, and the stride of a column, of 64; the addresses of two factors of the gradient, or 0, and a third one,
	// float32; 1 if a target is ignored, of 32 bits, and that target, of 64. A row has SharedKiB, or is read twice.
	CrossEntropy
	// Counted writes 1 divided by the number of targets that differ from one. Of[1] is the type of targets. Parameters: count,
	// the shape; the operand targets; the ignored target, of 64 bits; the address of the result. One block.
	Counted
	// Total writes the sum of losses times a factor. Parameters: count, the shape; the operand losses; the address of the factor,
	// or 0, and the factor then, float32; the address of the result. One block.
	Total

	// NormBackward writes the gradient of the operand of a layer norm, and for each block the sums of the gradients of weights
	// and biases. Of are the type of the elements, and of the weights or 0. Parameters: the numbers of rows and columns, of 32
	// bits; the addresses of gradient, operand, weights, a gradient that is added, output, and PartialLen float32 for each block;
	// epsilon, float32. Rows are contiguous and aligned for vectors. Each row has Lanes threads, and each thread Repeat vectors.
	NormBackward
	// NormSums adds these sums, in the order of the blocks. Of are the type of the elements, and of the output. Parameters: the
	// address of the sums, the numbers of blocks and of columns, of 32 bits; the addresses of both outputs, or 0.
	NormSums

	// Uniform writes random numbers that are evenly distributed. Of is the type. Parameters: count, the shape; the operand out;
	// seed, stream and offset, of 64 bits; the address of a number that is added to the offset, or 0; the least number, and the
	// distance to the greatest: float32, or float64 for that type. A thread for GroupLen elements.
	Uniform
	// Normal writes random numbers of the normal distribution: Parameters as of Uniform, with mean and standard deviation.
	Normal

	// SquareSums adds the squares of the elements of many tensors, for each block. Of is the type. Parameters: the address of
	// the sums, float32; SquareSlots times an address, count of 64 bits, and the first block of the tensor, of 32 bits. A block
	// for SquareBlockLen elements of a tensor.
	SquareSums
	// ClipScale adds such sums, in their order, to a norm. Parameters: the address of the sums, their number, of 32 bits; the
	// greatest norm that is wanted, float32; the addresses of the norm, of the factor that makes it so, both float32, and of
	// whether it is infinite or NaN, a bool, each or 0. One block.
	ClipScale

	// AdamW makes a step over many tensors. Of are the types of parameter, gradient and both moments; Copy is the type of a copy of the
	// parameter. Parameters: the addresses of rate, step, the factor of gradients, and of a bool that skips the step, each or 0;
	// the numbers of AdamWNumbers, float32; AdamWSlots times the addresses of the tensors, count of 64 bits, and the first block
	// of the tensor, of 32 bits. A block for AdamWBlockLen elements of a tensor.
	AdamW
	// AdamWStrided is AdamW of one tensor of any layout. Parameters: the addresses and numbers of AdamW; count, the shape, and
	// an operand for each tensor.
	AdamWStrided
	kinds
)

// String is the name of the entry.
func (k Kind) String() string {
	names := [kinds]string{
		Gather: "gather", Keys: "keys", Histogram: "histogram", Scan: "scan", Reorder: "reorder", Segments: "segments",
		CrossEntropy: "cross_entropy", Counted: "counted", Total: "total",
		NormBackward: "norm_backward", NormSums: "norm_sums",
		SquareSums: "square_sums", ClipScale: "clip_scale",
		Uniform: "uniform", Normal: "normal", AdamW: "adamw", AdamWStrided: "adamw_strided",
	}
	return names[k%kinds]
}

const (
	// BlockThreads is the number of threads of a block, unless a Kernel has Threads.
	BlockThreads = 256
	// TileLen is the number of keys that a block sorts.
	TileLen = 512
	// DigitBits is the number of bits of a key by which one pass sorts: there are as many digits as threads of a block.
	DigitBits = 8
	// GroupLen is the number of random elements of a thread.
	GroupLen = 4
)

// Kernel is a kernel. Equal ones have the same text.
type Kernel struct {
	Kind      Kind
	Of        [4]tensor.Type
	Rank      uint8       // dimensions
	Columns   uint8       // dimensions of columns, of Segments
	Copy      tensor.Type // of a copy of the parameter, of AdamW; 0 for none
	Unit      uint8       // bytes of an element, of Gather: a power of two up to 16
	Wide      bool        // sizes and places have 64 bits
	Single    bool        // there is one tile, of Reorder
	Threads   uint16      // of a block: a power of two from 32 on; 0 for BlockThreads
	SharedKiB uint16      // dynamic shared memory of a block

	// Of norms: the threads of a row, the vectors of a thread, whether the last vector of all of them is in the row, and whether a
	// gradient is added.
	Lanes           uint16
	Repeat          uint8
	Whole, Residual bool

	Vector bool // of random numbers: the output is contiguous, and aligned for vectors

	// For is the operation that takes the indices, of Gather and Keys: a fault of a wrong one has the name. "" is the kind's
	// own.
	For string
}

// Entry returns the name of the kernel in its text, in faults and in profiles. It includes the name of the operation.
func (k Kernel) Entry() string {
	switch {
	case k.For == "":
		return k.Kind.String()
	case k.Kind == Gather:
		return k.For
	}
	return k.For + "_" + k.Kind.String()
}

// BlockThreads returns the number of threads of a block.
func (k Kernel) BlockThreads() int {
	if k.Threads > 0 {
		return int(k.Threads)
	}
	return BlockThreads
}

// SharedBytes returns the dynamic shared memory of a block.
func (k Kernel) SharedBytes() int64 { return int64(k.SharedKiB) << 10 }

// MaxSharedBytes returns how much shared memory a block may have, of a compute capability such as 80: of the table in NVIDIA's
// programming guide.
func MaxSharedBytes(capability int) int {
	switch {
	case capability < 80:
		return UsualSharedBytes
	case capability == 80 || capability == 87:
		return 163 << 10
	case capability >= 90 && capability < 120:
		return 227 << 10
	}
	return 99 << 10 // the least, also for unknown devices
}

// UsualSharedBytes is the shared memory that a block may have without cuda.Function.SetMaxSharedBytes.
const UsualSharedBytes = 48 << 10

// Text returns the PTX.
func (k Kernel) Text() string {
	return code.Module([]string{k.Entry()}, k.BlockThreads(), k.Wide, func(to *code.Writer, _ int) { (&writer{to, k}).kernel() })
}

// kernel writes the body.
func (w *writer) kernel() {
	switch w.Kind {
	case Gather:
		w.gather()
	case Keys:
		w.keys()
	case Histogram:
		w.histogram()
	case Scan:
		w.scan()
	case Reorder:
		w.reorder()
	case Segments:
		w.segments()
	case CrossEntropy:
		w.crossEntropy()
	case Counted:
		w.counted()
	case Total:
		w.total()
	case NormBackward:
		w.normBackward()
	case NormSums:
		w.normSums()
	case Uniform, Normal:
		w.random()
	case SquareSums:
		w.squareSums()
	case ClipScale:
		w.clipScale()
	case AdamW:
		w.adamW()
	case AdamWStrided:
		w.adamWStrided()
	case kinds:
	}
}

// String names the kernel with its types.
func (k Kernel) String() string {
	var text strings.Builder
	text.WriteString(k.Kind.String())
	for _, of := range k.Of {
		if of.Valid() {
			text.WriteString(" " + of.String())
		}
	}
	return text.String()
}
