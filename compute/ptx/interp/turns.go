package interp

import "slices"

// turns are the stretches of a run in which one block executes: one for each block, but in a cooperative launch, where
// blocks take turns. Every access is of a turn by its clock.
type turns struct {
	starts []uint32 // the clock when each turn began: accesses of the turn are later
	blocks []uint64 // the block of each turn, by its number
}

// begin begins a turn of a block.
func (t *turns) begin(clock uint32, block uint64) {
	t.starts, t.blocks = append(t.starts, clock), append(t.blocks, block)
}

// now returns the number of the current turn.
func (t *turns) now() uint64 { return uint64(len(t.starts) - 1) }

// past reports whether an access is of an earlier turn than the current one.
func (t *turns) past(clock uint32) bool { return clock <= t.starts[len(t.starts)-1] }

// at returns the turn that an access is of. The clock at the start of a turn is the last time of the turn before it.
func (t *turns) at(clock uint32) uint64 {
	n, _ := slices.BinarySearch(t.starts, clock)
	return uint64(n - 1) //nolint:gosec // every access is later than the first start
}

// blockAt returns the number of the block that an access is of.
func (t *turns) blockAt(clock uint32) uint64 { return t.blocks[t.at(clock)] }
