package interp

import "github.com/go-vram/vram/compute/ptx"

// newFrame makes a frame with its constants.
func newFrame(s *site, fn *function, parent *frame) *frame {
	f := &frame{
		fn: fn, parent: parent, regs: make([]lanes, fn.registers), defined: make([]uint32, fn.registers),
		preds: make([]uint32, fn.predicates), predDefined: make([]uint32, fn.predicates),
	}
	if parent != nil {
		f.depth, f.base = parent.depth+1, parent.base+parent.fn.localBytes
	}
	f.fillAll(s)
	if fn.watched {
		f.use = newRegisterUse(fn.registers)
	}
	return f
}

// fillAll gives the constants their values.
func (f *frame) fillAll(s *site) {
	for _, c := range f.fn.constants {
		f.fill(s, c)
	}
}

// restart makes the frame of an entry ready for another launch.
func (f *frame) restart(s *site) {
	f.holes = nil
	f.fillAll(s)
}

// fill gives a constant its value.
func (f *frame) fill(s *site, c constant) {
	f.defined[c.slot] = full
	value := c.value
	switch {
	case c.special != ptx.NoSpecial:
		fillSpecial(s, &f.regs[c.slot], c.special)
		return
	case c.local:
		value += uint64(f.base) //nolint:gosec // not negative
	case c.dynamic:
		value += uint64(s.block.kernel.staticSharedBytes) //nolint:gosec // not negative
	case c.global != nil:
		value += s.block.run.globals[c.global]
	}
	for i := range f.regs[c.slot] {
		f.regs[c.slot][i] = value
	}
}

// renew makes the frame of an entry ready for another block. Registers keep values that nobody sees before they are written, unless the launch
// ignores that.
func (f *frame) renew(s *site) {
	clear(f.defined)
	clear(f.predDefined)
	if f.carry = 0; s.ignores(Uninitialised) {
		clear(f.regs)
		clear(f.preds)
		f.fillAll(s)
	}
	if f.holes != nil {
		f.holes.forget()
	}
	if f.use != nil {
		f.use.clear()
	}
	for _, c := range f.fn.constants {
		f.defined[c.slot] = full
		if r := c.special; r >= ptx.CtaidX && r <= ptx.CtaidZ || r == ptx.Smid {
			fillSpecial(s, &f.regs[c.slot], r)
		}
	}
}

// The processor that the interpreter plays.
const (
	multiprocessors = 132
	granule         = 16
)

// fillSpecial writes a special register that does not change in a block.
func fillSpecial(s *site, to *lanes, register ptx.Special) {
	l := s.block.run.launch
	if register < ptx.TidX || register > ptx.TidZ && (register < ptx.LanemaskEq || register > ptx.LanemaskGt) && register != ptx.Laneid {
		value := specialOf(s, register, l, 0) // the same in all threads
		for n := range to {
			to[n] = value
		}
		return
	}
	for n := range to {
		thread := uint64(s.index*warpThreads + n) //nolint:gosec // not negative
		to[n] = specialOf(s, register, l, thread)
	}
}

func specialOf(s *site, register ptx.Special, l *Launch, thread uint64) uint64 {
	tid := l.Block.at(thread % l.Block.count())
	lane := thread % warpThreads
	switch register {
	case ptx.TidX, ptx.TidY, ptx.TidZ:
		return tid.part(register - ptx.TidX)
	case ptx.NtidX, ptx.NtidY, ptx.NtidZ:
		return l.Block.part(register - ptx.NtidX)
	case ptx.CtaidX, ptx.CtaidY, ptx.CtaidZ:
		return s.block.index.part(register - ptx.CtaidX)
	case ptx.NctaidX, ptx.NctaidY, ptx.NctaidZ:
		return l.Grid.part(register - ptx.NctaidX)
	case ptx.Laneid:
		return lane
	case ptx.Warpid:
		return uint64(s.index) //nolint:gosec // not negative
	case ptx.Nwarpid:
		return uint64(len(s.block.warps))
	case ptx.Smid:
		return s.block.number % multiprocessors
	case ptx.Nsmid:
		return multiprocessors
	case ptx.LanemaskEq:
		return 1 << lane
	case ptx.LanemaskLe:
		return 1<<(lane+1) - 1
	case ptx.LanemaskLt:
		return 1<<lane - 1
	case ptx.LanemaskGe:
		return full &^ (1<<lane - 1)
	case ptx.LanemaskGt:
		return full &^ (1<<(lane+1) - 1)
	case ptx.DynamicSmemSize:
		return uint64(l.SharedBytes) //nolint:gosec // not negative
	case ptx.TotalSmemSize:
		return uint64(len(s.block.shared))
	default: // gridid, and those that the driver fills
		return l.environment(register)
	}
}

// environment returns a register that the driver fills: 0 unless the launch is cooperative.
func (l *Launch) environment(register ptx.Special) uint64 {
	if l.Cooperative && register.String() == "%envreg1" {
		return gridWindow >> 32 //nolint:mnd // the upper half
	}
	return 0 // also the lower half
}

// part returns one direction, counted from X.
func (d Dim3) part(n ptx.Special) uint64 {
	switch n {
	case 0:
		return uint64(d.X)
	case 1:
		return uint64(d.Y)
	default:
		return uint64(d.Z)
	}
}
