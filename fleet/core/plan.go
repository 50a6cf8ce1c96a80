package core

import (
	"cmp"
	"slices"

	"github.com/go-vram/vram/fleet/ledger"
)

// Reason says why a gang waits.
type Reason string

// The reasons.
const (
	NoDevices Reason = "no devices" // the devices that there are could not serve it, even if all of them were free
	Memory    Reason = "memory"     // others hold memory of its devices
	Turn      Reason = "turn"       // gangs before it have the memory set aside
)

// Verdict is the plan for a gang: where it is granted, or why it waits and for whom.
type Verdict struct {
	Devices []string // of each want; nil: it waits
	Passed  []string // tickets of older gangs that wait for memory that this one takes

	Reason  Reason
	Before  []string // tickets of gangs that are served first, and could use the same devices
	Holders []string // tickets of gangs that hold memory of its devices
}

// Plan decides about a waiting gang of these books.
func (b *Books) Plan(g *Gang) Verdict {
	free, whole := b.room()
	var before, blocked []*Gang // gangs that were looked at; gangs that do not fit now
	queue := b.Queue()
	for _, other := range queue {
		if other.Ticket == g.Ticket {
			break
		}
		before = append(before, other)
		if on := b.assign(other, free); on != nil {
			for want, i := range on {
				free[i] -= b.Devices[i].pages(other.Wants[want].Bytes)
			}
			continue
		}
		if b.assign(other, whole) == nil {
			continue // it waits for other devices, and keeps these from nobody
		}
		blocked = append(blocked, other)
		if other.due() {
			for i, d := range b.Devices {
				if other.couldUse(d) {
					free[i] = 0
				}
			}
		}
	}
	on := b.assign(g, free)
	if on == nil {
		return b.waits(g, before)
	}
	v := Verdict{}
	for want, i := range on {
		v.Devices = append(v.Devices, b.Devices[i].Name)
		free[i] -= b.Devices[i].pages(g.Wants[want].Bytes)
	}
	passes := func(other *Gang) bool {
		return slices.ContainsFunc(on, func(i int) bool { return other.couldUse(b.Devices[i]) })
	}
	for _, other := range queue[len(before)+1:] { // after it by priority, though older
		if other.Age < g.Age && b.assign(other, free) == nil && b.assign(other, whole) != nil {
			blocked = append(blocked, other)
		}
	}
	slices.SortFunc(blocked, func(x, y *Gang) int { return cmp.Compare(x.Age, y.Age) })
	for _, other := range blocked {
		if other.Age < g.Age && passes(other) && len(v.Passed) < mostPassed {
			v.Passed = append(v.Passed, other.Ticket)
		}
	}
	return v
}

// mostPassed bounds the gangs whose counts one grant raises, the oldest first: a transaction of etcd has at most 128 operations. Younger
// ones are counted once they are among the oldest.
const mostPassed = 60

// room returns the free bytes and the offer of each device. A plan takes bytes from the first.
func (b *Books) room() (free, whole []int64) {
	for _, d := range b.Devices {
		whole = append(whole, d.OfferBytes)
	}
	free = slices.Clone(whole)
	for _, h := range b.Holds {
		if i, found := b.number(h.Device); found && h.Incarnation == b.Devices[i].Incarnation {
			free[i] -= h.Bytes
		}
	}
	return free, whole
}

// waits returns the verdict of a gang that does not fit.
func (b *Books) waits(g *Gang, before []*Gang) Verdict {
	v := Verdict{Reason: Turn}
	free, whole := b.room()
	if b.assign(g, free) == nil {
		v.Reason = Memory
	}
	if b.assign(g, whole) == nil {
		v.Reason = NoDevices
	}
	for _, other := range before {
		if slices.ContainsFunc(b.Devices, func(d *Device) bool { return other.couldUse(d) && g.couldUse(d) }) {
			v.Before = append(v.Before, other.Ticket)
		}
	}
	for _, h := range b.Holds {
		if d := b.Device(h.Device); d != nil && h.Incarnation == d.Incarnation && g.couldUse(d) && !slices.Contains(v.Holders, h.Ticket) {
			v.Holders = append(v.Holders, h.Ticket)
		}
	}
	return v
}

// couldUse reports whether a want of the gang fits the device when it is free.
func (g *Gang) couldUse(d *Device) bool {
	return slices.ContainsFunc(g.Wants, func(w Want) bool { return g.fits(w, d, d.OfferBytes) })
}

// fits reports whether a want fits a device that has so many bytes.
func (g *Gang) fits(w Want, d *Device, bytes int64) bool {
	if d.pages(w.Bytes) > bytes || w.Device != "" && w.Device != d.Name || slices.Contains(g.Avoid, d.Name) {
		return false
	}
	for name, text := range w.Labels {
		if have, ok := d.Labels[name]; !ok || have != text {
			return false
		}
	}
	return true
}

// assignment finds a device for each want: a matching, grown by augmenting paths, so that it is found wherever there is one.
type assignment struct {
	books *Books
	gang  *Gang
	free  []int64
	user  []int // the want that has each device; -1: none
	seen  []bool
}

// assign returns the number of a device for each want, each device once; nil where there is none.
func (b *Books) assign(g *Gang, free []int64) []int {
	a := &assignment{b, g, free, make([]int, len(b.Devices)), make([]bool, len(b.Devices))}
	for i := range a.user {
		a.user[i] = -1
	}
	order := make([]int, len(g.Wants)) // the largest first: the others have more choice
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(g.Wants[y].Bytes, g.Wants[x].Bytes) })
	for _, want := range order {
		clear(a.seen)
		if !a.place(want) {
			return nil
		}
	}
	on := make([]int, len(g.Wants))
	for i, want := range a.user {
		if want >= 0 {
			on[want] = i
		}
	}
	return on
}

// place finds a device for one want, and another for the want that has it where need be.
func (a *assignment) place(want int) bool {
	choice := a.choice(want)
	for _, free := range []bool{true, false} { // a device without a want first
		for _, i := range choice {
			if a.seen[i] || (a.user[i] < 0) != free {
				continue
			}
			a.seen[i] = true
			if a.user[i] < 0 || a.place(a.user[i]) {
				a.user[i] = want
				return true
			}
		}
	}
	return false
}

// choice returns the devices that fit a want, the best first by the gang's policy: at most one for each want of the gang, since the
// others have fewer, and so one of these is free.
func (a *assignment) choice(want int) (fit []int) {
	onHost := map[string]int{} // wants that have a device there
	for i, user := range a.user {
		if user >= 0 {
			onHost[a.books.Devices[i].Host]++
		}
	}
	order := func(x, y int) int {
		host := cmp.Compare(onHost[a.books.Devices[x].Host], onHost[a.books.Devices[y].Host])
		free := cmp.Compare(a.free[x], a.free[y])
		if a.gang.Policy == Pack {
			return cmp.Or(-host, free, cmp.Compare(x, y))
		}
		return cmp.Or(host, -free, cmp.Compare(x, y))
	}
	most := len(a.gang.Wants)
	for i, d := range a.books.Devices {
		if !a.gang.fits(a.gang.Wants[want], d, a.free[i]) || len(fit) == most && order(fit[most-1], i) < 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(fit, i, order)
		fit = slices.Insert(fit, at, i)
		fit = fit[:min(len(fit), most)]
	}
	return fit
}

// grant returns the transaction that carries a plan out. It compares all that the plan has looked at: the devices, and the gangs, one of which
// is written with each hold that is put. Holds and gangs that were deleted since have only made room.
func (b *Books) grant(g *Gang, v Verdict) *ledger.Transaction {
	granted := *g
	granted.Granted = v.Devices
	t := &ledger.Transaction{
		If: []ledger.Compare{
			{Key: gangPrefix, Prefix: true, Mod: b.Revision},
			{Key: gangPrefix + g.Ticket, Mod: g.mod},
		},
		Put: []ledger.Put{granted.put()},
	}
	for want, name := range v.Devices {
		d := b.Device(name)
		t.If = append(t.If, ledger.Compare{Key: devicePrefix + name, Mod: d.mod})
		hold := &Hold{Bytes: d.pages(g.Wants[want].Bytes), Incarnation: d.Incarnation}
		t.Put = append(t.Put, ledger.Put{Key: HoldKey(name, g.Ticket), Value: value(hold), Lease: g.lease})
	}
	for _, ticket := range v.Passed {
		passed := *b.Gang(ticket)
		t.If = append(t.If, ledger.Compare{Key: gangPrefix + ticket, Mod: passed.mod})
		passed.Bypassed++
		t.Put = append(t.Put, passed.put())
	}
	return t
}
