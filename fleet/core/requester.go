package core

import (
	"slices"
	"time"

	"github.com/go-vram/vram/fleet/ledger"
)

// Settings are the times of a requester, on its own clock.
type Settings struct {
	// ReadyAfter is how long a granted gang waits for an owner that does not answer, before it withdraws.
	ReadyAfter time.Duration
	// AvoidFor is how long it then avoids the device.
	AvoidFor time.Duration
}

// DefaultSettings returns the settings of package fleet. Not shorter: an owner maps memory within a second or two. Not longer: the gang
// keeps memory of other devices for nothing.
func DefaultSettings() Settings {
	return Settings{ReadyAfter: 5 * time.Second, AvoidFor: 30 * time.Second}
}

// Event is an answer to a requester. Each request gets one of Granted, Ended; after Granted one more: Lost or Ended.
type Event uint8

// The events.
const (
	None    Event = iota
	Granted       // all devices are ready: the grant is complete
	Lost          // a device of the complete grant is gone, or has dropped the hold
	Ended         // the gang's lease has ended, and with it the gang
)

// RequesterStep is the result of a step.
type RequesterStep struct {
	Commit  *ledger.Transaction // nil: none
	Event   Event
	Gang    *Gang     // as the books have it; nil: not yet
	Holds   []*Hold   // with Granted, of each want
	Devices []*Device // likewise
	Verdict Verdict   // why it waits, where it does
	// Wake is when the next step is due though nothing changes, on the requester's clock; 0: none.
	Wake time.Duration
	// Again is set where the books lack keys that the gang's state needs. The caller reads the keys that Keys returns, and steps again.
	Again bool
}

// Requester sees to one gang, from its announcement until its lease ends.
type Requester struct {
	settings Settings
	gang     Gang // as it is announced

	seen      int64    // the newest revision
	keys      []string // that the next step looks at
	announced bool
	complete  bool
	ended     bool
	granted   time.Duration // when the incomplete grant was first seen; 0: there is none
	avoided   time.Duration // when a device was last avoided
}

// NewRequester makes a requester for a gang under its lease. The request has passed Check.
func NewRequester(ticket string, lease int64, r Request, s Settings) *Requester {
	return &Requester{settings: s, gang: Gang{Ticket: ticket, Request: r, lease: lease}, keys: planned()}
}

// planned returns the keys that a plan looks at.
func planned() []string { return []string{devicePrefix, gangPrefix, holdPrefix} }

// Keys returns the keys of the ledger that the next step looks at: of a gang that waits all devices, gangs and holds; of one with a grant
// its own.
func (r *Requester) Keys() []string { return r.keys }

// need returns the keys that a step looks at for a gang.
func need(g *Gang) []string {
	if g.Waits() {
		return planned()
	}
	keys := []string{gangPrefix + g.Ticket}
	for _, name := range g.Granted {
		keys = append(keys, devicePrefix+name, HoldKey(name, g.Ticket), readyKey(name, g.Ticket))
	}
	return keys
}

// Step looks at the newest books, which have at least the pairs of Keys, at a time that never falls and is above 0. Its transaction is
// repeatable: where its outcome is not known, the next step decides again.
func (r *Requester) Step(now time.Duration, b *Books) RequesterStep {
	if r.ended || b.Revision < r.seen { // an older snapshot
		return RequesterStep{}
	}
	r.seen = b.Revision
	g := b.Gang(r.gang.Ticket)
	if g != nil {
		r.keys = need(g)
	}
	switch {
	case !b.covers(r.keys):
		return RequesterStep{Gang: g, Again: true}
	case g == nil && !r.announced:
		return RequesterStep{Commit: &ledger.Transaction{If: []ledger.Compare{{Key: gangPrefix + r.gang.Ticket}}, Put: []ledger.Put{r.gang.put()}}}
	case g == nil:
		return r.end(Ended)
	}
	r.announced = true
	if g.Waits() {
		if r.complete {
			return r.end(Lost)
		}
		r.granted = 0
		return r.wait(now, b, g)
	}
	return r.hold(now, b, g)
}

func (r *Requester) end(e Event) RequesterStep {
	r.ended = true
	return RequesterStep{Event: e}
}

// wait plans for a gang without a grant.
func (r *Requester) wait(now time.Duration, b *Books, g *Gang) RequesterStep {
	if len(g.Avoid) > 0 && now-r.avoided >= r.settings.AvoidFor {
		again := *g
		again.Avoid = nil
		return RequesterStep{Gang: g, Commit: r.change(&again)}
	}
	step := RequesterStep{Gang: g, Verdict: b.Plan(g)}
	if len(g.Avoid) > 0 {
		step.Wake = r.avoided + r.settings.AvoidFor
	}
	if step.Verdict.Devices != nil {
		step.Commit = b.grant(g, step.Verdict)
	}
	return step
}

// change writes the gang, if it is as the books have it.
func (*Requester) change(g *Gang) *ledger.Transaction {
	return &ledger.Transaction{If: []ledger.Compare{{Key: gangPrefix + g.Ticket, Mod: g.mod}}, Put: []ledger.Put{g.put()}}
}

// hold looks after a granted gang.
func (r *Requester) hold(now time.Duration, b *Books, g *Gang) RequesterStep {
	if r.granted == 0 {
		r.granted = now
	}
	var holds []*Hold
	var devices []*Device
	var late []string
	gone := false
	for _, name := range g.Granted {
		d, h := b.Device(name), b.Hold(name, g.Ticket)
		if d == nil || h == nil || h.Incarnation != d.Incarnation {
			gone = true
			continue
		}
		holds, devices = append(holds, h), append(devices, d)
		if d.Owned && !h.Ready {
			late = append(late, name)
		}
	}
	switch {
	case r.complete && gone:
		return r.end(Lost)
	case r.complete:
		return RequesterStep{Gang: g}
	case !gone && len(late) == 0:
		r.complete = true
		return RequesterStep{Event: Granted, Gang: g, Holds: holds, Devices: devices}
	case gone:
		return RequesterStep{Gang: g, Commit: r.withdraw(g, nil)}
	case now-r.granted >= r.settings.ReadyAfter:
		r.avoided = now
		return RequesterStep{Gang: g, Commit: r.withdraw(g, late)}
	}
	return RequesterStep{Gang: g, Wake: r.granted + r.settings.ReadyAfter}
}

// withdraw gives the holds back, and lets the gang wait again at its age.
func (r *Requester) withdraw(g *Gang, avoid []string) *ledger.Transaction {
	again := *g
	again.Granted = nil
	for _, name := range avoid {
		if !slices.Contains(again.Avoid, name) {
			again.Avoid = append(slices.Clone(again.Avoid), name)
		}
	}
	t := r.change(&again)
	for _, name := range g.Granted {
		t.Delete = append(t.Delete, HoldKey(name, g.Ticket))
	}
	return t
}
