package core

import (
	"github.com/go-vram/vram/internal/pool/admission"
	"github.com/go-vram/vram/internal/pool/memory"
)

// request is a Refill, Warm or Trim that is being served.
type request struct {
	kind   kind
	way    way // its climb; nil: the one of its kind
	client Client
	token  uint64
	wish
	catch
	ascent
	warming
	waiting
	keepBytes int64 // of a Trim: stay reserved
	freed     int64 // bytes given back to the driver, or mapped ahead
	drawn     bool  // from a reservation
	mapped    bool  // the driver mapped pages for it
	done      bool  // answered: a job that is still in flight for it serves no request
	err       error
}

// way is a climb that replaces scheduler.climb. The parts of the core that few programs use have one, see Special.
type way interface {
	// climb is as scheduler.climb.
	climb(r *request) bool
}

// wish holds the runs of a Refill.
type wish struct {
	pages uint32   // of the run that is looked for
	more  []uint32 // further runs that are wanted, all or nothing with the first
	most  uint32   // pages of a run that are of use, unless more are looked for; 0: any
	wants []uint32 // all runs; nil where one is wanted and the request never waits for others
	bytes int64    // that its client lacks

	requestedBytes, blockBytes int64 // as they came
}

// wanted returns the length of the missing runs, as one run.
func (w *wish) wanted() uint64 {
	pages := uint64(w.pages)
	for _, n := range w.more {
		pages += uint64(n)
	}
	return pages
}

// catch holds the runs that a request for several has before it has all of them.
type catch struct {
	lent  []Run        // to the client already
	parts memory.Parts // the tags that those pages had
}

// ascent is how far a request has come.
type ascent struct {
	rung    rung     // of a Refill: see ladder
	stage   stage    // of any other request
	awaits  []Client // whose answers to an Ask are still to come
	looking bool     // a Looked is still to come
	looked  bool     // clients have collected freed memory
	taking  taking
	// contended: it needed memory of others, or growth beyond the budget, which is counted once.
	contended bool
	noted     bool   // for the live peak
	raised    bool   // it
	askedAll  bool   // to return their unused memory
	noBorrow  bool   // its stream could not be made to wait
	idle      bool   // no client's stream had work when it was asked last
	progress  uint64 // of fences, when it began to wait for some
	refusal
}

// refusal records the driver's refusals of a request.
type refusal struct {
	capped   bool  // the driver has refused memory
	capBytes int64 // all that the driver could give, reserved bytes included: see budget.driverBytes
	refusals int
}

// forgive lets a request try the last resorts once more after a wait for a fence: pending memory could not go back to the
// driver. The cap stays, so that each further refusal lowers it and the request ends.
func (r *refusal) forgive() { r.refusals = min(r.refusals, clearingRefusals) }

const (
	// maxRefusals is how often the driver may refuse memory to one request before that is denied. Not fewer: a driver that says
	// it has more than it gives, and others that take memory at the same time, cost a refusal each, and then the last two
	// resorts follow. Not more: every refusal releases free handles, after the last none is left.
	maxRefusals = 5
	// clearingRefusals is after how many of them a recycling releases all that is free, and holesRefusals after how many none
	// of it is kept where it lies: then all that the driver has is there for the request.
	clearingRefusals = maxRefusals - 2
	holesRefusals    = maxRefusals - 1
)

// warming is a warm-up.
type warming struct {
	lengths []uint32 // of the runs that are wanted
	got     []Run    // held until all are there: the first of lengths
}

// waiting is a Refill that waits; zero for all others.
type waiting struct {
	id       uint64 // in the order of those that wait; 0: it does not wait
	patience Patience
	place    Place
	offering bool   // its client has not answered yet
	blocks   uint64 // the number of its last Block
}

// warmClient holds the runs of an unfinished warm-up.
const warmClient = ^Client(0)

// taking is how far a request has come with taking a run of another client's.
type taking uint8

const (
	notTaken taking = iota
	taken           // a client was asked for a run
	polled          // its fence was not known to have passed, and was looked at
)

type kind uint8

const (
	refill kind = iota
	warm
	trim
	gather // collects freed memory before a deadlock is declared
	ownWay // see way
)

// stage is how far a request has come that is not a Refill. Each kind of request has those stages that it needs.
type stage uint8

const (
	stageBegin stage = iota
	stageAsk
	stagePoll
	stageRelease
	stageEnd
	stageFailed // a job without effect on the memory has failed
)

// awaiting reports whether the request waits for the answer of a client.
func (r *request) awaiting() bool { return len(r.awaits) > 0 || r.looking || r.offering }

// isOf reports whether it is a request of that client.
func (r *request) isOf(cl *client) bool { return cl.id == r.client }

// waits reports whether it is a Refill that waits for frees of others.
func (r *request) waits() bool { return r.id != 0 }

// restart begins the climb of a request that waits.
func (r *request) restart() {
	r.pages, r.more, r.err = r.wants[0], append([]uint32(nil), r.wants[1:]...), nil
	r.ascent = ascent{rung: rungOffer}
}

// rung is the name of a row.
type rung string

const (
	rungOffer     rung = "offer"
	rungLook      rung = "look"
	rungTake      rung = "take"
	rungJoinEarly rung = "join early"
	rungAskOwn    rung = "ask own"
	rungLookAgain rung = "look again"
	rungCollect   rung = "collect"
	rungAskDirty  rung = "ask dirty"
	rungJoin      rung = "join"
	rungGrow      rung = "grow"
	rungPoll      rung = "poll"
	rungBorrow    rung = "borrow"
	rungBuy       rung = "buy"
	rungRecycle   rung = "recycle"
	rungAskAll    rung = "ask all"
	rungWait      rung = "wait"
	rungHold      rung = "hold"
	rungDeny      rung = "deny"
)

// verdict is the result of a rung's action.
type verdict uint8

const (
	onward verdict = iota
	again
	branch
	leave
)

// phase is how far a pool has come: it serves, is closing, and is closed.
type phase struct {
	closing    bool
	closed     bool
	abandoned  bool // closing, but nothing may be started before a Close
	tried      bool // to give all memory back
	closeToken uint64
}

// Patience is the reaction to a refusal.
type Patience uint8

const (
	// Impatient requests are denied for good.
	Impatient Patience = iota
	// Patient ones are denied and come back Waiting: the denial is not reported.
	Patient
	// Waiting ones are granted once there is memory, or withdrawn, or denied since no memory can come.
	Waiting
)

// Place has the inputs of a waiting request's order.
type Place struct {
	Account  admission.Account
	Priority int
	Age      uint64 // of its first wait, rising; never 0
	Align    int64
	// ChargedBytes are charged to its account, now or with a Ready.
	ChargedBytes int64
	Blocked      bool // a caller waits for the answer and does nothing else
	Unready      bool // its account's quota does not allow it before a Ready
	Again        bool // it has waited before, at this Age: not a further wait
}
