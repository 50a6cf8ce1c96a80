package core

import (
	"errors"
	"slices"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/effect"
)

// chooser makes the random choices.
type chooser interface {
	pick(n int) int // 0 up to n-1
	more() bool
}

// randomWorld draws the constants of a world.
func randomWorld(t failer, ch chooser) *world {
	s := Settings{
		Policy: Policy{
			HandlePages: uint32(1 + ch.pick(6)), Step: int64(ch.pick(3) * 100), SteadyStep: int64(ch.pick(3) * 150),
			Slack: int64(ch.pick(3) * 200), SteadySlack: int64(ch.pick(3) * 100),
			MergePages: uint32(ch.pick(3) * ch.pick(4)), SpareBytes: int64(ch.pick(3)*ch.pick(3)) * pageBytes, //nolint:gosec // a few
			SharedSlack: int64(ch.pick(2) * 300), OverStep: int64(ch.pick(3) * 150),
			LongPages: uint32(ch.pick(3) * 6), //nolint:gosec // a few
			PageWorth: int64(ch.pick(3) * 12),
		},
		LimitBytes: int64(4+ch.pick(36)) * pageBytes,
	}
	s.Policy.MostSharedSlack = s.Policy.SharedSlack + s.Policy.OverStep
	if ch.pick(3) == 0 {
		s.CacheBytes, s.CacheRuns = int64(ch.pick(8))*pageBytes, ch.pick(4)
	}
	s.Waits = Waits(ch.pick(3))                  //nolint:gosec // 0 to 2
	s.AgeTicks = uint32(ch.pick(4) * ch.pick(3)) //nolint:gosec // a few
	w := newWorld(t, uint32(16+ch.pick(48)), uint32(4+ch.pick(50)), s)
	if ch.pick(3) == 0 {
		w.core = NewPlain(pageBytes, uint32(len(w.pages)), s)
	}
	w.mute = ch.pick(4) == 0
	for range 1 + ch.pick(3) {
		w.join()
	}
	for range ch.pick(3) {
		w.reserve(ch)
	}
	return w
}

// act performs one random action, if it can.
func (w *world) act(ch chooser) {
	if w.abandoned { // the actor has ended: only its closer and the driver are left
		if w.job != nil {
			w.finishJob(ch)
		} else if ch.pick(4) == 0 {
			w.close()
		}
		return
	}
	switch n := ch.pick(100); {
	case n < 24:
		w.refill(ch)
	case n < 40:
		w.giveBack(ch, false)
	case n < 50:
		w.deliver(ch)
	case n < 60:
		w.answer(ch)
		w.tell(ch)
	case n < 82:
		w.finishJob(ch)
	case n < 89:
		w.idle = ch.pick(2) == 0
		w.pass(ch)
	case n < 98:
		w.seldom(ch)
	case n < 99:
		w.reconfigure(ch)
	default:
		w.end(ch)
	}
}

// seldom performs a rare action.
func (w *world) seldom(ch chooser) {
	switch ch.pick(12) {
	case 0:
		w.join()
	case 1:
		if id := w.some(ch); !w.clients[id].left && !w.clients[id].reserves {
			w.clients[id].left = true
			w.send(Leave{Client: id})
		}
	case 2, 3:
		w.warm(ch)
	case 4, 5:
		w.token++
		w.await("trim")
		w.send(Trim{Token: w.token, KeepBytes: int64(ch.pick(20)) * pageBytes})
	case 6:
		w.send(Tick{})
	case 7:
		if id := w.some(ch); id != 0 && ch.pick(4) == 0 {
			w.clients[id].stuck = true
		}
	case 8, 9:
		w.reserve(ch)
	case 10:
		w.unreserve(ch)
	case 11:
		id := w.some(ch)
		w.clients[id].excluded = ch.pick(2) == 0
		w.epoch++
		w.disturbed = w.token
		w.send(Exclude{Client: id, Excluded: w.clients[id].excluded})
	}
}

// end performs Close or Abandon, at times.
func (w *world) end(ch chooser) {
	switch ch.pick(4) {
	case 0:
		w.close()
	case 1:
		w.abandon()
	}
}

func (w *world) close() {
	w.token++
	w.await("close")
	w.closing, w.abandoned = true, false
	w.send(Close{Token: w.token})
}

func (w *world) abandon() {
	w.abandoned = true
	w.log = append(w.log, "abandon")
	w.judge(w.core.Abandon(errBroken))
	if len(w.refills)+len(w.ends) > 0 {
		w.failf("%v and %v wait after Abandon", w.refills, w.ends)
	}
}

// await notes that an End must come with the token drawn last.
func (w *world) await(what string) { w.ends[w.token] = what }

// mostClients is how many clients a world has in its time, reservations included.
const mostClients = 12

func (w *world) join() {
	id := Client(len(w.clients) + 1)
	if id > mostClients {
		return
	}
	w.clients[id] = &holder{}
	w.send(Join{Client: id})
}

// some returns a client, gone ones included.
func (w *world) some(ch chooser) Client {
	return Client(1 + ch.pick(len(w.clients)))
}

func (w *world) refill(ch chooser) {
	id := w.some(ch)
	n := uint32(1 + ch.pick(8))
	if ch.pick(40) == 0 {
		n = []uint32{0, 1000, 1<<32 - 1}[ch.pick(3)]
	}
	if w.clients[id].gone || w.clients[id].reserves { // a late one, in place of the stream's own answer
		return
	}
	w.token++
	r := Refill{
		Most: []uint32{0, 0, 1, 4, 40}[ch.pick(5)], Client: id, Token: w.token, Pages: n, Bytes: int64(n) * pageBytes,
		LiveBytes: int64(ch.pick(w.held(id)+1)+int(min(n, 40))) * pageBytes,
	}
	for len(r.More) < 5 && ch.pick(4) == 0 {
		r.More = append(r.More, uint32(1+ch.pick(6)))
	}
	if ch.pick(2) == 0 {
		w.drawFrom(ch, &r)
	}
	w.refills[r.Token] = r
	r.More = slices.Clone(r.More) // the core's from here on
	w.send(r)
	if w.owed.token != 0 {
		w.failf("nobody has got the %+v", w.owed)
	}
}

// giveBack mails a part of a client's pages, with a fence, or without one if the client has waited for its stream.
func (w *world) giveBack(ch chooser, answer bool) {
	id := w.some(ch)
	if answer {
		waiting := w.unanswered()
		if len(waiting) == 0 {
			return
		}
		id = waiting[ch.pick(len(waiting))]
	}
	c := w.clients[id]
	if c.reserves {
		return
	}
	r := Return{Client: id, Answer: answer, Runs: w.takeHeld(ch, id)}
	if len(r.Runs) == 0 && !answer {
		return
	}
	if ch.pick(4) > 0 {
		c.issued++
		r.Fence = c.issued
	}
	r.LiveBytes = int64(ch.pick(w.held(id)+1)) * pageBytes
	w.mail = append(w.mail, r)
	if ch.pick(3) > 0 {
		w.deliverAt(len(w.mail) - 1)
	}
}

func (w *world) answer(ch chooser) { w.giveBack(ch, true) }

// tell makes clients look, or one publish arbitrary figures.
func (w *world) tell(ch chooser) {
	if w.looks > 0 && ch.pick(2) == 0 {
		w.endLooks()
		return
	}
	id := w.some(ch)
	c := w.clients[id]
	if c.reserves || c.gone {
		return
	}
	c.live = int64(ch.pick(w.held(id) + 1))
	c.free = published{set: ch.pick(3) > 0, stale: ch.pick(3) == 0}
	c.free.pages = uint32(ch.pick(20))                    //nolint:gosec // a few
	c.free.atMax = uint32(ch.pick(int(c.free.pages) + 1)) //nolint:gosec // a few
}

// unanswered returns the clients that were asked and whose answer is not on its way.
func (w *world) unanswered() (ids []Client) {
	for id := Client(1); int(id) <= len(w.clients); id++ {
		if w.asked[id] && !slices.ContainsFunc(w.mail, func(r Return) bool { return r.Client == id && r.Answer }) {
			ids = append(ids, id)
		}
	}
	return ids
}

// takeHeld picks up to three runs of a client's pages that are not in the mail.
func (w *world) takeHeld(ch chooser, id Client) (runs []Run) {
	mailed := make([]bool, len(w.pages))
	for _, r := range w.mail {
		for _, run := range r.Runs {
			for i := run.First; i < run.First+run.Pages; i++ {
				mailed[i] = true
			}
		}
	}
	has := func(i uint32) bool { return int(i) < len(w.pages) && w.pages[i].owner == id && !mailed[i] }
	for range 1 + ch.pick(3) {
		at, most := uint32(ch.pick(len(w.pages))), uint32(1+ch.pick(8))
		for ; int(at) < len(w.pages) && !has(at); at++ {
		}
		run := Run{First: at}
		for ; run.Pages < most && has(at); at++ {
			mailed[at] = true
			run.Pages++
		}
		if run.Pages > 0 {
			runs = append(runs, run)
		}
	}
	return runs
}

func (w *world) deliver(ch chooser) {
	if len(w.mail) > 0 {
		w.deliverAt(ch.pick(len(w.mail)))
	}
}

// deliverAt delivers one letter, in any order.
func (w *world) deliverAt(i int) {
	r := w.mail[i]
	w.mail = slices.Delete(w.mail, i, i+1)
	if r.Answer {
		delete(w.asked, r.Client)
	}
	for _, run := range r.Runs {
		for at := run.First; at < run.First+run.Pages; at++ {
			if p := &w.pages[at]; p.owner == r.Client { // else the pool was closed since
				*p = owned{last: r.Client, fence: r.Fence}
			}
		}
	}
	w.send(r)
}

func (w *world) warm(ch chooser) {
	runs := make([]uint32, ch.pick(5))
	for i := range runs {
		runs[i] = uint32(ch.pick(8))
	}
	w.token++
	w.await("warm")
	w.send(Warm{Token: w.token, Runs: runs})
}

// finishJob ends the job in flight: well, or at any of its operations.
func (w *world) finishJob(ch chooser) {
	switch {
	case w.job == nil:
	case ch.pick(4) > 0:
		w.perform(-1, nil)
	default:
		var err error = cudadrv.OutOfMemory
		if ch.pick(2) == 0 {
			err = errBroken
		}
		w.perform(ch.pick(max(1, len(w.job.Ops))), err)
	}
}

// pass advances a client's stream.
func (w *world) pass(ch chooser) {
	if n := len(w.watches); n > 0 && ch.pick(2) == 0 {
		var err error
		if ch.pick(8) == 0 {
			err = errBroken
		}
		w.endWatch(ch.pick(n), err)
		return
	}
	if c := w.clients[w.some(ch)]; !c.stuck && c.passed < c.issued {
		c.passed += Fence(1 + ch.pick(int(c.issued-c.passed)))
	}
}

func (w *world) reconfigure(ch chooser) {
	w.settings.LimitBytes = int64(4+ch.pick(36)) * pageBytes
	w.settings.CacheBytes, w.settings.CacheRuns = int64(ch.pick(8))*pageBytes, ch.pick(4)
	w.epoch++
	w.disturbed = w.token
	w.core.SetSettings(w.settings)
	w.check()
}

// quiet brings everything to an end without anything new: letters arrive, clients answer, jobs end. In a world whose driver has
// failed for good they end badly. Then nothing may wait any more.
func (w *world) quiet(ch chooser) {
	broken := []error{nil, nil, errBroken, cudadrv.OutOfMemory}[ch.pick(4)]
	ticked := false
	// Each takes a few jobs, and twice an answer of every client that holds pages.
	each := 30 + 4*len(w.clients)
	for range 200 + each*(len(w.refills)+len(w.ends)+len(w.mail)) {
		switch waiting := w.unanswered(); {
		case w.job != nil && broken != nil:
			w.perform(0, broken)
		case w.job != nil:
			w.perform(-1, nil)
		case w.abandoned:
			return
		case len(w.mail) > 0:
			w.deliverAt(0)
		case len(waiting) > 0:
			w.mail = append(w.mail, Return{Client: waiting[0], Answer: true})
		case w.looks > 0:
			w.endLooks()
		case len(w.watches) > 0:
			w.endWatch(0, nil)
		case len(w.refills)+len(w.ends) > 0:
			w.failf("refills %v and others %v wait for nothing", w.refills, w.ends)
		case !ticked:
			ticked = true
			w.send(Tick{})
		default:
			if broken == nil && !w.closing {
				w.checkBudget()
			}
			return
		}
	}
	w.failf("the world does not go quiet")
}

// checkBudget: in a quiet world the pool keeps no more free than its budget allows, except for memory that it cannot give back.
func (w *world) checkBudget() {
	c, s := w.core, w.settings
	over := s.CacheBytes > 0 && c.freeBytes() > s.CacheBytes || c.ReservedBytes() > s.LimitBytes
	victims, _ := c.memory.Victims(1, Run{})
	overRuns := s.CacheRuns > 0 && c.memory.CleanRuns() > s.CacheRuns
	if over && len(victims) > 0 || overRuns && len(c.memory.ShortestRun()) > 0 {
		w.failf("%d bytes in %d runs are free beyond a budget of %d in %d, or beyond the limit of %d", c.freeBytes(), c.freeRuns(),
			s.CacheBytes, s.CacheRuns, s.LimitBytes)
	}
}

// finale closes the pool and looks that nothing is left.
func (w *world) finale(ch chooser) {
	if !w.closing {
		w.close()
	}
	w.quiet(ch)
	if !w.closed && !w.abandoned {
		w.failf("the close has not ended")
	}
	if err := w.closeAgain(); !w.abandoned && !errors.Is(err, ErrClosed) {
		w.failf("a second close ends with %v", err)
	}
}

func (w *world) closeAgain() error {
	fx := w.core.Step(Close{Token: 1 << 60})
	if len(effect.Left(&fx.Ends)) != 1 {
		return nil
	}
	return effect.Left(&fx.Ends)[0].Err
}
