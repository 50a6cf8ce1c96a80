package interp

import "fmt"

// warp is 32 threads in lock step, as far as they are at the same instruction.
//
// Each thread has a place: a frame and the index of its next instruction. Threads of one place are a group; advance
// runs the group that is deepest in calls and there first in the text, so that groups meet again where branches do.
// Every other share of instructions belongs to the group that ran longest ago, so that no thread waits for one that
// never runs.
type warp struct {
	site

	waits  uint32 // of live: for others
	pc     [warpThreads]int
	frames [warpThreads]*frame
	ran    [warpThreads]int64 // when a thread ran last, in instructions
	entry  *frame
	favour uint32 // threads that run before others, for a while
	strong int    // atomic accesses of the group since the last turn

	instructions int64

	polls    polls
	meet     meetings
	order    warpOrder
	memory   memory
	copies   copier
	products *products // nil in kernels without wgmma
}

// polls are the tests of the warp whether a phase of an mbarrier has ended. A warp whose tests find a phase open gives up its turn, since
// only others can end the phase: after one test, and after twice as many each further time, so that a warp that waits for ever is soon at
// its limit.
type polls struct {
	last   [warpThreads]poll // that found an open phase
	open   int               // since the warp gave up its turn
	budget int               // how many more before it does
	over   bool              // the turn is
}

// poll is a test of a thread.
type poll struct {
	address uint64
	at      int
	clock   uint32
}

// test notes whether a phase had ended for a thread at least.
func (p *polls) test(ended bool) {
	if ended {
		p.open, p.budget = 0, 0
		return
	}
	if p.open++; p.open > p.budget {
		p.open, p.budget, p.over = 0, min(2*p.budget+1, slice), true
	}
}

// site is the place of a warp in the launch and in the code. The parts of a warp share it by a pointer, and see no
// other part than those they name.
type site struct {
	block *block
	index int    // of the warp in the block
	live  uint32 // threads that did not exit
	at    int    // the instruction that is executed
	frame *frame // of the group that executes it
	group uint32
	fault error
}

// warpOrder is a warp's part in the order of accesses. Time counts events that order memory: clock is the time of the
// warp's next access, and a warp sees an earlier access of another warp if its seen holds that access's clock.
type warpOrder struct {
	*site

	clock    uint32
	seen     clocks
	settled  clocks                            // every thread sees the accesses of each warp of the block up to here, at least
	together uint32                            // the threads of the warp see each other up to here
	alone    [warpThreads]uint32               // one thread sees all of the warp up to here
	pairs    *[warpThreads][warpThreads]uint32 // one thread sees another one up to here; nil without a sync of some threads
	fencedAt clocks                            // at the last fence
	acquired clocks                            // by atomics, to be seen from the next fence on
	turns    bitset                            // likewise: turns of other blocks
	fenced   bool                              // in this block
}

// detector finds races between an access of the warp and earlier ones.
type detector struct {
	*site

	order *warpOrder
}

// memory finds the bytes of an access of the warp and checks it.
type memory struct {
	detector

	local [warpThreads]localMemory
	value [32]byte // that the current thread stores
}

// copier executes the asynchronous copies of a warp, by thread.
type copier struct {
	*memory

	of [warpThreads]asyncs
}

// products executes wgmma for a warp.
type products struct {
	*memory

	fenced  bool         // by a wgmma.fence in this block
	issued  int          // in this block
	open    []*product   // not committed
	groups  [][]*product // the oldest first
	proxies []proxyFence // of its threads, in order

	x [rowsA]line
	y [maxProductColumns]line
}

// meetings are the threads of a warp that wait for others of it, with their operands and results.
type meetings struct {
	waiting uint32
	masks   [warpThreads]uint32
	in      [3]lanes
	pred    uint32
	out     lanes
	outPred uint32
	missing uint32           // threads whose result is undefined
	from    [warpThreads]int // whose value it is; none of a thread that takes no part

	undefined uint32 // threads whose value, the first operand, is undefined, its undefined bits, and why
	holes     lanes
	causes    [warpThreads]cause
}

// start makes the warp ready for a launch. Of an earlier one it keeps nothing but memory.
func (w *warp) start(b *block, index int) {
	entry, multiplier, copies := w.entry, w.products, w.copies.of
	*w = warp{site: site{block: b, index: index}}
	w.order.site = &w.site
	w.memory.detector = detector{site: &w.site, order: &w.order}
	w.copies.memory, w.copies.of = &w.memory, copies
	if w.products = multiplier; multiplier == nil && b.kernel.wgmma {
		w.products = &products{memory: &w.memory}
	}
	if w.entry = entry; entry == nil {
		w.entry = newFrame(&w.site, b.kernel.entry, nil)
	} else {
		entry.restart(&w.site)
	}
}

// fail keeps the first fault, at the current instruction of a thread.
func (s *site) fail(f *Fault, thread int) {
	if s.fault == nil {
		s.fault = s.locate(f, thread)
	}
}

// locate adds the kernel and the current instruction of a thread to a fault.
func (s *site) locate(f *Fault, thread int) *Fault {
	f.Kernel = s.block.kernel.name
	f.Place = s.block.place(s.at, s.index*warpThreads+thread)
	return f
}

// refuse reports an access. It returns nil.
func (s *site) refuse(a *access, kind Kind, detail string) []byte {
	s.fail(&Fault{Kind: kind, Space: a.space, Address: a.address, Bytes: a.bytes, Detail: detail}, a.thread)
	return nil
}

// ignores reports whether mistakes of a kind are not looked for.
func (s *site) ignores(kind Kind) bool { return s.block.run.ignored[kind] }

// carry is for an instruction that is not ready: it passes undefined bits on, or reports the fault.
func (s *site) carry(f *frame, in *instruction, m uint32) bool {
	if s.ignores(Uninitialised) {
		f.written(in, m)
		return true
	}
	if in.carries == nil {
		return s.demand(f, in.reads, m) && s.demandPreds(f, in, m)
	}
	return in.carries(s, f, in, m)
}

// demand reports a register that is not defined.
func (s *site) demand(f *frame, slots []int, m uint32) bool {
	for _, slot := range slots {
		if missing := m &^ f.defined[slot]; missing != 0 {
			s.undefined(f, slot, next(missing), false)
			return false
		}
	}
	return true
}

func (s *site) demandPreds(f *frame, in *instruction, m uint32) bool {
	for _, p := range in.readPreds {
		if missing := m &^ f.predDefined[p]; missing != 0 {
			s.undefined(f, p, next(missing), true)
			return false
		}
	}
	return true
}

// undefined reports a register, or does nothing where that is ignored.
func (s *site) undefined(f *frame, slot, thread int, pred bool) bool {
	if s.ignores(Uninitialised) {
		return true
	}
	detail := "register " + f.fn.registerName(slot, pred) + " was not written"
	if why := f.causeOf(slot, thread, pred); why&^causeNumber == causeInstruction {
		from := &s.block.kernel.code[why&causeNumber]
		what := "loads memory of the thread that was not written"
		if from.meet != nil {
			what = "reads a thread that takes no part"
		}
		detail = fmt.Sprintf("register %s is undefined: line %d %s", f.fn.registerName(slot, pred), from.source.Pos.Line, what)
	} else if number, isPred := int(why&causeNumber), why&^causeNumber == causePredicate; number != slot || isPred != pred {
		detail = fmt.Sprintf("register %s is undefined: register %s was not written", f.fn.registerName(slot, pred), f.fn.registerName(number, isPred))
	}
	s.fail(&Fault{Kind: Uninitialised, Detail: detail}, thread)
	return false
}
