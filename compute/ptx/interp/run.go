package interp

import (
	"fmt"
	"math/bits"

	"github.com/go-vram/vram/compute/ptx"
)

// run is a launch that is executed.
type run struct {
	kernel  *Kernel
	launch  *Launch
	globals map[*ptx.Variable]uint64
	own     []Region
	regions []*region // that were found so far
	shift   [2]uint   // from an offset in shared and in global memory to its cell
	limit   int64
	printed int // bytes, by printf
	grid    uint64

	ignored [kindCount]bool
	turns   turns
	clock   uint32 // of events that order memory; never 0
	orders  map[uint64]*order
	crowds  crowds
}

// Run executes the kernel, block by block in the order of their numbers; the same launch on the same memory does the same. The error
// is a *Fault for a mistake of the kernel, wraps ErrLaunch for a launch that cannot be, and is ErrStopped where Stop ended it. After
// an error memory is as the kernel left it.
func (k *Kernel) Run(l Launch) error {
	if err := l.check(k); err != nil {
		return err
	}
	r := &run{
		kernel: k, launch: &l, globals: map[*ptx.Variable]uint64{}, limit: l.MaxInstructions, grid: l.Grid.count(), clock: 1,
		orders: map[uint64]*order{}, crowds: crowds{of: map[*cell]*crowd{}},
		shift: [2]uint{uint(bits.TrailingZeros(uint(k.granuleBytes[0]))), uint(bits.TrailingZeros(uint(k.granuleBytes[1])))}, //nolint:gosec // 1 to 4
	}
	if r.limit <= 0 {
		r.limit = DefaultMaxInstructions
	}
	for kind := range kindCount {
		r.ignored[kind] = l.ignores(kind) && kind >= Uninitialised && kind <= Undeclared
	}
	r.ownGlobals()
	r.workspace()
	if l.Cooperative {
		return r.together()
	}
	return r.blocks()
}

// blocks executes one block after the other.
func (r *run) blocks() error {
	last := r.grid
	if r.launch.Blocks > 0 && r.launch.First+r.launch.Blocks < last {
		last = r.launch.First + r.launch.Blocks
	}
	b := r.newBlock()
	for n := r.launch.First; n < last; n++ {
		r.turns.begin(r.clock, n)
		b.begin(n)
		if err := b.execute(); err != nil {
			return err
		}
	}
	return nil
}

// tick is the next time of events that order memory.
func (r *run) tick() uint32 {
	r.clock++
	if r.clock == 0 {
		panic(fmt.Sprintf("interp: more than %d events", uint32(1<<32-1)))
	}
	return r.clock
}

// block is a block of threads.
type block struct {
	run     *run
	kernel  *Kernel
	number  uint64
	index   Dim3
	threads int
	warps   []*warp

	shared      []byte
	initialised []uint64 // a bit for each byte of shared memory
	inFlight    []uint64 // likewise: the destination of a cp.async
	asyncs      int      // copies that were not delivered, and one more in a kernel with products
	reading     []uint16 // products on their way that read each 16 bytes of shared memory; nil in a kernel without products
	cells       []cell   // of shared memory
	warpgroups  [][]issue

	barriers     [16]barrierState
	mbarriers    map[uint64]*mbarrierOrder // by address in shared memory
	live         int                       // threads that did not exit
	instructions int64
	began        uint32 // the clock when it began
	seenTurns    bitset // of other blocks that this one is ordered behind; in a cooperative launch its own ones, too
	memo         []memo // by instruction
	suspect      *Fault // a load of shared memory that nobody had written; a store without an order behind it makes it a race
	settled      bool   // a barrier came: no such store can follow
	guesses      guesses
}

// newBlock makes the state of a block, which all blocks of a run use one after the other.
func (r *run) newBlock() *block {
	l := r.launch
	bytes := r.kernel.staticSharedBytes + l.SharedBytes
	words := (bytes + 63) / 64 //nolint:mnd // bits of a word
	b := &block{
		run: r, kernel: r.kernel, threads: int(l.Block.count()), //nolint:gosec // at most 1024
		shared: make([]byte, bytes), initialised: make([]uint64, words), inFlight: make([]uint64, words),
		cells: make([]cell, bytes/r.kernel.granuleBytes[0]+1), memo: make([]memo, len(r.kernel.code)),
	}
	for n := 0; n*warpThreads < b.threads; n++ {
		b.warps = append(b.warps, &warp{block: b, index: n})
	}
	if r.kernel.wgmma {
		b.reading = make([]uint16, bytes/chunkBytes+1)
		b.warpgroups = make([][]issue, (b.threads+warpgroupThreads-1)/warpgroupThreads)
		for _, w := range b.warps {
			w.products = &products{warp: w}
		}
	}
	return b
}

// begin makes everything ready for a block of the grid.
func (b *block) begin(number uint64) {
	b.number, b.index, b.live = number, b.run.launch.Grid.at(number), b.threads
	clear(b.shared)
	clear(b.initialised)
	clear(b.inFlight)
	b.asyncs, b.suspect, b.settled = 0, nil, false
	clear(b.guesses.open)
	if b.reading != nil {
		clear(b.reading)
		for n := range b.warpgroups {
			b.warpgroups[n] = b.warpgroups[n][:0]
		}
		b.asyncs = 1
	}
	b.seenTurns, b.began = b.seenTurns[:0], b.run.clock
	for n := range b.barriers {
		b.barriers[n] = barrierState{}
	}
	clear(b.mbarriers)
	for _, w := range b.warps {
		w.begin()
	}
}

// slice is how many instructions a warp executes before the next one has its turn.
const slice = 1 << 14

// execute runs the warps in turn until all threads have ended.
func (b *block) execute() error {
	for b.live > 0 {
		if err := b.round(slice); err != nil {
			return err
		}
	}
	return b.end()
}

// owns reports whether an access is of this block.
func (b *block) owns(clock uint32) bool {
	return !b.run.turns.past(clock) || b.run.turns.blockAt(clock) == b.number
}

// round executes some instructions of each warp.
func (b *block) round(instructions int64) error {
	progress := false
	for _, w := range b.warps {
		if w.runnable() == 0 {
			continue
		}
		progress = true
		w.advance(instructions)
		if err := b.verdict(w.fault); err != nil {
			return err
		}
	}
	if !progress {
		return b.verdict(b.deadlock())
	}
	if stop := b.run.launch.Stop; stop != nil && stop() {
		return ErrStopped
	}
	return nil
}

// end is the verdict on a block whose threads have all ended.
func (b *block) end() error {
	b.settled = true
	if err := b.verdict(b.lonely()); err != nil {
		return err
	}
	return b.guesses.wrong()
}

// verdict is the fault of the block: that of a warp, or the suspect where that is the cause. A race of the suspect's own load is the
// cause itself: without a barrier the load was too early for one thread, and beside a store for another.
func (b *block) verdict(err error) error {
	s := b.suspect
	if s == nil || err == nil && !b.settled {
		return err
	}
	if f, ok := err.(*Fault); ok && f.Kind == SharedRace && (f.Line == s.Line || f.Other != nil && f.Other.Line == s.Line) { //nolint:errorlint // not wrapped
		return err
	}
	return s
}

// bitset is a set of small numbers.
type bitset []uint64

func (s *bitset) add(n uint64) {
	for uint64(len(*s)) <= n>>6 {
		*s = append(*s, 0)
	}
	(*s)[n>>6] |= 1 << (n & 63)
}

func (s *bitset) addAll(other bitset) {
	for len(*s) < len(other) {
		*s = append(*s, 0)
	}
	for n, w := range other {
		(*s)[n] |= w
	}
}

func (s bitset) has(n uint64) bool { return n>>6 < uint64(len(s)) && s[n>>6]>>(n&63)&1 != 0 }
