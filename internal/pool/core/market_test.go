package core

import (
	"cmp"
	"slices"
)

// market is a world whose clients answer honestly: asked for a run they return their longest, asked for all they return all
// pages that their callers do not use. Their published figures are current. Moves are counted as the budget prices them.
type market struct {
	*world
	inUse  []bool // page by page, of callers
	wanted Refill // being served
	moved  moves
	busy   bool // returned pages have fences, which have passed when they are polled
}

// moves counts the moves in a market.
type moves struct{ asks, runs, handles int64 }

// ns returns the cost of moves, by the constants that stand for an H200.
func (m moves) ns() int64 { return m.asks*askNs + m.runs*runNs + m.handles*firstMoveNs }

// openMarket returns a market with clients 1 to n.
func openMarket(t failer, n Client, s Settings) *market {
	pages := uint32(s.LimitBytes / pageBytes) //nolint:gosec // of a small arena
	m := &market{world: newWorld(t, pages, pages, s)}
	m.candid, m.inUse, m.onGrant = true, make([]bool, len(m.pages)), m.take
	for id := Client(1); id <= n; id++ {
		m.clients[id] = &holder{}
		m.send(Join{Client: id})
	}
	return m
}

// take makes the caller use as much of a run as it asked for. The rest is free with its client.
func (m *market) take(g Grant) {
	if g.Token == 0 || g.Token != m.wanted.Token {
		return
	}
	for i := range m.wanted.Pages {
		m.inUse[g.Run.First+i] = true
	}
}

// freeRuns returns a client's unused runs, the longest first.
func (m *market) freeRuns(id Client) (runs []Run) {
	for i := range m.pages {
		if m.pages[i].owner != id || m.inUse[i] {
			continue
		}
		if n := len(runs); n > 0 && runs[n-1].End() == uint32(i) { //nolint:gosec // of a small arena
			runs[n-1].Pages++
		} else {
			runs = append(runs, Run{First: uint32(i), Pages: 1}) //nolint:gosec // likewise
		}
	}
	slices.SortStableFunc(runs, func(a, b Run) int { return cmp.Compare(b.Pages, a.Pages) })
	return runs
}

// publish makes all clients publish their figures.
func (m *market) publish() {
	for id, c := range m.clients {
		c.free, c.live = published{set: true}, int64(m.held(id))
		for _, run := range m.freeRuns(id) {
			c.free.pages += run.Pages
			c.free.atMax = max(c.free.atMax, run.Pages)
			c.live -= int64(run.Pages)
		}
		c.live += m.waitingPages(id)
	}
}

// waitingPages returns the pages of a client's unanswered request.
func (m *market) waitingPages(id Client) int64 {
	if _, waits := m.refills[m.wanted.Token]; waits && m.wanted.Client == id {
		return int64(m.wanted.Pages)
	}
	return 0
}

// alloc makes a caller use adjacent pages: from its client's free ones, else by a miss.
func (m *market) alloc(id Client, pages uint32) {
	for _, run := range slices.Backward(m.freeRuns(id)) {
		if run.Pages >= pages {
			for i := range pages {
				m.inUse[run.First+i] = true
			}
			return
		}
	}
	m.miss(id, pages)
}

// miss makes a client ask for pages, and performs everything that follows.
func (m *market) miss(id Client, pages uint32) {
	m.publish()
	m.token++
	r := Refill{Client: id, Token: m.token, Pages: pages, Bytes: int64(pages) * pageBytes}
	r.LiveBytes = m.clients[id].live*pageBytes + r.Bytes
	m.wanted, m.refills[r.Token] = r, r
	m.send(r)
	m.settle()
	if len(m.refills) > 0 {
		m.failf("%+v gets no answer", r)
	}
	m.publish()
}

// settle answers asks and performs jobs until there are none.
func (m *market) settle() {
	for {
		switch asked := m.unanswered(); {
		case m.job != nil:
			if j := m.job; m.job.request != nil && m.job.request.kind == refill {
				m.moved.handles += int64(j.Moved())
			}
			m.perform(-1, nil)
		case len(asked) > 0:
			m.answerHonestly(asked[0])
		default:
			return
		}
	}
}

// answerHonestly returns the pages that a client was asked for.
func (m *market) answerHonestly(id Client) {
	at := len(m.asks) - 1
	for m.asks[at].Client != id {
		at--
	}
	wanted := m.asks[at].Pages
	r := Return{Client: id, Answer: true, LiveBytes: (int64(m.held(id)) + m.waitingPages(id)) * pageBytes}
	for _, run := range m.freeRuns(id) {
		r.LiveBytes -= int64(run.Pages) * pageBytes
	}
	for _, run := range m.freeRuns(id) {
		r.Runs = append(r.Runs, run)
		if wanted > 0 && run.Pages >= wanted {
			break
		}
		wanted -= min(wanted, run.Pages)
		if wanted == 0 && m.asks[at].Pages > 0 {
			break
		}
	}
	if id != m.wanted.Client {
		m.moved.asks++
		m.moved.runs += int64(len(r.Runs))
	}
	if c := m.clients[id]; m.busy && len(r.Runs) > 0 {
		c.issued++
		r.Fence, c.passed = c.issued, c.issued
	}
	m.mail = append(m.mail, r)
	m.deliverAt(len(m.mail) - 1)
}

// drop ends all use of a client's memory.
func (m *market) drop(id Client) {
	for i := range m.pages {
		if m.pages[i].owner == id {
			m.inUse[i] = false
		}
	}
	m.publish()
}

// tick lets time pass, and performs the effects. It returns how many handles were released.
func (m *market) tick() (released int) {
	m.publish()
	m.send(Tick{})
	if m.job != nil {
		released = m.job.Moved()
	}
	m.settle()
	return released
}
