package fleet

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/fleet/core"
	"github.com/go-vram/vram/fleet/ledger"
)

// reportInterval is how often an owner reads its device's figures. Not shorter: each reading visits the streams, and each change is a
// transaction.
const reportInterval = time.Second

// For drainTime after a gang has ended an owner reads the figures each drainInterval: memory that the gang has drawn comes back when its buffers
// are freed. A free makes no event for that: it is on the hot path of the allocator.
const (
	drainInterval = 50 * time.Millisecond
	drainTime     = 10 * time.Second
)

// errTaken reports that another process has a device of the name.
var errTaken = errors.New("fleet: a living process has a device of this name, or the ledger's record of it cannot be read")

// owned is a device of this process.
type owned struct {
	member *Member
	device *vram.Device
	limit  int64
	record core.Device
	joined chan struct{} // closed when the ledger has the device for the first time

	lock   sync.Mutex // of the fields below
	last   error      // of the ledger; errTaken
	known  bool       // joined is closed
	grants map[string]reservation
}

// reservation is memory for a hold.
type reservation struct {
	fence  int64
	memory *vram.Reservation
}

// run keeps the device in the ledger until the member ends, by one lease after the other.
func (o *owned) run() {
	ctx := o.member.running
	for ctx.Err() == nil {
		lease, err := o.member.ledger.Lease(ctx, LeaseTime)
		if err == nil {
			o.live(ctx, lease)
			err = lease.Close()
		}
		o.note(err)
		pause(ctx, err)
	}
}

// live sees to the device under one lease. It returns without reservations.
func (o *owned) live(ctx context.Context, lease Lease) {
	defer o.releaseAll()
	record := o.record
	usable, load := o.figures(0) //nolint:contextcheck // statistics take no context
	record.OfferBytes = usable
	owner := core.NewOwner(record, lease.ID())
	owner.Offer(usable, load)
	var reader core.Reader
	var released time.Time // when a gang has ended
	for reported := time.Now(); ctx.Err() == nil && !over(lease); {
		s, err := o.member.ledger.Read(ctx, owner.Keys()...)
		if err != nil {
			o.note(err)
			pause(ctx, err)
			continue
		}
		if time.Since(reported) >= intervalAfter(released) {
			reported = time.Now()
			usable, load = o.figures(owner.HeldBytes()) //nolint:contextcheck // likewise
			owner.Offer(usable, load)
		}
		books := reader.Read(s)
		step := owner.Step(books)
		if step.Ended {
			return
		}
		o.carryOut(ctx, owner, step)
		if len(step.Release) > 0 {
			released = time.Now()
		}
		if len(step.Reserve) > 0 {
			step = owner.Step(books)
		}
		switch {
		case step.Taken:
			o.note(errTaken)
			err = waitFor(ctx, o.member.ledger, s, reportInterval)
		case step.Commit != nil:
			_, err = o.member.ledger.Commit(ctx, *step.Commit)
			if errors.Is(err, ledger.ErrLeaseEnded) {
				return
			}
		default:
			o.join()
			err = o.rest(ctx, s, intervalAfter(released), func() bool { //nolint:contextcheck // likewise
				now, _ := o.figures(owner.HeldBytes())
				return now != usable
			})
		}
		if err != nil {
			pause(ctx, err)
		}
	}
}

// intervalAfter returns how often an owner reads the figures after a gang has ended.
func intervalAfter(released time.Time) time.Duration {
	if time.Since(released) < drainTime {
		return drainInterval
	}
	return reportInterval
}

// rest waits for a change of the pairs of a snapshot, at most for reportInterval. In each shorter interval it asks whether the figures have changed,
// which ends it, too.
func (o *owned) rest(ctx context.Context, s ledger.Snapshot, interval time.Duration, changed func() bool) error {
	timed, cancel := context.WithTimeout(ctx, reportInterval)
	var asks sync.WaitGroup
	defer asks.Wait()
	defer cancel()
	if interval < reportInterval {
		asks.Go(func() {
			for ticks := time.Tick(interval); ; {
				select {
				case <-ticks:
				case <-timed.Done():
					return
				}
				if changed() {
					cancel()
				}
			}
		})
	}
	if err := o.member.ledger.Wait(timed, s.Revision, s.Keys...); ctx.Err() != nil || timed.Err() == nil {
		return err
	}
	return nil
}

// over reports whether a lease has ended, as far as is known.
func over(lease Lease) bool {
	select {
	case <-lease.Done():
		return true
	default:
		return false
	}
}

// carryOut releases and reserves memory of the device.
func (o *owned) carryOut(ctx context.Context, owner *core.Owner, step core.OwnerStep) {
	for _, h := range step.Release {
		o.lock.Lock()
		r := o.grants[h.Ticket]
		delete(o.grants, h.Ticket)
		o.lock.Unlock()
		r.memory.Release()
	}
	for _, h := range step.Reserve {
		timed, cancel := context.WithTimeout(ctx, core.DefaultSettings().ReadyAfter)
		r, err := o.device.Reserve(timed, h.Bytes)
		cancel()
		if err != nil {
			owner.Refused(h.Ticket)
			continue
		}
		o.lock.Lock()
		o.grants[h.Ticket] = reservation{h.Fence, r}
		o.lock.Unlock()
	}
}

func (o *owned) releaseAll() {
	o.lock.Lock()
	defer o.lock.Unlock()
	for ticket, r := range o.grants {
		r.memory.Release()
		delete(o.grants, ticket)
	}
}

// reservation returns the memory of a ticket's hold; nil: there is none with that fence.
func (o *owned) reservation(ticket string, fence int64) *vram.Reservation {
	o.lock.Lock()
	defer o.lock.Unlock()
	if r, ok := o.grants[ticket]; ok && r.fence == fence {
		return r.memory
	}
	return nil
}

// offerSteps is how many different offers a device has. More would be more transactions.
const offerSteps = 256

// figures returns the bytes that the device can promise to gangs, which hold so many bytes of it, and its load. Memory in use that is not theirs is
// not promised: live and set aside bytes beyond the bytes held.
func (o *owned) figures(heldBytes int64) (offerBytes int64, load core.Load) {
	s := o.device.Stats()
	usable := s.LimitBytes
	if gpu, err := o.device.GPUMemory(); err == nil {
		usable = min(usable, gpu.FreeBytes+s.ReservedBytes)
	}
	if o.limit > 0 {
		usable = min(usable, o.limit)
	}
	used := s.LiveBytes + s.PendingBytes + s.SetAsideBytes
	step := max(usable/offerSteps, 1)
	coarse := func(bytes int64) int64 { return (max(bytes, 0) + step - 1) / step * step } // rounded up
	load = core.Load{FreeBytes: max(usable-coarse(used), 0), Pressure: int(s.Pressure), Waiting: s.Waits.Waiting}
	return max(usable-coarse(used-heldBytes), 0), load
}

// join reports that the ledger has the device.
func (o *owned) join() {
	o.lock.Lock()
	defer o.lock.Unlock()
	o.last = nil
	if !o.known {
		o.known = true
		close(o.joined)
	}
}

func (o *owned) note(err error) {
	o.lock.Lock()
	defer o.lock.Unlock()
	o.last = err
}

// failure returns why the device is not in the ledger; nil: nothing is known.
func (o *owned) failure() error {
	o.lock.Lock()
	defer o.lock.Unlock()
	return o.last
}
