package core

// Message is an input of the core. The set is closed.
type Message interface{ isMessage() }

// Join adds a client. One that reserves asks once for pages that others draw from; it is never asked for any. An adopted one
// may be able to return memory only when its callers use it.
type Join struct {
	Client            Client
	Reserves, Adopted bool
}

// Unreserve ends a reservation: its Refill is denied if it waits, and the rest of it is free.
type Unreserve struct{ Client Client }

// Leave reports that a client will make no more requests: its waiting Refills are denied. It may still return pages. Synced
// reports that the device has finished all work of the stream: the client's fences have passed, also those that could not be
// recorded.
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
	More      []uint32 // owned by the core
	Most      uint32   // of a run that the client can use, if it may have more than it asks for; 0: any
	LiveBytes int64    // of the client, this request included
	// OpenBytes are the part of LiveBytes that no caller has: of requests that wait for an answer, and of incomplete batches.
	OpenBytes int64
	// BlockBytes are the bytes that a grant of this request adds to the callers' bytes.
	BlockBytes     int64
	Bytes          int64  // that the client lacks
	RequestedBytes int64  // of the caller, for the report
	From           Client // a reservation to draw from, if it has all that is wanted; 0: none
	Patience       Patience
	Place          Place // in the waiters' order, of a request that waits or would
}

// Withdraw cancels a waiting Refill: it gets no answer.
type Withdraw struct {
	Client Client
	Token  uint64
}

// Ready reports that the quota of a waiting Refill allows it now: its account was charged.
type Ready struct {
	Client Client
	Token  uint64
}

// Block reports whether a goroutine waits for the answer of a waiting Refill and does nothing else. Of several the one
// with the highest Number holds.
type Block struct {
	Client  Client
	Token   uint64
	Number  uint64 // rising
	Blocked bool
}

// Suspend reports a client's waits for anything but memory: for each wait, the clients any of which may end it; none: any that
// holds memory or waits for some. Without Waits it is runnable. Numbers are as in Block, from 1 on.
type Suspend struct {
	Client Client
	Number uint64
	Waits  [][]Client
	// FreedBy are the clients whose callers free memory of this one, too; those that are gone do not count.
	FreedBy []Client
}

// Anybody stands in Suspend.FreedBy for goroutines without a client: they are always runnable.
const Anybody = ^Client(0)

// Offered answers an Offer. Taken reports that the client has served the request by itself, which answers the Refill.
type Offered struct {
	Client Client
	Token  uint64
	Taken  bool
}

// Return gives free pages back. With Answer it answers one Ask, also when Runs is empty.
type Return struct {
	Client Client
	Runs   []Run
	// Fence covers all uses of Runs by the client's stream. Several Returns may have the same; its mark comes with one.
	Fence     Fence
	LiveBytes int64
	OpenBytes int64 // as in Refill
	Answer    bool
	// TookNs is the time from the Ask to this answer; 0: unknown.
	TookNs int64
	Final  bool // the runs are not to be lent back: the client is idle
	// Surplus: the client is active, and has not needed the runs for a while.
	Surplus bool
	// UncoveredBytes are free with a client that cannot record a fence now, and stay until it can.
	UncoveredBytes int64
	// Sent is the number of runs and empty Stirred reports that the client has sent in all, including these. An answer may
	// overtake some of them; it counts once all have arrived. Otherwise the pool would refuse others for memory that is coming,
	// or that came after a request was tried and has not been reported.
	Sent uint64
	Kept int // runs that were sent and stay with the client after all, since it could record no fence
	// Stirred reports that memory was freed to the client since its last report, whether it is part of Runs or stays. While
	// requests wait a client reports it at once.
	Stirred bool
	// PendingBytes are freed and still in use by other clients: they will become free with this one, which reports them with
	// its answers.
	PendingBytes int64
	// LetsOnly reports that every buffer in the client's memory is charged to some other account. A client reports it with its
	// answers.
	LetsOnly bool
}

// sent returns the number of a client's messages that a Return accounts for.
func (m *Return) sent() uint64 {
	n := uint64(len(m.Runs) + m.Kept)
	if n == 0 && m.Stirred && !m.Answer {
		return 1
	}
	return n
}

// Looked reports that the clients of the last Looks have collected freed memory, unless their turns were taken. SetUsage was
// called since.
type Looked struct{}

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

// JobDone reports how the job in flight ended: the first Done operations succeeded and, with Err, the one
// after them failed. Passed reports how far the fences of the polled clients have passed.
type JobDone struct {
	Job    *Job
	Done   int
	Passed []Passed
	Err    error
	// FreeBytes is the free memory that the driver reports after it had none for the operation; 0 if it does not report that.
	FreeBytes int64
	// Watched are the watches that the job has begun; a WatchOver follows for each. They cover the clients of Job.Watch that
	// have a fence to watch; the others' fences have passed, or cannot be recorded.
	Watched []Watch
	// Idle reports that no client's stream had work, where the job asked.
	Idle   bool
	TookNs int64 // for the operations of a job that did not fail; 0: it is not known
}

// Passed is a client's newest fence that has passed.
type Passed struct {
	Client Client
	Fence  Fence
}

// WatchOver reports the end of a watch: the fence has passed, or, with Err, may not have. It may overtake the JobDone that
// reports the beginning.
type WatchOver struct {
	Watch
	Err error
}

// Watch is a wait for one fence of a client. Numbers ascend.
type Watch struct {
	Client Client
	Number uint64
}

// Exclude reports whether a client's kernels need not end by themselves: no other client is made to wait for its fences.
type Exclude struct {
	Client   Client
	Excluded bool
}

// Tick is sent periodically.
type Tick struct{}

// Close ends the pool: waiting requests are denied, and one last job gives all memory back, live or not. The caller has
// synchronised the device before.
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
func (Looked) isMessage()    {}
func (Warm) isMessage()      {}
func (Trim) isMessage()      {}
func (JobDone) isMessage()   {}
func (WatchOver) isMessage() {}
func (Exclude) isMessage()   {}
func (Tick) isMessage()      {}
func (Close) isMessage()     {}
