package claims

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Offers that have waited are taken once, in their order.
func TestOffersAreTakenOnce(t *testing.T) {
	t.Parallel()
	var table Table
	first, second := Offer{Token: 1, RunsGranted: 2}, Offer{Token: 2, RunsGranted: 1}
	assert.False(t, table.Offered(first))
	assert.False(t, table.Offered(second))
	assert.Equal(t, []Offer{first, second}, table.TakeOffers())
	assert.Empty(t, table.TakeOffers())
	table.Receive(2)
	_, due := table.DueOffer()
	assert.False(t, due, "they were taken")
}

// tenant has a quota, and counts its charges.
type tenant struct {
	tooLarge, allows bool
	charged          int64
}

func (p *tenant) TooLarge(int64) bool { return p.tooLarge }

func (p *tenant) Charge(bytes int64) bool {
	if p.allows {
		p.charged += bytes
	}
	return p.allows
}

func (p *tenant) Refund(bytes int64) { p.charged -= bytes }

// A claim continues with its charge paid, or owes it if it waits; one that exceeds the whole quota never continues, and pays nothing.
func TestWhichClaimsMayContinue(t *testing.T) {
	t.Parallel()
	for _, tooLarge := range []bool{false, true} {
		for _, allows := range []bool{false, true} {
			for _, waits := range []bool{false, true} {
				var b Bill
				p := &tenant{tooLarge: tooLarge, allows: allows}
				assert.Equal(t, !tooLarge && (allows || waits), b.Open(p, 7, waits))
				assert.EqualValues(t, 7, b.Cost())
				paid := allows && !tooLarge
				assert.Equal(t, paid, p.charged == 7)
				assert.Equal(t, !paid, b.Owes())
				b.Refund()
				b.Refund()
				assert.Zero(t, p.charged)
			}
		}
	}
}

// The handler is called for a report, and a fence awaited for want of memory, only before the last refusal. That one parks a claim that waits
// for memory, and fails any other. A stream that closes fails all.
func TestTheLastRefusal(t *testing.T) {
	t.Parallel()
	for facts := range 1 << 7 {
		is := func(bit int) bool { return facts>>bit&1 != 0 }
		c := Claim{Waits: is(0)}
		r := Refusal{Memory: is(1), Report: is(2), Last: is(3)}
		s := Stream{Handler: is(4), Pending: is(5), Closing: is(6)}
		want := Fail
		switch {
		case s.Closing:
		case !r.Last && r.Report && s.Handler:
			want = Consult
		case !r.Last && r.Memory && s.Pending:
			want = Delay
		case r.Memory && c.Waits:
			want = Park
		}
		assert.Equal(t, want, c.Refused(r, s), "Wait %v, %+v, %+v", c.Waits, r, s)
	}
}

// Looks are learned from by the outcome of searches that a look for the claim came before, and by no other.
func TestOtherSearchesTeachNothing(t *testing.T) {
	t.Parallel()
	for _, after := range []Searched{First, AfterFences, AfterLook, AfterTake} {
		for _, found := range []bool{false, true} {
			looks := Looks{backoff: 3, rest: 2}
			looks.Learn(after, found)
			want := Looks{backoff: 3, rest: 2}
			switch {
			case after < AfterLook:
			case found:
				want = Looks{}
			default:
				want = Looks{backoff: 7, rest: 7}
			}
			assert.Equal(t, want, looks, "after %v, found %v", after, found)
		}
	}
}
