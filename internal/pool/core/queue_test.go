package core

import (
	"slices"
	"testing"

	"github.com/go-vram/vram/internal/effect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
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
			denied += uint64(len(effect.Left(&fx.Denials)))
			for _, a := range effect.Left(&fx.Asks) {
				mail = append(mail, Return{Client: a.Client, LiveBytes: 8 * pageBytes, Answer: true})
			}
			if len(effect.Left(&fx.Looks)) > 0 {
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
	require.Len(t, effect.Left(&fx.Grants), 1)
	assert.EqualValues(t, 1001, effect.Left(&fx.Grants)[0].Token)
}

// line is a queue whose refills want pages of one sum that is free.
type line struct {
	queue
	free, inserts uint64
	served        map[*request]bool
	searches      int
}

func (l *line) grant(r *request) bool {
	l.searches++
	if r.wanted() > l.free {
		return false
	}
	l.free -= r.wanted()
	l.served[r] = true
	return true
}

// serve serves, and compares the queue with all that could be served: any refill of one run, and the first one of several.
func (l *line) serve(t require.TestingT) {
	before := slices.Clone(l.refills)
	l.queue.serve(func() uint64 { return l.inserts }, l.grant)
	require.Equal(t, slices.DeleteFunc(before, func(r *request) bool { return l.served[r] }), l.refills, "the others stay, in their order")
	first := true
	for _, r := range l.refills {
		if r.offering {
			require.False(t, l.served[r], "its client serves it")
			continue
		}
		if first || len(r.more) == 0 {
			require.Greater(t, r.wanted(), l.free, "it could be served")
		}
		first = false
	}
	l.searches = 0
	l.queue.serve(func() uint64 { return l.inserts }, l.grant)
	require.Zero(t, l.searches, "nothing has changed")
}

// In any sequence of arrivals, departures and free runs each refill is served as soon as there is memory for it, and none is
// searched for again before something has changed.
func TestTheQueueServesWhatItCan(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := &line{served: map[*request]bool{}}
		var offered *request
		t.Repeat(map[string]func(*rapid.T){
			"arrive": func(t *rapid.T) {
				r := &request{kind: refill, wish: wish{pages: rapid.Uint32Range(1, 6).Draw(t, "pages")}}
				if rapid.Bool().Draw(t, "several") {
					r.more = []uint32{1}
				}
				if offered == nil && l.empty() && rapid.Bool().Draw(t, "waits") {
					r.offering, offered = true, r
				}
				l.push(r)
			},
			"leave": func(t *rapid.T) {
				if n := len(l.refills); n > 0 {
					r := l.refills[rapid.IntRange(0, n-1).Draw(t, "which")]
					l.remove(r)
					if r == offered {
						offered = nil
					}
				}
			},
			"the first leaves": func(*rapid.T) {
				if len(l.refills) > 0 && l.refills[0] != offered {
					l.remove(l.refills[0])
				}
			},
			"come back": func(t *rapid.T) { // whose fence has passed
				if offered == nil {
					l.pushFront([]*request{{kind: refill, wish: wish{pages: rapid.Uint32Range(1, 6).Draw(t, "pages")}}})
				}
			},
			"offered": func(*rapid.T) {
				if offered != nil {
					offered.offering, offered = false, nil
					l.searchAgain()
				}
			},
			"free": func(t *rapid.T) {
				l.free += rapid.Uint64Range(1, 4).Draw(t, "pages")
				l.inserts++
			},
			"": func(t *rapid.T) { l.serve(t) },
		})
	})
}
