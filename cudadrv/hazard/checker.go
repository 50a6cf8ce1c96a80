package hazard

import (
	"maps"
	"slices"
	"sync"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/hazard/internal/core"
	"github.com/go-vram/vram/cudadrv/site"
)

// The words of a report.
type (
	// Report is one hazard, with both places. Its text has several lines.
	Report = core.Report
	// Kind is a kind of hazard.
	Kind = core.Kind
	// Use is something that was done to memory.
	Use = core.Use
	// Buffer is one allocation.
	Buffer = core.Buffer
	// Access is a range that a kernel reads or writes.
	Access = core.Access
	// Host is a side from which calls come.
	Host = core.Host
)

// The kinds of hazards; see the package comment.
const (
	Unmapped       = core.Unmapped
	UseAfterFree   = core.UseAfterFree
	NeverAllocated = core.NeverAllocated
	Race           = core.Race
	EarlyReuse     = core.EarlyReuse
	EarlyUnmap     = core.EarlyUnmap
	Overlap        = core.Overlap
)

// The hosts.
const (
	Program   = core.Program
	Allocator = core.Allocator
)

// Checker is the state of one device.
type Checker struct {
	plain sync.Mutex // orders cuMemAlloc and cuMemFree: an address is forgotten before it is recorded again

	mu      sync.Mutex // guards the fields below
	core    *core.Core
	opens   int
	segment map[cudadrv.Ptr]int64 // plain allocations
	peers   map[*Checker]bool     // of devices that were given access to memory of this one
	shared  map[cudadrv.EventDescriptor]cudadrv.Event
	globals map[cudadrv.Module]map[cudadrv.Ptr]int64 // variables returned by ModuleGetGlobal
	tell    func(Report)
}

func newChecker() *Checker {
	c := &Checker{core: core.New()}
	c.forget()
	return c
}

// forget drops the state that ends with the last view.
func (c *Checker) forget() {
	c.segment = map[cudadrv.Ptr]int64{}
	c.peers = map[*Checker]bool{}
	c.shared = map[cudadrv.EventDescriptor]cudadrv.Event{}
	c.globals = map[cudadrv.Module]map[cudadrv.Ptr]int64{}
}

// OnReport sets a function that is called at once for each hazard that Reports will list, on the goroutine whose call showed
// it, without a lock. nil removes it.
func (c *Checker) OnReport(tell func(Report)) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tell = tell
}

// Reports returns the hazards so far: the first of each kind and pair of places, at most a hundred. count is how many
// times hazards showed.
func (c *Checker) Reports() (reports []Report, count uint64) {
	if c == nil {
		return nil, 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.core == nil {
		return nil, 0
	}
	return c.core.Reports()
}

// Err returns nil, or an *Error with all Reports.
func (c *Checker) Err() error {
	reports, count := c.Reports()
	if count == 0 {
		return nil
	}
	return &Error{reports, count}
}

// Allocated records that the allocator has returned a buffer for use on its stream. Call it before any use of the buffer.
func (c *Checker) Allocated(b Buffer) { c.do(func() { c.core.Allocated(b) }) }

// NumberStream records the allocator's number of a stream: reports name the stream by it. So does Allocated, by
// Buffer.StreamID.
func (c *Checker) NumberStream(s cudadrv.Stream, id uint32) {
	c.do(func() { c.core.NumberStream(s, id) })
}

// Freed records the free of the buffer at p. Call it before its memory can be allocated again.
func (c *Checker) Freed(p cudadrv.Ptr, from site.Stack) { c.do(func() { c.core.Freed(p, from) }) }

// Closed records that the allocator was closed, which ends all its buffers.
func (c *Checker) Closed(from site.Stack) { c.do(func() { c.core.Ended(from) }) }

// Stale reports a use of a buffer whose handle was freed, even if its address was allocated again.
func (c *Checker) Stale(b Buffer, now Use) { c.do(func() { c.core.Stale(b, now) }) }

// LiveCount returns the number of live buffers.
func (c *Checker) LiveCount() int {
	if c == nil {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.core == nil {
		return 0
	}
	return c.core.LiveCount()
}

// do runs f under the mutex, and then notifies of new reports.
func (c *Checker) do(f func()) {
	tell, found := c.book(f)
	for _, r := range found {
		tell(r)
	}
}

func (c *Checker) book(f func()) (tell func(Report), found []Report) {
	if c == nil {
		return nil, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.core == nil {
		return nil, nil
	}
	before := c.core.KeptCount()
	f()
	if c.tell == nil || c.core.KeptCount() == before {
		return nil, nil
	}
	return c.tell, c.core.ReportsFrom(before)
}

// call makes a driver call that does not wait, and records it if it succeeded, both under the mutex.
func (c *Checker) call(f func() error, book func()) (err error) {
	c.do(func() {
		if err = f(); err == nil {
			book()
		}
	})
	return err
}

// point reads a point under the mutex.
func (c *Checker) point(f func() core.Clock) core.Clock {
	c.mu.Lock()
	defer c.mu.Unlock()
	return f()
}

// others returns the checkers of devices that were given access to memory of this one.
func (c *Checker) others() []*Checker {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Keys(c.peers))
}

// knows reports whether a stream is this device's.
func (c *Checker) knows(s cudadrv.Stream) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.core.StreamKnown(s)
}

// over notes that a host has waited for a point.
func (c *Checker) over(by Host, p core.Clock) { c.do(func() { c.core.Over(by, p) }) }

// opened and closed count the views. With the last the device forgets its memory, streams and events, and so does the
// checker; the reports stay.
func (c *Checker) opened() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.opens++
}

func (c *Checker) closed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.opens--; c.opens == 0 {
		c.core = c.core.Fresh()
		c.forget()
	}
}
