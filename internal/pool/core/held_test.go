package core

import (
	"strings"
	"testing"

	"github.com/go-vram/vram/internal/effect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A held batch has given back its runs, under their tags, and gets all of them once a fence has passed. Until then they are not
// lent back, even if no other client misses.
func TestAHeldBatchKeepsNothing(t *testing.T) {
	t.Parallel()
	for _, alone := range []bool{false, true} {
		heldBatch(t, alone)
	}
}

func heldBatch(t *testing.T, alone bool) {
	t.Helper()
	w := newWorld(t, 64, 1000, Settings{Policy: Policy{HandlePages: 1}, LimitBytes: 12 * pageBytes})
	for id := Client(1); id <= 2; id++ {
		w.clients[id] = &holder{}
		w.send(Join{Client: id})
	}
	w.fill(1, 12)
	w.give(1, 1, Run{First: 0, Pages: 8})
	w.give(1, 0, Run{First: 8, Pages: 2})
	w.token++
	r := Refill{Client: 2, Token: w.token, Pages: 2, More: []uint32{6}, Bytes: 8 * pageBytes, LiveBytes: 8 * pageBytes}
	w.refills[r.Token] = r
	r.More = []uint32{6}
	if alone {
		w.core.clients.contention = contention{last: 2}
	}
	w.send(r)
	for range 20 {
		switch waiting := w.unanswered(); {
		case w.job != nil:
			w.perform(-1, nil)
		case len(waiting) > 0:
			w.mail = append(w.mail, Return{Client: waiting[0], Answer: true})
			w.deliverAt(len(w.mail) - 1)
		}
	}
	require.Len(t, w.core.fences.held, 1)
	assert.Zero(t, w.held(2), "the two pages that were free are free again")
	assert.EqualValues(t, 10*pageBytes, w.core.freeBytes())
	require.Len(t, w.watches, 1)
	w.endWatch(0, nil)
	for range 20 {
		switch waiting := w.unanswered(); {
		case w.job != nil:
			w.perform(-1, nil)
		case len(waiting) > 0:
			w.mail = append(w.mail, Return{Client: waiting[0], Answer: true})
			w.deliverAt(len(w.mail) - 1)
		}
	}
	assert.Empty(t, w.refills)
	assert.GreaterOrEqual(t, w.held(2), 8, "and more: what was collected is lent whole")
}

// Held requests ask all clients again once a fence has passed, also those that they had asked before.
func TestHeldRequestsAskAllAgain(t *testing.T) {
	t.Parallel()
	f := &fences{held: []*request{{}, {}}}
	for i, r := range f.held {
		r.rung, r.askedAll = rungWait, i == 0
	}
	assert.Empty(t, f.takeDue(), "no fence has passed")
	f.progress++
	all := f.takeDue()
	require.Len(t, all, 2)
	for _, r := range all {
		assert.Equal(t, rungAskAll, r.rung)
		assert.False(t, r.askedAll)
	}
	assert.Empty(t, f.held)
}

// The ends of a client's watches may overtake each other: an older one that comes late does not bring the newer back.
func TestEndsOfWatchesOvertakeEachOther(t *testing.T) {
	t.Parallel()
	c := New(pageBytes, 8, Settings{LimitBytes: 8 * pageBytes})
	c.Step(Join{Client: 1})
	c.Step(Join{Client: 2})
	c.fences.begun([]Watch{{1, 2}})
	assert.True(t, c.fences.watching(c.clients.mayBeAwaited))
	c.Step(WatchOver{Watch: Watch{1, 2}})
	c.Step(WatchOver{Watch: Watch{1, 1}})
	assert.False(t, c.fences.watching(c.clients.mayBeAwaited))
	c.Step(WatchOver{Watch: Watch{2, 3}})
	c.fences.begun([]Watch{{2, 3}})
	assert.False(t, c.fences.watching(c.clients.mayBeAwaited), "an end may come before it is told of the beginning")
}

// Whenever the client of a watch leaves, and whichever report of the watch comes first: afterwards nothing waits for that watch, and
// nothing is kept of it.
func TestAWatchOverAClientThatLeaves(t *testing.T) {
	t.Parallel()
	for _, order := range []string{"done over leave", "done leave over", "over done leave", "over leave done", "leave over done", "leave done over"} {
		t.Run(order, func(t *testing.T) {
			t.Parallel()
			w := settled(t, 2)
			w.fill(1, 64)
			w.clients[1].live = 0
			w.give(1, 1, Run{First: 0, Pages: 64})
			w.want(2, 64)
			for w.job == nil || len(w.job.Watch) == 0 {
				if waiting := w.unanswered(); len(waiting) > 0 {
					w.give(waiting[0], 1)
				} else {
					require.NotNil(t, w.job)
					w.perform(-1, nil)
				}
			}
			require.Equal(t, []Client{1}, w.job.Watch)
			begun := Watch{Client: 1, Number: 1}
			granted := 0
			for event := range strings.FieldsSeq(order) {
				var fx *Effects
				switch event {
				case "done":
					fx = w.core.Step(JobDone{Job: w.job, Watched: []Watch{begun}})
				case "over":
					fx = w.core.Step(WatchOver{Watch: begun})
				case "leave":
					fx = w.core.Step(Leave{Client: 1, Synced: true})
				}
				granted += len(effect.Left(&fx.Grants))
			}
			if j := w.core.jobs.inFlight; j != nil { // another watch, that is not needed any more
				w.core.Step(JobDone{Job: j})
			}
			assert.Equal(t, 1, granted, "the request has the memory of the client that left")
			assert.False(t, w.core.fences.watching(w.core.clients.mayBeAwaited))
			assert.Empty(t, w.core.fences.watches)
		})
	}
}
