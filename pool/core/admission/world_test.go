package admission

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
)

// phase is how far a request of the model has got.
type phase uint8

const (
	unborn phase = iota
	waiting
	holding
	gone
)

// wish is a request of the model, which is made once.
type wish struct {
	account  Account
	bytes    int64
	priority int
}

// rules are what does not change in a world.
type rules struct {
	memory int64
	wishes []wish
	alone  []bool  // by account: its one goroutine neither frees nor asks while it waits
	quota  []int64 // by account; 0: none
	share  []int64 // likewise
	cancel bool    // requests may be given up
	stand  bool    // accounts of one goroutine may wait for something else, until somebody has them go on
}

// world is a table, memory that is a number, and goroutines, as dumb as can be: memory that was freed is on its way until it is
// delivered or collected, and a trial finds what was there when it began.
type world struct {
	*rules
	table   Table
	phases  []phase
	passed  []int64 // to those behind each, without what a lift let through
	free    int64
	onWay   int64
	trial   int  // the wish that is tried; -1: none
	found   bool // by that trial
	lifting bool
	stands  []bool // by account
	byLift  bool   // the trial began under a lift
	rivals  []bool // who waited when it began
}

func newWorld(r *rules) *world {
	return &world{rules: r, phases: make([]phase, len(r.wishes)), passed: make([]int64, len(r.wishes)), free: r.memory, trial: -1, stands: make([]bool, len(r.alone))}
}

// clone is a copy that shares nothing that changes.
func (w *world) clone() *world {
	next := *w
	next.table.queue = slices.Clone(w.table.queue)
	next.table.still, next.stands = slices.Clone(w.table.still), slices.Clone(w.stands)
	next.phases, next.passed, next.rivals = slices.Clone(w.phases), slices.Clone(w.passed), slices.Clone(w.rivals)
	return &next
}

// key is equal for equal worlds: epochs count only as far as a trial can see them, ages only by their order.
func (w *world) key() string {
	var key []byte
	number := func(values ...int64) {
		for _, v := range values {
			key = binary.AppendVarint(key, v)
		}
	}
	truth := func(values ...bool) {
		for _, v := range values {
			key = strconv.AppendBool(key, v)
		}
	}
	for _, p := range w.phases {
		number(int64(p))
	}
	number(w.passed...)
	truth(w.stands...)
	number(w.free, w.onWay, int64(w.trial), int64(w.table.stage), int64(len(w.table.queue)))
	truth(w.found, w.lifting, w.byLift, w.table.tryFrom == w.table.epoch)
	if w.trial >= 0 {
		truth(w.rivals...)
	}
	for _, e := range w.table.queue {
		number(int64(e.ID), e.passedBytes)
		truth(e.tried, e.Blocked, e.Borrows, e.Unready, e.joined <= w.table.tryJoin)
	}
	byAge := slices.Clone(w.table.queue)
	slices.SortFunc(byAge, func(a, b entry) int { return int(a.Age) - int(b.Age) })
	for _, e := range byAge {
		number(int64(e.ID))
	}
	return string(key)
}

// charged is what an account has and waits for with its quota's leave.
func (w *world) charged(a Account) (bytes int64) {
	for i, p := range w.phases {
		if w.wishes[i].account == a && (p == holding || p == waiting && !w.entry(i).Unready) {
			bytes += w.wishes[i].bytes
		}
	}
	return bytes
}

func (w *world) entry(i int) *entry { return &w.table.queue[w.table.find(uint64(i)+1)] }

// stopped reports whether an account's only goroutine waits, for memory or something else.
func (w *world) stopped(a Account) bool {
	return w.stands[a] || w.alone[a] && slices.ContainsFunc(w.table.queue, func(e entry) bool { return e.Account == a })
}

// move is something that can happen.
type move struct {
	verb string
	wish int
}

// moves are all that can happen now.
func (w *world) moves() (all []move) {
	for i, p := range w.phases {
		a := w.wishes[i].account
		switch {
		case p == unborn && !w.stopped(a):
			all = append(all, move{"ask", i})
		case p == holding && !w.stopped(a):
			all = append(all, move{"free", i})
		case p == waiting && w.cancel && w.trial != i:
			all = append(all, move{"cancel", i})
		}
	}
	for a := range w.stands {
		switch {
		case !w.stand || !w.alone[a]:
		case w.stands[a] && w.anyGoesOn():
			all = append(all, move{"resume", a})
		case !w.stands[a] && !w.stopped(Account(a)):
			all = append(all, move{"stand", a})
		}
	}
	if w.onWay > 0 {
		all = append(all, move{"deliver", 0})
	}
	if w.trial >= 0 {
		all = append(all, move{"end", w.trial})
	} else if _, ok := w.clone().table.Next(); ok {
		all = append(all, move{"try", 0})
	}
	return all
}

// do makes a move, and then all that the owner of the table does at once. It reports a broken promise.
func (w *world) do(m move) error {
	switch m.verb {
	case "ask":
		w.ask(m.wish)
	case "free":
		w.phases[m.wish] = gone
		w.onWay += w.wishes[m.wish].bytes
		w.uncharged(w.wishes[m.wish].account)
	case "cancel":
		w.phases[m.wish] = gone
		w.table.Remove(uint64(m.wish) + 1)
		w.lifting = false
		w.uncharged(w.wishes[m.wish].account)
	case "stand", "resume":
		w.stands[m.wish] = m.verb == "stand"
		w.table.Suspend(Account(m.wish), w.stands[m.wish])
		w.lifting = false
	case "deliver":
		w.deliver()
	case "try":
		id, _ := w.table.Next()
		w.trial, w.byLift = int(id)-1, w.lifting
		w.rivals = make([]bool, len(w.wishes))
		for _, e := range w.table.queue {
			w.rivals[e.ID-1] = !e.Unready
		}
		if w.found = w.wishes[w.trial].bytes <= w.free; w.found {
			w.free -= w.wishes[w.trial].bytes
		}
	case "end":
		if err := w.end(); err != nil {
			return err
		}
	}
	if err := w.settle(); err != nil {
		return err
	}
	return w.check()
}

func (w *world) ask(i int) {
	want := w.wishes[i]
	w.phases[i] = waiting
	unready := w.quota[want.account] > 0 && w.charged0(want.account, i)+want.bytes > w.quota[want.account]
	borrows := !unready && w.share[want.account] > 0 && w.charged0(want.account, i)+want.bytes > w.share[want.account]
	w.table.Arrive(Waiter{
		ID: uint64(i) + 1, Account: want.account, Priority: want.priority, Bytes: want.bytes,
		Blocked: w.alone[want.account], Unready: unready, Borrows: borrows,
	})
	w.lifting = false
}

// charged0 is charged without a wish that is about to arrive.
func (w *world) charged0(a Account, except int) (bytes int64) {
	w.phases[except] = unborn
	bytes = w.charged(a)
	w.phases[except] = waiting
	return bytes
}

// uncharged lets the oldest of an account's waiters go on that its quota held up.
func (w *world) uncharged(a Account) {
	if w.quota[a] == 0 {
		return
	}
	oldest := -1
	for i, p := range w.phases {
		if p == waiting && w.wishes[i].account == a && w.entry(i).Unready && (oldest < 0 || w.entry(i).Age < w.entry(oldest).Age) {
			oldest = i
		}
	}
	if has := w.charged(a); oldest >= 0 && has+w.wishes[oldest].bytes <= w.quota[a] {
		w.table.Ready(uint64(oldest)+1, w.share[a] > 0 && has+w.wishes[oldest].bytes > w.share[a])
		w.lifting = false
		w.uncharged(a)
	}
}

func (w *world) deliver() {
	w.free, w.onWay = w.free+w.onWay, 0
	w.table.Changed()
	w.lifting = false
}

// end ends a trial.
func (w *world) end() error {
	i := w.trial
	w.trial = -1
	if !w.found {
		w.table.Failed(uint64(i) + 1)
		return nil
	}
	served := *w.entry(i)
	for j, p := range w.phases {
		if p != waiting || j == i || !w.rivals[j] || w.byLift || before(&w.entry(j).Waiter, &served.Waiter) > 0 {
			continue
		}
		if w.passed[j] += served.Bytes; w.passed[j] > w.wishes[j].bytes {
			return fmt.Errorf("%d bytes passed request %d of %d", w.passed[j], j, w.wishes[j].bytes)
		}
		if served.Borrows && !w.entry(j).Borrows {
			return fmt.Errorf("request %d borrows before request %d", i, j)
		}
	}
	w.table.Served(uint64(i) + 1)
	w.phases[i] = holding
	w.lifting = false
	return nil
}

// settle asks what is to be done where nothing goes on, and does it.
func (w *world) settle() error {
	for {
		if _, more := w.clone().table.Next(); more || w.trial >= 0 {
			return nil
		}
		switch v, id := w.table.Stuck(w.holders(), w.others()); v {
		case Wait:
			return nil
		case Lift:
			w.lifting = true
		case Confirm:
			w.lifting = true
			if w.onWay > 0 {
				w.deliver()
			} else {
				w.table.Confirmed()
			}
		case Deadlock, Hopeless:
			if err := w.refuse(v, int(id)-1); err != nil {
				return err
			}
		}
	}
}

// refuse holds a refusal against the world: nothing but it may have been possible.
func (w *world) refuse(v Verdict, i int) error {
	for j, p := range w.phases {
		switch {
		case p == holding && w.stands[w.wishes[j].account] && w.anyGoesOn():
			return fmt.Errorf("%v for request %d, but the suspended holder of request %d may go on", v, i, j)
		case p == holding && !w.stopped(w.wishes[j].account):
			return fmt.Errorf("%v for request %d, but the holder of request %d goes on", v, i, j)
		case p == waiting && !w.entry(j).Unready && w.wishes[j].bytes <= w.free:
			return fmt.Errorf("%v for request %d, but %d bytes are free for request %d", v, i, w.free, j)
		case p == waiting && v == Deadlock && w.wishes[j].account != w.wishes[i].account && !w.stands[w.wishes[j].account] &&
			w.alone[w.wishes[j].account] && w.holds(w.wishes[j].account) && w.entry(j).Age > w.entry(i).Age:
			return fmt.Errorf("request %d is refused, request %d is younger", i, j)
		}
	}
	if w.onWay > 0 || v == Deadlock != (len(w.holders()) > 0) {
		return fmt.Errorf("%v for request %d with %d bytes on their way and holders %v", v, i, w.onWay, w.holders())
	}
	w.phases[i] = gone
	w.table.Remove(uint64(i) + 1)
	w.lifting = false
	w.uncharged(w.wishes[i].account)
	return nil
}

// anyGoesOn reports whether any account does.
func (w *world) anyGoesOn() bool {
	for a := range w.alone {
		if !w.stopped(Account(a)) {
			return true
		}
	}
	return false
}

// others are the accounts that hold nothing.
func (w *world) others() (ids []Account) {
	for a := range w.alone {
		if !w.holds(Account(a)) {
			ids = append(ids, Account(a))
		}
	}
	return ids
}

func (w *world) holds(a Account) bool { return slices.Contains(w.holders(), a) }

func (w *world) holders() (ids []Account) {
	for i, p := range w.phases {
		if p == holding {
			ids = append(ids, w.wishes[i].account)
		}
	}
	return ids
}

// check is what must hold at any time.
func (w *world) check() error {
	if err := w.table.Check(); err != nil {
		return err
	}
	used := w.free + w.onWay
	for i, p := range w.phases {
		if p == holding || i == w.trial && w.found {
			used += w.wishes[i].bytes
		}
	}
	if used != w.memory {
		return fmt.Errorf("%d bytes in the books, there are %d", used, w.memory)
	}
	for a, most := range w.quota {
		if has := w.charged(Account(a)); most > 0 && has > most {
			return fmt.Errorf("account %d is charged %d, its quota is %d", a, has, most)
		}
	}
	if len(w.moves()) > 0 {
		return w.checkWakeups()
	}
	for i, p := range w.phases {
		if p == waiting {
			return fmt.Errorf("request %d waits for ever", i)
		}
	}
	return nil
}

// checkWakeups: whom memory would serve that is there is tried, unless that would pass somebody by more than may be.
func (w *world) checkWakeups() error {
	if _, more := w.clone().table.Next(); more || w.trial >= 0 {
		return nil
	}
	for at := range w.table.queue {
		e := &w.table.queue[at]
		if e.Unready || e.Bytes > w.free {
			continue
		}
		held := slices.ContainsFunc(w.table.queue[:at], func(f entry) bool {
			return !f.Unready && (e.Borrows && !f.Borrows || f.passedBytes+e.Bytes > f.Bytes)
		})
		if !held {
			return fmt.Errorf("request %d of %d bytes waits beside %d that are free", e.ID-1, e.Bytes, w.free)
		}
	}
	return nil
}
