package core

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// leave visits all states that follow one.
func (w *walk) leave(at int32) {
	p := w.places[at]
	for i := range p.procs {
		w.act(at, i)
		w.fail(at, i)
		if out := p.procs[i].out; out != 0 {
			next := p
			next.procs[i].out = 0
			w.arrive(at, next, i, out, false, fmt.Sprintf("a transaction of %d arrives", i))
			if p.faults > 0 && p.double == 0 {
				next.double = out
				if w.mutated != commitDoubles { // there it is no fault
					next.faults--
				}
				w.arrive(at, next, i, out, false, fmt.Sprintf("a transaction of %d arrives, and will again", i))
			}
		}
	}
	if p.double != 0 {
		next := p
		next.double = 0
		w.arrive(at, next, -1, p.double, true, "a transaction arrives again")
	}
	if p.late.books != 0 {
		next := p
		next.late = delayed{}
		if me := p.procs[p.late.proc]; me.phase == runs && me.life == p.late.life {
			w.step(at, next, int(p.late.proc), p.late.books, false, false, "late ")
		} else {
			w.visit(next, at, "a late snapshot finds nobody")
		}
	}
}

// arrive visits the state after a transaction of a process has reached the ledger; -1: it has been answered.
func (w *walk) arrive(at int32, p place, i int, commit int32, again bool, how string) {
	a := w.apply(p, commit, again)
	p.books = a.books
	if i >= 0 {
		w.answered(&p, i, a)
	}
	if a.breach != nil {
		w.broken(a.breach, at, "%s", how)
	}
	w.visit(p, at, "%s, revision %d", how, w.snapshots.at(p.books).Revision)
}

// step visits the state after a look.
func (w *walk) step(at int32, p place, i int, books int32, refuse, lost bool, how string) looked {
	next, l := w.after(p, i, books, refuse, lost)
	how = fmt.Sprintf("%d looks at a %srevision %d (refuses: %v, loses its transaction: %v)", i, how, w.snapshots.at(books).Revision, refuse, lost)
	if l.breach != nil {
		w.broken(l.breach, at, "%s", how)
	}
	w.visit(next, at, "%s: event %d", how, l.event)
	return l
}

// act visits the states after the acts of a process that are no faults.
func (w *walk) act(at int32, i int) {
	p := w.places[at]
	me := p.procs[i]
	switch {
	case me.phase == crashed:
		next := p
		w.expire(&next, walkLease(i, 0))
		w.visit(next, at, "the lease of %d ends", i)
		if i < owners {
			next = p
			w.revive(&next, i)
			w.visit(next, at, "%d starts again", i)
		}
		return
	case me.phase != runs:
		if i < owners || p.ended&leaseBit(walkLease(i, 0)) != 0 {
			return
		}
		next := p
		w.expire(&next, walkLease(i, 0))
		w.visit(next, at, "the lease of %d ends", i)
		return
	case me.life > 0 && p.ended&leaseBit(walkLease(i, 0)) == 0:
		next := p
		w.expire(&next, walkLease(i, 0))
		w.visit(next, at, "the first lease of %d ends", i)
	}
	l := w.step(at, p, i, p.books, false, false, "")
	if i >= owners && w.minds.at(me.core).requester.complete {
		next := p
		w.over(&next, i)
		w.visit(next, at, "%d releases", i)
	}
	if p.faults == 0 {
		return
	}
	p.faults--
	if l.commit != 0 {
		w.step(at, p, i, p.books, false, true, "")
	}
	if l.reserves {
		w.step(at, p, i, p.books, true, false, "")
	}
}

// fail visits the states after a fault of a process.
func (w *walk) fail(at int32, i int) {
	p := w.places[at]
	me := p.procs[i]
	if p.faults == 0 || me.phase != runs {
		return
	}
	p.faults--
	if w.lates && p.late.books == 0 {
		next := p
		next.late = delayed{p.books, uint8(i), me.life}
		w.visit(next, at, "a snapshot for %d of revision %d is late", i, w.snapshots.at(p.books).Revision)
	}
	if i >= owners && me.clock == 0 && w.minds.at(me.core).requester.granted != 0 {
		next := p
		next.procs[i].clock++
		w.visit(next, at, "the clock of %d passes an hour", i)
	}
	if me.life > 0 {
		return
	}
	next := p
	next.procs[i].phase = crashed
	w.visit(next, at, "%d crashes", i)
	if p.ended&leaseBit(walkLease(i, 0)) == 0 {
		next = p
		w.expire(&next, walkLease(i, 0))
		w.visit(next, at, "%d is paused, and its lease ends", i)
	}
}

// drain lets all that is left of a state come to its end without faults, and checks that each request had its answer and all memory
// came back. States with a transaction on its way are not looked at: others follow where it was lost.
func (w *walk) drain(at int32) {
	p := w.places[at]
	for _, me := range p.procs {
		if me.out != 0 { // it may be lost: that state is drained
			return
		}
	}
	p.double, p.late = 0, delayed{}
	for i := range owners {
		if p.procs[i].phase == crashed {
			w.revive(&p, i)
		}
		m := w.minds.at(p.procs[i].core)
		m.owner.Offer(w.capacity, Load{})
		p.procs[i].core = w.numberMind(i, m)
	}
	for i := range p.procs {
		p.procs[i].out, p.procs[i].clock = 0, 0
		if p.procs[i].phase != runs || p.procs[i].life > 0 {
			w.expire(&p, walkLease(i, 0))
		}
	}
	p.faults = 0
	if w.ends[p] {
		return
	}
	w.ends[p] = true
	quiet := 0
	for round := uint8(2); quiet < 2 && round < 60; round++ {
		before := p
		for i := range p.procs {
			if p.procs[i].phase != runs {
				continue
			}
			p.procs[i].clock = round
			var l looked
			if p, l = w.after(p, i, p.books, false, false); l.breach != nil {
				w.broken(l.breach, at, "then without faults")
				return
			}
			if p.procs[i].out != 0 {
				a := w.apply(p, p.procs[i].out, false)
				p.books, p.procs[i].out = a.books, 0
				w.answered(&p, i, a)
			}
			if i >= owners && w.minds.at(p.procs[i].core).requester.complete && p.procs[i].phase == runs {
				w.over(&p, i)
			}
		}
		if quiet++; before.books != p.books {
			quiet = 0
		}
	}
	b := w.read[p.books-1]
	var left []string
	for _, d := range b.Devices {
		if b.FreeBytes(d) != w.capacity {
			left = append(left, fmt.Sprintf("%s has %d free bytes", d.Name, b.FreeBytes(d)))
		}
	}
	for i, me := range p.procs {
		m := w.minds.at(me.core)
		if len(m.lent) > 0 || i >= owners && me.phase == runs {
			left = append(left, fmt.Sprintf("process %d is left, with %v", i, m.lent))
		}
	}
	if len(b.Gangs)+len(b.Holds)+len(b.stale) > 0 || len(b.Devices) != owners || len(left) > 0 {
		w.broken(&breach{"left", fmt.Sprintf("%d gangs, %d holds, %d marks, %d devices, %v", len(b.Gangs), len(b.Holds), len(b.stale), len(b.Devices), left)}, at, "then without faults")
	}
}

// worlds are sizes of requests: both fit at a time, or one, or one on each device.
var worlds = []small{
	{capacity: 2, wants: [2][2]int64{{1, 1}, {1, 1}}},
	{capacity: 2, wants: [2][2]int64{{1, 2}, {2, 1}}, urgent: true},
	{capacity: 2, wants: [2][2]int64{{2, 2}, {2, 2}}},
	{capacity: 2, wants: [2][2]int64{{1, 1}, {2, 2}}},
	{capacity: 2, wants: [2][2]int64{{2}, {1}}, urgent: true},
	{capacity: 3, wants: [2][2]int64{{2, 1}, {1, 2}}},
}

// No promise breaks in any state of a small world: without faults, with some, and with a late snapshot; a part of the states unless the
// build tag exhaustive is set.
func TestEveryStateOfASmallFleet(t *testing.T) {
	for _, of := range worlds {
		for _, kind := range []small{{}, {waiting: true, faults: walkedFaults}, {waiting: true, faults: 1, lates: true}} {
			kind.capacity, kind.wants, kind.urgent = of.capacity, of.wants, of.urgent
			t.Run(fmt.Sprintf("%d %v, %d faults, late %v", kind.capacity, kind.wants, kind.faults, kind.lates), func(t *testing.T) {
				w := newWalk(kind)
				visited := w.run(walkedStates)
				if w.breach != nil {
					require.Fail(t, w.breach.class, w.breach.text)
				}
				assert.Greater(t, visited, 500)
				t.Logf("%d of %d states, %d books, %d transactions", visited, len(w.places), len(w.snapshots.all), len(w.commits.all))
			})
		}
	}
}

// The walk finds each planted bug.
func TestTheWalkFindsPlantedBugs(t *testing.T) {
	for _, planted := range []struct {
		name    string
		of      small
		classes []string
	}{
		{"the end of a lease is not checked", small{mutated: skipExpiry, waiting: true}, []string{"left"}},
		{"the number of a snapshot is ignored", small{mutated: skipFences, waiting: true, faults: 1, lates: true}, []string{"fence", "kept"}},
		{"a compare is left out", small{mutated: skipCompares, urgent: true, wants: [2][2]int64{{2}, {1}}}, []string{"promised"}},
		{"the devices are not compared", small{mutated: skipOffer, waiting: true, faults: 1, wants: [2][2]int64{{1, 1}, {1, 1}}}, []string{"promised", "left"}},
		{"a grant is carried out twice", small{mutated: commitDoubles, waiting: true, faults: 1}, []string{"promised", "left", "kept"}},
		{"a request is answered twice", small{mutated: answerDoubles, waiting: true}, []string{"answers"}},
		{"books of some keys count as all", small{mutated: skipKeys, waiting: true, faults: 1}, []string{"promised", "left"}},
	} {
		t.Run(planted.name, func(t *testing.T) {
			of := planted.of
			of.capacity = 2
			if of.wants[0][0] == 0 {
				of.wants = [2][2]int64{{1, 2}, {2, 1}}
			}
			w := newWalk(of)
			visited := w.run(1 << 20)
			require.NotNil(t, w.breach, "%d states", visited)
			assert.Contains(t, planted.classes, w.breach.class)
			t.Logf("after %d states: %s: %s", visited, w.breach.class, w.breach.text)
		})
	}
}
