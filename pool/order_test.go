package pool

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/actors"
	"github.com/go-vram/vram/internal/pool/core"
)

// Runs that go back to a client are delivered before the answer to a Refill, in whichever order the
// core decided: a client may send its next Refill when it gets its answer.
func TestRunsGoHomeBeforeAnswers(t *testing.T) {
	var e effects
	l := &listener{panicAt: -1}
	e.grant(l, core.Grant{Client: 1, Token: 5, Run: core.Run{First: 0, Pages: 1}})
	e.grant(l, core.Grant{Client: 2, Run: core.Run{First: 1, Pages: 1}})
	e.grant(l, core.Grant{Client: 2, Run: core.Run{First: 4, Pages: 2}})
	for e.deliver() {
	}
	assert.Equal(t, []string{"granted 0 [{1 1} {4 2}]", "granted 5 [{0 1}]"}, l.calls)
}

// yielding is a host that counts yields, and takes a step at one of them.
type yielding struct {
	actors.Host
	yields, at int
	step       func()
}

func (y *yielding) Reach(string) {
	if y.yields++; y.yields == y.at {
		y.step()
	}
}

// The place of a request is found also where another goroutine is in the pool's turn for a short time, and a goroutine that stays
// there holds nobody up.
func TestThePlaceOfARequestWhileOthersAreInTheTurn(t *testing.T) {
	t.Parallel()
	h := build(t, roomy(4))
	holder, c := h.testClient(1), h.testClient(2)
	run := holder.must(4)
	r, answer := c.expect(2)
	r.Patience, r.Place = core.Waiting, core.Place{Account: 10, Age: h.pool.NextAge(), Align: 1}
	h.pool.Refill(c, r)
	for busy := true; busy; { // the driver reads the host
		h.inTurn(func() { busy = h.pool.core.InFlight() != nil })
	}
	place := func(at int, step func()) (place, yields int) {
		y := &yielding{at: at, step: step}
		h.pool.host = y
		defer func() { h.pool.host = nil }()
		place, ahead := h.pool.placeOf(r.Place.Age)
		assert.Nil(t, ahead)
		return place, y.yields
	}
	for at := 1; at < mostTries; at++ {
		found, _ := place(at, h.occupy())
		require.Equal(t, 1, found, "after %d yields", at)
	}
	leave := h.occupy()
	found, yields := place(0, nil)
	assert.Zero(t, found)
	assert.Equal(t, mostTries-1, yields)
	leave()
	holder.free(run)
	require.NoError(t, (<-answer).err)
}
