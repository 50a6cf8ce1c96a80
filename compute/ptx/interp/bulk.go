package interp

import (
	"encoding/binary"
	"fmt"

	"github.com/go-vram/vram/compute/ptx"
)

// maxTensorRank is the number of dimensions that a tensor map has at most.
const maxTensorRank = 5

// tensorMapBytes is the size of an encoded tensor map, and tensorMapAlignment that of its address.
const (
	tensorMapBytes     = 128
	tensorMapAlignment = 64
)

// Tensor has the contents of a tensor map: where the elements lie in global memory, and which box of them a bulk copy moves.
// Dimension 0 is contiguous.
type Tensor struct {
	Start        uint64
	ElementBytes int
	Rank         int
	Dims         [maxTensorRank]int64     // elements
	Strides      [maxTensorRank - 1]int64 // bytes from an index of dimension n+1 to the next one
	Box          [maxTensorRank]int64     // elements
	// Swizzle is how many 16-byte pieces of a line are exchanged: 0, 2, 4 or 8. Bits of the address in shared memory from 7 on
	// change those from 4 on.
	Swizzle int
	// TF32 says that elements are fp32 and rounded to 10 bits of fraction, ties to even, as an H200 was seen to do.
	TF32 bool
}

// boxBytes is the size of a box.
func (t *Tensor) boxBytes() int {
	bytes := int64(t.ElementBytes)
	for n := range t.Rank {
		bytes *= t.Box[n]
	}
	return int(bytes)
}

// bulkCopy is a cp.async.bulk.tensor whose bytes have not arrived.
type bulkCopy struct {
	pc, thread int    // of the block
	mbarrier   uint64 // whose phase counts the bytes
	to         uint64
	bytes      []byte // as they lie in shared memory
}

// lowerBulkTensor translates a copy of a box of a tensor to shared memory. It reads global memory at once. The bytes arrive as
// late as allowed: when a thread tests the mbarrier.
func lowerBulkTensor(c *lowering, i *ptx.Instruction) {
	to := c.pointer(&i.Operands[0], ptx.Shared)
	source := i.Operands[1]
	tensor := c.pointer(&ptx.Operand{Kind: ptx.OperandAddress, Register: source.Register, Variable: source.Variable, Offset: source.Offset}, ptx.Generic)
	var place []int
	for n := range source.Elements[0].Elements {
		place = append(place, c.in(&source.Elements[0].Elements[n], ptx.B32))
	}
	mbarrier := c.pointer(&i.Operands[2], ptx.Shared)
	c.narrow(ptx.Shared, mbarrierBytes)
	c.narrow(ptx.Global, 2) //nolint:mnd // the smallest element
	c.to.bulk = true
	c.to.run = func(w *warp, f *frame, m uint32) {
		for ; m != 0; m &= m - 1 {
			n := next(m)
			t, ok := w.tensorAt(tensor.of(f, n), len(place), n)
			if !ok {
				return
			}
			var at [maxTensorRank]int64
			for d, slot := range place {
				at[d] = int64(int32(f.regs[slot][n])) //nolint:gosec // 32 bits
			}
			if !w.beginBulk(&t, at, to.of(f, n), mbarrier.of(f, n), n) {
				return
			}
		}
	}
}

// tensorAt reads a tensor map.
func (w *warp) tensorAt(address uint64, rank, thread int) (t Tensor, ok bool) {
	from, space, err := w.memory.peek(address, thread)
	a := access{space: space, address: address & (1<<windowShift - 1), bytes: tensorMapBytes, thread: thread, read: true}
	decode := w.block.run.launch.Tensors
	switch {
	case err != nil || len(from) < tensorMapBytes:
		w.refuse(&a, OutOfBounds, "no tensor map is there")
		return t, false
	case a.address%tensorMapAlignment != 0:
		w.refuse(&a, Misaligned, fmt.Sprintf("a tensor map lies at a multiple of %d bytes", tensorMapAlignment))
		return t, false
	case decode == nil:
		w.refuse(&a, Unsupported, "the launch reads no tensor maps: see Launch.Tensors")
		return t, false
	}
	if t, ok = decode(from[:tensorMapBytes]); !ok || t.Rank != rank {
		w.refuse(&a, Unsupported, fmt.Sprintf("the memory is no tensor map of %d dimensions", rank))
		return t, false
	}
	return t, true
}

// beginBulk begins a copy: both places are checked now, and the destination is nobody's until the bytes have arrived.
func (w *warp) beginBulk(t *Tensor, at [maxTensorRank]int64, to, mbarrier uint64, thread int) bool {
	b, size := w.block, t.boxBytes()
	whole := access{space: ptx.Shared, address: to, bytes: size, thread: thread, write: true}
	if align := uint64(max(128, 128*t.Swizzle)); to%align != 0 { //nolint:gosec,mnd // the pattern of a swizzle is as long as 8 lines; else 128
		w.refuse(&whole, Misaligned, fmt.Sprintf("a box of this tensor lies at a multiple of %d bytes", align))
		return false
	}
	counter := access{space: ptx.Shared, address: mbarrier, bytes: mbarrierBytes, thread: thread, read: true, write: true, strong: true}
	if w.memory.reach(&counter) == nil {
		return false
	}
	for n := 0; n < size; n += chunkBytes {
		chunk := access{space: ptx.Shared, address: to + uint64(n), bytes: chunkBytes, thread: thread, write: true} //nolint:gosec // not negative
		if w.memory.reach(&chunk) == nil {
			return false
		}
	}
	c := &bulkCopy{pc: w.at, thread: w.index*warpThreads + thread, mbarrier: mbarrier, to: to, bytes: make([]byte, size)}
	if !w.fetch(t, at, c, thread) {
		return false
	}
	b.setInFlight(c, true)
	b.asyncs++
	b.bulk = append(b.bulk, c)
	released := w.order.release() // the accesses before the copy are seen with its bytes
	b.orderOf(mbarrier).arriving.join(&released)
	return true
}

// fetch reads the elements of a box. Those outside of the tensor are zeros.
func (w *warp) fetch(t *Tensor, at [maxTensorRank]int64, c *bulkCopy, thread int) bool {
	each := int64(t.ElementBytes)
	row := t.Box[0] * each
	swizzle := uint64(max(t.Swizzle-1, 0)) //nolint:gosec // not negative
	for line := range int64(len(c.bytes)) / row {
		from, inside, rest := t.Start, true, line
		for d := 1; d < t.Rank; d++ {
			index := at[d] + rest%t.Box[d]
			rest /= t.Box[d]
			inside = inside && index >= 0 && index < t.Dims[d]
			from += uint64(index * t.Strides[d-1]) //nolint:gosec // an address
		}
		for n := int64(0); inside && n < t.Box[0]; {
			index := at[0] + n
			if index < 0 || index >= t.Dims[0] {
				n++
				continue
			}
			count := int64(1)
			source := from + uint64(index*each) //nolint:gosec // an address
			if n%(chunkBytes/each) == 0 && source%chunkBytes == 0 && index+chunkBytes/each <= t.Dims[0] {
				count = chunkBytes / each
			}
			a := access{space: ptx.Global, address: source, bytes: int(count * each), thread: thread, read: true}
			bytes := w.memory.reach(&a)
			if bytes == nil {
				return false
			}
			place := c.to + uint64(line*row+n*each) //nolint:gosec // not negative
			place ^= place >> 7 & swizzle << 4
			copy(c.bytes[place-c.to:], bytes)
			if t.TF32 {
				roundTF32(c.bytes[place-c.to:][:len(bytes)])
			}
			n += count
		}
	}
	return true
}

// roundTF32 rounds numbers of fp32. NaN stays NaN for who reads the upper 19 bits alone.
func roundTF32(bytes []byte) {
	const infinity, quiet, cut = 0x7f800000, 1 << 22, 1<<13 - 1
	for ; len(bytes) > 0; bytes = bytes[4:] {
		bits := binary.LittleEndian.Uint32(bytes)
		if bits&^(1<<31) > infinity {
			bits |= quiet
		} else {
			bits += cut/2 + bits>>13&1
		}
		binary.LittleEndian.PutUint32(bytes, bits&^cut)
	}
}

// setInFlight marks the destination of a copy, which begins at a multiple of 128 bytes.
func (b *block) setInFlight(c *bulkCopy, is bool) {
	for n := c.to >> 6; n < (c.to+uint64(len(c.bytes))+63)>>6; n++ { //nolint:mnd // bits of a word
		bits := ^uint64(0)
		if end := c.to + uint64(len(c.bytes)); n == end>>6 {
			bits &= 1<<(end&63) - 1
		}
		if is {
			b.inFlight[n] |= bits
		} else {
			b.inFlight[n] &^= bits
		}
	}
}

// deliverBulk lets the bytes arrive that an mbarrier counts, and ends its phase where nothing else is missing.
func (b *block) deliverBulk(mbarrier uint64) {
	if len(b.bulk) == 0 {
		return
	}
	rest := b.bulk[:0]
	at := b.shared[mbarrier:][:mbarrierBytes]
	for _, c := range b.bulk {
		if c.mbarrier != mbarrier {
			rest = append(rest, c)
			continue
		}
		b.setInFlight(c, false)
		b.asyncs--
		copy(b.shared[c.to:], c.bytes)
		s := mbarrierOf(binary.LittleEndian.Uint64(at))
		s.tx -= int64(len(c.bytes))
		if s.pending == 0 && s.tx == 0 {
			s.end(b.orderOf(mbarrier))
		}
		binary.LittleEndian.PutUint64(at, s.bits())
	}
	clear(b.bulk[len(rest):])
	b.bulk = rest
}

// end begins the next phase of an mbarrier.
func (s *mbarrierState) end(order *mbarrierOrder) {
	s.phase, s.pending = (s.phase+1)&mask(64-mbarrierPhase), s.expected //nolint:mnd // the bits that are left
	order.done.join(&order.arriving)
	order.arriving = clocks{}
}

// bulkOver returns the copy whose bytes are on their way to the memory of an access, or nil.
func (b *block) bulkOver(a *access) *bulkCopy {
	for _, c := range b.bulk {
		if c.to < a.address+uint64(a.bytes) && a.address < c.to+uint64(len(c.bytes)) { //nolint:gosec // few bytes
			return c
		}
	}
	return nil
}

// unfinished returns the fault of a block that ends while bytes are on their way to its shared memory.
func (b *block) unfinished() error {
	if len(b.bulk) == 0 || b.run.ignored[AsyncInFlight] {
		return nil
	}
	c := b.bulk[0]
	w := b.warps[c.thread/warpThreads]
	w.at = c.pc
	w.fail(&Fault{
		Kind: AsyncInFlight, Space: ptx.Shared, Address: c.to, Bytes: len(c.bytes), Detail: "the block ends before the bytes have arrived",
	}, c.thread%warpThreads)
	return w.fault
}
