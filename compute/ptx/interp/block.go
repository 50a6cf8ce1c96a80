package interp

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
	bulk        []*bulkCopy // that have not arrived

	barriers     [16]barrierState
	mbarriers    map[uint64]*mbarrierOrder // by address in shared memory
	live         int                       // threads that did not exit
	instructions int64
	began        uint32 // the clock when it began
	seenTurns    bitset // turns that this block is ordered after: of other blocks, and in a cooperative launch its own
	memo         []memo // by instruction
	suspect      *Fault // a load of unwritten shared memory; a later store without an order makes it a race
	settled      bool   // a barrier came: no such store can follow
	guesses      guesses
}

// barrierState is one of the 16 barriers of a block.
type barrierState struct {
	waiting  [maxWarps]uint32 // threads
	warps    uint32           // with threads that wait
	threads  int              // that wait
	arrived  int              // counted: of bar.arrive, too
	expected int              // 0: all threads of the block
	open     bool
	order    clocks
	count    int // of threads whose predicate holds
}

// owns reports whether an access is of this block.
func (b *block) owns(clock uint32) bool {
	return !b.run.turns.past(clock) || b.run.turns.blockAt(clock) == b.number
}

// place names an instruction and a thread.
func (b *block) place(pc, thread int) Place {
	return b.kernel.place(pc, b.index, b.run.launch.Block.at(uint64(thread))) //nolint:gosec // not negative
}

// orderOf returns the order at an mbarrier.
func (b *block) orderOf(address uint64) *mbarrierOrder {
	o := b.mbarriers[address]
	if o == nil {
		if b.mbarriers == nil {
			b.mbarriers = map[uint64]*mbarrierOrder{}
		}
		o = &mbarrierOrder{}
		b.mbarriers[address] = o
	}
	return o
}

// resume begins another turn of a block.
func (r *run) resume(b *block) {
	r.turns.begin(r.clock, b.number)
	b.seenTurns.add(r.turns.now())
}
