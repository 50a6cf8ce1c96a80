package cuda

import (
	"errors"
	"slices"
	"sync"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/streams"
)

// uses are those that a graph's works make of buffers from outside.
type uses struct {
	touched []streams.Touched
	homes   []*Stream // of the memory
}

// add adds the uses of others.
func (u *uses) add(others uses) {
	for _, one := range others.touched {
		u.touched = streams.Joined(u.touched, one)
	}
	for _, home := range others.homes {
		if !slices.Contains(u.homes, home) {
			u.homes = append(u.homes, home)
		}
	}
}

// capture is a capture in progress.
type capture struct {
	pool      *Pool
	launching sync.Mutex // one launch at a time, also in the driver
	mu        sync.Mutex // guards the fields below; launches in a capture are cold

	streams []*submission // that are captured: the first began it. The index is the number in order
	order   reuse
	own     []captured // buffers of this capture that were live
	outside uses       // of buffers from outside
	kernels []*node    // each counts as a user of its module, until drop or Graph.Close
	events  []cudadrv.Event
	scratch []Buffer // the graph's, or drop's
	ended   bool     // nothing more becomes part of it

	replaceable bool           // these are arguments for SetArgs, not a capture
	lease       *streams.Lease // keeps the memory of such arguments; nil: none is from outside
}

// captured is a buffer that was allocated in a capture.
type captured struct {
	buffer Buffer
	memory memorySpan // a buffer that was freed has no address
	by     int        // the stream
	count  uint64     // of the allocation
}

func (c *submission) destroyGraph(g cudadrv.Graph) error {
	return c.work.Guarded(func() error { return c.graphs.GraphDestroy(g) })
}

// drop releases the resources of a capture that does not become a graph.
func (p *capture) drop() {
	for _, b := range p.scratch {
		_ = b.Free() // a caller of the capture may have done so
	}
	for _, k := range p.kernels {
		k.Function.module.release()
	}
}

// alloc allocates for a captured stream. Branches of a graph may run at the same time, so a stream may reuse memory that
// another freed only after all its uses. alloc sets memory that the stream may not use aside until it has tried the rest.
func (p *capture) alloc(c *submission, bytes int64) (Buffer, error) {
	return p.allocBy(c, func(h streams.Hold) (Buffer, error) { return h.Alloc(bytes) })
}

// allocBy is alloc with a function that allocates on the hold's stream.
func (p *capture) allocBy(c *submission, request func(streams.Hold) (Buffer, error)) (b Buffer, err error) {
	var aside []Buffer
	for {
		if b, err = request(p.pool.hold); err != nil || p.take(c, b) {
			break
		}
		aside = append(aside, b)
	}
	for _, one := range aside {
		_ = one.Free() // no other user has it
	}
	return b, p.late(c, err)
}

// allocBatch allocates a batch for a captured stream, or nothing: also after a panic of the driver.
func (p *capture) allocBatch(c *submission, dst []Buffer, bytes []int64) (err error) {
	clear(dst)
	if len(dst) != len(bytes) {
		return &streams.LengthError{Buffers: len(dst), Sizes: len(bytes)}
	}
	whole := false
	defer func() {
		if !whole {
			for i := range dst {
				if dst[i].Live() {
					_ = dst[i].Free() // no work has it
				}
			}
			clear(dst)
		}
	}()
	for i, n := range bytes {
		if dst[i], err = p.alloc(c, n); err != nil {
			if errors.Is(err, streams.ErrNegative) || errors.Is(err, streams.ErrTooLarge) {
				err = &streams.BatchError{Index: i, Count: 1, Err: err}
			}
			return err
		}
	}
	whole = true
	return nil
}

// take records a new buffer of a captured stream, and reports whether the stream may use its memory. A call that found the capture before its end may
// come after: its buffer is the graph's, too, and has memory that follows all uses so far.
func (p *capture) take(c *submission, b Buffer) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.settle()
	stream, memory := slices.Index(p.streams, c), spanOf(b)
	if !p.order.free(stream, memory) {
		return false
	}
	p.own = append(p.own, captured{b, memory, stream, p.order.take(stream, memory)})
	return true
}

// settle looks which buffers were freed. Work that was submitted past this package to the stream that allocated one was
// submitted before: so the free counts as a use by that stream.
func (p *capture) settle() {
	p.own = slices.DeleteFunc(p.own, func(one captured) bool {
		if one.buffer.Live() {
			return false
		}
		p.order.use(one.by, one.memory)
		return true
	})
}

// touch notes that work of a captured stream has the address of a buffer. It records a use by the hold for a buffer from
// outside. A buffer of the hold belongs to the stream until other streams wait for the work. Work on a buffer of another stream
// waits for its allocation, since the memory may have been in use before.
func (p *capture) touch(c *submission, b Buffer, writes bool) error {
	home, ok := streams.Home(b)
	if !ok {
		return ErrNotLive
	}
	if home != p.pool.hold.Stream() {
		if streams.Asleep(home) {
			return ErrAsleep
		}
		if err := p.keep(b); err != nil {
			return p.late(c, err)
		}
		one, err := c.work.NewTouched(b, writes)
		if err != nil {
			return ofBytes(err, b)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.ended {
			return p.over(c)
		}
		p.outside.add(uses{[]streams.Touched{one}, []*Stream{home}})
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return p.over(c)
	}
	stream := slices.Index(p.streams, c)
	if stream < 0 { // other arguments for a graph, whose work has its order
		return nil
	}
	memory := spanOf(b)
	for _, one := range p.own {
		if one.memory == memory && one.buffer.Live() && !p.order.behind(stream, one.by, one.count) {
			if err := p.wait(c, p.streams[one.by]); err != nil {
				return err
			}
		}
	}
	p.order.use(stream, memory)
	return nil
}

// late returns the error of a call that failed after the end of the capture, whose pool may be closed; else the call's.
func (p *capture) late(c *submission, err error) error {
	if err == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return p.over(c)
	}
	return err
}

// over returns the error of work that comes too late.
func (p *capture) over(c *submission) error {
	return c.work.Forbidden("work of a capture that has ended")
}

// launch submits a kernel to the capture, and notes it. The notes are in the order of the graph's nodes: one launch at a time. The
// module stays loaded from before the submission on.
func (p *capture) launch(k *node, submit func() error) error {
	p.launching.Lock()
	defer p.launching.Unlock()
	if err := k.Function.module.hold(); err != nil {
		return err
	}
	noted := false
	defer func() { // also after a panic of the driver
		if !noted {
			k.Function.module.release()
		}
	}()
	if err := submit(); err != nil {
		return err
	}
	p.mu.Lock()
	p.kernels = append(p.kernels, k)
	p.mu.Unlock()
	noted = true
	return nil
}

// workspace returns a buffer that the graph frees.
func (p *capture) workspace(c *submission, bytes int64) (Buffer, error) {
	b, err := p.alloc(c, bytes)
	if err != nil {
		return Buffer{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return Buffer{}, errors.Join(ErrCapturing, b.Free())
	}
	p.scratch = append(p.scratch, b)
	return b, nil
}

// settleStreams waits for submissions to the capture that have begun, and ends it for later ones.
func (p *capture) settleStreams() {
	p.mu.Lock()
	p.ended = true
	for _, one := range p.streams {
		one.released()
	}
	p.mu.Unlock()
	for _, one := range p.streams { // no further stream joins
		one.work.SettleCapture()
	}
	p.launching.Lock() // the last launch is noted after its submission
	defer p.launching.Unlock()
}

// end ends the capture of its streams.
func (p *capture) end() {
	for _, one := range p.streams {
		one.work.EndCapture()
	}
}

// join makes a stream wait for one that is captured, inside the capture.
func (p *capture) join(c, behind *submission) error {
	if !c.work.SameDevice(behind.work) {
		return ErrForeign
	}
	if c == behind {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return behind.work.Forbidden("cuEventRecord")
	}
	if c.capture.Load() == p {
		return p.wait(c, behind)
	}
	return c.work.BeginCapture(func() error { // from here on submissions of others may become part of the graph
		p.streams = append(p.streams, c)
		p.order.add()
		joined := false
		defer func() { // also after a panic of the driver
			if !joined {
				p.streams = p.streams[:len(p.streams)-1]
				p.order.remove()
			}
		}()
		if err := p.wait(c, behind); err != nil {
			return err
		}
		c.captured(p)
		joined = true
		return nil
	})
}

// wait makes a captured stream wait for another one.
func (p *capture) wait(c, behind *submission) error {
	stream, before := slices.Index(p.streams, c), slices.Index(p.streams, behind)
	if stream < 0 || before < 0 {
		return c.work.Forbidden("cuStreamWaitEvent") // one has left it
	}
	p.settle()
	e, err := c.device.EventCreate()
	if err != nil {
		return err
	}
	p.events = append(p.events, e)
	if err := behind.open(func() error { return c.device.EventRecord(e, behind.handle) }); err != nil {
		return err
	}
	if err := c.open(func() error { return c.device.StreamWaitEvent(c.handle, e) }); err != nil {
		return err
	}
	p.order.wait(stream, before)
	return nil
}

// keep keeps the memory of a buffer from outside, freed or not: until the end of the hold, or for arguments of SetArgs until
// the lease ends.
func (p *capture) keep(b Buffer) error {
	if !p.replaceable {
		return b.RecordStream(p.pool.hold.Stream())
	}
	if p.lease == nil {
		p.lease = p.pool.hold.NewLease()
	}
	return p.lease.Keep(b)
}
