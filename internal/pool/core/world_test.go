package core

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-vram/vram/cudadrv"

	"github.com/go-vram/vram/internal/effect"
	"github.com/go-vram/vram/internal/pool/memory"
)

const pageBytes = 1 << 20 // parts of 1/1024 of a few pages are no fractions then

// failer is a test as far as a world needs it.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// world is everything around a core, as dumb as it can be: a page, its owner; a client, the last of its
// fences that has passed; a request, whether it was answered. It judges every effect by that alone.
type world struct {
	t        failer
	core     *Core
	driver   *dumb
	settings Settings

	pages   []owned
	clients map[Client]*holder
	refills map[uint64]Refill
	owed    drawing           // in the step at hand; zero for none
	ends    map[uint64]string // tokens of requests that an End will complete
	asked   map[Client]bool
	asks    []Ask       // all that there were
	looks   int         // rounds of Looks that no Looked has ended yet
	candid  bool        // clients look at once
	mute    bool        // the driver does not report its free memory
	onGrant func(Grant) // is told of each
	onLook  func(Client)

	disturbed uint64          // the newest token at the last injected failure or change of limits: requests up to it may be refused
	refused   map[Client]bool // requests for several runs, by the effects at hand
	mail      []Return        // on its way to the core
	token     uint64

	job       *Job
	epoch     int // of the settings
	jobEpoch  int
	undoing   bool // the job in flight follows a failed one, or closes
	undoLost  bool // such a job has failed
	closing   bool
	closed    bool
	abandoned bool
	watches   []Watch // that have not ended
	idle      bool    // no client has work
	lastWatch uint64
	log       []string
}

// owned is a page: who holds it, or who held it last and under which fence it came back.
type owned struct {
	owner, last Client
	fence       Fence
}

type holder struct {
	issued, passed Fence
	stuck          bool // its fences never pass
	excluded       bool
	behind         map[Client]Fence // that its stream waits for on the device
	left, gone     bool
	reserves       bool
	live           int64 // pages that its callers use
	free           published
}

func newWorld(t failer, pages, capacity uint32, s Settings) *world {
	return &world{
		t: t, core: New(pageBytes, pages, s), driver: newDumb(pages, capacity), settings: s,
		pages: make([]owned, pages), clients: map[Client]*holder{}, refills: map[uint64]Refill{},
		ends: map[uint64]string{}, asked: map[Client]bool{},
	}
}

func (w *world) failf(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("%s\nafter:\n%s", fmt.Sprintf(format, args...), w.history())
}

func (w *world) history() (s string) {
	for _, line := range w.log[max(0, len(w.log)-40):] {
		s += "  " + line + "\n"
	}
	return s
}

// send gives the core a message and judges the effects.
func (w *world) send(m Message) {
	w.log = append(w.log, fmt.Sprintf("%T%+v", m, m))
	if r, ok := m.(Refill); ok {
		r.RequestedBytes, r.BlockBytes = r.Bytes, r.Bytes
		if r.Patience != Waiting {
			r.OpenBytes = r.Bytes
		}
		m = r
	}
	w.tellUsage(m)
	w.judge(w.core.Step(m))
	if c := w.core; c.clients.givenPeak.Peak() > c.peakReservedBytes() {
		w.failf("a live peak of %d over %d reserved", c.clients.givenPeak.Peak(), c.peakReservedBytes())
	}
	w.lookAtOnce()
}

// lookAtOnce completes the looks of clients that look at once.
func (w *world) lookAtOnce() {
	for w.candid && w.looks > 0 {
		w.endLooks()
	}
}

// endLooks makes the clients of a round of Looks collect freed memory.
func (w *world) endLooks() {
	w.looks--
	w.send(Looked{})
}

// published holds a client's published figures of its free pages: zero stands for all its unused pages, in one run.
type published struct {
	set          bool
	pages, atMax uint32 // of the longest run
	stale        bool   // until it looks
}

// tellUsage sets the clients' published figures in the core, as the shell does before messages whose decisions depend on them.
func (w *world) tellUsage(m Message) {
	_, looked := m.(Looked)
	switch m.(type) {
	case Refill, Looked, Tick:
		for id := Client(1); int(id) <= len(w.clients); id++ {
			if c := w.clients[id]; !c.gone {
				if c.free.stale = c.free.stale && !looked; looked && w.onLook != nil {
					w.onLook(id)
				}
				w.core.SetUsage(id, w.usage(id))
			}
		}
	}
}

// usage returns a client's published figures.
func (w *world) usage(id Client) Usage {
	c := w.clients[id]
	u := Usage{UsedBytes: c.live * pageBytes, FreePages: c.free.pages, MaxFreePages: c.free.atMax, Stale: c.free.stale}
	if !c.free.set {
		u.FreePages = uint32(max(0, int64(w.held(id))-c.live)) //nolint:gosec // of a small arena
		u.MaxFreePages = u.FreePages
	}
	return u
}

func (w *world) judge(fx *Effects) {
	w.refused = map[Client]bool{} // their clients keep the runs that they had
	for _, d := range effect.Left(&fx.Denials) {
		w.refused[d.Client] = w.refused[d.Client] || len(w.refills[d.Token].More) > 0
	}
	for _, g := range effect.Left(&fx.Grants) {
		w.granted(g)
	}
	for _, d := range effect.Left(&fx.Denials) {
		w.denied(d, fx)
	}
	for _, a := range effect.Left(&fx.Asks) {
		if c := w.clients[a.Client]; c == nil || c.gone || c.reserves || w.asked[a.Client] {
			w.failf("client %d is asked: %+v, asked already: %t", a.Client, c, w.asked[a.Client])
		}
		w.asked[a.Client], w.asks = true, append(w.asks, a)
		if a.Pages == 0 {
			w.say("ask %d", a.Client)
		} else {
			w.say("ask %d for %d", a.Client, a.Pages)
		}
	}
	for _, id := range effect.Left(&fx.Looks) {
		if c := w.clients[id]; c == nil || c.gone || c.reserves {
			w.failf("client %d is to look: %+v", id, c)
		}
		if !w.candid {
			w.say("look %d", id)
		}
	}
	if len(effect.Left(&fx.Looks)) > 0 {
		w.looks++
	}
	if fx.Job != nil {
		if w.job != nil {
			w.failf("a second job is started: %+v beside %+v", fx.Job, w.job)
		}
		w.job, w.jobEpoch = fx.Job, w.epoch
		w.undoing = fx.Job.Purpose == memory.Rollback || fx.Job.Purpose == memory.CloseAll
		w.say("%s", describe(fx.Job))
	}
	for _, e := range effect.Left(&fx.Ends) {
		w.ended(e)
	}
	for _, id := range effect.Left(&fx.Gone) {
		c := w.clients[id]
		if c == nil || !c.left || c.gone || w.held(id) > 0 && !w.closing {
			w.failf("client %d, %+v, which holds %d pages, is forgotten", id, c, w.held(id))
		}
		c.gone = true
		delete(w.asked, id)
		w.say("forget %d", id)
	}
	w.check()
}

// granted holds a grant against the pages: mapped, accessible, nobody's, and safe for that client.
func (w *world) granted(g Grant) {
	c := w.clients[g.Client]
	if c == nil || c.gone || w.closing || w.abandoned {
		w.failf("%+v for a client that is %+v", g, c)
	}
	if w.owed.token != 0 && g.Client == w.refills[w.owed.token].Client {
		w.drawn(g)
		return
	}
	r, ok := w.refills[g.Token]
	if g.Token != 0 {
		if !ok || r.Client != g.Client || !fits(r, g) {
			w.failf("%+v answers %+v (waiting: %t)", g, r, ok)
		}
		delete(w.refills, g.Token)
	}
	for _, run := range append([]Run{g.Run}, g.More...) {
		w.grantedRun(g, run)
	}
	if w.onGrant != nil {
		w.onGrant(g)
	}
	if c.reserves {
		w.spare(r, g)
	}
}

// fits reports whether the runs of a grant hold all runs that were asked for, each in one piece.
func fits(r Refill, g Grant) bool {
	var runs []uint32
	for _, run := range append([]Run{g.Run}, g.More...) {
		runs = append(runs, run.Pages)
	}
	return packs(append([]uint32{max(1, r.Pages)}, r.More...), runs)
}

// packs tries every place for each of the lengths.
func packs(wanted, runs []uint32) bool {
	if len(wanted) == 0 {
		return true
	}
	for i := range runs {
		if runs[i] < wanted[0] {
			continue
		}
		runs[i] -= wanted[0]
		if packs(wanted[1:], runs) {
			return true
		}
		runs[i] += wanted[0]
	}
	return false
}

func (w *world) grantedRun(g Grant, run Run) {
	for i := run.First; i < run.First+run.Pages; i++ {
		p, d := &w.pages[i], w.driver.pages[i]
		if p.owner != 0 || d.handle == 0 || !d.accessible {
			w.failf("%+v: page %d is %+v, %+v", g, i, *p, d)
		}
		if p.last != g.Client && !w.clean(*p) && w.clients[g.Client].behind[p.last] < p.fence {
			w.failf("%+v: page %d is %+v, and that fence has not passed", g, i, *p)
		}
		if g.Token == 0 && p.last != g.Client && !w.refused[g.Client] {
			w.failf("%+v: page %d is %+v, no home of that client", g, i, *p)
		}
		*p = owned{owner: g.Client}
	}
	w.say("grant %d #%d %d+%d", g.Client, g.Token, run.First, run.Pages)
}

func (w *world) clean(p owned) bool { return p.last == 0 || p.fence <= w.clients[p.last].passed }

func (w *world) denied(d Denial, fx *Effects) {
	r, ok := w.refills[d.Token]
	if !ok || r.Client != d.Client {
		w.failf("%+v answers %+v (waiting: %t)", d, r, ok)
	}
	delete(w.refills, d.Token)
	if s := d.Shortage; s.ReservedBytes != w.reservedBytes() || s.LimitBytes != w.settings.LimitBytes || s.RequestedBytes != r.Bytes {
		w.failf("%+v with %d bytes reserved of %d, %d asked for", d, w.reservedBytes(), w.settings.LimitBytes, r.Bytes)
	}
	if w.closing && !errors.Is(d.Err, ErrClosed) {
		w.failf("%+v after Close", d)
	}
	w.checkDenial(d, r)
	w.checkShortage(d, r, fx)
	s := d.Shortage
	w.say("deny %d #%d, %v: %d wanted, %d free (longest %d, pending %d), %d of %d reserved%s", d.Client, d.Token, d.Err,
		s.RequestedBytes/pageBytes, s.FreeBytes/pageBytes, s.LargestFreeBytes/pageBytes, s.PendingBytes/pageBytes,
		s.ReservedBytes/pageBytes, s.LimitBytes/pageBytes, holdings(s.Holdings))
}

func (w *world) ended(e End) {
	what, ok := w.ends[e.Token]
	if !ok {
		w.failf("%+v ends what does not wait", e)
	}
	delete(w.ends, e.Token)
	w.say("end of %s #%d: %d pages, %v", what, e.Token, e.Bytes/pageBytes, e.Err)
	if what != "close" || errors.Is(e.Err, ErrClosed) || w.abandoned {
		return
	}
	w.closed = true
	if left := w.reservedBytes(); left != w.core.lostBytes() || (e.Err == nil) != (left == 0) || (left > 0 && !w.undoLost) {
		w.failf("%+v with %d bytes still there, %d lost, a give-back failed: %t", e, left, w.core.lostBytes(), w.undoLost)
	}
}

func (w *world) reservedBytes() int64 { return int64(w.driver.made) * pageBytes }

func (w *world) held(id Client) (n int) {
	for i := range w.pages {
		if w.pages[i].owner == id {
			n++
		}
	}
	return n
}

// check holds the books against themselves, against the driver, and against the pages.
func (w *world) check() {
	if err := w.core.Check(); err != nil {
		w.failf("%v", err)
	}
	c := w.core
	if c.ReservedBytes() != w.reservedBytes() {
		w.failf("%d bytes are reserved, the driver holds %d", c.ReservedBytes(), w.reservedBytes())
	}
	if c.peakReservedBytes() != int64(w.driver.most)*pageBytes {
		w.failf("the peak is %d bytes, the driver once held %d pages", c.peakReservedBytes(), w.driver.most)
	}
	if !w.undoLost && c.lostBytes() != 0 {
		w.failf("%d bytes lost, and no give-back has failed", c.lostBytes())
	}
	if c.InFlight() != w.job {
		w.failf("in flight is %p, not %p", c.InFlight(), w.job)
	}
	for i := range c.memory.Top() {
		w.checkPage(i)
	}
	w.checkTags()
	w.checkWaiting()
	w.checkReservations()
}

// checkTags: no work uses pages that the books call clean, and pages that the books reserve for one client's use were last that
// client's, under no later fence.
func (w *world) checkTags() {
	if w.closing || w.abandoned { // nobody is granted anything any more
		return
	}
	w.core.eachFree(func(run Run, tag memory.Tag) {
		for at := run.First; at < run.End(); at++ {
			if p := w.pages[at]; !w.clean(p) && (tag.Client != p.last || tag.Fence < p.fence) {
				w.failf("free page %d is under %+v in the books, its last use is %+v", at, tag, p)
			}
		}
	})
}

func (w *world) checkPage(i uint32) {
	t, p, d := w.core.memory.Page(i), w.pages[i], w.driver.pages[i]
	ok := true
	switch t.State {
	case memory.Hole:
		ok = d.handle == 0 && p.owner == 0
	case memory.Free:
		ok = d.accessible && p.owner == 0
	case memory.Lent:
		ok = d.accessible && (p.owner == t.Holder || p.owner == 0 && (t.Holder == warmClient || w.collecting(i) || w.closing || w.abandoned))
	case memory.Busy: // of the job; a closing pool takes lent pages
		ok = p.owner == 0 || w.closing
	}
	if h := t.Handle; h >= 0 && d.handle != w.nameOf(h) || h < 0 && d.handle != 0 {
		ok = false
	}
	if !ok {
		w.failf("page %d is %+v in the books, %+v for its holder, %+v for the driver", i, t, p, d)
	}
}

// collecting reports whether a page was lent for a refill that waits for more.
func (w *world) collecting(page uint32) bool {
	for _, r := range w.core.queue.refills {
		for _, run := range r.lent {
			if run.Contains(page) {
				return true
			}
		}
	}
	return false
}

// nameOf returns the driver's name of a handle or a segment.
func (w *world) nameOf(h int32) cudadrv.Handle {
	if w.core.memory.Plain() {
		return cudadrv.Handle(w.core.memory.Handle(h).Address)
	}
	return w.core.memory.Handle(h).ID
}

// checkWaiting: exactly the unanswered requests wait, and none waits for free memory.
func (w *world) checkWaiting() {
	if n := w.core.unanswered(); !w.abandoned && !w.closing && n != len(w.refills)+len(w.ends) {
		w.failf("%d requests wait in the books, %d refills and %d others outside", n, len(w.refills), len(w.ends))
	}
	longest := map[Client]uint32{}
	w.core.eachFree(func(run Run, tag memory.Tag) { longest[tag.Client] = max(longest[tag.Client], run.Pages) })
	for token, r := range w.refills {
		at := slices.IndexFunc(w.core.queue.refills, func(q *request) bool { return q.token == token })
		first := 0
		if at >= 0 && (len(r.More) == 0 || at == first) { // several runs are for the first alone
			wanted := w.core.queue.refills[at].pages
			if n := max(longest[0], longest[r.Client]); n >= wanted {
				w.failf("refill %d waits for %d pages beside a free run of %d", token, wanted, n)
			}
		}
		if w.clients[r.Client].left {
			w.failf("refill %d waits, its client has left", token)
		}
	}
}

// perform makes the job's calls in the dumb driver and tells the core. failAt is the operation that
// fails with err; a query has none and fails as a whole.
func (w *world) perform(failAt int, err error) {
	j := w.job
	done := JobDone{Job: j}
	if failAt >= 0 {
		w.disturbed = w.token
	}
	if len(j.Ops) == 0 && failAt == 0 {
		done.Err = err
	}
	for i := range j.Ops {
		if i == failAt {
			done.Err = err
			break
		}
		if done.Err = w.call(j, i); done.Err != nil {
			if errors.Is(done.Err, cudadrv.OutOfMemory) && !w.mute {
				done.FreeBytes = max(0, int64(w.driver.capacity)-int64(w.driver.made)) * pageBytes
			}
			break
		}
		done.Done++
	}
	for _, id := range slices.Sorted(maps.Keys(w.clients)) {
		if p := w.clients[id].passed; p > 0 {
			done.Passed = append(done.Passed, Passed{id, p})
		}
	}
	done.Idle = w.idle
	if done.Err == nil {
		done.Watched = w.watch(j)
	}
	w.undoLost = w.undoLost || w.undoing && done.Err != nil
	w.job = nil
	w.log = append(w.log, fmt.Sprintf("done %d of %d: %v, passed %v", done.Done, len(j.Ops), done.Err, done.Passed))
	w.judge(w.core.Step(done))
	w.lookAtOnce()
}

// watch begins a watch over each client of the job that has fences to pass and is not watched yet.
func (w *world) watch(j *Job) (begun []Watch) {
	for _, id := range j.Watch {
		if c := w.clients[id]; c.excluded && w.jobEpoch == w.epoch && w.core.clients.all[id] != nil {
			w.failf("client %d is waited for, though its kernels need not end", id)
		} else if c.stuck || c.passed >= c.issued {
			continue
		}
		at := slices.IndexFunc(w.watches, func(m Watch) bool { return m.Client == id })
		if at < 0 {
			w.lastWatch++
			at, w.watches = len(w.watches), append(w.watches, Watch{Client: id, Number: w.lastWatch})
		}
		begun = append(begun, w.watches[at])
	}
	return begun
}

// endWatch makes the fences of a watched client pass, or the wait for them fail, and tells the core.
func (w *world) endWatch(at int, err error) {
	m := w.watches[at]
	w.watches = slices.Delete(w.watches, at, at+1)
	if c := w.clients[m.Client]; err == nil {
		c.passed = c.issued
	} else {
		w.disturbed = w.token
	}
	w.send(WatchOver{Watch: m, Err: err})
}

// call judges one operation and makes it.
func (w *world) call(j *Job, i int) error {
	op := &j.Ops[i]
	if op.Verb == memory.Map && op.Handle == 0 {
		op.Handle = j.Ops[i-1].Handle
	}
	if op.Verb == memory.Unmap || op.Verb == memory.FreePlain {
		for at := op.Run.First; at < op.Run.First+op.Run.Pages; at++ {
			if p := &w.pages[at]; !w.closing && (p.owner != 0 || !w.clean(*p)) {
				w.failf("%v of page %d, which is %+v", op.Verb, at, *p)
			}
			w.pages[at] = owned{}
		}
	}
	if (op.Verb == memory.Create || op.Verb == memory.AllocPlain) && w.jobEpoch == w.epoch && w.reservedBytes()+int64(op.Run.Pages)*pageBytes > w.settings.LimitBytes {
		w.failf("%d more pages beside %d break the limit of %d", op.Run.Pages, w.driver.made, w.settings.LimitBytes/pageBytes)
	}
	if op.Verb == memory.Await {
		if w.clients[j.Waiter].reserves {
			return errNoStream
		}
		w.follow(j.Waiter, op)
	}
	nonsense, err := w.driver.call(op)
	if nonsense != nil {
		w.failf("%v", nonsense)
	}
	return err
}

// follow makes a client's stream wait for a fence that there is.
func (w *world) follow(id Client, op *memory.Op) {
	c := w.clients[id]
	if c == nil || op.Of == id || op.Fence == 0 || op.Fence > w.clients[op.Of].issued || w.settings.Waits == WaitsNever && w.jobEpoch == w.epoch {
		w.failf("client %d, %+v, waits for %d of client %d", id, c, op.Fence, op.Of)
	}
	if c.behind == nil {
		c.behind = map[Client]Fence{}
	}
	c.behind[op.Of] = max(c.behind[op.Of], op.Fence)
}

// say notes an effect.
func (w *world) say(format string, args ...any) {
	w.log = append(w.log, "-> "+fmt.Sprintf(format, args...))
}

func holdings(hs []Holding) (s string) {
	for _, h := range hs {
		s += fmt.Sprintf(", %d holds %d (live %d)", h.Client, h.HeldBytes/pageBytes, h.LiveBytes/pageBytes)
	}
	return s
}

// describe returns a job in one line.
func describe(j *Job) string {
	var s strings.Builder
	s.WriteString([...]string{
		memory.Nothing: "query", memory.Fill: "window", memory.Shrink: "release", memory.Rollback: "rollback", memory.CloseAll: "last",
	}[j.Purpose] + " job")
	for _, id := range j.Poll {
		fmt.Fprintf(&s, " poll %d", id)
	}
	for _, id := range j.Watch {
		fmt.Fprintf(&s, " watch %d", id)
	}
	for _, op := range j.Ops {
		switch op.Verb {
		case memory.Unmap, memory.Access:
			fmt.Fprintf(&s, ", %s %d+%d", nameOf(op.Verb), op.Run.First, op.Run.Pages)
		case memory.Create:
			fmt.Fprintf(&s, ", create #%d of %d", op.Index, op.Run.Pages)
		case memory.Map, memory.AllocPlain, memory.FreePlain:
			fmt.Fprintf(&s, ", %s #%d %d+%d", nameOf(op.Verb), op.Index, op.Run.First, op.Run.Pages)
		case memory.Release:
			fmt.Fprintf(&s, ", release #%d", op.Index)
		case memory.Await:
			fmt.Fprintf(&s, ", %d awaits %d of %d", j.Waiter, op.Fence, op.Of)
		}
	}
	return s.String()
}

var errBroken = &cudadrv.CallError{Func: "cuMemMap", Result: cudadrv.MapFailed}
