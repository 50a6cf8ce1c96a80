package routine

import "github.com/go-vram/vram/compute/kernel/internal/code"

// slot is the names of the parameters of a tensor, or of several that have the same elements.
type slot struct {
	at           []string
	count, begin string
}

// found are the variables that a block has of its tensor.
type found struct {
	at           []value
	count, begin value
}

// blockPart is the block's part of the tensors of a launch.
type blockPart struct {
	at    []value // the addresses of the tensors
	begin value   // the first element of the block, of 64 bits
	count value   // the elements of the block, of 32 bits
}

// tensorOfBlock finds the tensors of a block in a launch, and the block's part of so many elements. Parameters, for
// each slot: the addresses, count of 64 bits, and the first block, of 32 bits.
func (w *writer) tensorOfBlock(slotCount, tensors, blockLen int) blockPart {
	slots := make([]slot, slotCount)
	for i := range slots {
		for range tensors {
			slots[i].at = append(slots[i].at, w.Declare(8))
		}
		slots[i].count, slots[i].begin = w.Declare(8), w.Declare(4)
	}
	block := w.Special("ctaid.x")
	f := found{count: w.Variable(code.U64(0)), begin: w.Variable(code.U32(0))}
	for range tensors {
		f.at = append(f.at, w.Variable(code.U64(0)))
	}
	end := w.Label()
	w.search(slots, block, f, end)
	w.Place(end)
	length := uint32(blockLen) //nolint:gosec // small
	p := blockPart{begin: w.Op2(code.MulWideU32, w.Op2(code.SubS32, block, w.Get(f.begin)), code.U32(length))}
	left := w.Op2(code.SubS64, w.Get(f.count), p.begin)
	p.count = w.Op1(code.U32FromU64, w.Op2(code.MinS64, left, code.U64(uint64(length))))
	for _, at := range f.at {
		p.at = append(p.at, w.Get(at))
	}
	return p
}

// search finds the tensor of a block, by halves: the last one that begins with the block, or before.
func (w *writer) search(slots []slot, block value, f found, end string) {
	if len(slots) == 1 {
		for k, name := range slots[0].at {
			w.Line("ld.param.u64 %v, [%s]", f.at[k], name)
		}
		w.Line("ld.param.u64 %v, [%s]", f.count, slots[0].count)
		w.Line("ld.param.u32 %v, [%s]", f.begin, slots[0].begin)
		w.Line("bra %s", end)
		return
	}
	half := len(slots) / 2
	below := w.Label()
	w.Scope(func() {
		w.Line("@%v bra %s", w.Op2(code.LtU32, block, w.LoadParam(slots[half].begin, 4)), below)
	})
	w.search(slots[half:], block, f, end)
	w.Place(below)
	w.search(slots[:half], block, f, end)
}
