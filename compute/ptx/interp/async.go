package interp

import "github.com/go-vram/vram/compute/ptx"

// asyncs are the copies of a thread that were not delivered. Bytes arrive as late as allowed: when the thread waits for them.
type asyncs struct {
	open   []asyncCopy   // not committed
	groups [][]asyncCopy // the oldest first
}

// asyncCopy is one cp.async.
type asyncCopy struct {
	pc       int
	to, from access
	zeros    int // bytes at the end that are not copied
}

func (a *asyncs) commit() {
	a.groups = append(a.groups, a.open)
	a.open = nil
}

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
			if !w.begin1(to.of(f, n), from.of(f, n), bytes, copied, n) {
				return
			}
		}
	}
}

// lowerCopyCommit translates cp.async.commit_group.
func lowerCopyCommit(c *lowering, _ *ptx.Instruction) {
	c.to.run = func(w *warp, _ *frame, m uint32) {
		for ; m != 0; m &= m - 1 {
			w.async[next(m)].commit()
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
			w.deliver(next(m), keep, all)
		}
	}
}

// begin1 begins a copy: both places are checked now, and the destination is nobody's until it has arrived.
func (w *warp) begin1(to, from uint64, bytes, copied, thread int) bool {
	c := asyncCopy{
		pc: w.at, zeros: bytes - copied,
		to:   access{space: ptx.Shared, address: to, bytes: bytes, thread: thread, write: true},
		from: access{space: ptx.Global, address: from, bytes: copied, thread: thread, read: true},
	}
	checked := c.to
	if w.reach(&checked) == nil {
		return false
	}
	if from&uint64(bytes-1) != 0 { //nolint:gosec // a power of two
		c.from.bytes = bytes
		w.refuse(&c.from, Misaligned, "")
		return false
	}
	if source := c.from; copied > 0 && w.region(&source) == nil {
		return false
	}
	b := w.block
	b.asyncs++
	for n := to; n < to+uint64(bytes); n++ { //nolint:gosec // few bytes
		b.inFlight[n>>6] |= 1 << (n & 63)
	}
	w.async[thread].open = append(w.async[thread].open, c)
	return true
}

// deliver ends the copies of a thread: all groups but the youngest, or everything.
func (w *warp) deliver(thread, keep int, all bool) {
	a := &w.async[thread]
	for len(a.groups) > 0 && (all || len(a.groups) > keep) {
		w.arrive1(a.groups[0])
		a.groups = a.groups[1:]
	}
	if all {
		w.arrive1(a.open)
		a.open = nil
	}
}

// arrive1 moves the bytes of copies.
func (w *warp) arrive1(copies []asyncCopy) {
	b := w.block
	at := w.at
	for _, c := range copies {
		b.asyncs--
		for n := c.to.address; n < c.to.address+uint64(c.to.bytes); n++ { //nolint:gosec // few bytes
			b.inFlight[n>>6] &^= 1 << (n & 63)
		}
		w.at = c.pc // a fault names the copy
		to, from := c.to, c.from
		if bytes := w.reach(&to); bytes != nil {
			clear(bytes)
			if c.from.bytes > 0 {
				w.fetch(bytes[:c.to.bytes-c.zeros], &from)
			}
		}
		if w.fault != nil {
			return
		}
	}
	w.at = at
}

// fetch reads the source of a copy.
func (w *warp) fetch(to []byte, from *access) {
	if bytes := w.reachGlobal(from); bytes != nil {
		copy(to, bytes)
	}
}

// arrived reports whether an access to shared memory touches no copy that is on its way.
func (w *warp) arrived(a *access) bool {
	b := w.block
	if a.write && b.reading != nil && !w.products.unread(a) {
		return false
	}
	field := mask(a.bytes) << (a.address & 63)
	if b.inFlight[a.address>>6]&field == 0 || b.run.ignored[AsyncInFlight] {
		return true
	}
	for _, v := range b.warps {
		for thread := range v.async {
			for _, c := range v.async[thread].all() {
				if c.to.address < a.address+uint64(a.bytes) && a.address < c.to.address+uint64(c.to.bytes) { //nolint:gosec // few bytes
					other := b.place(c.pc, v.index*warpThreads+thread)
					w.fail(&Fault{
						Kind: AsyncInFlight, Space: a.space, Address: a.address, Bytes: a.bytes, Other: &other,
						Detail: "the copy has not arrived: its thread has not waited for it",
					}, a.thread)
					return false
				}
			}
		}
	}
	return true
}

// all are the copies that were not delivered.
func (a *asyncs) all() (copies []asyncCopy) {
	for _, g := range a.groups {
		copies = append(copies, g...)
	}
	return append(copies, a.open...)
}
