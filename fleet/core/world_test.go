package core

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/go-vram/vram/fleet/ledger"
)

// A world runs requesters and owners on one ledger from one seed: an event is a message that arrives or a timer. Messages are lost,
// doubled, late and overtake each other; processes are paused, crash and start again; clocks differ. With locks a lease ends with its
// process; otherwise it ends leaseTime after the last sign of life that reached the ledger, by the ledger's clock.
type world struct {
	seed    uint64
	locks   bool
	busy    bool // more requesters, which hold and rest for shorter times
	calm    bool // no more faults, and no new requests
	rng     *rand.Rand
	now     time.Duration
	events  agenda
	count   uint64 // of events, which orders equal times
	procs   []*process
	mutated mutation

	books   ledger.Snapshot
	history map[int64]ledger.Snapshot // by revision, the newest ones
	leases  map[int64]*lease
	last    int64 // lease

	draws   int          // of faults
	allowed map[int]bool // the only faults that happen; nil: all that are drawn
	fired   []int

	passes   map[string]int // of gangs, counted without the core
	reserved map[string]int64
	granted  map[string]int
	answers  int // how many requests got memory
	breach   *breach
	verbose  bool
	log      []string
	watched  *watched // processes wait for changes; nil: they look now and then
}

type lease struct {
	holder *process
	life   int
	until  time.Duration // without locks
	ended  bool
}

type breach struct{ class, text string }

// mutation is a bug that is planted around the core, to see that it is found.
type mutation uint8

const (
	correct       mutation = iota
	skipExpiry             // the ledger never ends the lease of a crashed process
	skipFences             // old snapshots count as new ones
	skipCompares           // a grant does not compare the gangs
	skipRelease            // an owner keeps memory whose hold is gone
	commitDoubles          // a transaction that arrives twice is carried out twice
	skipOffer              // a grant does not compare the devices
	answerDoubles          // a requester that is asked again answers again
	skipKeys               // the books of some keys count as all books
)

const leaseTime = 3 * time.Second

type event struct {
	at    time.Duration
	count uint64
	run   func()
	to    *process // nil: the ledger
	life  int
}

type agenda []*event

func (a agenda) Len() int      { return len(a) }
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a agenda) Less(i, j int) bool {
	return a[i].at < a[j].at || a[i].at == a[j].at && a[i].count < a[j].count
}
func (a *agenda) Push(e any) { *a = append(*a, e.(*event)) }
func (a *agenda) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

// process runs one owner or one requester at a time, and begins again after its end.
type process struct {
	w           *world
	name        string
	host        string // of its device
	life        int
	dead        bool
	pausedUntil time.Duration
	offset      time.Duration // of its clock
	lease       int64
	reader      Reader
	timer       int // the newest poll; older ones are dropped
	newest      int64
	watches     []string // keys whose change it waits for; nil: it is about to look

	owner *Owner
	memory
	requester *Requester
	ticket    string
	until     time.Duration // when the requester releases or gives up
}

// memory is the physical memory of an owner's device.
type memory struct {
	capacity int64
	lent     map[string]Hold
	fence    int64
}

func newWorld(seed uint64, m mutation) *world {
	w := &world{
		seed: seed, locks: seed%2 == 0, rng: rand.New(rand.NewPCG(seed, 1)), mutated: m, books: ledger.Snapshot{Revision: 1},
		history: map[int64]ledger.Snapshot{}, leases: map[int64]*lease{}, passes: map[string]int{}, reserved: map[string]int64{}, granted: map[string]int{},
	}
	for i := range 2 + w.rng.IntN(3) {
		w.procs = append(w.procs, &process{w: w, name: fmt.Sprintf("d%d", i), host: fmt.Sprintf("h%d", i), memory: memory{capacity: int64(4 + w.rng.IntN(8))}})
	}
	w.busy = w.rng.IntN(2) == 0
	requesters := 2 + w.rng.IntN(5)
	if w.busy {
		requesters *= 2
	}
	for i := range requesters {
		w.procs = append(w.procs, &process{w: w, name: fmt.Sprintf("r%d", i)})
	}
	for _, p := range w.procs {
		p.offset = time.Duration(1+w.rng.IntN(1000)) * time.Second
		p.start()
	}
	return w
}

// play runs so many events, then lets all requests come to their end, and checks that nothing is left.
func (w *world) play(steps int) int {
	n := 0
	for ; n < steps && w.breach == nil && w.next(); n++ {
	}
	w.calm = true
	calmed := w.now
	for _, p := range w.procs {
		if p.dead {
			p.start()
		}
		p.pausedUntil = 0
	}
	for done := false; w.breach == nil && !done && w.now < calmed+2*time.Minute && w.next(); n++ {
		if n%1000 == 0 {
			done = true
			w.settled(func(string, string, ...any) { done = false })
		}
	}
	if w.breach == nil {
		w.checkEnd()
	}
	return n
}

func (w *world) next() bool {
	if len(w.events) == 0 {
		return false
	}
	e, _ := heap.Pop(&w.events).(*event)
	w.now = max(w.now, e.at)
	if p := e.to; p != nil {
		if p.life != e.life || p.dead {
			return true
		}
		if p.pausedUntil > w.now {
			e.at = p.pausedUntil
			heap.Push(&w.events, e)
			return true
		}
	}
	e.run()
	return true
}

// in runs a function later, in a process unless that has crashed.
func (w *world) in(after time.Duration, to *process, run func()) {
	w.count++
	e := &event{at: w.now + after, count: w.count, run: run, to: to}
	if to != nil {
		e.life = to.life
	}
	heap.Push(&w.events, e)
}

// fault draws whether one of so many chances of a fault comes.
func (w *world) fault(what string, of uint64) bool {
	if w.calm {
		return false
	}
	w.draws++
	x := (w.seed + uint64(w.draws)*0x9E3779B97F4A7C15) ^ w.seed<<32
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	if (x^x>>31)%of != 0 || w.allowed != nil && !w.allowed[w.draws] {
		return false
	}
	w.fired = append(w.fired, w.draws)
	w.tell("fault: %s", what)
	return true
}

func (w *world) tell(format string, args ...any) {
	if w.verbose {
		w.log = append(w.log, fmt.Sprintf("%8.3fs ", w.now.Seconds())+fmt.Sprintf(format, args...))
	}
}

func (w *world) broken(class, format string, args ...any) {
	if w.breach == nil {
		w.breach = &breach{class, fmt.Sprintf(format, args...)}
		w.tell("broken: %s: %s", class, w.breach.text)
	}
}

// upTo returns a time of up to so many milliseconds, of a tenth where the world is busy.
func (w *world) upTo(milliseconds int) time.Duration {
	if w.busy {
		milliseconds /= 10
	}
	return time.Duration(w.rng.IntN(milliseconds)) * time.Millisecond
}

func (w *world) delay() time.Duration {
	return time.Duration(1+w.rng.IntN(20)) * time.Millisecond
}

// send carries a message to a process, or to the ledger without one.
func (w *world) send(to *process, run func()) {
	if w.fault("a message is lost", 60) {
		return
	}
	after := w.delay()
	if w.fault("a message is late", 80) {
		after += time.Duration(w.rng.IntN(8000)) * time.Millisecond
	}
	w.in(after, to, run)
	if w.fault("a message is doubled", 60) {
		w.in(w.delay()+time.Duration(w.rng.IntN(3000))*time.Millisecond, to, run)
	}
}

func (w *world) live(id int64) bool {
	l := w.leases[id]
	if l == nil {
		return false
	}
	if !l.ended && !w.locks && w.now >= l.until && w.mutated != skipExpiry {
		l.ended = true
	}
	return !l.ended
}

// end ends a lease at the ledger.
func (w *world) end(id int64) {
	if l := w.leases[id]; l != nil && w.mutated != skipExpiry {
		l.ended = true
		w.watched.expire(w)
	}
}

// current returns the newest state, without pairs of ended leases.
func (w *world) current() ledger.Snapshot {
	if w.watched == nil { // else they are gone already
		w.record(w.books.Expire(w.live))
	}
	return w.books
}

func (w *world) record(s ledger.Snapshot) {
	if s.Revision == w.books.Revision {
		return
	}
	w.watched.wake(w, w.books, s)
	w.books = s
	if w.watched != nil {
		return
	}
	w.history[s.Revision] = s
	delete(w.history, s.Revision-5000)
	for id, l := range w.leases { // of lives that are over
		if l.ended && len(w.leases) > 100 {
			delete(w.leases, id)
		}
	}
}

// commit carries a transaction out at the ledger.
func (w *world) commit(t ledger.Transaction, again bool) error {
	before := w.current()
	planned := w.planned(t)
	switch {
	case w.mutated == skipCompares:
		t.If = slices.DeleteFunc(slices.Clone(t.If), func(c ledger.Compare) bool { return c.Prefix })
	case w.mutated == skipOffer:
		t.If = slices.DeleteFunc(slices.Clone(t.If), func(c ledger.Compare) bool { return strings.HasPrefix(c.Key, devicePrefix) })
	case w.mutated == commitDoubles && again:
		t.If = nil
	}
	after, err := before.Apply(t, w.live)
	if err != nil {
		w.watched.refused()
		return err
	}
	w.record(after)
	w.checkCommit(t, planned)
	return nil
}

// planned returns the state that a transaction was planned from, where it compares a queue.
func (w *world) planned(t ledger.Transaction) *ledger.Snapshot {
	for _, c := range t.If {
		if c.Prefix && c.Key == gangPrefix {
			if s, ok := w.history[c.Mod]; ok {
				return &s
			}
		}
	}
	return nil
}
