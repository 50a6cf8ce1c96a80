package host

import (
	"context"
	"errors"
	"math"
	"time"
)

// round is the life of the goroutine that releases memory.
type round struct{ over chan struct{} }

// release gives a slot's memory back to the source. The caller has the slot.
func (p *Pool) release(s *pooled) {
	p.releasingBlocks.Add(1)
	p.releasingBytes.Add(s.shelf.bytes)
	if p.kind != PageLocked {
		p.giveBack(s)
		return
	}
	p.queued.Add(1)
	p.queue.push(s)
	p.startRound()
}

// startRound starts the goroutine unless there is one. It stores that it ends before it looks at the
// queue for the last time, and this looks for it after a push: one of the two sees the other.
func (p *Pool) startRound() {
	if p.round.Load() != nil {
		return
	}
	r := &round{make(chan struct{})}
	if p.round.CompareAndSwap(nil, r) {
		go p.releaseQueue(r)
	}
}

// releaseQueue releases until the queue is empty. Slots that it has not begun with stay in the
// queue, where requests find them. If the driver ends the goroutine, another one releases the rest.
func (p *Pool) releaseQueue(r *round) {
	through := false
	defer func() {
		if !through {
			go p.releaseQueue(r)
		}
	}()
	for {
		s := p.queue.takeOne(func(*pooled) bool { return true })
		if s == nil {
			break
		}
		p.giveBackHere(s)
	}
	through = true
	if p.roundEnds != nil {
		p.roundEnds()
	}
	p.round.Store(nil)
	close(r.over)
	if !p.queue.empty() {
		p.startRound()
	}
}

// giveBackHere is giveBack on the goroutine, which survives a panic of the driver. The slot is in the queue no longer, also where the
// driver ends the goroutine.
func (p *Pool) giveBackHere(s *pooled) {
	returned := false
	defer func() {
		if !returned {
			p.panics.Here("host: release", recover())
		}
		p.queued.Add(-1)
	}()
	p.giveBack(s)
	returned = true
}

// giveBack frees the block inside. A slot whose block the source does not take waits for the next
// sweep, unless the block is gone with its device.
func (p *Pool) giveBack(s *pooled) {
	taken := false
	defer func() { // also after a panic of the driver
		if !taken {
			p.releaseFailures.Add(1)
			p.refused.push(s)
		}
	}()
	if err := p.inner.Free(s.inner); err != nil && s.inner.Live() {
		p.refusal.Store(&err)
		return
	}
	taken = true
	sh, bit := s.shelf, s.bit
	p.bound.between()
	s.inner, s.data, s.ptr = Block{}, nil, 0
	s.inside.Store(nil)
	p.releases.Add(1)
	p.releasedBytes.Add(sh.bytes)
	p.releasingBlocks.Add(-1)
	p.releasingBytes.Add(-sh.bytes)
	sh.vacant.Or(bit)
}

// sweep releases all free slots, and those that the source has refused before.
func (p *Pool) sweep() {
	refused := p.refused.takeAll()
	defer func() { // the others wait on, after a panic of the driver
		for refused != nil {
			s := refused
			refused = s.next
			p.refused.push(s)
		}
	}()
	for refused != nil {
		s := refused
		refused = s.next
		p.releasingBlocks.Add(-1)
		p.releasingBytes.Add(-s.shelf.bytes)
		p.release(s)
	}
	p.empty()
}

// empty takes all allowances, and releases all free slots.
func (p *Pool) empty() {
	for sh := range p.shelves {
		p.bound.clear(sh)
		for s := sh.take(&sh.free); s != nil; s = sh.take(&sh.free) {
			p.release(s)
		}
	}
}

// unqueue takes a slot of a class back that waits to be released, nil if there is none: the driver
// may wait for the device for long.
func (p *Pool) unqueue(c *class) *pooled {
	s := p.queue.takeOne(func(s *pooled) bool { return s.shelf.class == c })
	if !p.queue.empty() { // the goroutine may have ended while the queue looked empty
		p.startRound()
	}
	if s != nil {
		p.queued.Add(-1)
		p.releasingBlocks.Add(-1)
		p.releasingBytes.Add(-s.shelf.bytes)
	}
	return s
}

// awaitReleases waits until the goroutine has released the queued slots, or the context ends. A request that looks through the
// queue holds it: so it may look empty with slots in it, and the goroutine end.
func (p *Pool) awaitReleases(ctx context.Context) error {
	for {
		if !p.queue.empty() {
			p.startRound()
		}
		r := p.round.Load()
		switch {
		case r != nil:
			select {
			case <-r.over:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		case p.queued.Load() == 0:
			return nil
		default:
			if err := pause(ctx); err != nil {
				return err
			}
		}
	}
}

// Trim releases all free memory, and pending memory once the uses announced before the call have passed, and then trims the
// wrapped allocator. It returns the number of bytes released during the call. It waits for those uses and for the driver; if
// the context ends first, later calls release the rest. Errors: the context's, and the driver's: memory that the driver did
// not take back stays in ReleasingBytes, and another Trim tries again.
func (p *Pool) Trim(ctx context.Context) (releasedBytes int64, err error) {
	if p == nil || p.inner == nil {
		return 0, notOpen()
	}
	if ctx == nil {
		return 0, ErrNilContext
	}
	before := p.releasedBytes.Load()
	if err = p.drain(ctx, p.stampCount.Load()); err == nil {
		releasedBytes, err = Trim(ctx, p.inner)
	}
	return releasedBytes + p.releasedBytes.Load() - before, err
}

// drain is Trim for the uses whose stamps have a number up to the limit.
func (p *Pool) drain(ctx context.Context, limit uint64) error {
	for {
		p.look()
		p.sweep()
		if err := p.awaitReleases(ctx); err != nil {
			return err
		}
		if err := p.refusedError(); err != nil {
			return err
		}
		if p.pendingBlocks.Load() == 0 {
			return nil
		}
		one := p.oldest(limit)
		if one == nil {
			if again, err := p.awaitLooks(ctx); !again {
				return err
			}
			continue
		}
		if err := p.await(ctx, one); err != nil {
			return err
		}
	}
}

// refusedError is the last refusal of the source, if memory waits for another try.
func (p *Pool) refusedError() error {
	if err := p.refusal.Load(); err != nil && !p.refused.empty() {
		return *err
	}
	if !p.refused.empty() {
		return errPanicked
	}
	return nil
}

// errPanicked is the error of a release that ended in a panic.
var errPanicked = errors.New("host: the driver panicked when memory was released")

// lookInterval is how long a Trim leaves a look of another goroutine alone that has the pending
// slots, or the queue: some queries of the driver.
const lookInterval = 100 * time.Microsecond

// awaitLooks lets other goroutines end their looks at pending slots. again is false with an error, and if no look is running: the
// pending slots are newer than the Trim.
func (p *Pool) awaitLooks(ctx context.Context) (again bool, err error) {
	if !p.pending.empty() {
		return false, nil
	}
	err = pause(ctx)
	return err == nil, err
}

// pause gives other goroutines time to end a look, or returns the error of a context that ends.
func pause(ctx context.Context) error {
	wait := time.NewTimer(lookInterval)
	defer wait.Stop()
	select {
	case <-wait.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// wait waits for an event, and drops the share of it.
func (p *Pool) wait(one *stamp) error {
	defer p.drop(one)
	err := p.events.Wait(one.mark)
	if err == nil {
		one.passed.Store(true) // no query is needed, which the driver may refuse
	}
	return err
}

// await waits for an event, and drops the share of it. If the context ends first, the goroutine that
// waits ends with the event.
func (p *Pool) await(ctx context.Context, one *stamp) error {
	over := make(chan error, 1)
	go func() {
		err, returned := errPanicked, false
		defer func() {
			if !returned {
				p.panics.Here("host: wait", recover())
			}
			over <- err
		}()
		waited := p.wait(one)
		err, returned = waited, true
	}()
	select {
	case err := <-over:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Close refuses further requests, releases all free and pending memory as Trim does, and closes the wrapped allocator. While
// blocks are live the error is, or wraps, a *LeakError: they stay valid, and a Free of one releases it. Close can be called
// again, and then finishes the rest of an earlier call. Errors: as Trim, *LeakError, and the wrapped allocator's.
func (p *Pool) Close(ctx context.Context) error {
	if p == nil || p.inner == nil {
		return notOpen()
	}
	if ctx == nil {
		return ErrNilContext
	}
	p.closed.Store(true)
	p.bound.keep.Store(0)
	err := p.drain(ctx, math.MaxUint64)
	leaked := leak(p.kind, p.Stats())
	inside := p.inner.Close(ctx)
	if held := (*LeakError)(nil); errors.As(inside, &held) && (leaked != nil || err != nil) {
		inside = nil // its live blocks are this pool's, and told already
	}
	if err == nil && leaked == nil && p.events != nil {
		err = p.events.Close()
	}
	return errors.Join(err, leaked, inside)
}
