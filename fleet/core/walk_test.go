package core

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-vram/vram/fleet/ledger"
)

// The processes of a walk: two owners with a device each, and two requesters that want memory on both.
const (
	owners  = 2
	walkers = 4
)

// A small world has few states, all of which a walk visits, breadth first: at each moment any process may look at the books, any
// message may arrive, and, up to a number of faults, a process may crash or be paused until its lease has ended, a transaction be lost
// or doubled, a snapshot be late, a device refuse, and a clock pass all times.
type small struct {
	capacity int64
	wants    [walkers - owners][2]int64 // bytes of each requester on one device or two
	faults   uint8
	mutated  mutation
	waiting  bool // the requests are in the books at the beginning
	urgent   bool // the first request has priority
	lates    bool // snapshots may be late: else it does not matter which a process has seen last
}

// place is a state of the small world. Snapshots, transactions and the states of processes are numbers in the walk's tables.
type place struct {
	books  int32
	ended  uint8 // the leases that have ended, a bit each
	faults uint8 // that are left
	procs  [walkers]part
	double int32   // a transaction that arrives again; 0: none
	late   delayed // a snapshot
}

// part is a process.
type part struct {
	core  int32
	out   int32 // a transaction on its way; 0: none
	life  uint8
	clock uint8
	phase phase
}

type delayed struct {
	books int32 // 0: none
	proc  uint8
	life  uint8
}

type phase uint8

const (
	runs phase = iota
	crashed
	over // a requester that has its end
)

// mind is the knowledge of a process, and its memory.
type mind struct {
	owner     Owner
	lent      []Hold // the reservations of its device
	fence     int64
	newest    int64  // revision
	known     []Hold // of its device, in the newest books that it has seen
	requester Requester
	answers   int
}

type lookKey struct {
	core, books int32
	proc, clock uint8
	refuse      bool
}

type looked struct {
	core, commit int32
	event        Event
	ended        bool // of an owner
	reserves     bool
	breach       *breach
}

type partKey struct {
	books int32
	keys  string
}

type applyKey struct {
	books, commit int32
	ended         uint8
	again         bool
}

type applied struct {
	books      int32
	leaseEnded bool
	breach     *breach
}

// table numbers values from 1 on by their text.
type table[T any] struct {
	all   []T
	known map[string]int32
}

func (t *table[T]) number(v T, text []byte) int32 {
	if n, ok := t.known[string(text)]; ok {
		return n
	}
	if t.known == nil {
		t.known = map[string]int32{}
	}
	t.all = append(t.all, v)
	t.known[string(text)] = int32(len(t.all))
	return int32(len(t.all))
}

func (t *table[T]) at(n int32) T { return t.all[n-1] }

// walk visits the states.
type walk struct {
	small

	snapshots table[ledger.Snapshot]
	read      []*Books // by snapshot
	parts     map[partKey]*Books
	commits   table[ledger.Transaction]
	minds     table[mind]
	looks     map[lookKey]looked
	applies   map[applyKey]applied

	seen   map[place]int32 // its number
	ends   map[place]bool  // that are drained
	places []place
	from   []int32 // the state before
	how    []string
	breach *breach
	text   []byte // scratch
}

func newWalk(of small) *walk {
	w := &walk{small: of, parts: map[partKey]*Books{}, looks: map[lookKey]looked{}, applies: map[applyKey]applied{}, seen: map[place]int32{}, ends: map[place]bool{}}
	start := place{books: w.numberBooks(ledger.Snapshot{Revision: 1}), faults: of.faults}
	for i := range start.procs {
		start.procs[i].core = w.born(i, 0)
	}
	for range 3 { // the devices are in the books, with their loads
		for i := range start.procs {
			if i < owners || of.waiting && len(w.read[start.books-1].Gangs) < walkers-owners {
				start = w.undisturbed(start, i)
			}
		}
	}
	w.visit(start, -1, "begin")
	return w
}

// run visits up to so many states, and returns how many.
func (w *walk) run(most int) int {
	at := 0
	for ; at < len(w.places) && at < most && w.breach == nil; at++ {
		w.leave(int32(at))
		if w.breach == nil {
			w.drain(int32(at))
		}
	}
	return at
}

// undisturbed is the state after a process has looked, and its transaction has arrived.
func (w *walk) undisturbed(p place, i int) place {
	p, _ = w.after(p, i, p.books, false, false)
	if out := p.procs[i].out; out != 0 {
		p.books, p.procs[i].out = w.apply(p, out, false).books, 0
	}
	return p
}

// visit enters a state, unless it was seen.
func (w *walk) visit(p place, from int32, format string, args ...any) {
	if w.breach != nil {
		return
	}
	if _, seen := w.seen[p]; seen {
		return
	}
	w.seen[p] = int32(len(w.places))
	w.places, w.from, w.how = append(w.places, p), append(w.from, from), append(w.how, fmt.Sprintf(format, args...))
}

func (w *walk) broken(b *breach, from int32, format string, args ...any) {
	if w.breach == nil {
		way := []string{fmt.Sprintf(format, args...)}
		for ; from >= 0; from = w.from[from] {
			way = append(way, w.how[from])
		}
		slices.Reverse(way)
		w.breach = &breach{b.class, b.text + "\n" + strings.Join(way, "\n")}
	}
}

func (w *walk) numberBooks(s ledger.Snapshot) int32 {
	text := strconv.AppendInt(w.text[:0], s.Revision, 10)
	for i := range s.Pairs {
		p := &s.Pairs[i]
		text = strconv.AppendQuote(text, p.Key)
		for _, n := range [...]int64{p.Create, p.Mod, p.Lease, int64(len(p.Value))} {
			text = append(strconv.AppendInt(text, n, 10), ' ')
		}
		text = append(text, p.Value...)
	}
	w.text = text
	n := w.snapshots.number(s, text)
	if int(n) > len(w.read) {
		w.read = append(w.read, new(Reader).Read(s))
	}
	return n
}

func (w *walk) numberCommit(t *ledger.Transaction) int32 {
	if t == nil {
		return 0
	}
	w.text = fmt.Appendf(w.text[:0], "%v", *t)
	return w.commits.number(*t, w.text)
}

func (w *walk) numberMind(i int, m mind) int32 {
	if !w.lates {
		m.owner.seen, m.requester.seen, m.newest, m.known = 0, 0, 0, nil
	}
	if i < owners {
		o := &m.owner
		w.text = fmt.Append(w.text[:0], i, o.device.OfferBytes, o.device.lease, o.seen, o.fence, o.life, o.ended, o.held, m.lent, m.fence, m.newest, m.known)
		return w.minds.number(m, w.text)
	}
	r := &m.requester
	w.text = fmt.Append(w.text[:0], i, r.seen, r.keys, r.announced, r.complete, r.ended, r.granted, r.avoided, m.answers)
	return w.minds.number(m, w.text)
}

func walkLease(i int, life uint8) int64 { return int64(1 + i + walkers*int(life)) }

func leaseBit(lease int64) uint8 { return 1 << (lease - 1) }

// born returns the state of a process at the beginning of a life.
func (w *walk) born(i int, life uint8) int32 {
	if i < owners {
		name := string(rune('a' + i))
		return w.numberMind(i, mind{owner: *NewOwner(Device{Name: name, Host: "h" + name, OfferBytes: w.capacity}, walkLease(i, life))})
	}
	request := Request{Policy: Pack}
	if w.urgent && i == owners {
		request.Priority = 1
	}
	for _, bytes := range w.wants[i-owners] {
		if bytes > 0 {
			request.Wants = append(request.Wants, Want{Bytes: bytes})
		}
	}
	r := NewRequester(fmt.Sprintf("t%d", i), walkLease(i, life), request, Settings{ReadyAfter: time.Minute, AvoidFor: time.Minute})
	return w.numberMind(i, mind{requester: *r})
}

// look has a process look at books.
func (w *walk) look(i int, core, books int32, clock uint8, refuse bool) looked {
	key := lookKey{core, books, uint8(i), clock, refuse}
	l, known := w.looks[key]
	if !known {
		m := w.minds.at(core)
		if i < owners {
			l = w.own(m, i, books, w.part(books, m.owner.Keys(), m.newest), refuse)
		} else {
			l = w.demand(m, i, books, clock)
		}
		w.looks[key] = l
	}
	return l
}

// part returns the books with the pairs of some keys alone, as a process reads them that has seen a revision.
func (w *walk) part(books int32, keys []string, newest int64) *Books {
	key := partKey{books, strings.Join(keys, " ")}
	b, known := w.parts[key]
	if !known {
		b = new(Reader).Read(w.snapshots.at(books).Of(keys...))
		w.parts[key] = b
	}
	seen := *b
	if w.mutated == skipFences {
		seen.Revision = max(b.Revision, newest)
	}
	if w.mutated == skipKeys {
		seen.keys = nil
	}
	return &seen
}

// own is the look of an owner, which carries its steps out.
func (w *walk) own(m mind, i int, books int32, b *Books, refuse bool) (l looked) {
	m.owner.held, m.lent = slices.Clone(m.owner.held), slices.Clone(m.lent)
	fail := func(class, format string, args ...any) {
		if l.breach == nil {
			l.breach = &breach{class, fmt.Sprintf(format, args...)}
		}
	}
	if s := w.snapshots.at(books); s.Revision >= m.newest {
		m.newest, m.known = s.Revision, nil
		for _, h := range w.read[books-1].Holds {
			if h.Device == m.owner.device.Name {
				known := *h
				known.Ready = false
				m.known = append(m.known, known)
			}
		}
	}
	same := func(h Hold) func(Hold) bool {
		return func(other Hold) bool { return other.Ticket == h.Ticket && other.Fence == h.Fence }
	}
	for {
		step := m.owner.Step(b)
		for _, h := range step.Release {
			if !step.Ended && slices.ContainsFunc(m.known, same(h)) {
				fail("fence", "%s releases %v, which the newest books that it has seen have", m.owner.device.Name, h)
			}
			m.lent = slices.DeleteFunc(m.lent, same(h))
		}
		for _, h := range step.Reserve {
			l.reserves = true
			if refuse {
				m.owner.Refused(h.Ticket)
				continue
			}
			if h.Fence <= m.fence {
				fail("fence", "%s reserves for fence %d after %d", m.owner.device.Name, h.Fence, m.fence)
			}
			h.Ready = false
			m.fence, m.lent = h.Fence, append(m.lent, h)
		}
		sum := int64(0)
		for _, h := range m.lent {
			sum += h.Bytes
			if !slices.ContainsFunc(m.known, same(h)) {
				fail("kept", "%s has memory for %v, which the newest books that it has seen do not have", m.owner.device.Name, h)
			}
		}
		if sum > w.capacity {
			fail("memory", "%s has %d bytes and reserved %d", m.owner.device.Name, w.capacity, sum)
		}
		if step.Commit != nil {
			l.commit = w.numberCommit(step.Commit)
			for _, put := range step.Commit.Put {
				if ticket, is := strings.CutPrefix(put.Key, readyPrefix+m.owner.device.Name+"/"); is && !slices.ContainsFunc(m.lent, func(h Hold) bool { return h.Ticket == ticket && string(value(readyMark{h.Fence})) == string(put.Value) }) {
					fail("grant", "%s is ready for %s without a reservation", m.owner.device.Name, ticket)
				}
			}
		}
		l.ended = step.Ended
		if len(step.Reserve) == 0 {
			break
		}
	}
	l.core = w.numberMind(i, m)
	return l
}

// demand is the look of a requester, which looks again where it lacks keys.
func (w *walk) demand(m mind, i int, books int32, clock uint8) (l looked) {
	newest := m.newest
	m.newest = max(m.newest, w.snapshots.at(books).Revision)
	step := RequesterStep{Again: true}
	for step.Again {
		step = m.requester.Step(1+time.Duration(clock)*time.Hour, w.part(books, m.requester.Keys(), newest))
	}
	if w.mutated == answerDoubles {
		m.requester.complete = false
	}
	if step.Event == Granted {
		m.answers++
		if m.answers > 1 {
			l.breach = &breach{"answers", fmt.Sprintf("%s was granted %d times", m.requester.gang.Ticket, m.answers)}
		}
	}
	l.commit, l.event, l.core = w.numberCommit(step.Commit), step.Event, w.numberMind(i, m)
	return l
}

// apply has a transaction arrive at the ledger; again: it has arrived before.
func (w *walk) apply(p place, commit int32, again bool) applied {
	key := applyKey{p.books, commit, p.ended, again}
	if a, known := w.applies[key]; known {
		return a
	}
	t := w.commits.at(commit)
	switch {
	case w.mutated == skipCompares:
		t.If = slices.DeleteFunc(slices.Clone(t.If), func(c ledger.Compare) bool { return c.Prefix })
	case w.mutated == skipOffer:
		t.If = slices.DeleteFunc(slices.Clone(t.If), func(c ledger.Compare) bool { return strings.HasPrefix(c.Key, devicePrefix) })
	case w.mutated == commitDoubles && again:
		t.If = nil
	}
	after, err := w.snapshots.at(p.books).Apply(t, func(lease int64) bool { return p.ended&leaseBit(lease) == 0 })
	a := applied{books: p.books, leaseEnded: errors.Is(err, ledger.ErrLeaseEnded)}
	if err == nil {
		a.books = w.numberBooks(after)
		b := w.read[a.books-1]
		for _, d := range b.Devices {
			grants := slices.ContainsFunc(t.Put, func(put ledger.Put) bool { return strings.HasPrefix(put.Key, holdPrefix+d.Name+"/") })
			if free := b.FreeBytes(d); free < 0 && grants {
				a.breach = &breach{"promised", fmt.Sprintf("%s offers %d and promised %d more", d.Name, d.OfferBytes, -free)}
			}
		}
	}
	w.applies[key] = a
	return a
}

// answered tells a process that its transaction came after the end of its lease.
func (w *walk) answered(p *place, i int, a applied) {
	if me := p.procs[i]; a.leaseEnded && me.phase == runs && p.ended&leaseBit(walkLease(i, me.life)) != 0 {
		w.over(p, i)
	}
}

// expire ends a lease at the ledger.
func (w *walk) expire(p *place, lease int64) {
	if w.mutated == skipExpiry || p.ended&leaseBit(lease) != 0 {
		return
	}
	p.ended |= leaseBit(lease)
	p.books = w.numberBooks(w.snapshots.at(p.books).Expire(func(id int64) bool { return p.ended&leaseBit(id) == 0 }))
}

// after is the state after the look of a process at books; lost: its transaction does not leave.
func (w *walk) after(p place, i int, books int32, refuse, lost bool) (place, looked) {
	me := &p.procs[i]
	l := w.look(i, me.core, books, me.clock, refuse)
	me.core = l.core
	if l.commit != 0 && !lost {
		me.out = l.commit
	}
	if l.ended || l.event == Lost || l.event == Ended {
		w.over(&p, i)
	}
	return p, l
}

// over ends a requester, or this life of an owner, with its lease.
func (w *walk) over(p *place, i int) {
	me := &p.procs[i]
	w.expire(p, walkLease(i, me.life))
	me.phase = over
	if i < owners {
		w.revive(p, i)
	}
}

// revive begins the second life of an owner.
func (w *walk) revive(p *place, i int) {
	me := &p.procs[i]
	if me.life > 0 {
		me.phase = over
		return
	}
	me.life, me.phase = 1, runs
	me.core = w.born(i, 1)
}
