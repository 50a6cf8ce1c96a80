package core

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Refills that are refused while many others are active are searched for no more often than one alone: a failed search is not
// repeated before free memory comes.
func TestRefusalsAtOnceSearchNoMoreThanOne(t *testing.T) {
	t.Parallel()
	searches := func(count uint64) uint64 {
		w := newWorld(t, 64, 8, Settings{Policy: Policy{HandlePages: 1}, LimitBytes: 8 * pageBytes})
		for id := Client(1); id <= 2; id++ {
			w.clients[id] = &holder{}
			w.send(Join{Client: id})
		}
		w.fill(1, 8)
		c := w.core
		before := c.memory.Searches()
		var mail []Message
		denied := uint64(0)
		take := func(fx *Effects) {
			denied += uint64(len(fx.Denials.Left()))
			for _, a := range fx.Asks.Left() {
				mail = append(mail, Return{Client: a.Client, LiveBytes: 8 * pageBytes, Answer: true})
			}
			if len(fx.Looks.Left()) > 0 {
				mail = append(mail, Looked{})
			}
			if fx.Job != nil {
				mail = append(mail, JobDone{Job: fx.Job})
			}
		}
		take(c.Step(Refill{Client: 2, Token: 1000, Pages: 1, Bytes: pageBytes}))
		for n := uint64(1); n < count; n++ {
			require.True(t, c.Step(Refill{Client: 2, Token: 1000 + n, Pages: 1, Bytes: pageBytes}).Empty())
		}
		require.Len(t, c.queue.refills, int(count)) //nolint:gosec // a few
		for len(mail) > 0 {
			m := mail[0]
			mail = mail[1:]
			take(c.Step(m))
		}
		require.Equal(t, count, denied)
		return c.memory.Searches() - before
	}
	one, many := searches(1), searches(1000)
	assert.LessOrEqual(t, many, 1000*one)
}

// A refill that wants several runs is searched for again once it has become the first.
func TestWhoBecomesTheFirstIsSearchedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 64, 8, Settings{Policy: Policy{HandlePages: 1}, LimitBytes: 8 * pageBytes})
	for id := Client(1); id <= 3; id++ {
		w.clients[id] = &holder{}
		w.send(Join{Client: id})
	}
	w.fill(1, 8)
	c := w.core
	c.Step(Refill{Client: 2, Token: 1000, Pages: 8, Bytes: 8 * pageBytes})
	c.Step(Refill{Client: 3, Token: 1001, Pages: 1, More: []uint32{1}, Bytes: 2 * pageBytes})
	c.Step(Return{Client: 1, Runs: []Run{{First: 0, Pages: 2}}, Sent: 1, LiveBytes: 6 * pageBytes})
	require.Len(t, c.queue.refills, 2, "several runs are for the first alone")
	fx := c.Step(Leave{Client: 2, Synced: true})
	require.Len(t, fx.Grants.Left(), 1)
	assert.EqualValues(t, 1001, fx.Grants.Left()[0].Token)
}
