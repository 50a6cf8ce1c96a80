package pool

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/actors"
	"github.com/go-vram/vram/internal/pool/admission"
	"github.com/go-vram/vram/internal/pool/core"
	"github.com/go-vram/vram/internal/recoveredtest"
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

// A panic of a reader in the pool's turn costs its figures alone. Where the books do not balance then, the pool is
// quarantined, and each request that waits gets its answer.
func TestAPanicOfAReaderOfPlaces(t *testing.T) {
	recoveredtest.Expect(t, "vram-pool: ")
	for name, broken := range map[string]bool{"balanced books": false, "broken books": true} {
		t.Run(name, func(t *testing.T) {
			h := prepare(t)
			h.open(roomy(8))
			holder, c := h.testClient(1), h.testClient(2)
			run := holder.must(4)
			inside := make(chan struct{})
			release := h.hold("cuMemCreate", func() { close(inside) })
			granted := holder.refill(2)
			<-inside
			var answers []<-chan answer
			var ages []uint64
			for _, account := range []admission.Account{tenantAccounts + 7, 10} {
				r, answer := c.expect(8)
				r.Patience, r.Place = core.Waiting, core.Place{Account: account, Age: h.pool.NextAge(), Align: 1}
				h.pool.Refill(c, r)
				answers, ages = append(answers, answer), append(ages, r.Place.Age)
			}
			h.inTurn(func() {
				if broken {
					h.pool.core.Step(core.JobDone{Job: h.pool.core.InFlight()}) // a lie: nothing was done
				}
			})
			good := h.pool.quotas.all.Swap(&[]*Tenant{nil})
			_, ahead := h.pool.placeOf(ages[1])
			h.pool.quotas.all.Store(good)
			assert.Nil(t, ahead)
			if broken {
				for _, answer := range append(answers, granted) {
					require.ErrorContains(t, (<-answer).err, "quarantined")
				}
				release()
				require.ErrorContains(t, h.pool.Close(), "quarantined")
				return
			}
			release()
			require.NoError(t, (<-granted).err)
			var place int
			for place == 0 { // placeOf gives up where the turn that answered lasts
				place, ahead = h.pool.placeOf(ages[1])
			}
			assert.Equal(t, 2, place)
			assert.NotNil(t, ahead)
			holder.free(run)
			require.NoError(t, h.pool.Close())
			h.assertEmpty()
		})
	}
}
