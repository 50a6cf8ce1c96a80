package core

// request is a Refill, Warm or Trim that is being served.
type request struct {
	kind   kind
	client Client
	token  uint64
	pages  uint32   // of the run that is looked for
	more   []uint32 // further runs that are wanted, all or nothing with the first
	most   uint32   // pages of a run that are of use, unless more are looked for; 0: any
	lent   []Run    // to the client already, while others are looked for
	wants  []uint32 // all runs; nil where one is wanted and the request never waits for others
	parts  []part   // the tags of what it has got and not kept
	bytes  int64    // what its client lacks

	requestedBytes, blockBytes int64 // of a refill, as it came

	warm       []uint32 // lengths wanted
	got        []Run    // held for the warm-up until all are there: the first of warm
	keep       int64
	foreseen   bool  // a warm-up of the pool's own, up to keep
	freed      int64 // or mapped ahead
	rung       rung
	awaits     []Client // whose answers to an Ask, or with looking to a Look, are still to come
	looking    bool
	noted      bool   // for the live peak
	raised     bool   // it
	askedAll   bool   // that others return what they do not use
	capped     bool   // the driver has refused, and can give capBytes
	waited     bool   // for fences
	unborrowed bool   // its stream could not be made to wait
	drawn      bool   // from a reservation
	deviceIdle bool   // no client's stream had work when it was asked last
	done       bool   // answered: a job that is still in flight for it is for nobody
	heard      uint64 // the core's progress when it began to wait for fences
	err        error

	capBytes int64
	refusals int // by the driver
	waiting      // for those that wait; zero for all others
}

// warmClient owns what an unfinished warm-up has got together.
const warmClient = ^Client(0)

type kind uint8

const (
	refill kind = iota
	warm
	trim
	gather // collects what was freed before a standstill is believed
)

// rung is the step of the ladder in the package comment that is tried next.
type rung uint8

const (
	rungOffer rung = iota // of those that wait
	rungSearch
	rungAskOwn
	rungLook
	rungAskAll
	rungGrow
	rungPoll
	rungRecycle
	rungWait
	rungHold
	rungDeny
)

// awaiting reports whether the request goes on only with somebody's answer.
func (r *request) awaiting() bool { return len(r.awaits) > 0 || r.offering }

// wanted is what a request still looks for, as one run.
func (r *request) wanted() uint64 {
	pages := uint64(r.pages)
	for _, n := range r.more {
		pages += uint64(n)
	}
	return pages
}
