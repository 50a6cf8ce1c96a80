package interp

import (
	"fmt"
	"slices"

	"github.com/go-vram/vram/compute/ptx"
)

// A product is one wgmma.mma_async. Each warp of the warpgroup executes its part when it gets there: the part depends
// on its own rows of A and on B alone. The result is computed at once and arrives as late as allowed: until the
// wgmma.wait_group that covers it an access to a register of A or D is a fault. Only instructions that have such
// registers look for that.

// warpgroupWarps is the number of warps of a warpgroup.
const (
	warpgroupWarps   = 4
	warpgroupThreads = warpgroupWarps * warpThreads
)

// lowerWgmma translates the instructions of a warpgroup.
func lowerWgmma(c *lowering, i *ptx.Instruction) {
	t := c.wholeWarp()
	if i.Op == ptx.OpSetmaxnreg { // registers are no resource here
		t.meet = func(*warp, uint32) {}
		return
	}
	c.kernel.wgmma = true
	switch i.Op {
	case ptx.OpWgmmaFence:
		t.meet = func(w *warp, _ uint32) { w.products.fence(w.frame) }
	case ptx.OpWgmmaCommitGroup:
		t.meet = func(w *warp, _ uint32) { w.products.commit() }
	case ptx.OpWgmmaWaitGroup:
		keep := int(min(i.Operands[0].Value, 1<<20)) //nolint:gosec,mnd // more than anybody has
		t.meet = func(w *warp, _ uint32) { w.products.deliver(keep) }
	default:
		form := lowerProduct(c, i)
		t.meet = func(w *warp, members uint32) {
			if together(w, members) {
				w.products.multiply(form)
			}
		}
	}
}

// lowerProduct translates the operands of wgmma.mma_async.
func lowerProduct(c *lowering, i *ptx.Instruction) *productForm {
	registers := func(o *ptx.Operand) (slots []int) {
		for n := range o.Elements {
			slots = append(slots, c.slots[o.Elements[n].Register])
		}
		return slots
	}
	o := i.Operands
	p := &productForm{d: registers(&o[0]), left: none, elements: elementsOf(i.Type(1))}
	_, p.columns, p.depth = i.Mod(ptx.KindShape).Shape()
	if o[1].Kind == ptx.OperandVector {
		p.a = registers(&o[1])
	} else {
		p.left = c.in(&o[1], ptx.B64)
	}
	p.right = c.in(&o[2], ptx.B64)
	p.pred, p.negated = c.predIn(&o[3])
	p.sign = float64(int64(o[4].Value) * int64(o[5].Value)) //nolint:gosec // 1 or -1
	transposed := o[6:]
	if len(transposed) > 1 {
		p.across[0] = transposed[0].Value != 0
	}
	if len(transposed) > 0 {
		p.across[1] = transposed[len(transposed)-1].Value != 0
	}
	p.registers = slices.Concat(p.d, p.a)
	c.products = append(c.products, p)
	return p
}

// multiply executes a product for the rows of one warp.
func (s *products) multiply(p *productForm) {
	f := s.frame
	accumulate, ok := s.agree(p)
	if !ok || !s.sameProduct(p) || !s.admit(p, accumulate) {
		return
	}
	q := &product{pc: s.at, frame: f, form: p}
	if p.left == none {
		p.fragmentOfA(f, p.a, &s.x)
	} else if !s.gather(q, f.regs[p.left][0], rowsA, rowsA*(s.index%warpgroupWarps), p.across[0], s.x[:]) {
		return
	}
	if !s.gather(q, f.regs[p.right][0], p.columns, 0, p.across[1], s.y[:]) {
		return
	}
	for n := range warpThreads {
		for first := 0; first < len(p.d); first += 4 { // of eight columns
			for k, sum := range tile(&s.x, n/4, s.y[:], first*2+n%4*2, p.depth) { //nolint:mnd // threads of a group; pairs
				d := &f.regs[p.d[first+k]][n]
				if sum *= p.sign; accumulate {
					sum += float64(f32(*d))
				}
				*d = bits32(float32(sum))
			}
		}
	}
	s.begin(s.block, q)
}

// agree reports whether the threads of the warp name the same matrices and are in a whole warpgroup, and whether D is added.
func (s *products) agree(p *productForm) (accumulate, ok bool) {
	f := s.frame
	if s.index|(warpgroupWarps-1) >= len(s.block.warps) {
		s.fail(&Fault{Kind: DivergentWarp, Detail: "the instruction needs a warpgroup, four warps from a multiple of four on"}, 0)
		return false, false
	}
	add := f.predMask(p.pred, p.negated)
	for n := range warpThreads {
		switch {
		case p.left != none && f.regs[p.left][n] != f.regs[p.left][0], f.regs[p.right][n] != f.regs[p.right][0]:
			s.fail(&Fault{Kind: DivergentWarp, Detail: "the threads of the warp have different descriptors"}, n)
			return false, false
		case add>>n&1 != add&1:
			s.fail(&Fault{Kind: DivergentWarp, Detail: "the threads of the warp disagree whether D is added"}, n)
			return false, false
		}
	}
	return add != 0, true
}

// sameProduct reports whether the other warps of the warpgroup execute this product as their next one, too, as far as
// they have come.
func (s *products) sameProduct(p *productForm) bool {
	f := s.frame
	now := issue{pc: s.at, warp: s.index, right: f.regs[p.right][0]}
	if p.left != none {
		now.left = f.regs[p.left][0]
	}
	g := &s.block.warpgroups[s.index/warpgroupWarps]
	s.issued++
	if s.issued > len(*g) {
		*g = append(*g, now)
		return true
	}
	first := (*g)[s.issued-1]
	if first.pc == now.pc && first.left == now.left && first.right == now.right {
		return true
	}
	other := s.block.place(first.pc, first.warp*warpThreads)
	s.fail(&Fault{Kind: DivergentWarp, Other: &other, Detail: "the warps of the warpgroup execute different products"}, 0)
	return false
}

// lonely returns the fault of a product that a warp of the warpgroup never executes.
func (b *block) lonely() error {
	for n, issues := range b.warpgroups {
		for _, w := range b.warps[n*warpgroupWarps:] {
			if w.index/warpgroupWarps != n || w.products.issued == len(issues) {
				continue
			}
			i := issues[w.products.issued]
			first := b.warps[i.warp]
			first.at = i.pc
			first.fail(&Fault{Kind: BarrierDeadlock, Detail: fmt.Sprintf("warp %d of the block never executes it", w.index)}, 0)
			return first.fault
		}
	}
	return nil
}

// gather reads lines of a matrix from shared memory, rows of A or columns of B, from the first one on.
func (s *products) gather(q *product, bits uint64, lines, first int, across bool, to []line) bool {
	d, wrong := newDescriptor(bits)
	if wrong != "" {
		s.fail(&Fault{Kind: Unsupported, Detail: fmt.Sprintf("descriptor %#x: %s", bits, wrong)}, 0)
		return false
	}
	p := q.form
	if across {
		for k := range p.depth {
			for line := 0; line < lines; line += 8 {
				chunk := s.chunk(q, d.across(first+line, k))
				if chunk == nil {
					return false
				}
				for e := range 8 {
					to[line+e][k] = p.read(load(chunk[2*e:], 2)) //nolint:mnd // bytes
				}
			}
		}
		return true
	}
	each := p.depth / 2 //nolint:mnd // chunks of a line
	for line := range lines {
		for half := range 2 {
			chunk := s.chunk(q, d.along(first+line, half))
			if chunk == nil {
				return false
			}
			for k := range each {
				to[line][half*each+k] = p.read(load(chunk[chunkBytes/each*k:], chunkBytes/each))
			}
		}
	}
	return true
}

// chunk reads 16 bytes of shared memory for a product.
func (s *products) chunk(q *product, address uint64) []byte {
	a := access{space: ptx.Shared, address: address, bytes: chunkBytes, read: true}
	bytes := s.reach(&a)
	if bytes == nil || !s.proxied(&a) {
		return nil
	}
	q.chunks = append(q.chunks, uint16(address/chunkBytes)) //nolint:gosec // of at most 227 KiB
	return bytes
}
