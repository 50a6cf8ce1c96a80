package interp

// widestGranule is the most bytes that share a cell. Smaller accesses of a kernel make cells smaller.
const widestGranule = 4

// touch is an access as a cell keeps it: the clock of its warp, the instruction, whether it was strong, whether the
// cell has a crowd, and the thread. 0 is none.
type touch uint64

const (
	threadBits = 10
	strongBit  = 1 << threadBits
	crowdBit   = 1 << (threadBits + 1)
	pcShift    = threadBits + 2
	pcBits     = 20 // as many instructions as a kernel may have
	clockShift = pcShift + pcBits
)

func newTouch(clock uint32, pc int, strong bool, thread int) touch {
	t := touch(clock)<<clockShift | touch(pc)<<pcShift | touch(thread) //nolint:gosec // not negative
	if strong {
		t |= strongBit
	}
	return t
}

func (t touch) clock() uint32 { return uint32(t >> clockShift) } //nolint:gosec // 32 bits
func (t touch) pc() int       { return int(t >> pcShift & (1<<pcBits - 1)) }
func (t touch) thread() int   { return int(t & (1<<threadBits - 1)) }
func (t touch) strong() bool  { return t&strongBit != 0 }
func (t touch) crowded() bool { return t&crowdBit != 0 }

// cell keeps the accesses to a few bytes: the last store, the last load, and a load of another thread: see detector.keep.
type cell struct{ store, load, other touch }

// note keeps an access in a cell.
func (c *cell) note(t touch, write bool) {
	switch {
	case write: // the loads were before it
		*c = cell{store: t}
	case c.load.thread() != t.thread() || c.load == 0:
		c.other, c.load = c.load, t
	default:
		c.load = t
	}
}
