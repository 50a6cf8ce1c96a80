package core

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/fleet/ledger"
)

// watched is the option of a world whose processes wait for changes of the ledger, as package fleet does, and whose work is counted.
// There are no faults in it. A nil one does nothing.
type watched struct {
	all     bool // each process reads and waits for all keys
	waiting map[string]map[*process]bool
	work
}

// work counts the cost of a part of a play.
type work struct {
	revisions, conflicts, written, writtenBytes int           // transactions and ends of leases; pairs that they put or deleted
	reads, read, readBytes                      int           // requests, with their pairs
	changed                                     int           // pairs that a watch sends to each member
	owners, requesters                          time.Duration // of the processor
}

func (o *watched) whole() bool { return o != nil && o.all }

// refused counts a transaction that came too late.
func (o *watched) refused() {
	if o != nil {
		o.conflicts++
	}
}

// look counts a snapshot that a process has read. The function that it returns is called when the process has looked: it waits then,
// unless it is about to look again.
func (o *watched) look(p *process, s ledger.Snapshot) func() {
	if o == nil {
		return func() {}
	}
	o.reads++
	o.read += len(s.Pairs)
	for _, pair := range s.Pairs {
		o.readBytes += len(pair.Key) + len(pair.Value)
	}
	p.watches = p.keys()
	if p.watches == nil {
		p.watches = []string{""}
	}
	begin := used()
	return func() {
		if p.owner != nil {
			o.owners += used() - begin
		} else {
			o.requesters += used() - begin
		}
		if p.watches == nil {
			return
		}
		if now := p.w.books.Of(s.Keys...); !slices.EqualFunc(now.Pairs, s.Pairs, func(x, y ledger.Pair) bool { return x.Key == y.Key && x.Mod == y.Mod }) {
			p.read()
			return
		}
		for _, key := range p.watches {
			if o.waiting[key] == nil {
				o.waiting[key] = map[*process]bool{}
			}
			o.waiting[key][p] = true
		}
	}
}

// wake counts a revision, and has the processes look that wait for its changes.
func (o *watched) wake(w *world, before, after ledger.Snapshot) {
	if o == nil {
		return
	}
	o.revisions++
	var woken []*process
	changed := func(p ledger.Pair) {
		o.changed++
		o.written++
		o.writtenBytes += len(p.Key) + len(p.Value)
		for at := 0; at >= 0; { // the key, and all its beginnings up to a slash
			for waits := range o.waiting[p.Key[:at]] {
				woken = append(woken, waits)
			}
			next := strings.IndexByte(p.Key[at:], '/')
			at += next + 1
			if next < 0 {
				break
			}
		}
		for waits := range o.waiting[p.Key] {
			woken = append(woken, waits)
		}
	}
	i, j := 0, 0
	for i < len(before.Pairs) || j < len(after.Pairs) {
		switch {
		case j == len(after.Pairs) || i < len(before.Pairs) && before.Pairs[i].Key < after.Pairs[j].Key:
			changed(ledger.Pair{Key: before.Pairs[i].Key})
			i++
		case i == len(before.Pairs) || after.Pairs[j].Key < before.Pairs[i].Key:
			changed(after.Pairs[j])
			j++
		default:
			if before.Pairs[i].Mod != after.Pairs[j].Mod {
				changed(after.Pairs[j])
			}
			i, j = i+1, j+1
		}
	}
	slices.SortFunc(woken, func(x, y *process) int { return strings.Compare(x.name, y.name) })
	for _, p := range slices.Compact(woken) {
		for _, key := range p.watches {
			delete(o.waiting[key], p)
			if len(o.waiting[key]) == 0 {
				delete(o.waiting, key)
			}
		}
		p.watches = nil
		w.in(w.delay(), p, p.read)
	}
}

// expire takes the pairs of ended leases away at once.
func (o *watched) expire(w *world) {
	if o != nil {
		w.record(w.books.Expire(w.live))
	}
}

// fleetOf makes a world of members with so many devices of 8 bytes each, none of which has joined.
func fleetOf(members, devices int, whole bool) *world {
	w := &world{
		locks: true, calm: true, rng: rand.New(rand.NewPCG(1, 1)), books: ledger.Snapshot{Revision: 1}, leases: map[int64]*lease{},
		passes: map[string]int{}, reserved: map[string]int64{}, granted: map[string]int{},
		watched: &watched{all: whole, waiting: map[string]map[*process]bool{}},
	}
	for i := range members * devices {
		w.procs = append(w.procs, &process{w: w, name: fmt.Sprintf("d%05d", i), host: fmt.Sprintf("m%d", i/devices), memory: memory{capacity: 8}})
	}
	return w
}

// settle runs a change until all processes wait, and returns its cost, and its time with messages of 1 to 20 ms.
func (w *world) settle(t *testing.T, change func()) (work, time.Duration) {
	t.Helper()
	w.watched.work = work{}
	begin := w.now
	change()
	for w.breach == nil && w.next() {
	}
	require.Nil(t, w.breach)
	return w.watched.work, w.now - begin
}

// The work of a gang, and of a member that joins or leaves, does not rise with the members of the fleet, but for a request's own reading of the
// books. VRAM_MEMBERS, of ten devices each, makes a large fleet, and VRAM_WHOLE=1 has each process read all keys.
func TestTheWorkOfAFleetOfManyMembers(t *testing.T) {
	runtime.LockOSThread() // whose time is measured
	defer runtime.UnlockOSThread()
	const devices = 10
	members := int(number("VRAM_MEMBERS", 20))
	play := func(members int, report bool) (all []work) {
		w := fleetOf(members, devices, number("VRAM_WHOLE", 0) == 1)
		part := func(what string, change func()) {
			cost, took := w.settle(t, change)
			all = append(all, cost)
			if report {
				t.Logf("%-26s %6d revisions, %d conflicts, %6d written (%d B), %7d reads of %9d pairs (%d B), %7d changes to each member, %v, cores: owners %v, requests %v",
					what, cost.revisions, cost.conflicts, cost.written, cost.writtenBytes, cost.reads, cost.read, cost.readBytes, cost.changed, took, cost.owners.Round(time.Microsecond), cost.requesters.Round(time.Microsecond))
			}
		}
		part("all but one join", func() {
			for _, p := range w.procs[devices:] {
				p.start()
			}
		})
		part("a member joins", func() {
			for _, p := range w.procs[:devices] {
				p.start()
			}
		})
		for _, wants := range []int{4, 64} {
			p := &process{w: w, name: fmt.Sprint("r", wants), life: 1}
			w.procs = append(w.procs, p)
			part(fmt.Sprintf("a gang of %d is granted", wants), func() {
				p.until = w.now + time.Hour
				p.ask(Request{Policy: Pack, Wants: slices.Repeat([]Want{{Bytes: 8}}, wants)})
			})
			require.True(t, p.requester.complete)
			part(fmt.Sprintf("a gang of %d ends", wants), func() { p.over("released") })
		}
		for _, gangs := range []int{8, 32} {
			var all []*process
			part(fmt.Sprintf("%d gangs of 4 at once", gangs), func() {
				for i := range gangs {
					p := &process{w: w, name: fmt.Sprint("g", gangs, i), life: 1}
					all = append(all, p)
					p.until = w.now + time.Hour
					p.ask(Request{Policy: Spread, Wants: slices.Repeat([]Want{{Bytes: 1}}, 4)})
				}
			})
			for _, p := range all {
				require.True(t, p.requester.complete)
			}
			part("they end", func() {
				for _, p := range all {
					p.over("released")
				}
			})
		}
		part("a member leaves", func() {
			for _, p := range w.procs[:devices] {
				p.dead = true
				w.end(p.lease)
			}
		})
		require.Empty(t, w.watched.waiting["gang/"])
		return all
	}
	large := play(members, true)
	if number("VRAM_MEMBERS", 0) == 0 {
		for i, small := range play(members/2, true) {
			if i == 0 || small.written > 250 { // all that join, and gangs in each other's way
				continue
			}
			assert.LessOrEqual(t, large[i].revisions, small.revisions*5/4)
			assert.LessOrEqual(t, large[i].written, small.written*5/4)
			assert.LessOrEqual(t, large[i].reads, small.reads*5/4)
		}
	}
}
