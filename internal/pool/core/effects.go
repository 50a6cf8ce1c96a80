package core

import (
	"errors"

	"github.com/go-vram/vram/internal/effect"
	"github.com/go-vram/vram/internal/pool/admission"
	"github.com/go-vram/vram/internal/pool/memory"
)

// ErrClosed refuses requests after Close.
var ErrClosed = errors.New("pool: closed")

// Effects are the results of a step, to be performed in field order. Take each entry before performing it.
type Effects struct {
	Grants  effect.List[Grant]
	Denials effect.List[Denial]
	Offers  effect.List[Offer]
	Asks    effect.List[Ask]
	Looks   effect.List[Client] // collect freed memory; once all have, a Looked comes
	Job     *Job                // at most one is in flight
	Ends    effect.List[End]
	Gone    effect.List[Client] // left, hold nothing and owe no answer: no effect names them again
}

// reset empties the effects and keeps their memory.
func (e *Effects) reset() {
	effect.Reset(&e.Grants)
	effect.Reset(&e.Denials)
	effect.Reset(&e.Offers)
	effect.Reset(&e.Asks)
	effect.Reset(&e.Looks)
	e.Job = nil
	effect.Reset(&e.Ends)
	effect.Reset(&e.Gone)
}

// Empty reports whether there is nothing to perform.
func (e *Effects) Empty() bool {
	return len(effect.Left(&e.Grants)) == 0 && len(effect.Left(&e.Denials)) == 0 && len(effect.Left(&e.Offers)) == 0 && len(effect.Left(&e.Asks)) == 0 &&
		len(effect.Left(&e.Looks)) == 0 && e.Job == nil && len(effect.Left(&e.Ends)) == 0 && len(effect.Left(&e.Gone)) == 0
}

// Job is one round of the driver goroutine: it queries the fences of Poll, begins a watch over a fence of each client in Watch,
// and performs the operations in order up to the first that fails. The core has one job in flight at a time.
type Job struct {
	memory.Job
	Poll  []Client
	Watch []Client
	Idle  bool // ask whether any client's stream has work

	request *request // that the job is for; nil: for the pool itself
}

// Grant lends runs to a client: the answer to a Refill, or, with token 0, pages that the client had
// returned on request and that no other client took, or a part of a request that was refused. More is the client's.
type Grant struct {
	Client Client
	Token  uint64
	Run    Run
	More   []Run
	Mapped bool // the driver mapped pages for the request
}

// Ask requests free pages of a client, after its earlier grants: its longest free runs, up to so many pages, or, with 0, all
// that it does not use.
type Ask struct {
	Client Client
	Pages  uint32
}

// Offer asks a client to serve its own waiting Refill from its cache; it answers with Offered. Before it the client was granted
// all pages that it had returned and no other client took.
type Offer struct {
	Client Client
	Token  uint64
}

// Denial refuses a Refill.
type Denial struct {
	Client   Client
	Token    uint64
	Shortage Shortage
	Err      error     // of the driver, if that refused; ErrClosed after Close
	Deadlock *Deadlock // no client that holds memory makes progress
	Quiet    bool      // it was Patient
}

// Deadlock is why a Refill that waits was refused: everybody who holds memory waits.
type Deadlock struct {
	Refused uint64 // the waiter that is refused, by its ID; 0: none is
	Holders []Holder
	Waiters []admission.Waiter // in order, the refused one included; at most mostNamed others
	Clients map[uint64]Client  // of those, by ID
}

// Holder is an account that holds memory and makes no progress: it waits for memory, or is suspended.
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
	FreeBytes        int64 // mapped, and lent to no client
	LargestFreeBytes int64
	PendingBytes     int64 // free, but with a fence that has not passed
	ReservedBytes    int64 // with SharedBytes
	LimitBytes       int64
	LimitSource      string // see Settings
	SharedBytes      int64  // memory outside: see Charge
	DriverBytes      int64  // that the driver could give in all when it refused; 0 if it did not
	MissingBytes     int64  // pages that were looked for in vain
	Waited           bool
	Holdings         []Holding
}

// Holding is a client's memory as it last reported it.
type Holding struct {
	Client    Client
	HeldBytes int64
	LiveBytes int64 // of HeldBytes: in buffers, or cached by magazines
	// UncoveredBytes are as in Return, when it was asked last.
	UncoveredBytes int64
	UnpassedBytes  int64 // that it returned, under fences that have not passed
	Reserves       bool  // it is a reservation's
}
