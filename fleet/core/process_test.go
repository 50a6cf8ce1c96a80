package core

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-vram/vram/fleet/ledger"
)

func (p *process) clock() time.Duration { return p.w.now + p.offset }

// start begins a life: with a new lease, and for an owner without reservations.
func (p *process) start() {
	w := p.w
	p.life++
	p.dead, p.reader, p.newest, p.pausedUntil = false, Reader{}, 0, 0
	p.newLease()
	if p.capacity > 0 {
		p.lent, p.fence = map[string]Hold{}, 0
		p.owner = NewOwner(Device{Name: p.name, Host: p.host, OfferBytes: p.capacity, Labels: map[string]string{"kind": string('a' + rune(p.name[1]-'0')%2)}}, p.lease)
	} else {
		p.requester = nil
		w.in(time.Duration(w.rng.IntN(500))*time.Millisecond, p, p.request)
	}
	p.poll(w.delay())
	p.keepAlive()
	p.trouble()
}

func (p *process) newLease() {
	w := p.w
	w.last++
	p.lease = w.last
	w.leases[p.lease] = &lease{holder: p, life: p.life, until: w.now + leaseTime}
}

// keepAlive shows the ledger that the process lives.
func (p *process) keepAlive() {
	if p.w.locks {
		return
	}
	id := p.lease
	p.w.send(nil, func() {
		if p.w.live(id) {
			p.w.leases[id].until = p.w.now + leaseTime
		}
	})
	p.w.in(leaseTime/3, p, p.keepAlive)
}

// trouble pauses or crashes the process now and then.
func (p *process) trouble() {
	w := p.w
	if w.watched != nil {
		return
	}
	w.in(time.Duration(w.rng.IntN(2000))*time.Millisecond, p, func() {
		switch {
		case w.fault(p.name+" crashes", 25):
			p.dead = true
			if w.locks {
				w.end(p.lease)
			}
			life := p.life
			w.in(time.Duration(w.rng.IntN(6000))*time.Millisecond, nil, func() {
				if p.dead && p.life == life {
					p.start()
				}
			})
			return
		case w.fault(p.name+" is paused", 25):
			p.pausedUntil = w.now + time.Duration(w.rng.IntN(10000))*time.Millisecond
		case p.owner != nil && !w.calm:
			p.owner.Offer(p.capacity-int64(w.rng.IntN(4))/2, Load{Waiting: w.rng.IntN(2)})
		}
		p.trouble()
	})
}

// poll reads the ledger after a while, and again if no answer comes.
func (p *process) poll(after time.Duration) {
	p.timer++
	if p.w.watched != nil && p.timer > 1 {
		return
	}
	mine := p.timer
	p.w.in(after, p, func() {
		if p.timer == mine {
			p.poll(time.Second)
			p.read()
		}
	})
}

func (p *process) read() {
	w, keys := p.w, p.keys()
	p.watches = nil
	if w.watched != nil && keys == nil && !w.watched.all {
		return // a requester without a request
	}
	w.send(nil, func() {
		s := w.current().Of(keys...)
		w.send(p, func() { p.look(s) })
	})
}

// keys returns the keys that the process reads.
func (p *process) keys() []string {
	switch {
	case p.w.watched.whole():
		return nil
	case p.owner != nil:
		return p.owner.Keys()
	case p.requester != nil:
		return p.requester.Keys()
	}
	return nil
}

// look gives a snapshot to the core.
func (p *process) look(s ledger.Snapshot) {
	p.poll(time.Duration(50+p.w.rng.IntN(200)) * time.Millisecond)
	defer p.w.watched.look(p, s)()
	books := p.reader.Read(s)
	if p.w.mutated == skipFences {
		books.Revision = max(books.Revision, p.newest)
	}
	if p.w.mutated == skipKeys {
		books.keys = nil
	}
	p.newest = max(p.newest, s.Revision)
	if p.owner != nil {
		p.own(books)
	} else if p.requester != nil {
		p.demand(books)
	}
}

// commit sends a transaction, and reads again when it is answered.
func (p *process) commit(t *ledger.Transaction) {
	if t == nil {
		return
	}
	w, arrived, answered := p.w, false, false
	p.watches = nil
	w.send(nil, func() {
		err := w.commit(*t, arrived)
		arrived = true
		w.send(p, func() {
			if errors.Is(err, ledger.ErrLeaseEnded) && p.requester != nil && !answered {
				p.over("the lease has ended")
				return
			}
			answered = true
			p.read()
		})
	})
	p.poll(time.Second)
}

// own carries out the steps of an owner on its device.
func (p *process) own(b *Books) {
	w := p.w
	for {
		step := p.owner.Step(b)
		for _, h := range step.Release {
			if w.mutated != skipRelease {
				delete(p.lent, h.Ticket)
			}
		}
		for _, h := range step.Reserve {
			if w.fault(p.name+"'s driver refuses", 30) {
				p.owner.Refused(h.Ticket)
				continue
			}
			w.tell("%s reserves %d for %s, fence %d", p.name, h.Bytes, h.Ticket, h.Fence)
			p.lent[h.Ticket] = h
			w.reserved[fmt.Sprint(p.name, h.Ticket, h.Fence)] = h.Bytes
			p.checkFence(h)
		}
		p.checkMemory()
		p.commit(step.Commit)
		if step.Ended {
			w.tell("%s begins again", p.name)
			if w.locks {
				w.end(p.lease)
			}
			p.start()
			return
		}
		if len(step.Reserve) == 0 {
			return
		}
	}
}

// request makes a new request.
func (p *process) request() {
	w := p.w
	if w.calm {
		return
	}
	r := Request{Policy: []Policy{Pack, Spread}[w.rng.IntN(2)], Priority: w.rng.IntN(3) / 2}
	for i := range 1 + w.rng.IntN(3) {
		want := Want{Bytes: int64(1 + w.rng.IntN(6))}
		switch w.rng.IntN(4) {
		case 0:
			want.Labels = map[string]string{"kind": string('a' + rune(w.rng.IntN(2)))}
		case 1:
			want.Device = fmt.Sprintf("d%d", i)
		}
		r.Wants = append(r.Wants, want)
	}
	p.until = w.now + time.Duration(w.rng.IntN(30))*time.Second // it gives up, unless all is calm
	p.ask(r)
}

// ask begins a request.
func (p *process) ask(r Request) {
	p.newLease()
	p.ticket = fmt.Sprintf("t%d", p.w.last)
	p.requester = NewRequester(p.ticket, p.lease, r, Settings{ReadyAfter: time.Second, AvoidFor: 4 * time.Second})
	p.read()
}

// demand carries out a step of a requester.
func (p *process) demand(b *Books) {
	w := p.w
	step := p.requester.Step(p.clock(), b)
	switch step.Event {
	case Granted:
		p.checkGrant(step)
		p.until = w.now + w.upTo(5000)
	case Lost, Ended:
		p.over("lost")
		return
	case None:
	}
	if w.mutated == answerDoubles && p.requester.complete {
		p.requester.complete = false
	}
	if holds := p.requester.complete; (holds || !w.calm) && w.now >= p.until {
		p.over("released")
		return
	}
	if step.Again {
		p.read()
	}
	p.commit(step.Commit)
}

// over ends a request by the end of its lease, and makes the next one.
func (p *process) over(why string) {
	w, id := p.w, p.lease
	w.tell("%s ends %s: %s", p.name, p.ticket, why)
	p.requester = nil
	if w.locks {
		w.end(id)
	} else {
		w.send(nil, func() { w.end(id) })
	}
	p.newLease() // the process's own, until the next request: keepAlive has the newest
	w.in(w.upTo(1000), p, p.request)
}

func (w *world) checkCommit(t ledger.Transaction, planned *ledger.Snapshot) {
	grants := false
	for _, put := range t.Put {
		grants = grants || len(put.Key) > len(holdPrefix) && put.Key[:len(holdPrefix)] == holdPrefix
	}
	if !grants {
		return
	}
	reader := Reader{}
	b := reader.Read(w.books)
	for _, d := range b.Devices {
		if free := b.FreeBytes(d); free < 0 && slices.ContainsFunc(t.Put, func(p ledger.Put) bool { return p.Key[:min(len(p.Key), len(holdPrefix+d.Name))] == holdPrefix+d.Name }) {
			w.broken("promised", "%s offers %d and promised %d more", d.Name, d.OfferBytes, -free)
		}
	}
	if planned == nil {
		return
	}
	before := reader.Read(*planned)
	for _, put := range t.Put {
		g := b.Gang(put.Key[min(len(put.Key), len(gangPrefix)):])
		if g == nil || g.Waits() || put.Key[:min(len(put.Key), len(gangPrefix))] != gangPrefix {
			continue
		}
		w.tell("%s is granted on %v", g.Ticket, g.Granted)
		for _, other := range before.Gangs {
			if other.Waits() && other.Age < g.Age && passed(before, g, other) {
				w.passes[other.Ticket]++
				if w.passes[other.Ticket] > MostBypasses {
					w.broken("bypass", "%s was passed %d times", other.Ticket, w.passes[other.Ticket])
				}
			}
		}
	}
}

// passed reports whether the grant takes memory that another gang could use, which then has no place: by trying every choice.
func passed(b *Books, g, other *Gang) bool {
	free, whole, could := map[string]int64{}, map[string]int64{}, false
	for _, d := range b.Devices {
		free[d.Name], whole[d.Name] = b.FreeBytes(d), d.OfferBytes
	}
	for i, name := range g.Granted {
		free[name] -= g.Wants[i].Bytes
		could = could || other.couldUse(b.Device(name))
	}
	var try func(free map[string]int64, want int, used []string) bool
	try = func(free map[string]int64, want int, used []string) bool {
		if want == len(other.Wants) {
			return true
		}
		for _, d := range b.Devices {
			if !slices.Contains(used, d.Name) && other.fits(other.Wants[want], d, free[d.Name]) && try(free, want+1, append(used, d.Name)) {
				return true
			}
		}
		return false
	}
	return could && !try(free, 0, nil) && try(whole, 0, nil)
}

func (p *process) checkFence(h Hold) {
	if h.Fence <= p.fence {
		p.w.broken("fence", "%s reserved for fence %d after %d", p.name, h.Fence, p.fence)
	}
	p.fence = h.Fence
}

// checkMemory compares the device's reservations with its memory, and with the newest books that its owner has seen.
func (p *process) checkMemory() {
	sum := int64(0)
	s, known := p.w.history[p.newest]
	for ticket, h := range p.lent {
		sum += h.Bytes
		if pair, found := s.Find(HoldKey(p.name, ticket)); known && (!found || pair.Mod != h.Fence) {
			p.w.broken("kept", "%s keeps memory for %s, which the books of revision %d do not have", p.name, ticket, p.newest)
		}
	}
	if sum > p.capacity {
		p.w.broken("memory", "%s has %d bytes and reserved %d", p.name, p.capacity, sum)
	}
}

// checkGrant requires that every owner made the reservation of a complete grant, and that there is one answer.
func (p *process) checkGrant(step RequesterStep) {
	w := p.w
	w.answers++
	if w.granted[p.ticket]++; w.granted[p.ticket] > 1 {
		w.broken("answers", "%s was answered %d times", p.ticket, w.granted[p.ticket])
	}
	for i, h := range step.Holds {
		if bytes := w.reserved[fmt.Sprint(h.Device, h.Ticket, h.Fence)]; bytes != step.Gang.Wants[i].Bytes {
			w.broken("grant", "%s has %d bytes of %s, and wants %d", h.Ticket, bytes, h.Device, step.Gang.Wants[i].Bytes)
		}
	}
}

// checkEnd requires that all came back, and that no request waits that the devices could serve.
func (w *world) checkEnd() {
	w.settled(w.broken)
}

// settled reports records and reservations that are left.
func (w *world) settled(left func(class, format string, args ...any)) {
	reader := Reader{}
	b := reader.Read(w.current())
	for _, g := range b.Gangs {
		offers := make([]int64, len(b.Devices))
		for i, d := range b.Devices {
			offers[i] = d.OfferBytes
		}
		live := w.leases[g.lease]
		if !w.calm || live == nil || live.holder.dead || live.holder.ticket != g.Ticket || !g.Waits() || b.assign(g, offers) != nil {
			left("left", "gang %+v is left", g)
		}
	}
	for _, h := range b.Holds {
		left("left", "hold %+v is left", h)
	}
	for _, p := range b.stale {
		left("left", "%s is left", p.Key)
	}
	for _, p := range w.procs {
		if p.owner != nil && len(p.lent) > 0 {
			left("left", "%s keeps %v", p.name, p.lent)
		}
	}
}
