package interp

import "github.com/go-vram/vram/compute/ptx"

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
	c := asyncCopy{
		pc: p.at, zeros: bytes - copied,
		to:   access{space: ptx.Shared, address: to, bytes: bytes, thread: thread, write: true},
		from: access{space: ptx.Global, address: from, bytes: copied, thread: thread, read: true},
	}
	checked := c.to
	if p.reach(&checked) == nil {
		return false
	}
	if from&uint64(bytes-1) != 0 { //nolint:gosec // a power of two
		c.from.bytes = bytes
		p.refuse(&c.from, Misaligned, "")
		return false
	}
	if source := c.from; copied > 0 && p.region(&source) == nil {
		return false
	}
	b := p.block
	b.asyncs++
	for n := to; n < to+uint64(bytes); n++ { //nolint:gosec // few bytes
		b.inFlight[n>>6] |= 1 << (n & 63)
	}
	p.of[thread].open = append(p.of[thread].open, c)
	return true
}

// deliver ends the copies of a thread: all groups but the youngest, or everything.
func (p *copier) deliver(thread, keep int, all bool) {
	a := &p.of[thread]
	for len(a.groups) > 0 && (all || len(a.groups) > keep) {
		p.arrive(a.groups[0])
		a.groups = a.groups[1:]
	}
	if all {
		p.arrive(a.open)
		a.open = nil
	}
}

// arrive moves the bytes of copies.
func (p *copier) arrive(copies []asyncCopy) {
	b := p.block
	at := p.at
	for _, c := range copies {
		b.asyncs--
		for n := c.to.address; n < c.to.address+uint64(c.to.bytes); n++ { //nolint:gosec // few bytes
			b.inFlight[n>>6] &^= 1 << (n & 63)
		}
		p.at = c.pc // a fault names the copy
		to, from := c.to, c.from
		if bytes := p.reach(&to); bytes != nil {
			clear(bytes)
			if c.from.bytes > 0 {
				if source := p.reachGlobal(&from); source != nil {
					copy(bytes[:c.to.bytes-c.zeros], source)
				}
			}
		}
		if p.fault != nil {
			return
		}
	}
	p.at = at
}
