package simulation

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/streams"
)

// maxPlaces is more than the number of places that a call of these tests passes.
const maxPlaces = 100

// underWay is a world with two streams that hold a third of the limit each.
type underWay struct {
	*world
	alone, shared *stream // with one caller, and with several
}

func newUnderWay(t *testing.T) underWay {
	t.Helper()
	u := underWay{world: newWorld(1, mutateNothing)}
	open := func(shares bool) *stream {
		draw := uint64(0)
		for mixed(draw, 12)%3 > 0 != shares {
			draw++
		}
		u.do("open", func() { u.openStream(draw, false) })
		s := u.era.streams[len(u.era.streams)-1]
		require.Equal(t, shares, s.shares)
		return s
	}
	u.alone, u.shared = open(false), open(true)
	for _, s := range []*stream{u.alone, u.shared} {
		u.do("alloc", func() { u.async(s, streams.Request{Bytes: u.era.limit.Load() / 3}, false) })
	}
	require.Nil(t, u.fault)
	require.Len(t, u.held, 2)
	for mixed(uint64(u.step), u.report.Handled)%15 != 14 { //nolint:gosec // the handler of shortages frees nothing, and does not retry
		u.step++
	}
	return u
}

// ask runs a request of a stream until it cannot continue.
func (u underWay) ask(s *stream, want streams.Request) {
	u.start(keyOf("ask"), "ask", func() { u.async(s, want, false) })
	u.goOn(nil)
}

// goOn resumes all tasks but one until none of them can run.
func (u underWay) goOn(held *task) {
	for {
		at := slices.IndexFunc(u.tasks, func(t *task) bool { return t != held && t.ready() })
		if at < 0 {
			return
		}
		u.resume(u.tasks[at], 1<<30)
	}
}

// An answer may overtake the call that leads to it, wherever that call is held up. The simulation has to know of the call by
// then: else it takes the answer for a broken promise.
func TestAnAnswerMayOvertakeTheCallThatLeadsToIt(t *testing.T) {
	half := func(u underWay) streams.Request { return streams.Request{Bytes: u.era.limit.Load() / 2, Wait: true} }
	for _, c := range []struct {
		name   string
		before func(u underWay)
		call   func(u underWay)
		while  func(u underWay)
	}{
		{
			name:   "a deadlock and Suspend",
			before: func(u underWay) { u.ask(u.alone, half(u)) },
			call:   func(u underWay) { u.shared.standStill() },
		},
		{
			name:   "a refusal and the close of a stream",
			before: func(u underWay) { u.ask(u.shared, half(u)) },
			call:   func(u underWay) { u.closeStream(u.shared) },
		},
		{
			name:  "a request that is too large and a lower limit",
			call:  func(u underWay) { u.reconfigure(nil, action{c: 2})() },
			while: func(u underWay) { u.ask(u.alone, streams.Request{Bytes: u.shape.totalBytes/3 + 1}) },
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			overtaken := 0 // how often
			for places := 0; ; places++ {
				require.Less(t, places, maxPlaces)
				u := newUnderWay(t)
				defer u.abandon()
				if c.before != nil {
					c.before(u)
				}
				require.Zero(t, u.report.Refused)
				returned := false
				call := u.start(keyOf("call"), "call", func() {
					c.call(u)
					returned = true
				})
				u.resume(call, places)
				if returned {
					break
				}
				if c.while != nil {
					c.while(u)
				}
				u.goOn(call)
				overtaken += min(1, int(u.report.Refused)) //nolint:gosec // a count
				if u.fault != nil {
					require.NoError(t, u.fault.err, "held up at: %s", call.paused)
				}
			}
			assert.Positive(t, overtaken)
		})
	}
}
