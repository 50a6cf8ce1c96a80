package streams

import (
	"context"
	"slices"

	"github.com/go-vram/vram/internal/watermark/shared"
)

// Crossing orders one work of a stream on buffers that several streams use: call Touch for each buffer, then Begin, submit the
// work, call After, and finally Leave, also after an error. It is for one goroutine.
type Crossing struct {
	x     Submitter
	gates gates
	works *touches // nil: none yet
	mode  crossingMode
	quick bool // from Begin to Leave: streams that use one of works.unshared or write to one of works.quiet wait until the work has been submitted
}

// crossingMode is a kind of works, by the calls in their submission.
type crossingMode uint8

const (
	plainWork crossingMode = iota
	workThatCalls
	workThatWaits
)

// touches are the orders that a work touches. A stream keeps the list for its next work.
type touches struct {
	all      []touch
	locked   int         // of the first ones
	unshared []ownWork   // on buffers of the stream that no other used when Touch looked
	quiet    []touch     // reads that needed no lock when TouchAll looked
	copying  []*hostCopy // from Begin to Leave: of unshared, if the submission may wait for the device
}

// ownWork is the use of a buffer by a work of its own stream.
type ownWork struct {
	buffer Buffer
	write  bool
	index  int // of the argument
}

// touch is the use of an order by a work, or by a stream of another device that represents it there.
type touch struct {
	*order

	by    *cudaStream
	write bool
	kept  bool // a graph keeps the memory; else the use was announced
	index int  // of the argument
}

// Touched is the use of a buffer by the works of a graph, also after the buffer was freed.
type Touched struct {
	order *order
	write bool
}

// Crossing begins a work whose submission neither waits for the device nor calls this package for another work.
func (x Submitter) Crossing() Crossing { return Crossing{x: x} }

// CrossingOfCalls begins a work whose submission may call this package for other works. Buffers of its own stream count as shared
// from then on.
func (x Submitter) CrossingOfCalls() Crossing { return Crossing{x: x, mode: workThatCalls} }

// CrossingOfWaits begins a work whose submission may wait for the device. A first use by another stream of a buffer of its own stream
// waits for the submission, and first uses of other buffers do not.
func (x Submitter) CrossingOfWaits() Crossing { return Crossing{x: x, mode: workThatWaits} }

// Touch adds a buffer, and announces the stream's use until the buffer's free. index is for the error of Begin. Memory that can
// sleep stays mapped until Leave, and until the work has finished. Touch makes no driver call, except for memory that has just
// been woken. It must not be called between EnterQuick and LeaveQuick. Errors: as for Check, ErrAsleep, *CaptureError,
// ErrClosed, and the driver's.
func (c *Crossing) Touch(b Buffer, write bool, index int) error {
	return c.TouchFor(c.x, b, write, index)
}

// TouchFor is Touch for a buffer of another device, on which a stream represents the work: see Submitter.Between. If that is
// the buffer's own stream, and no other has used the buffer, works of the stream that others submit at the same time are not held up:
// an order would keep the memory from its reuse until a fence after the free, which most programs want at once.
func (c *Crossing) TouchFor(by Submitter, b Buffer, write bool, index int) error {
	home, err := b.usable("", by.s)
	if err != nil {
		return err
	}
	if home == by.s && home.cuda.gate == nil && !b.slot.Shared() && (c.mode != workThatCalls || by != c.x) {
		if by == c.x {
			w := c.list()
			w.unshared = append(w.unshared, ownWork{b, write, index})
		}
		return nil
	}
	if err := c.enterHome(home, &by.s.cuda); err != nil {
		return err
	}
	if err := b.RecordStream(by.s); err != nil {
		return err
	}
	if home == by.s && home.cuda.gate != nil && !b.slot.Shared() {
		return nil
	}
	o, err := b.order(home, c.x.s.host)
	if err == nil {
		c.add(touch{order: o, by: &by.s.cuda, write: write, index: index})
	}
	return err
}

func (c *Crossing) add(t touch) {
	w := c.list()
	w.all = append(w.all, t)
}

// list returns the list of the work.
func (c *Crossing) list() *touches {
	if c.works == nil {
		if c.works = c.x.s.cuda.crossings.spare.Swap(nil); c.works == nil {
			c.works = new(touches)
		}
	}
	return c.works
}

// TouchStream keeps memory of a stream mapped that a graph touches: see Touch.
func (c *Crossing) TouchStream(home *Stream) error { return c.enterHome(home, &c.x.s.cuda) }

// TouchAll adds the buffers of a graph. Buffers that the stream reads again cost no lock: see Submitter.Check.
func (c *Crossing) TouchAll(all []Touched) {
	for i, t := range all {
		one := touch{t.order, &c.x.s.cuda, t.write, true, i}
		if t.write || !t.order.quiet(one.by, true) {
			c.add(one)
			continue
		}
		w := c.list()
		w.quiet = append(w.quiet, one)
	}
}

// enterHome enters the gate of memory that can sleep.
func (c *Crossing) enterHome(home *Stream, by *cudaStream) error {
	g := home.cuda.gate
	if g == nil {
		return nil
	}
	if err := c.gates.enter(g); err != nil || by == &home.cuda {
		return err
	}
	home.cuda.crossings.add(by)
	if !g.copies.Load() {
		return nil
	}
	return by.waitCounted(&home.cuda)
}

// Begin makes the work wait, on the device, for all work that must precede it: for the last work that wrote to each of its
// buffers, and if it writes itself, for those that have read since. It waits for a stream only if no earlier wait covers that
// work, by an event on that stream. From Begin to Leave works of others that must not be concurrent wait on the host. index is
// that of the buffer with the error. Errors: *FrozenError, *CaptureError, ErrClosed, and the driver's.
func (c *Crossing) Begin() (index int, err error) {
	if c.works == nil {
		return 0, nil
	}
	w := c.works
	for {
		w.sort()
		for i := range w.all {
			t := &w.all[i]
			t.lock(t.write, c.x.s.host)
			w.locked++
			if t.write && t.steady.Load() {
				t.rouse(c.x.s.host)
			}
			if err := t.wait(); err != nil {
				return t.index, err
			}
		}
		if len(w.unshared) == 0 && len(w.quiet) == 0 {
			return 0, nil
		}
		if index, err := c.announce(); err != nil {
			return index, err
		}
		if !slices.ContainsFunc(w.unshared, ownWork.shared) && !slices.ContainsFunc(w.quiet, touch.loud) {
			return 0, nil
		}
		c.withdraw() // before a wait for works of this stream
		w.unlock()
		w.hear()
		if index, err := c.share(); err != nil {
			return index, err
		}
	}
}

// announce has first uses by other streams of the unshared buffers, and writes to the quiet ones, wait until withdraw. index is that
// of a buffer.
func (c *Crossing) announce() (index int, err error) {
	if len(c.works.quiet) > 0 {
		index = c.works.quiet[0].index
	} else {
		index = c.works.unshared[0].index
	}
	if c.mode == workThatWaits {
		for _, o := range c.works.unshared {
			c.works.copying = append(c.works.copying, c.x.s.cuda.copies.begin(o.buffer))
		}
		return 0, nil
	}
	err = c.x.EnterQuick()
	c.quick = err == nil
	return index, err
}

func (c *Crossing) withdraw() {
	if c.quick {
		c.x.LeaveQuick()
		c.quick = false
	}
	for _, one := range c.works.copying {
		c.x.s.cuda.copies.end(one)
	}
	clear(c.works.copying)
	c.works.copying = c.works.copying[:0]
}

// shared reports whether another stream has used the buffer since.
func (o ownWork) shared() bool { return o.buffer.slot.Shared() }

// loud reports whether a read needs the lock since a write.
func (t touch) loud() bool { return !t.quiet(t.by, t.kept) }

// hear adds the quiet reads that need the lock.
func (w *touches) hear() {
	w.quiet = slices.DeleteFunc(w.quiet, func(t touch) bool {
		if !t.loud() {
			return false
		}
		w.all = append(w.all, t)
		return true
	})
}

// share adds the buffers that others have used since Touch.
func (c *Crossing) share() (index int, err error) {
	w := c.works
	w.unshared = slices.DeleteFunc(w.unshared, func(o ownWork) bool {
		if err != nil || !o.shared() {
			return false
		}
		index, err = o.index, c.Touch(o.buffer, o.write, o.index)
		return true
	})
	return index, err
}

// unlock unlocks the orders that are locked.
func (w *touches) unlock() {
	for i := range w.all[:w.locked] {
		w.all[i].unlock(w.all[i].write)
	}
	w.locked = 0
}

// sort puts the touches into the sequence of locks, and joins those of one order.
func (w *touches) sort() {
	if len(w.all) < 2 { //nolint:mnd // nothing to sort
		return
	}
	slices.SortStableFunc(w.all, func(a, b touch) int { return a.sequence(b.order) })
	last := 0
	for i := range w.all {
		switch {
		case i == 0:
		case w.all[last].order == w.all[i].order:
			if w.all[i].write && !w.all[last].write {
				w.all[last].write, w.all[last].index = true, w.all[i].index
			}
		default:
			last++
			w.all[last] = w.all[i]
		}
	}
	clear(w.all[min(last+1, len(w.all)):])
	w.all = w.all[:min(last+1, len(w.all))]
}

// wait makes the stream of a touch wait for the works before it.
func (t *touch) wait() error {
	if t.write {
		if err := t.refused(); err != nil {
			return err
		}
		for _, r := range t.entries() {
			if !t.current(r) {
				continue
			}
			if err := t.by.waitPast(pastWork{r.of, r.count.Load()}); err != nil {
				return err
			}
		}
	}
	if own := t.home; own.whole != nil { // memory that the hold has taken since may have had works of others, for which its stream waits
		if err := t.by.waitPast(pastWork{own, own.crossings.count.Load()}); err != nil {
			return err
		}
	}
	if err := t.by.waitPast(t.lastWork()); err != nil || t.write {
		return err
	}
	if r := t.reader(t.by); !t.kept {
		r.announced.Store(true)
	}
	return nil
}

// After notes that the work was submitted.
func (c *Crossing) After() {
	if c.works == nil {
		return
	}
	now := pastWork{}
	for i := range c.works.all {
		t := &c.works.all[i]
		if now.of != t.by {
			now = pastWork{t.by, t.by.crossings.count.Add(1)}
		}
		if t.write {
			t.wrote(now)
		} else {
			t.read(t.by, now.count)
		}
	}
}

// Leave ends the work, submitted or not.
func (c *Crossing) Leave() {
	if w := c.works; w != nil {
		c.withdraw()
		w.unlock()
		clear(w.all)
		clear(w.unshared)
		clear(w.quiet)
		w.all, w.unshared, w.quiet = w.all[:0], w.unshared[:0], w.quiet[:0]
		c.works = nil
		c.x.s.cuda.crossings.spare.Store(w)
	}
	c.gates.leave()
}

// waitPast makes later work of the stream wait for a work, unless it waits for it already.
func (h *cudaStream) waitPast(w pastWork) error {
	if w.of == nil || w.of == h || w.count == 0 || w.of.line.Finished() {
		return nil
	}
	last := h.crossings.of(w.of)
	if w.count <= last.count.Load() {
		return nil
	}
	return h.waitCounted(w.of)
}

// waitCounted makes later work of the stream wait for another stream, and notes which works of that the wait covers. Later
// ones, which others may submit at the same time, are not among them.
func (h *cudaStream) waitCounted(other *cudaStream) error {
	covered := other.crossings.count.Load()
	if err := h.waitFor(other); err != nil {
		return err
	}
	shared.RaiseUint64(&h.crossings.of(other).count, covered)
	return nil
}

// NewTouched returns the use of a live buffer by the works of a graph, to be passed to TouchAll. The buffer's owner, and others,
// are ordered with it from then on. Errors: ErrNotLive; *FrozenError for works that write.
func (x Submitter) NewTouched(b Buffer, write bool) (Touched, error) {
	home, ok := b.home()
	if !ok {
		return Touched{}, b.notLive("")
	}
	o, err := b.order(home, x.s.host)
	if err == nil && write {
		err = o.refused()
	}
	return Touched{o, write}, err
}

// Touched returns the use of all memory of the hold by launches of a graph.
func (h Hold) Touched() Touched { return Touched{h.s.cuda.whole, true} }

// Alloc allocates memory of the hold.
func (h Hold) Alloc(bytes int64) (Buffer, error) {
	b, err := h.s.Alloc(bytes)
	h.s.cuda.crossings.count.Add(1) // its stream may wait for earlier works on the memory: see touch.wait
	return b, err
}

// AllocFor is Alloc with the options of a request.
func (h Hold) AllocFor(ctx context.Context, want Request) (Buffer, error) {
	b, err := h.s.AllocFor(ctx, want)
	h.s.cuda.crossings.count.Add(1)
	return b, err
}

// Joined adds the use of a buffer to those of a graph's works.
func Joined(all []Touched, one Touched) []Touched {
	for i := range all {
		if all[i].order == one.order {
			all[i].write = all[i].write || one.write
			return all
		}
	}
	return append(all, one)
}
