package claims

// State is where a claim is; the package comment has the transitions.
type State uint8

// The states of a claim.
const (
	Served State = iota
	Asked
	Consulted
	Delayed
	Parked
)

// String names the state.
func (s State) String() string {
	return [...]string{"served", "asked", "consulted", "delayed", "parked"}[s]
}

// Verdict is what is done about a claim next.
type Verdict uint8

// The verdicts.
const (
	Drop    Verdict = iota // nobody wants it any more
	Close                  // the stream serves nobody any more: that is its answer
	Search                 // search for what is missing
	Park                   // have it wait in the pool
	Consult                // ask the caller's handler
	Delay                  // wait for a fence
	Fail                   // answer with the refusal
)

// String names the verdict.
func (v Verdict) String() string {
	return [...]string{"drop", "close", "search", "park", "consult", "delay", "fail"}[v]
}

// MaxConsults is how often the caller's handler is asked about one claim. Not fewer: a handler may free one thing at a time. Not
// more: one that says yes and frees nothing would keep the claim for ever.
const MaxConsults = 16

// Claim is what the decisions know of one claim. It is owned by its stream's turn, but for the Bill.
type Claim struct {
	Bill

	// Owner is the shell's.
	Owner any
	// Waits: it waits for other people's frees rather than fail.
	Waits bool
	// After is what has happened before its next search.
	After Searched
	// Refusal is the answer of a delayed claim that no fence helps.
	Refusal error

	state    State
	token    uint64 // under which it waits; 0: it does not just now
	parks    int
	consults int
}

// State is where the claim is.
func (c *Claim) State() State { return c.state }

// Token is the number under which it waits; 0: it does not.
func (c *Claim) Token() uint64 { return c.token }

// Parks is how often it was parked.
func (c *Claim) Parks() int { return c.parks }

// Stream is what decisions need to know of the claim's stream.
type Stream struct {
	Closing bool // it serves nobody any more
	Demand  bool // requests of the device wait for frees
	Handler bool // the caller has one
	Pending bool // some stream of the device keeps freed memory for a fence
}

// Queues reports whether a tenant's claim takes its place among those that wait, whatever its stream keeps: what comes home to a
// stream belongs to the next of those, and not to the next request on that stream.
func Queues(waits bool, s Stream) bool { return waits && s.Demand }

// Arrive decides about a claim that comes to be served, for the first time or again.
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

// Refusal is what the decision needs to know of an error.
type Refusal struct {
	Memory bool // it is for want of memory
	Report bool // it says who has the memory: a handler is asked with that
	Last   bool // no wait for a fence helps, and the handler was asked
}

// Refused decides about a claim that the pool has refused, and that one more search did not serve.
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

// Settled says that the handler answers no: it is not asked again.
func (c *Claim) Settled() { c.consults = MaxConsults }
