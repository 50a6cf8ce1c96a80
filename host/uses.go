package host

import (
	"errors"
	"slices"
	"sync/atomic"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/fence"
)

// stamp is an event on a stream, recorded after the uses of one block or of several.
type stamp struct {
	stream cudadrv.Stream
	number uint64 // in the order of the pool's stamps
	mark   fence.Mark
	shares atomic.Int64 // of blocks, a batch, a wait; the last one releases the event
	passed atomic.Bool
}

// batch is the stamps of one FreeAll.
type batch struct{ stamps []batched }

type batched struct {
	pool  *Pool
	stamp *stamp
}

// find returns the stamp of a stream, nil before it was made.
func (b *batch) find(p *Pool, stream cudadrv.Stream) *stamp {
	if b == nil {
		return nil
	}
	for _, one := range b.stamps {
		if one.pool == p && one.stamp.stream == stream {
			return one.stamp
		}
	}
	return nil
}

// drop gives up the batch's own shares, the others also where the driver panics in one.
func (b *batch) drop() {
	if len(b.stamps) == 0 {
		return
	}
	one := b.stamps[0]
	b.stamps = b.stamps[1:]
	defer b.drop()
	one.pool.drop(one.stamp)
}

// usable checks a use of a pool's block: if the source needs no uses, neither does the pool, except for page-locked memory,
// whose source waits in Free. A use that a pool inside would keep is for this one to keep, which is the first that could hand
// the memory out.
func (s *pooled) usable(stream cudadrv.Stream) (keep bool, err error) {
	p := s.shelf.pool
	if p.kind == Device {
		inside := s.inside.Load()
		if inside == nil { // the call came so late that the memory is released
			return false, ErrNotLive
		}
		keep, err := inside.where.usable(stream)
		switch {
		case err == nil && !keep:
			return false, nil
		case p.events != nil:
			return true, nil
		case err == nil:
			err = &UseError{Stream: stream, Kind: Device, Why: "a Pool around one with PoolConfig.Device needs a Device, too"}
		}
		return false, err
	}
	return p.events != nil, nil
}

// freeUsed makes a slot pending whose life has ended with uses on streams. If the driver refuses, the block is live.
func (p *Pool) freeUsed(s *pooled, word uint64, streams []cudadrv.Stream, shared *batch) error {
	var stamps []*stamp
	done := false
	defer func() { // also after a panic of the driver
		if !done {
			s.revive(word)
			p.dropAll(stamps)
		}
	}()
	for _, stream := range streams {
		one, err := p.stamp(stream, shared)
		if err != nil {
			return err
		}
		stamps = append(stamps, one)
	}
	done = true
	s.stamps = stamps
	s.forget()
	p.pendingBlocks.Add(1)
	pendingBytes := p.pendingBytes.Add(s.shelf.bytes)
	p.pending.push(s)
	if p.closed.Load() || pendingBytes > p.lookAtBytes.Load() {
		p.look()
	}
	return nil
}

// stamp records an event on a stream, or shares the batch's event.
func (p *Pool) stamp(stream cudadrv.Stream, shared *batch) (*stamp, error) {
	if one := shared.find(p, stream); one != nil {
		one.shares.Add(1)
		return one, nil
	}
	if err := p.uncaptured(stream); err != nil {
		return nil, err
	}
	mark, err := p.events.Record(stream)
	if err != nil {
		return nil, err
	}
	kept := false
	defer func() {
		if !kept { // also after a panic of the driver
			_ = p.events.Release(mark) // an event that the driver keeps harms no memory
		}
	}()
	if err := p.uncaptured(stream); err != nil { // the event may be part of a graph: it would never pass
		return nil, err
	}
	if _, err := p.events.Passed(mark); errors.Is(err, fence.ErrCaptured) { // a capture began and ended between the two questions
		return nil, &CaptureError{Stream: stream, Err: err}
	}
	kept = true
	one := &stamp{stream: stream, mark: mark, number: p.stampCount.Add(1)}
	one.shares.Store(1)
	if shared != nil {
		one.shares.Store(2)
		shared.stamps = append(shared.stamps, batched{p, one})
	}
	return one, nil
}

// uncaptured refuses a stream that is being captured.
func (p *Pool) uncaptured(stream cudadrv.Stream) error {
	if p.captures == nil {
		return nil
	}
	status, err := p.captures.StreamIsCapturing(stream)
	if err != nil && !errors.Is(err, cudadrv.CaptureImplicit) {
		return err
	}
	if err != nil || status != cudadrv.CaptureNone {
		return &CaptureError{Stream: stream, Err: err}
	}
	return nil
}

// drop gives up a share of a stamp.
func (p *Pool) drop(one *stamp) {
	if one.shares.Add(-1) == 0 {
		_ = p.events.Release(one.mark) // an event that the driver keeps harms no memory
	}
}

// dropAll gives up a share of each stamp, of the others also where the driver panics in one.
func (p *Pool) dropAll(stamps []*stamp) {
	if len(stamps) > 0 {
		defer p.dropAll(stamps[1:])
		p.drop(stamps[0])
	}
}

// look makes the pending slots free whose uses have passed. It reports whether there were any. Of
// several looks at once each sees a part of the slots.
func (p *Pool) look() (found bool) {
	if p.pending.empty() {
		return false
	}
	left := p.pending.takeAll()
	defer func() { // also after a panic of the driver
		for left != nil {
			s := left
			left = s.next
			p.pending.push(s)
		}
		p.lookAtBytes.Store(max(p.bound.keep.Load(), 2*p.pendingBytes.Load()))
	}()
	var blocked []cudadrv.Stream
	for left != nil {
		s := left
		passed := p.passed(s, &blocked)
		left = s.next
		if !passed {
			p.pending.push(s)
			continue
		}
		found = true
		p.pendingBlocks.Add(-1)
		p.pendingBytes.Add(-s.shelf.bytes)
		p.makeFree(s)
	}
	return found
}

// passed drops the stamps of a slot that have passed, and reports whether none is left. blocked lists the streams with an older
// event that has not passed: it does not query them again.
func (p *Pool) passed(s *pooled, blocked *[]cudadrv.Stream) bool {
	for len(s.stamps) > 0 {
		one := s.stamps[0]
		if !one.passed.Load() {
			if slices.Contains(*blocked, one.stream) {
				return false
			}
			passed, err := p.events.Passed(one.mark)
			if err != nil {
				p.lookFailures.Add(1)
			}
			if !passed || err != nil {
				*blocked = append(*blocked, one.stream)
				return false
			}
			one.passed.Store(true)
		}
		s.stamps = s.stamps[1:]
		p.drop(one)
	}
	s.stamps = nil
	return true
}

// oldest returns the pending stamp with the lowest number, and a share of it; nil if none has a number
// up to the limit. The share is taken before other looks can see the slots again.
func (p *Pool) oldest(limit uint64) (first *stamp) {
	left := p.pending.takeAll()
	for s := left; s != nil; s = s.next {
		for _, one := range s.stamps {
			if one.number <= limit && (first == nil || one.number < first.number) {
				first = one
			}
		}
	}
	if first != nil {
		first.shares.Add(1)
	}
	for left != nil {
		s := left
		left = s.next
		p.pending.push(s)
	}
	return first
}
