package claims

import (
	"cmp"
	"slices"
)

// Offer is the pool's proposal to serve a parked claim from its stream's memory.
type Offer struct {
	Token       uint64
	RunsGranted uint64 // to the stream, when the offer was made
}

// Table holds the waiting claims of a stream. The zero value is empty.
type Table struct {
	claims       map[uint64]*Claim
	parked       int
	lastToken    uint64
	receivedRuns uint64  // granted by the pool, and arrived
	offers       []Offer // waiting for runs in transit
}

// Hold keeps a claim until its answer comes, and gives it a token. The state is any but Served.
func (t *Table) Hold(c *Claim, s State) (token uint64) {
	if t.claims == nil {
		t.claims = map[uint64]*Claim{}
	}
	t.lastToken++
	c.token, c.state = t.lastToken, s
	if s == Parked {
		c.parks++
		t.parked++
	}
	t.claims[c.token] = c
	return c.token
}

// Find returns the claim that waits under a token, or nil.
func (t *Table) Find(token uint64) *Claim { return t.claims[token] }

// Take ends the wait of a claim, and returns its previous state.
func (t *Table) Take(c *Claim) (from State) {
	from = c.state
	if c.token == 0 {
		return from
	}
	delete(t.claims, c.token)
	if c.token, c.state = 0, Served; from == Parked {
		t.parked--
	}
	return from
}

// Len returns the number of waiting claims.
func (t *Table) Len() int { return len(t.claims) }

// ParkedLen returns the number of parked claims.
func (t *Table) ParkedLen() int { return t.parked }

// In lists the claims in any of those states, in the order in which they entered them: the same
// history gives the same order.
func (t *Table) In(states ...State) []*Claim {
	var in []*Claim
	for _, c := range t.claims {
		if slices.Contains(states, c.state) {
			in = append(in, c)
		}
	}
	slices.SortFunc(in, func(a, b *Claim) int { return cmp.Compare(a.token, b.token) })
	return in
}

// Receive counts granted runs that have arrived.
func (t *Table) Receive(runs int) { t.receivedRuns += uint64(runs) } //nolint:gosec // a length

// ReceivedRuns returns the number of granted runs that have arrived.
func (t *Table) ReceivedRuns() uint64 { return t.receivedRuns }

// Received reports whether so many runs have arrived. A reclaim request or an offer is answered only when the
// runs granted before it have arrived: otherwise the pool would refuse other requests for memory in transit
// to a stream that does not need it.
func (t *Table) Received(runsGranted uint64) bool { return t.receivedRuns >= runsGranted }

// Offered reports whether an offer is answered now; if not, it waits for the runs granted before
// it.
func (t *Table) Offered(o Offer) bool {
	if !t.Received(o.RunsGranted) {
		t.offers = append(t.offers, o)
		return false
	}
	return true
}

// DueOffer returns the oldest of the offers that have waited and whose runs have arrived. It stays in the
// table until Answered: a turn that panics before that must not lose it.
func (t *Table) DueOffer() (o Offer, due bool) {
	at := slices.IndexFunc(t.offers, func(o Offer) bool { return t.Received(o.RunsGranted) })
	if at < 0 {
		return Offer{}, false
	}
	return t.offers[at], true
}

// Answered removes an offer that has waited and has its answer.
func (t *Table) Answered(o Offer) {
	t.offers = slices.DeleteFunc(t.offers, func(have Offer) bool { return have == o })
}

// TakeOffers takes all offers that have waited, to repeat them after a panic.
func (t *Table) TakeOffers() []Offer {
	offers := t.offers
	t.offers = nil
	return offers
}

// Serves returns the parked claim of an offer; nil: it was withdrawn, and the stream withdraws it again. The
// effects with the first withdrawal may be delayed, and the pool would repeat the offer at each Return.
func (t *Table) Serves(o Offer) *Claim {
	if c := t.claims[o.Token]; c != nil && c.state == Parked {
		return c
	}
	return nil
}
