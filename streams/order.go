package streams

import (
	"cmp"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/go-vram/vram/actors"
	"github.com/go-vram/vram/internal/stream/magazine"
	"github.com/go-vram/vram/internal/watermark/shared"
)

// order is the order of works of several streams on one buffer, or on all memory of a hold: the last work that wrote, and the
// streams that have read since. A work locks it before it looks for which streams it waits, and unlocks it once it has been
// submitted and is noted: works that read at the same time, one that writes alone. A work locks its orders in one sequence.
//
// A stream that has read once since the last write reads on without the lock, and unnoted, while the order is frozen or steady: see
// quiet. Freeze makes it frozen, and works that write are refused until Thaw. Reads make it steady: steadyReads by one stream with no write
// in between. The next work that writes rouses it, under the lock.
//
//	busy --steadyReads--> steady --a work that writes, and the quiet reads that are being submitted have been--> busy
type order struct {
	_ [0]func() // is not compared

	number  uint64         // of the device's orders
	home    *cudaStream    // of the memory
	slot    *magazine.Slot // of the buffer; nil: of a hold
	word    uint64         // of the slot when the order was made
	settled atomic.Uint64  // count of home's works once no work of home was being submitted that did not see that the buffer is shared; 0: not yet
	works   atomic.Int64   // that hold the lock to read, or try to; and writingBit
	frozen  atomic.Pointer[freeze]
	steady  atomic.Bool               // changed under the lock
	last    pastWork                  // that wrote; written under the lock of a work that writes, read under either
	writes  atomic.Uint64             // so far; changed with last
	readers atomic.Pointer[[]*reader] // some of before the last write, which keep their place: see current; replaced, never changed
}

// freeze is a Freeze that has not ended. It is immutable.
type freeze struct{ at string } // its place

const (
	writingBit = int64(1) << 62
	// steadyReads is how many reads of a stream, with no write in between, make an order steady. Not fewer: a write to a steady order costs
	// an event for each reader, also where an earlier wait covers its reads. Not more: until then each read takes the lock.
	steadyReads = 4
)

// pastWork is a work by its stream and the count of that stream's works then. The zero value is none.
type pastWork struct {
	of    *cudaStream
	count uint64
}

// reader is the last read of a stream. It has waited for the last work that wrote if it is current.
type reader struct {
	of        *cudaStream
	writes    atomic.Uint64 // before the read
	count     atomic.Uint64 // 0: none was submitted
	reads     atomic.Uint32 // since, up to steadyReads
	announced atomic.Bool   // a free waits for the stream's work
}

// newOrder returns the order of memory that works of its own stream may have used until now, unnoticed.
func newOrder(home *Stream) *order {
	return &order{number: home.peers.orders.Add(1), home: &home.cuda}
}

// freed reports whether the buffer was freed. Graphs keep its memory.
func (o *order) freed() bool { return o.slot != nil && o.slot.FreedSince(o.word) }

// sequence compares two orders in the sequence of locks. Orders of two devices may have one number: objects do not move, so
// that their addresses decide.
func (o *order) sequence(other *order) int {
	return cmp.Or(cmp.Compare(o.number, other.number), cmp.Compare(uintptr(unsafe.Pointer(o)), uintptr(unsafe.Pointer(other))))
}

// lock locks the order for a work that reads, or for one that writes.
func (o *order) lock(write bool, host actors.Host) {
	for !o.tryLock(write) {
		actors.Yield(host)
	}
	for write && o.works.Load() != writingBit {
		actors.Yield(host)
	}
}

// tryLock begins a lock: a writer still has to wait for the readers that have it.
func (o *order) tryLock(write bool) bool {
	if write {
		return o.works.Or(writingBit)&writingBit == 0
	}
	if o.works.Add(1) < writingBit {
		return true
	}
	o.works.Add(-1)
	return false
}

func (o *order) unlock(write bool) {
	if write {
		o.works.And(^writingBit)
	} else {
		o.works.Add(-1)
	}
}

// entries returns the readers, current or not.
func (o *order) entries() []*reader {
	if all := o.readers.Load(); all != nil {
		return *all
	}
	return nil
}

// current reports whether a reader has read since the last work that wrote.
func (o *order) current(r *reader) bool { return r.writes.Load() == o.writes.Load() }

// reader returns the entry of a stream that reads, which becomes current.
func (o *order) reader(s *cudaStream) *reader {
	for {
		r := o.find(s)
		if r == nil {
			r = o.join(s)
		}
		switch {
		case r == nil:
		case o.current(r):
			return r
		default:
			r.announced.Store(false)
			r.reads.Store(0)
			r.writes.Store(o.writes.Load())
			return r
		}
	}
}

// find returns the entry of a stream, nil if it has none.
func (o *order) find(s *cudaStream) *reader {
	for _, r := range o.entries() {
		if r.of == s {
			return r
		}
	}
	return nil
}

// join adds an entry, and removes those of streams that have finished; nil: the list has changed.
func (o *order) join(s *cudaStream) *reader {
	old := o.readers.Load()
	var all []*reader
	if old != nil {
		all = slices.DeleteFunc(slices.Clone(*old), func(r *reader) bool { return r.of.line.Finished() })
	}
	r := &reader{of: s}
	all = append(all, r)
	if slices.ContainsFunc(all[:len(all)-1], func(r *reader) bool { return r.of == s }) || !o.readers.CompareAndSwap(old, &all) {
		return nil
	}
	return r
}

// quiet reports whether a stream may read without a lock, a wait or a note: the memory is frozen or steady, and the stream has read it
// since the last write, and has announced that unless a graph keeps the memory. The work must be submitted before
// Submitter.LeaveQuick.
func (o *order) quiet(s *cudaStream, kept bool) bool {
	if !o.steady.Load() && o.frozen.Load() == nil {
		return false
	}
	r := o.find(s)
	return r != nil && o.current(r) && (kept || r.announced.Load())
}

// rouse makes all streams read with the lock again, and counts their reads as of now. Precondition: the lock of a work that
// writes, outside of quick launches, which take no lock themselves.
func (o *order) rouse(host actors.Host) {
	o.steady.Store(false)
	for _, r := range o.entries() {
		if o.current(r) {
			r.of.announcement.awaitQuick(host)
			r.count.Store(r.of.crossings.count.Add(1))
			r.reads.Store(0)
		}
	}
}

// read notes a read. Precondition: its lock.
func (o *order) read(by *cudaStream, count uint64) {
	r := o.reader(by)
	shared.RaiseUint64(&r.count, count)
	if r.reads.Load() < steadyReads && r.reads.Add(1) == steadyReads {
		o.steady.Store(true)
	}
}

// refused returns the error of a work that writes; nil: it may.
func (o *order) refused() error {
	if f := o.frozen.Load(); f != nil {
		return &FrozenError{Frozen: f.at}
	}
	return nil
}

// wrote notes the last work that wrote.
func (o *order) wrote(w pastWork) {
	o.last = w
	o.writes.Add(1)
}

// settle waits, once, until the works of the memory's own stream have been submitted that did not see that others use it, and
// counts them: a wait for that stream that began before need not cover them.
func (o *order) settle(host actors.Host) {
	if o.settled.Load() == 0 {
		o.home.announcement.awaitQuick(host)
		o.settled.CompareAndSwap(0, o.home.crossings.count.Add(1))
	}
}

// lastWork returns the last work that wrote, or that was not noted.
func (o *order) lastWork() pastWork {
	if o.last.of == nil && o.home.gate == nil { // else it has only copies, for which works wait until they are known to have ended
		return pastWork{o.home, o.settled.Load()}
	}
	return o.last
}

// order returns the order of works on a live buffer, which streams of others, or its own by Freeze, use from now on.
func (b Buffer) order(home *Stream, host actors.Host) (*order, error) {
	if o := home.cuda.whole; o != nil {
		return o, nil
	}
	value := b.slot.Attached(b.word)
	if value == nil {
		var err error
		if value, err = b.slot.Attach(b.word, func() any {
			o := newOrder(home)
			o.slot, o.word = b.slot, b.word
			return o
		}); err != nil {
			return nil, b.useError("", err)
		}
	}
	o := value.(*order) //nolint:forcetypeassert // nothing else is attached
	if o.settled.Load() == 0 {
		home.cuda.copies.await(b, host)
	}
	o.settle(host)
	return o, nil
}

// quietFor reports whether work of a stream that reads the buffer needs neither a wait nor a note.
func (b Buffer) quietFor(s *cudaStream) bool {
	o, ok := b.slot.Attached(b.word).(*order)
	return ok && o.quiet(s, false) && o.home.gate == nil
}
