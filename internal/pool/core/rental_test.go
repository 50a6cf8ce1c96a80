package core

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

// rounds is a program whose clients work in turns: in each round a few of them use memory in
// pieces, and free it.
type rounds struct {
	clients Client
	all     [][]piece
}

type piece struct {
	client Client
	pages  uint32
}

// drawRounds draws rounds of a few kinds. pick returns 0 up to n-1.
func drawRounds(pick func(n int) int) (p rounds) {
	p.clients = Client(2 + pick(4)) //nolint:gosec // a few
	kinds := make([][]piece, 2+pick(3))
	for i := range kinds {
		for range 1 + pick(6) {
			kinds[i] = append(kinds[i], piece{Client(1 + pick(int(p.clients))), uint32(1 + pick(9))}) //nolint:gosec // likewise
		}
	}
	for range 10 + pick(70) {
		p.all = append(p.all, kinds[pick(len(kinds))])
	}
	return p
}

// play plays rounds against a pool. It returns the most pages that the pool held beyond the live
// peak. missed is told of each miss, with the bytes that were reserved before it.
func (p rounds) play(t failer, policy Policy, missed func(m *market, x piece, moved moves, reservedBytes int64)) (m *market, beyondPages int64) {
	m = openMarket(t, p.clients, Settings{Policy: policy, LimitBytes: 300 * pageBytes})
	for _, round := range p.all {
		for _, x := range round {
			before, token, reserved := m.moved, m.token, m.core.ReservedBytes()
			m.alloc(x.client, x.pages)
			if m.token > token && missed != nil {
				missed(m, x, moves{m.moved.asks - before.asks, m.moved.runs - before.runs, m.moved.handles - before.handles}, reserved)
			}
			beyondPages = max(beyondPages, (m.core.ReservedBytes()-m.core.budget.livePeak.bytes())/pageBytes)
		}
		for id := Client(1); id <= p.clients; id++ {
			m.drop(id)
		}
	}
	return m, beyondPages
}

// Memory is moved only while moves have cost less than the price of growth, and growth costs no
// more than moves have. Growth that costs nothing is forced: no other client has anything free. So
// moves and growth never come to more than twice the cost of the moves, nor, but for the last price,
// to more than twice the price of the growth.
func TestMovesAndGrowthPayForEachOther(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := drawRounds(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "") })
		policy := Policy{
			HandlePages: rapid.SampledFrom([]uint32{1, 4}).Draw(t, "handle"), PageWorth: rapid.SampledFrom([]int64{4, 8, 24, 64}).Draw(t, "worth"),
		}
		bought, cost, peak := int64(0), int64(0), int64(0)
		p.play(t, policy, func(m *market, x piece, moved moves, reservedBytes int64) {
			b := &m.core.budget
			refund := min(bought, max(0, b.livePeak.bytes()-peak)) // of bytes that a higher peak absorbs
			grown := b.boughtBytes - bought + refund
			switch {
			case b.costNs < 0:
				m.failf("%d ns more were paid than moves have cost", -b.costNs)
			case grown > 0 && b.costNs == cost+moved.ns()+b.worthNs(refund/pageBytes): // nothing was paid
				for id := Client(1); id <= p.clients; id++ {
					if runs := m.freeRuns(id); id != x.client && len(runs) > 0 {
						m.failf("growth is forced, and client %d has %v", id, runs)
					}
				}
			case moved != moves{} && grown <= 0:
				reserved := reservedBytes + int64(x.pages)*pageBytes // if it had grown
				if had, price := b.costNs-moved.ns(), b.priceNs(reserved-b.softBytes(), reserved); had >= price {
					m.failf("%+v moved for %+v, although %d of %d have been paid", moved, x, had, price)
				}
			}
			bought, cost, peak = b.boughtBytes, b.costNs, b.livePeak.bytes()
		})
	})
}

// The pool does not know the future. A pool that does would never buy, or buy at the start all that it will want. Over many
// programs moves and memory beyond the live peak cost less than twice the better of these two, chosen for each program. Where a
// page is worth half a handle, which buys little, a purchase is soon worth less than the moves that it took to find out.
func TestMovesAndGrowthCostLittleMoreThanInHindsight(t *testing.T) {
	t.Parallel()
	for worth, most := range map[int64]float64{4: 3, 8: 2.25, 24: 1.5, 64: 1.5} {
		var cost, best int64
		for seed := range uint64(20) {
			p := drawRounds(rand.New(rand.NewPCG(seed, uint64(worth))).IntN) //nolint:gosec // the same programs each time
			total := func(policy Policy) int64 {
				m, pages := p.play(t, policy, nil)
				return m.moved.ns() + pages*worth*firstCreateNs/worthUnit
			}
			policy := Policy{HandlePages: []uint32{1, 4}[seed%2]}
			never := total(policy)
			policy.Slack = 1 << 20
			atOnce := total(policy)
			policy.Slack, policy.PageWorth = 0, worth
			cost += total(policy)
			best += min(never, atOnce)
		}
		assert.Less(t, float64(cost), most*float64(best), "a page is worth %d eighths of a handle", worth)
		t.Logf("worth %d: %.2f", worth, float64(cost)/float64(best))
	}
}
