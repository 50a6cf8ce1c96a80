package interp

import "github.com/go-vram/vram/compute/ptx"

// asyncs are the copies of a thread that were not delivered. Bytes arrive as late as allowed: when the thread waits for them.
type asyncs struct {
	copies []asyncCopy // the oldest first
	groups []int       // how many copies each committed group has, likewise
	open   int         // copies that were not committed
}

// asyncCopy is one cp.async.
type asyncCopy struct {
	pc            int
	to, from      uint64
	bytes, copied int // the others are zeros
}

// accesses returns the accesses of a copy by a thread, to shared and to global memory.
func (c *asyncCopy) accesses(thread int) (to, from access) {
	to = access{space: ptx.Shared, address: c.to, bytes: c.bytes, thread: thread, write: true}
	from = access{space: ptx.Global, address: c.from, bytes: c.copied, thread: thread, read: true}
	return to, from
}

func (a *asyncs) clear() { a.copies, a.groups, a.open = a.copies[:0], a.groups[:0], 0 }

func (a *asyncs) begin(c asyncCopy) {
	a.copies = append(a.copies, c)
	a.open++
}

func (a *asyncs) commit() {
	a.groups = append(a.groups, a.open)
	a.open = 0
}

// The largest product of one warp.
const (
	maxProductColumns = 256
	maxProductDepth   = 16
)

// matrices is the shape of a multiplication: A has rows x depth, B depth x columns, C and D rows x columns.
const (
	rowsA    = 16
	columnsB = 8
)

// chunkBytes is the unit in which matrices of wgmma lie in shared memory.
const chunkBytes = 16

// productForm is a wgmma.mma_async.
type productForm struct {
	elements

	d, a           []int // slots; a is empty where A is in shared memory
	registers      []int // d, then a
	left, right    int   // slots of descriptors; left none where A is in registers
	pred           int
	negated        bool
	columns, depth int
	sign           float64 // of the products: both scales together
	across         [2]bool // A, B: rows and columns of A, of B, lie along memory, not the depth
}

// product is a wgmma.mma_async whose results have not arrived.
type product struct {
	pc     int
	frame  *frame
	form   *productForm
	chunks []uint16 // of shared memory that it reads
}

// issue is a product as the first warp of a warpgroup executed it.
type issue struct {
	pc, warp    int
	left, right uint64 // descriptors
}

// proxyFence is a fence.proxy.async of some threads: accesses up to the clock are seen by products.
type proxyFence struct{ clock, threads uint32 }

// registerUse is the use of a frame's registers by products, by slot; nil in functions without products.
type registerUse struct {
	touched []uint32   // threads that accessed the register since the last wgmma.fence
	reads   []int      // products that read it as A
	writes  []int      // products that write it as D
	last    []*product // that uses it, or nil
}

func newRegisterUse(slots int) *registerUse {
	return &registerUse{make([]uint32, slots), make([]int, slots), make([]int, slots), make([]*product, slots)}
}

func (u *registerUse) clear() {
	clear(u.touched)
	clear(u.reads)
	clear(u.writes)
	clear(u.last)
}
