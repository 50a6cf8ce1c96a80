package admission

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
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

// rules are the constants of a world.
type rules struct {
	memory int64
	wishes []wish
	alone  []bool      // by account: its one goroutine neither frees nor asks while it waits
	quota  []int64     // by account; 0: none
	share  []int64     // likewise
	cancel bool        // requests may be given up
	stand  bool        // accounts of one goroutine may wait for something else, until another resumes them
	on     [][]Account // by account: whom it waits for when it stands; none: anybody who holds memory or wants some
	lag    int64       // as in Table

	queue []entry // scratch of tries
	usage []Usage // scratch of tell
}

// world is a table, memory that is a number, and goroutines, as dumb as can be: freed memory is on its way until it is
// delivered or collected, and a trial finds the memory that was there when it began.
type world struct {
	*rules
	table   Table
	phases  []phase
	charged []bool  // to its account
	passed  []int64 // served to later ones, by waiter, without grants that a lift let through
	// outranked counts bytes served to others of the same standing, by account, since its first waiter was served.
	outranked []int64
	credit    []float64 // by account: its proportion of the bytes served, less its part of the memory at each
	free      int64
	onWay     int64
	trial     int  // the wish that is tried; -1: none
	found     bool // by that trial
	lifting   bool
	stands    []bool // by account
	byLift    bool   // the trial began under a lift
	rivals    []bool // who waited when it began
	ahead     []bool // of those: who was to be served before, as the package comment has it
	barred    bool   // it borrows, and one of those does not
}

func newWorld(r *rules) *world {
	w := &world{
		rules: r, phases: make([]phase, len(r.wishes)), charged: make([]bool, len(r.wishes)), passed: make([]int64, len(r.wishes)),
		outranked: make([]int64, len(r.alone)), credit: make([]float64, len(r.alone)), free: r.memory, trial: -1, stands: make([]bool, len(r.alone)),
	}
	w.table.lag = r.lag
	return w
}

// copyTo makes another world equal to this one. They share nothing that changes. It keeps the other's memory.
func (w *world) copyTo(next *world) {
	was := *next
	*next = *w
	next.table.queue = append(was.table.queue[:0], w.table.queue...)
	next.table.still = append(was.table.still[:0], w.table.still...)
	next.table.shares = append(was.table.shares[:0], w.table.shares...)
	next.stands, next.charged = append(was.stands[:0], w.stands...), append(was.charged[:0], w.charged...)
	next.outranked, next.credit = append(was.outranked[:0], w.outranked...), append(was.credit[:0], w.credit...)
	next.phases, next.passed = append(was.phases[:0], w.phases...), append(was.passed[:0], w.passed...)
	next.rivals, next.ahead = append(was.rivals[:0], w.rivals...), append(was.ahead[:0], w.ahead...)
}

// tries reports whether the table has somebody to try.
func (w *world) tries() bool {
	table := w.table
	w.queue = append(w.queue[:0], table.queue...) // Next changes it
	table.queue = w.queue
	_, ok := table.Next()
	return ok
}

// appendKey appends bytes that are equal for equal worlds: epochs count only as far as a trial can see them, ages only by their order.
func (w *world) appendKey(key []byte) []byte {
	number := func(values ...int64) {
		for _, v := range values {
			key = binary.AppendVarint(key, v)
		}
	}
	facts := func(values ...bool) {
		for _, v := range values {
			key = append(key, byte(truth(v)))
		}
	}
	for _, p := range w.phases {
		number(int64(p))
	}
	number(w.passed...)
	number(w.outranked...)
	facts(w.stands...)
	facts(w.charged...)
	number(w.free, w.onWay, int64(w.trial), int64(w.table.stage), int64(len(w.table.queue)))
	facts(w.found, w.lifting, w.byLift, w.table.tryFrom == w.table.epoch)
	if w.trial >= 0 {
		facts(w.rivals...)
		facts(w.ahead...)
		facts(w.barred)
	}
	number(int64(len(w.table.shares)))
	for i := range w.table.shares {
		s := &w.table.shares[i]
		number(int64(s.account), s.usedBytes, s.outrankedBytes, int64(math.Float64bits(s.creditBytes)))
	}
	for i := range w.table.queue {
		e := &w.table.queue[i]
		number(int64(e.ID), e.passedBytes)
		facts(e.tried, e.Blocked, e.Unready, e.ahead)
	}
	var last uint64
	for range w.table.queue { // the next older one each time
		var next *entry
		for i := range w.table.queue {
			if e := &w.table.queue[i]; e.Age > last && (next == nil || e.Age < next.Age) {
				next = e
			}
		}
		number(int64(next.ID))
		last = next.Age
	}
	return key
}

// charges returns the bytes that an account has, and those its quota lets it wait for.
func (w *world) charges(a Account) (bytes int64) {
	for i, charged := range w.charged {
		if charged && w.wishes[i].account == a {
			bytes += w.wishes[i].bytes
		}
	}
	return bytes
}

// tell sets the accounts' usage in the table.
func (w *world) tell() {
	w.usage = w.usage[:0]
	for a, share := range w.share {
		if share > 0 {
			w.usage = append(w.usage, Usage{Account(a), w.charges(Account(a)), share})
		}
	}
	w.table.SetUsage(w.usage)
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

// moves returns all that can happen now.
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
		case w.stands[a] && slices.ContainsFunc(w.resumers(Account(a)), func(b Account) bool { return !w.stopped(b) }):
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
	} else if w.tries() {
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
		w.phases[m.wish], w.charged[m.wish] = gone, false
		w.tell()
		w.onWay += w.wishes[m.wish].bytes
		w.uncharged(w.wishes[m.wish].account)
	case "cancel":
		w.phases[m.wish], w.charged[m.wish] = gone, false
		w.table.Remove(uint64(m.wish) + 1)
		w.tell()
		w.lifting = false
		w.uncharged(w.wishes[m.wish].account)
	case "stand", "resume":
		w.stands[m.wish] = m.verb == "stand"
		var waits [][]Account
		if w.stands[m.wish] {
			waits = [][]Account{w.ends(Account(m.wish))}
		}
		w.table.Suspend(Account(m.wish), waits)
		w.lifting = false
	case "deliver":
		w.deliver()
	case "try":
		id, _ := w.table.Next()
		w.trial, w.byLift = int(id)-1, w.lifting
		if err := w.look(); err != nil {
			return err
		}
		if w.found = w.wishes[w.trial].bytes <= w.free; w.found {
			w.free -= w.wishes[w.trial].bytes
		}
	case "end":
		if err := w.end(); err != nil {
			return err
		}
	}
	w.settleDebts()
	if err := w.settle(); err != nil {
		return err
	}
	w.settleDebts()
	return w.check()
}

func (w *world) ask(i int) {
	want := w.wishes[i]
	w.phases[i] = waiting
	w.charged[i] = w.quota[want.account] == 0 || w.charges(want.account)+want.bytes <= w.quota[want.account]
	w.tell()
	w.table.Arrive(Waiter{
		ID: uint64(i) + 1, Account: want.account, Priority: want.priority, Bytes: want.bytes, ChargedBytes: want.bytes,
		Blocked: w.alone[want.account], Unready: !w.charged[i],
	})
	w.lifting = false
}

// uncharged readies the oldest waiter of an account that its quota held up.
func (w *world) uncharged(a Account) {
	if w.quota[a] == 0 {
		return
	}
	oldest := -1
	for i, p := range w.phases {
		if p == waiting && w.wishes[i].account == a && !w.charged[i] && (oldest < 0 || w.entry(i).Age < w.entry(oldest).Age) {
			oldest = i
		}
	}
	if oldest >= 0 && w.charges(a)+w.wishes[oldest].bytes <= w.quota[a] {
		w.charged[oldest] = true
		w.tell()
		w.table.Ready(uint64(oldest) + 1)
		w.lifting = false
		w.uncharged(a)
	}
}

// look notes who waits as a trial begins, and who of those is to be served before: found out by the rules of the package
// comment, each for itself. Who may be tried as well as the chosen one, and comes before it, has been.
func (w *world) look() error {
	w.rivals, w.ahead, w.barred = append(w.rivals[:0], make([]bool, len(w.wishes))...), append(w.ahead[:0], make([]bool, len(w.wishes))...), false
	mine := w.stand0(w.trial)
	before := true
	for _, j := range w.order0() {
		if before = before && j != w.trial; j == w.trial {
			continue
		}
		w.rivals[j], w.ahead[j] = true, before
		w.barred = w.barred || mine.borrows && !w.stand0(j).borrows
		if e := w.entry(j); before && !e.tried && e.Bytes <= w.wishes[w.trial].bytes {
			return fmt.Errorf("request %d is tried, request %d comes before it", w.trial, j)
		}
	}
	return nil
}

// order0 are those that wait with their quota's leave, in order: of the first without a share and the first with one the older
// is next, unless priority or a share says otherwise.
func (w *world) order0() (all []int) {
	var plain, sharing []int
	for i, p := range w.phases {
		switch {
		case p != waiting || !w.charged[i]:
		case w.share[w.wishes[i].account] > 0:
			sharing = append(sharing, i)
		default:
			plain = append(plain, i)
		}
	}
	slices.SortFunc(plain, func(a, b int) int { return w.stand0(a).compare(w.stand0(b)) })
	slices.SortFunc(sharing, func(a, b int) int { return w.stand0(a).compare(w.stand0(b)) })
	for len(plain) > 0 && len(sharing) > 0 {
		a, b := w.stand0(plain[0]), w.stand0(sharing[0])
		a.due, a.has, a.share, b.due, b.has, b.share = false, 0, 0, false, 0, 0
		if a.compare(b) < 0 {
			all, plain = append(all, plain[0]), plain[1:]
		} else {
			all, sharing = append(all, sharing[0]), sharing[1:]
		}
	}
	return append(append(all, plain...), sharing...)
}

// place0 is where a waiter stands.
type place0 struct {
	borrows, due bool
	priority     int
	has, share   int64 // of its account once it is served after the account's earlier ones
	age          uint64
}

// compare is negative if the first comes first. Both have shares, or neither has.
func (a place0) compare(b place0) int {
	switch {
	case a.borrows != b.borrows:
		return truth(a.borrows) - truth(b.borrows)
	case a.priority != b.priority:
		return b.priority - a.priority
	case a.due != b.due:
		return truth(b.due) - truth(a.due)
	}
	return cmp.Or(cmp.Compare(a.has*b.share, b.has*a.share), cmp.Compare(a.age, b.age))
}

// stand0 is where a waiter stands that its quota allows.
func (w *world) stand0(i int) place0 {
	want := w.wishes[i]
	p := place0{priority: want.priority, age: w.entry(i).Age, share: w.share[want.account]}
	if p.share == 0 {
		return p
	}
	p.has = want.bytes
	for j, phase := range w.phases {
		if w.wishes[j].account == want.account && (phase == holding || phase == waiting && j != i && w.charged[j] && w.elder(j, i)) {
			p.has += w.wishes[j].bytes
		}
	}
	p.borrows = p.has > p.share
	if w.first(want.account) == i {
		short := w.short(i)
		p.borrows = p.borrows && !short
		p.due = short || float64(w.outranked[want.account]) >= w.mostOutranked(want.account)
	}
	return p
}

// short reports whether the account of a first waiter would not have more than its proportion once it is served: over time, with its credit.
func (w *world) short(i int) bool {
	a := w.wishes[i].account
	share, held := w.waiting()
	part := float64(w.share[a]) / share
	return part < 1 && w.credit[a]+part*held-float64(w.holding(a)) >= (1-part)*float64(w.wishes[i].bytes)
}

// waiting returns the shares and the memory of the accounts that have a share and wait.
func (w *world) waiting() (share, held float64) {
	for a := range w.share {
		if w.share[a] > 0 && w.first(Account(a)) >= 0 {
			share += float64(w.share[a])
			held += float64(w.holding(Account(a)))
		}
	}
	return share, held
}

// holding returns the bytes that an account holds.
func (w *world) holding(a Account) (bytes int64) {
	for i, p := range w.phases {
		if p == holding && w.wishes[i].account == a {
			bytes += w.wishes[i].bytes
		}
	}
	return bytes
}

// elder reports whether a waiter comes before another one of its account.
func (w *world) elder(j, i int) bool {
	if w.wishes[j].priority != w.wishes[i].priority {
		return w.wishes[j].priority > w.wishes[i].priority
	}
	return w.entry(j).Age < w.entry(i).Age
}

// first returns the first of an account that its quota allows, -1 if there is none.
func (w *world) first(a Account) int {
	best := -1
	for i, p := range w.phases {
		if p == waiting && w.charged[i] && w.wishes[i].account == a && (best < 0 || w.elder(i, best)) {
			best = i
		}
	}
	return best
}

// mostOutranked returns how much others may have before an account's first.
func (w *world) mostOutranked(a Account) float64 {
	var sum int64
	for b := range w.share {
		if w.first(Account(b)) >= 0 {
			sum += w.share[b]
		}
	}
	lag := w.lag
	if lag == 0 {
		lag = mostLag
	}
	return float64(lag*w.wishes[w.first(a)].bytes*sum) / float64(w.share[a])
}

// outrank counts a served waiter against the first of other accounts.
func (w *world) outrank(i int) {
	mine := w.stand0(i)
	for a := range w.share {
		switch first := w.first(Account(a)); {
		case first == i:
			w.outranked[a] = 0
		case first < 0 || mine.share == 0 || w.share[a] == 0 || Account(a) == w.wishes[i].account:
		case mine.borrows == w.stand0(first).borrows && w.wishes[first].priority == mine.priority:
			w.outranked[a] += w.wishes[i].bytes
		}
	}
	if mine.share == 0 {
		return
	}
	bytes := w.wishes[i].bytes
	share, held := w.waiting()
	held += float64(bytes)
	for a := range w.share {
		if w.share[a] > 0 && w.first(Account(a)) >= 0 {
			w.earn(Account(a), i, share, held)
		}
	}
}

// earn counts a served wish for the credit of an account.
func (w *world) earn(a Account, served int, share, held float64) {
	has, bytes, next := w.holding(a), w.wishes[served].bytes, w.first(a)
	if a == w.wishes[served].account {
		has, next = has+bytes, served
	}
	most := float64(w.share[a] + w.wishes[next].bytes)
	w.credit[a] += float64(bytes) * (float64(w.share[a])/share - float64(has)/held)
	w.credit[a] = max(-most, min(w.credit[a], most))
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
	for j, p := range w.phases {
		if p != waiting || w.byLift || !w.ahead[j] {
			continue
		}
		if w.passed[j] += w.wishes[i].bytes; w.passed[j] > w.wishes[j].bytes {
			return fmt.Errorf("%d bytes passed request %d of %d", w.passed[j], j, w.wishes[j].bytes)
		}
	}
	if w.barred && !w.byLift {
		return fmt.Errorf("request %d borrows before others that are within their share", i)
	}
	w.outrank(i)
	w.table.Served(uint64(i) + 1)
	w.phases[i] = holding
	w.tell()
	w.settleDebts()
	w.lifting = false
	return nil
}

// settleDebts restarts the count of an account that does not wait.
func (w *world) settleDebts() {
	for a := range w.outranked {
		if w.first(Account(a)) < 0 {
			w.outranked[a], w.credit[a] = 0, 0
		}
	}
}

// settle asks for the next step in a standstill, and takes it.
func (w *world) settle() error {
	for {
		if w.trial >= 0 || w.tries() {
			return nil
		}
		switch v, id := w.table.Stuck(w.holders()); v {
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
		case p == holding && w.willGoOn(w.wishes[j].account, nil):
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
	w.phases[i], w.charged[i] = gone, false
	w.table.Remove(uint64(i) + 1)
	w.tell()
	w.lifting = false
	w.uncharged(w.wishes[i].account)
	return nil
}

// ends returns the accounts of which any ends an account's stand; none: see resumers.
func (w *world) ends(a Account) []Account {
	if w.on == nil {
		return nil
	}
	return w.on[a]
}

// resumers returns the accounts that may end an account's stand.
func (w *world) resumers(a Account) (all []Account) {
	if named := w.ends(a); len(named) > 0 {
		return named
	}
	for b := range w.alone {
		wants := slices.ContainsFunc(w.table.queue, func(e entry) bool { return e.Account == Account(b) })
		if Account(b) != a && (wants || w.holds(Account(b))) {
			all = append(all, Account(b))
		}
	}
	return all
}

// willGoOn reports whether an account is runnable, or will be once others are. behind lists the accounts that wait for it.
func (w *world) willGoOn(a Account, behind []Account) bool {
	if !w.stands[a] {
		return !w.stopped(a)
	}
	return !slices.Contains(behind, a) && slices.ContainsFunc(w.resumers(a), func(b Account) bool {
		return w.willGoOn(b, append(slices.Clone(behind), a))
	})
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

// check checks the invariants.
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
		if has := w.charges(Account(a)); most > 0 && has > most {
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
	if w.trial >= 0 || w.tries() {
		return nil
	}
	for at := range w.table.queue {
		e := &w.table.queue[at]
		if e.Unready || e.Bytes > w.free {
			continue
		}
		held := slices.ContainsFunc(w.table.queue[:at], func(f entry) bool {
			return !f.Unready && (e.borrows && !f.borrows || f.passedBytes+e.Bytes > f.Bytes)
		})
		if !held {
			return fmt.Errorf("request %d of %d bytes waits beside %d that are free", e.ID-1, e.Bytes, w.free)
		}
	}
	return nil
}
