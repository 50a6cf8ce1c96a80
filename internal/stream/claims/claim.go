package claims

// State is a claim's state; the package comment has the transitions.
type State uint8

// The states of a claim.
const (
	Served State = iota
	Asked
	Consulted
	Delayed
	Parked
)

// Verdict is the next action for a claim.
type Verdict uint8

// The verdicts.
const (
	Drop    Verdict = iota // it was cancelled
	Close                  // the stream is closing: answer ErrClosed
	Search                 // search for the missing memory
	Park                   // wait in the pool
	Consult                // call the caller's handler
	Delay                  // wait for a fence
	Fail                   // answer with the pool's error
)

// MaxConsults is how often the caller's handler is called for one claim. Not fewer: a handler may free one
// buffer at a time. Not more: a handler that returns true and frees nothing would keep the claim forever.
const MaxConsults = 16

// Claim is the state of one claim. Its stream's turn owns it, except for the Bill.
type Claim struct {
	Bill

	// Owner is the shell's object for the claim.
	Owner any
	// Waits: it waits for other callers' frees rather than fail.
	Waits bool
	// After is the step before its next search.
	After Searched
	// Refusal is the pool's error for a delayed claim, its answer if no fence passes.
	Refusal error

	state    State
	token    uint64 // set while it waits; 0: it does not wait
	parks    int
	consults int
}

// State returns the claim's state.
func (c *Claim) State() State { return c.state }

// Token returns the number under which the claim waits; 0: it does not.
func (c *Claim) Token() uint64 { return c.token }

// Parks returns how often the claim was parked.
func (c *Claim) Parks() int { return c.parks }

// Stream has the inputs of a decision from the claim's stream.
type Stream struct {
	Closing bool // it serves no request any more
	Demand  bool // requests of the device wait for frees
	Handler bool // the caller has an OnOutOfMemory handler
	Pending bool // some stream of the device has pending memory
}

// Queues reports whether a tenant's claim must wait for earlier ones, even if its stream could serve it:
// freed memory belongs to the first waiting claim, and not to the next request on that stream.
func Queues(waits bool, s Stream) bool { return waits && s.Demand }

// Arrive decides about a claim that arrives, for the first time or again.
func (c *Claim) Arrive(wanted bool, s Stream) Verdict {
	switch {
	case !wanted:
		return Drop
	case s.Closing:
		return Close
	case c.Owes(), c.Charged() && c.parks == 0 && Queues(c.Waits, s):
		return Park
	default:
		return Search
	}
}

// Refusal describes the pool's error for a decision.
type Refusal struct {
	Memory bool // memory is short
	Report bool // it is an out-of-memory report, which a handler needs
	Last   bool // no wait for a fence helps, and the handler was called
}

// Refused decides about a claim that the pool has refused, after one more search failed.
func (c *Claim) Refused(r Refusal, s Stream) Verdict {
	switch {
	case s.Closing:
		return Fail
	case !r.Last && r.Report && s.Handler && c.consults < MaxConsults:
		c.consults++
		return Consult
	case !r.Last && r.Memory && s.Pending:
		return Delay
	case r.Memory && c.Waits:
		return Park
	default:
		return Fail
	}
}

// Settled notes that the handler returned false: it is not called again.
func (c *Claim) Settled() { c.consults = MaxConsults }
