package core

import (
	"cmp"
	"slices"

	"github.com/go-vram/vram/fleet/ledger"
)

// Owner sees to one device, from its announcement until its owner's lease ends. It decides which holds the device grants: a hold of the newest
// books with a fence above all before, as long as the offer has room.
type Owner struct {
	device Device // as it is announced
	load   Load

	seen  int64 // the newest revision
	fence int64 // the newest hold that was decided about
	life  int64 // the device's incarnation; 0: not announced
	ended bool
	held  []held
}

// held is a hold that the device was asked for.
type held struct {
	Hold
	reserved bool // else refused, and to be deleted
}

// OwnerStep is the result of a step. The caller carries out Release, then Reserve, each with an Owner.Reserved, then Commit.
type OwnerStep struct {
	Release []Hold // whose memory is no longer the gang's
	Reserve []Hold
	Commit  *ledger.Transaction // nil: none
	Taken   bool                // another process has a device of that name, or its record cannot be read
	Ended   bool                // the owner's lease has ended, and with it this life of the device
}

// NewOwner makes an owner for a device, which has passed Check, under its lease.
func NewOwner(d Device, lease int64) *Owner {
	d.Owned, d.lease = true, lease
	return &Owner{device: d}
}

// Offer sets the bytes that the device offers, and its load, from the next step on.
func (o *Owner) Offer(bytes int64, load Load) {
	o.device.OfferBytes, o.load = bytes, load
}

// HeldBytes returns the bytes of the holds that are reserved.
func (o *Owner) HeldBytes() (bytes int64) {
	for _, h := range o.held {
		if h.reserved {
			bytes += h.Bytes
		}
	}
	return bytes
}

// Keys returns the keys of the ledger that a step looks at: the device's alone.
func (o *Owner) Keys() []string {
	name := o.device.Name
	return []string{devicePrefix + name, HoldKey(name, ""), loadPrefix + name, readyKey(name, "")}
}

// Step looks at the newest books, which have at least the pairs of Keys. Its transaction is repeatable, as the requester's.
func (o *Owner) Step(b *Books) OwnerStep {
	if o.ended || b.Revision < o.seen || !b.covers(o.Keys()) { // an older snapshot, or one of other keys
		return OwnerStep{}
	}
	o.seen = b.Revision
	d := b.Device(o.device.Name)
	_, damaged := b.damaged[devicePrefix+o.device.Name]
	switch mine := d != nil && d.lease == o.device.lease; {
	case o.life != 0 && (!mine || d.Incarnation != o.life):
		return o.end()
	case d != nil && !mine, damaged:
		return OwnerStep{Taken: true}
	case d == nil:
		return OwnerStep{Commit: &ledger.Transaction{If: []ledger.Compare{{Key: devicePrefix + o.device.Name}}, Put: []ledger.Put{o.device.put()}}}
	}
	o.life = d.Incarnation
	holds := b.HoldsOf(d)
	var step OwnerStep
	o.held = slices.DeleteFunc(o.held, func(h held) bool {
		kept := slices.ContainsFunc(holds, func(other *Hold) bool { return other.Ticket == h.Ticket && other.Fence == h.Fence })
		if !kept && h.reserved {
			step.Release = append(step.Release, h.Hold)
		}
		return !kept
	})
	for _, h := range holds {
		if o.find(h.Ticket) != nil {
			continue
		}
		fits := h.Fence > o.fence && o.HeldBytes()+h.Bytes <= o.device.OfferBytes
		o.fence = max(o.fence, h.Fence)
		o.held = append(o.held, held{*h, fits})
		if fits {
			step.Reserve = append(step.Reserve, *h)
		}
	}
	if len(step.Reserve) == 0 {
		step.Commit = o.report(b, d, holds)
	}
	return step
}

func (o *Owner) end() OwnerStep {
	o.ended = true
	step := OwnerStep{Ended: true}
	for _, h := range o.held {
		if h.reserved {
			step.Release = append(step.Release, h.Hold)
		}
	}
	o.held = nil
	return step
}

func (o *Owner) find(ticket string) *held {
	i := slices.IndexFunc(o.held, func(h held) bool { return h.Ticket == ticket })
	if i < 0 {
		return nil
	}
	return &o.held[i]
}

// Fence returns the fence of a gang's reservation; 0: the device has none.
func (o *Owner) Fence(ticket string) int64 {
	if h := o.find(ticket); h != nil && h.reserved {
		return h.Fence
	}
	return 0
}

// Refused reports that the device could not make the reservation of a hold. The next step deletes the hold, and offers only held
// bytes until the next Offer.
func (o *Owner) Refused(ticket string) {
	if h := o.find(ticket); h != nil {
		h.reserved = false
		o.device.OfferBytes = min(o.device.OfferBytes, o.HeldBytes())
	}
}

// mostCompares bounds the compares of a report: a transaction of etcd has at most 128 operations.
const mostCompares = 100

// report writes differences from the books: ready marks, refused holds, the offer and the load. Nil: nothing.
func (o *Owner) report(b *Books, d *Device, holds []*Hold) *ledger.Transaction {
	t := &ledger.Transaction{If: []ledger.Compare{{Key: devicePrefix + d.Name, Mod: d.mod}}}
	for _, h := range holds {
		known := o.find(h.Ticket)
		switch {
		case known.reserved && !h.Ready:
			t.Put = append(t.Put, ledger.Put{Key: readyKey(d.Name, h.Ticket), Value: value(readyMark{h.Fence}), Lease: o.device.lease})
		case !known.reserved:
			t.Delete = append(t.Delete, HoldKey(d.Name, h.Ticket))
		default:
			continue
		}
		t.If = append(t.If, ledger.Compare{Key: HoldKey(d.Name, h.Ticket), Mod: h.Fence})
		if len(t.If) >= mostCompares {
			return t // the next step has the rest
		}
	}
	for _, p := range b.stale {
		if p.Lease == o.device.lease && !slices.ContainsFunc(t.Put, func(put ledger.Put) bool { return put.Key == p.Key }) {
			t.Delete = append(t.Delete, p.Key)
			t.If = append(t.If, ledger.Compare{Key: p.Key, Mod: p.Mod})
		}
		if len(t.If) >= mostCompares {
			return t
		}
	}
	if d.written != o.device.OfferBytes {
		t.Put = append(t.Put, o.device.put())
	}
	if load, known := b.Loads[d.Name]; !known || cmp.Or(load.FreeBytes-o.load.FreeBytes, int64(load.Pressure-o.load.Pressure), int64(load.Waiting-o.load.Waiting)) != 0 {
		t.Put = append(t.Put, ledger.Put{Key: loadPrefix + d.Name, Value: value(o.load), Lease: o.device.lease})
		t.If = append(t.If, ledger.Compare{Key: loadPrefix + d.Name, Mod: cmp.Or(load.mod, b.damaged[loadPrefix+d.Name].Mod)})
	}
	if len(t.Put)+len(t.Delete) == 0 {
		return nil
	}
	return t
}
