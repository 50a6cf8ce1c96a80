package pool

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/effect"
	"github.com/go-vram/vram/internal/pool/core"
)

// A reclaim request and an offer name all runs that the pool has granted before, also the further ones of a batch and those that go
// back to a refused one: the client answers once all of them have arrived.
func TestAskedClientsLearnOfAllGrantedRuns(t *testing.T) {
	p := &Pool{clients: map[core.Client]Client{1: &listener{}}, granted: map[core.Client]uint64{}, askedAt: map[core.Client]time.Duration{}}
	p.clock = func() time.Duration { return 0 }
	run := func(first uint32) core.Run { return core.Run{First: first, Pages: 1} }
	var delivered uint64
	for n := range uint32(5) {
		var fx core.Effects
		g := core.Grant{Client: 1, Token: uint64(n) + 1, Run: run(0)}
		for i := range n {
			g.More = append(g.More, run(i+1))
		}
		effect.Push(&fx.Grants, g)
		effect.Push(&fx.Grants, core.Grant{Client: 1, Run: run(20)})
		effect.Push(&fx.Grants, core.Grant{Client: 1, Run: run(30)})
		effect.Push(&fx.Offers, core.Offer{Client: 1, Token: 99})
		effect.Push(&fx.Asks, core.Ask{Client: 1, Pages: 3})
		p.collect(&fx)
		for _, g := range effect.Left(&p.out.grants) {
			delivered += uint64(len(g.runs))
		}
		for _, g := range effect.Left(&p.out.home) {
			delivered += uint64(len(g.runs))
		}
		require.Len(t, effect.Left(&p.out.reclaims), 1)
		assert.Equal(t, delivered, effect.Left(&p.out.reclaims)[0].runsGranted, "after a batch of %d runs", n+1)
		require.Len(t, effect.Left(&p.out.offers), 1)
		assert.Equal(t, delivered, effect.Left(&p.out.offers)[0].runsGranted)
		p.out = nil
	}
	assert.EqualValues(t, 1+2+3+4+5+5*2, delivered)
}
