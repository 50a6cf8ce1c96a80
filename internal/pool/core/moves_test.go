package core

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tight returns a pool that moves memory rather than grow: its budget is the live peak.
func tight(worth int64) Settings {
	return Settings{Policy: Policy{HandlePages: 4, PageWorth: worth}, LimitBytes: 1000 * pageBytes}
}

// A miss asks one client, the richest that has a run of that length, and no other.
func TestAMissAsksTheRichestForARun(t *testing.T) {
	t.Parallel()
	m := openMarket(t, 5, tight(0))
	m.alloc(1, 16)
	m.alloc(2, 20)
	m.alloc(3, 12)
	m.alloc(4, 40)
	clear(m.inUse[0:6])   // client 1: a run of six
	clear(m.inUse[16:19]) // client 2: nine pages, no run of more than three
	clear(m.inUse[24:27])
	clear(m.inUse[32:35])
	clear(m.inUse[40:47]) // client 3: a run of seven, the richest of those with a run of five
	require.Equal(t, Client(4), m.pages[48].owner)
	m.asks = nil
	m.miss(5, 5)
	assert.Equal(t, []Ask{{Client: 3, Pages: 5}}, m.asks)
	assert.Equal(t, 7, m.held(5), "the run is not split: it would be asked for again")
	assert.Equal(t, moves{asks: 1, runs: 1}, m.moved)
}

// Where no client has such a run the richest are asked for as many pages as are missing, and no
// more of them than have those.
func TestAMissThatNoRunServesAsksForThePagesThatAreMissing(t *testing.T) {
	t.Parallel()
	m := openMarket(t, 4, Settings{Policy: Policy{HandlePages: 1}, LimitBytes: 1000 * pageBytes})
	for id := Client(1); id <= 3; id++ {
		m.alloc(id, 8)
	}
	for i := range uint32(24) {
		m.inUse[i] = i%2 == 0 || i < 4 // 2, 4 and 4 pages are free, one by one
	}
	m.asks, m.moved = nil, moves{}
	m.miss(4, 5)
	assert.Equal(t, []Ask{{Client: 4}, {Client: 2, Pages: 5}, {Client: 3, Pages: 1}}, m.asks)
	assert.EqualValues(t, 2, m.moved.asks)
	assert.EqualValues(t, 24, m.core.ReservedBytes()/pageBytes, "they are moved side by side")
}

// A miss costs as much with 64 clients that have free memory as with two.
func TestTheCostOfAMissDoesNotGrowWithTheClients(t *testing.T) {
	t.Parallel()
	cost := func(donors Client) moves {
		m := openMarket(t, donors+1, tight(0))
		for id := Client(1); id <= donors; id++ {
			m.alloc(id, 8)
		}
		for id := Client(1); id <= donors; id++ {
			m.drop(id)
		}
		m.moved = moves{}
		for range 2 {
			m.miss(donors+1, 6)
		}
		return m.moved
	}
	two := cost(2)
	assert.Equal(t, two, cost(64))
	assert.Equal(t, moves{asks: 2, runs: 2}, two)
}

// While clients miss in turns, collected memory that served none of them stays with the pool: the next miss would collect it
// again. It is lent back once one client alone has missed eight times.
func TestCollectedMemoryStaysWhileClientsMissInTurns(t *testing.T) {
	t.Parallel()
	m := openMarket(t, 4, tight(0))
	for id := Client(1); id <= 2; id++ { // free pages lie in the middle of handles, and cannot be moved
		m.alloc(id, 8)
	}
	m.alloc(3, 8)
	m.alloc(4, 8)
	clear(m.inUse[1:3])
	clear(m.inUse[9:11])
	free := func() int64 { return m.core.freeBytes() / pageBytes }
	for range 10 {
		m.miss(3, 3)
		require.EqualValues(t, 4, free())
		m.miss(4, 3)
		require.EqualValues(t, 4, free())
	}
	for n := 1; n < contendedClimbs; n++ {
		m.miss(3, 3)
		require.EqualValues(t, 4, free(), "miss %d of client 3 alone", n)
		require.Equal(t, 6, m.held(1))
	}
	m.miss(3, 3)
	m.miss(3, 3)
	assert.Zero(t, free())
	assert.Equal(t, 8, m.held(1))
	assert.Equal(t, 8, m.held(2))
}

// Even then, pages that a client returned for its own sake are lent back to it at once.
func TestAClientsOwnPagesGoHomeWhileOthersMiss(t *testing.T) {
	t.Parallel()
	m := openMarket(t, 3, tight(0))
	for id := Client(1); id <= 3; id++ {
		m.alloc(id, 8)
	}
	m.inUse[1], m.inUse[9] = false, false
	m.miss(1, 3)
	assert.Equal(t, Client(1), m.pages[1].owner)
	assert.Zero(t, m.pages[9].owner, "client 2's stays with the pool")
}

// A client may have less than it published: the request continues with the returned pages, asks the others once, and ends.
func TestADonorHasLessThanItPublished(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]int64{"it grows": 100, "it is denied": 16} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 64, 64, Settings{Policy: Policy{HandlePages: 4}, LimitBytes: limit * pageBytes})
			w.candid = true
			for id := Client(1); id <= 3; id++ {
				w.clients[id] = &holder{}
				w.send(Join{Client: id})
			}
			w.fill(1, 8)
			w.fill(2, 8)
			w.clients[1].live, w.clients[2].live = 0, 5
			w.clients[1].free = published{set: true, pages: 8, atMax: 8}
			w.clients[2].free = published{set: true, pages: 3, atMax: 3}
			w.asks = nil
			w.want(3, 6)
			w.clients[3].live = 0
			returned := false
			for range 30 {
				asked := w.unanswered()
				switch {
				case w.job != nil:
					w.perform(-1, nil)
				case len(asked) > 0 && asked[0] == 1 && !returned:
					returned = true
					w.give(1, 0, Run{First: 0, Pages: 2})
				case len(asked) > 0:
					w.give(asked[0], 0)
				}
			}
			assert.Empty(t, w.refills)
			assert.Equal(t, limit == 100, w.held(3) >= 6)
			assert.Equal(t, Ask{Client: 1, Pages: 6}, w.asks[0], "the richest")
			times := map[Client]int{}
			for _, a := range w.asks {
				times[a.Client]++
			}
			assert.LessOrEqual(t, times[1], 2, "for a run, and for all")
			assert.LessOrEqual(t, times[2], 2, "for pages, and for all")
		})
	}
}

// A client that is asked for a run, and for all before it has answered that, is asked for all after
// its answer.
func TestAnAskForAllFollowsASmallerOne(t *testing.T) {
	t.Parallel()
	for name, leaves := range map[string]bool{"it stays": false, "it leaves with nothing": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 64, 64, tight(0))
			w.candid = true
			for id := Client(1); id <= 2; id++ {
				w.clients[id] = &holder{}
				w.send(Join{Client: id})
			}
			w.fill(1, 8)
			w.clients[1].live, w.clients[1].free = 0, published{set: true, pages: 8, atMax: 8}
			w.want(2, 3)
			last := func() Ask { return w.asks[len(w.asks)-1] }
			require.Equal(t, Ask{Client: 1, Pages: 3}, last())
			w.clients[2].left = true
			w.send(Leave{Client: 2})
			w.token++
			w.await("trim")
			w.send(Trim{Token: w.token})
			require.Equal(t, Ask{Client: 1, Pages: 3}, last(), "it has not answered")
			if leaves {
				w.clients[1].left = true
				w.send(Leave{Client: 1})
				w.give(1, 0, Run{First: 0, Pages: 8})
				assert.True(t, w.clients[1].gone)
				assert.Equal(t, Ask{Client: 1, Pages: 3}, last(), "it is asked no more")
			} else {
				w.give(1, 0, Run{First: 0, Pages: 4})
				assert.Equal(t, Ask{Client: 1}, last())
				w.give(1, 0, Run{First: 4, Pages: 4})
				assert.False(t, w.core.clients.all[1].dirty, "it has returned all")
			}
			w.perform(-1, nil)
			assert.Zero(t, w.core.ReservedBytes())
			assert.Empty(t, w.ends)
		})
	}
}

// A request counts once for contention, also where it takes a run and looks at its fence. Once contention has ended, further
// requests of the same client do not begin it again.
func TestARequestCountsOnceForContention(t *testing.T) {
	t.Parallel()
	m := openMarket(t, 2, tight(0))
	m.alloc(1, 64)
	m.busy = true
	for n := range contendedClimbs + 2 {
		m.inUse[6*n] = false
		m.asks = nil
		m.miss(2, 1)
		require.Equal(t, []Ask{{Client: 1, Pages: 1}}, m.asks, "a run is taken")
		require.Equal(t, max(0, contendedClimbs-n), m.core.clients.climbs)
	}
}

// Each run of a batch is taken from the richest client that has one so long.
func TestEachRunOfABatchIsTaken(t *testing.T) {
	t.Parallel()
	m := openMarket(t, 3, tight(0))
	m.alloc(1, 16)
	m.alloc(3, 16)
	clear(m.inUse[2:8])
	clear(m.inUse[18:23])
	m.publish()
	m.token++
	r := Refill{Client: 2, Token: m.token, Pages: 4, More: []uint32{5}, Bytes: 9 * pageBytes, LiveBytes: 9 * pageBytes}
	m.refills[r.Token] = r
	r.More = []uint32{5}
	m.asks = nil
	m.send(r)
	m.settle()
	assert.Empty(t, m.refills)
	assert.Equal(t, []Ask{{Client: 1, Pages: 4}, {Client: 3, Pages: 5}}, m.asks)
	assert.Equal(t, 9, m.held(2))
}
