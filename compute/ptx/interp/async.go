package interp

import (
	"slices"

	"github.com/go-vram/vram/compute/ptx"
)

// lowerCopy translates a copy from global to shared memory.
func lowerCopy(c *lowering, i *ptx.Instruction) {
	to := c.pointer(&i.Operands[0], ptx.Shared)
	from := c.pointer(&i.Operands[1], ptx.Global)
	bytes := int(i.Operands[2].Value) //nolint:gosec,mnd // 4, 8 or 16
	c.narrow(ptx.Shared, bytes)
	c.narrow(ptx.Global, bytes)
	source := none
	if len(i.Operands) > 3 && i.Operands[3].Kind != ptx.OperandNone { //nolint:mnd // the fourth operand
		source = c.in(&i.Operands[3], ptx.B32)
	}
	c.to.run = func(w *warp, f *frame, m uint32) {
		for ; m != 0; m &= m - 1 {
			n := next(m)
			copied := bytes
			if source != none {
				copied = int(min(f.regs[source][n]&mask(32), uint64(bytes))) //nolint:gosec,mnd // at most 16
			}
			if !w.copies.begin(to.of(f, n), from.of(f, n), bytes, copied, n) {
				return
			}
		}
	}
}

// lowerCopyCommit translates cp.async.commit_group.
func lowerCopyCommit(c *lowering, _ *ptx.Instruction) {
	c.to.run = func(w *warp, _ *frame, m uint32) {
		for ; m != 0; m &= m - 1 {
			w.copies.of[next(m)].commit()
		}
	}
}

// lowerCopyWait translates cp.async.wait_group and cp.async.wait_all.
func lowerCopyWait(c *lowering, i *ptx.Instruction) {
	var keep int
	all := i.Op == ptx.OpCpAsyncWaitAll
	if !all {
		keep = int(min(i.Operands[0].Value, 1<<20)) //nolint:gosec,mnd // more than anybody has
	}
	c.to.run = func(w *warp, _ *frame, m uint32) {
		for ; m != 0; m &= m - 1 {
			w.copies.deliver(next(m), keep, all)
		}
	}
}

// begin begins a copy: both places are checked now, and the destination is nobody's until it has arrived.
func (p *copier) begin(to, from uint64, bytes, copied, thread int) bool {
	c := asyncCopy{pc: p.at, to: to, from: from, bytes: bytes, copied: copied}
	destination, source := c.accesses(thread)
	if p.reach(&destination) == nil {
		return false
	}
	if from&uint64(bytes-1) != 0 { //nolint:gosec // a power of two
		source.bytes = bytes
		p.refuse(&source, Misaligned, "")
		return false
	}
	if copied > 0 && p.region(&source) == nil {
		return false
	}
	p.block.asyncs++
	word, field := destination.field(p.block.inFlight, to)
	*word |= field
	p.of[thread].begin(c)
	return true
}

// deliver ends the copies of a thread: all groups but the youngest, or everything.
func (p *copier) deliver(thread, keep int, all bool) {
	a := &p.of[thread]
	ended, count := max(len(a.groups)-keep, 0), 0
	for _, copies := range a.groups[:ended] {
		count += copies
	}
	if a.groups = slices.Delete(a.groups, 0, ended); all {
		count, a.open = len(a.copies), 0
	}
	p.arrive(a.copies[:count], thread)
	a.copies = slices.Delete(a.copies, 0, count)
}

// arrive moves the bytes of copies of a thread.
func (p *copier) arrive(copies []asyncCopy, thread int) {
	b := p.block
	at := p.at
	for n := range copies {
		c := &copies[n]
		to, from := c.accesses(thread)
		b.asyncs--
		word, field := to.field(b.inFlight, c.to)
		*word &^= field
		p.at = c.pc // a fault names the copy
		if bytes := p.reach(&to); bytes != nil {
			clear(bytes)
			if c.copied > 0 {
				copy(bytes, p.reachGlobal(&from))
			}
		}
		if p.fault != nil {
			return
		}
	}
	p.at = at
}
