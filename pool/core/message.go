package core

import (
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/pool/core/admission"
)

// Client names a stream to the pool. Zero names none.
type Client uint32

// Fence is a point in a client's order. Fences of a client rise; when one has passed, so have all
// before it. Zero has always passed.
type Fence uint64

// Run is a sequence of pages side by side.
type Run struct {
	First, Pages uint32
}

// Message is what the core can be told. The set is closed.
type Message interface{ isMessage() }

// Join makes a client known. One that reserves asks for pages once, which others draw from; it is never asked for any.
type Join struct {
	Client   Client
	Reserves bool
}

// Unreserve ends a client that reserves: its Refill is denied if it waits, and what nobody has drawn is free.
type Unreserve struct{ Client Client }

// Leave says that a client will ask for nothing any more: its Refills that wait are denied. It may still
// return what it holds. Synced says that the device has finished all work of the stream that it was given
// up to now: the client's fences have passed, also those that could not be recorded.
type Leave struct {
	Client Client
	Synced bool
}

// Refill asks for a run of at least Pages, and for further runs of at least the lengths in More: all or
// nothing. Token comes back in the Grant or the Denial: exactly one.
type Refill struct {
	Client    Client
	Token     uint64
	Pages     uint32
	More      []uint32 // the core's from here on
	Most      uint32   // pages of a run that the client has use for, if it may have more than it asks for; 0: any
	LiveBytes int64    // of the client, this request included
	// OpenBytes are those of LiveBytes that no caller has: of requests that wait for an answer, and of what batches among them have got.
	OpenBytes int64
	// BlockBytes is what the client's callers have more of once this request is granted.
	BlockBytes     int64
	Bytes          int64 // what the client lacks
	RequestedBytes int64 // what the caller asked for, for the report
	Lanes          Lanes
	From           Client // that reserves: if it has all that is wanted, it is taken from there; 0: none
	Patience       Patience
	Place          Place // in the order of those that wait; without patience it says nothing
}

// Patience says what comes after a refusal.
type Patience uint8

const (
	// Impatient requests are denied, and that is the end.
	Impatient Patience = iota
	// Patient ones are denied and come back Waiting: nobody is told of the denial.
	Patient
	// Waiting ones are granted once there is memory, whenever that is, or withdrawn, or denied since no memory can come.
	Waiting
)

// Place is what decides when a request that waits is served.
type Place struct {
	Account  admission.Account
	Priority int
	Age      uint64 // of its first wait, rising; never 0
	Align    int64
	// ChargedBytes are what its account was charged for it, or will be with a Ready.
	ChargedBytes int64
	Blocked      bool // somebody waits for the answer and does nothing else
	Unready      bool // its account's quota does not allow it before a Ready
}

// Withdraw takes back a Refill that waits: nothing is answered.
type Withdraw struct {
	Client Client
	Token  uint64
}

// Ready says that the quota of a Refill that waits allows it now: its account was charged.
type Ready struct {
	Client Client
	Token  uint64
}

// Block says whether somebody waits for the answer of a Refill that waits and does nothing else. Of several the one with
// the highest Number holds, whatever the order in which they come.
type Block struct {
	Client  Client
	Token   uint64
	Number  uint64 // rising
	Blocked bool
}

// Suspend says for what a client waits that only others bring about, beside memory: for each such wait, the clients of which any may
// end it; none: any that holds memory or waits for some. Without Waits it goes on. Numbers are as in Block, from 1 on.
type Suspend struct {
	Client Client
	Number uint64
	Waits  [][]Client
	// FreedBy are the clients whose callers free memory of this one, too; those that are gone do not count.
	FreedBy []Client
}

// Anybody stands in Suspend.FreedBy for goroutines that have no client: they always go on.
const Anybody = ^Client(0)

// Offered answers an Offer. Taken says that the client has served the request by itself: the Refill is answered by that.
type Offered struct {
	Client Client
	Token  uint64
	Taken  bool
}

// Lanes says what the lanes of a client have, for the report: memory that they give back when they are
// used next, and not before.
type Lanes struct {
	Count int
	Bytes int64 // of the client's LiveBytes
}

// Return gives free pages back. With Answer it answers one Ask, also when Runs is empty.
type Return struct {
	Client Client
	Runs   []Run
	// Fence covers all uses of Runs by the client's stream. Several Returns may have the same; its mark comes with one.
	Fence     Fence
	LiveBytes int64
	OpenBytes int64 // as in Refill
	Lanes     Lanes
	Answer    bool
	Final     bool // the runs are not to be given home again: the client is idle
	// UncoveredBytes are free with a client that may not record a fence now, and stay until it can.
	UncoveredBytes int64
	Report         bool // it answers one Look, and says no more than LiveBytes; where those are not known it has as many as can be
	// Sent is how many runs the client has sent in all, these included. Those on their way may be overtaken by an
	// answer, which counts once all have arrived: else the pool would refuse others for memory that is coming.
	Sent uint64
	Kept int // runs that were sent and stay with the client after all, since no fence could be recorded
	// Stirred says that something came home to the client since it said so last, whether it is part of Runs or stays. While requests
	// wait a client says so as soon as it knows.
	Stirred bool
	// PendingBytes are freed and still in use by other clients: they will come home. A client says so with its answers.
	PendingBytes int64
	// LetsOnly says that every buffer in the client's memory is charged to some other account. A client says so with its answers.
	LetsOnly bool
}

// Warm asks for that many free pages to be there, in runs of at least RunPages.
type Warm struct {
	Token uint64
	Runs  []uint32 // lengths in pages
}

// Trim asks for memory to go back to the driver until at most KeepBytes are reserved.
type Trim struct {
	Token     uint64
	KeepBytes int64
}

// JobDone says how the job in flight ended: the first Done operations succeeded and, with Err, the one
// after them failed. Passed says how far the fences of the polled clients have passed.
type JobDone struct {
	Job    *Job
	Done   int
	Passed []Passed
	Err    error
	// FreeBytes are what the driver says that it has left, where it had no memory for the operation; 0 if it does not say.
	FreeBytes int64
	// Watched are the clients with a fence that is watched from now on: a WatchOver comes for each. It says who of the job's Watch has
	// a fence that has not passed; the others have none that could be recorded.
	Watched []Watch
	// Idle says that no client's stream had work, where the job asked.
	Idle bool
}

// Passed is a client's newest fence that has passed.
type Passed struct {
	Client Client
	Fence  Fence
}

// WatchOver says that the watch with that number has ended, which may overtake the JobDone that says of its beginning: the fence has
// passed, or, with Err, nobody can say.
type WatchOver struct {
	Watch
	Err error
}

// Watch is a wait for one fence of a client. Numbers rise.
type Watch struct {
	Client Client
	Number uint64
}

// Exclude says whether a client's kernels need not end by themselves: nobody is made to wait for its fences.
type Exclude struct {
	Client   Client
	Excluded bool
}

// Tick lets the core do what is due without a request.
type Tick struct{}

// Close ends the pool: what waits is denied, and one last job gives all memory back, live or not. The
// caller has synchronised the device before.
type Close struct{ Token uint64 }

func (Join) isMessage()      {}
func (Leave) isMessage()     {}
func (Unreserve) isMessage() {}
func (Refill) isMessage()    {}
func (Withdraw) isMessage()  {}
func (Ready) isMessage()     {}
func (Block) isMessage()     {}
func (Suspend) isMessage()   {}
func (Offered) isMessage()   {}
func (Return) isMessage()    {}
func (Warm) isMessage()      {}
func (Trim) isMessage()      {}
func (JobDone) isMessage()   {}
func (WatchOver) isMessage() {}
func (Exclude) isMessage()   {}
func (Tick) isMessage()      {}
func (Close) isMessage()     {}

// Effects is what a step leaves to be performed, in field order.
type Effects struct {
	Grants  []Grant
	Denials []Denial
	Offers  []Offer
	Asks    []Client
	Looks   []Client
	Job     *Job // at most one is in flight
	Ends    []End
	Gone    []Client // left, hold nothing and have no answer to expect: nothing will name them again
}

// reset empties the effects and keeps the slices.
func (e *Effects) reset() {
	clear(e.Denials) // they hold pointers
	clear(e.Ends)
	*e = Effects{
		Grants: e.Grants[:0], Denials: e.Denials[:0], Offers: e.Offers[:0], Asks: e.Asks[:0], Looks: e.Looks[:0],
		Ends: e.Ends[:0], Gone: e.Gone[:0],
	}
}

// Empty reports whether there is nothing to perform.
func (e *Effects) Empty() bool {
	return len(e.Grants) == 0 && len(e.Denials) == 0 && len(e.Offers) == 0 && len(e.Asks) == 0 && len(e.Looks) == 0 &&
		e.Job == nil && len(e.Ends) == 0 && len(e.Gone) == 0
}

// Grant lends runs to a client: the answer to a Refill, or, with token 0, pages that the client had
// returned when asked and that nobody took, or a part of what it was refused. More is the client's.
type Grant struct {
	Client Client
	Token  uint64
	Run    Run
	More   []Run
}

// Offer has the client serve a Refill of its own that waits, if what it keeps does so; it answers with Offered. It has been
// granted that before which it gave back and nobody took.
type Offer struct {
	Client Client
	Token  uint64
}

// Denial refuses a Refill.
type Denial struct {
	Client   Client
	Token    uint64
	Shortage Shortage
	Err      error     // what the driver said, if it was the driver; ErrClosed after Close
	Deadlock *Deadlock // all that hold memory wait
	Quiet    bool      // it was Patient
}

// Deadlock is why a Refill that waits was refused: everybody who holds memory waits.
type Deadlock struct {
	Holders []Holder
	Waiters []admission.Waiter // in order, the refused one included; at most mostNamed others
	Clients map[uint64]Client  // of those, by ID
}

// Holder is an account that holds memory where nobody goes on: it waits for memory, or is suspended.
type Holder struct {
	Account      admission.Account
	WaitingBytes int64 // that its callers wait for and do nothing else
	Suspended    bool
}

// End completes a Warm, Trim or Close.
type End struct {
	Token uint64
	Bytes int64 // mapped ahead, or given back to the driver
	Err   error
}

// Shortage is why a Refill was refused.
type Shortage struct {
	RequestedBytes   int64
	FreeBytes        int64 // mapped and nobody's
	LargestFreeBytes int64
	PendingBytes     int64 // free, but with a fence that has not passed
	ReservedBytes    int64
	LimitBytes       int64
	DriverBytes      int64 // that the driver could give in all when it refused; 0 if it did not
	MissingBytes     int64 // pages that were looked for in vain
	Waited           bool
	Holdings         []Holding
}

// Holding is what a client held when it last spoke to the pool.
type Holding struct {
	Client    Client
	HeldBytes int64
	LiveBytes int64 // of HeldBytes, what callers have and magazines cache
	Lanes     Lanes
	// UncoveredBytes are as in Return, when it was asked last.
	UncoveredBytes int64
	UnpassedBytes  int64 // that it returned, under fences that have not passed
	Reserves       bool  // it is a reservation's
}

// Verb says what an operation of a job does.
type Verb uint8

// The verbs of driver operations.
const (
	Unmap   Verb = iota // pages of whole handles
	Create              // a handle of that many pages
	Map                 // a handle at a page
	Access              // pages, after they were mapped
	Release             // a handle that is not mapped
	Alloc               // a plain segment: memory and address in one
	Free                // a plain segment
	Await               // nothing of the pages: the waiter's stream goes on behind another client's fence
)

// Op is one driver call.
type Op struct {
	Verb    Verb
	Run     Run            // all but Release and Await
	Index   int32          // the core's number of the handle: Create, Map, Release, Alloc, Free
	Handle  cudadrv.Handle // Create: out; Release, Map: in, but for a Map of 0: that of the Create before it
	Address cudadrv.Ptr    // Alloc: out; Free: in
	Of      Client         // Await: whose fence
	Fence   Fence          // Await
}

// Job is a list of driver calls to be performed in order up to the first that fails, after the fences
// of Poll were queried and a watch over one of each client in Watch was begun. The core has one job in flight at a time.
type Job struct {
	Poll   []Client
	Watch  []Client
	Idle   bool   // ask whether any client's stream has work
	Waiter Client // of the Await operations, 0 without any
	Ops    []Op

	purpose purpose
	request *request // whom the job is for; nil if for the pool itself
	window  Run
	parts   []part // tagged pages that the window took

	startBytes int64 // reserved when it was started
}
