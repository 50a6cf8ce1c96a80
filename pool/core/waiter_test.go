package core

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A trial that memory overtook is no reason to leave out the next one.
func TestATrialThatWasOvertakenIsRepeated(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 64, 8, Settings{Policy: Policy{HandlePages: 1}, LimitBytes: 8 * pageBytes})
	w.clients[1] = &holder{}
	w.send(Join{Client: 1})
	w.fill(1, 8)
	c := w.core
	fx := c.Step(Refill{
		Client: 1, Token: 99, Pages: 4, Bytes: 4 * pageBytes, LiveBytes: 8 * pageBytes, Patience: Waiting,
		Place: Place{Account: 1, Age: 1, Align: 1},
	})
	overtaken := false
	for range 32 {
		switch {
		case len(fx.Offers) > 0 && overtaken:
			return
		case len(fx.Offers) > 0:
			fx = c.Step(Offered{Client: 1, Token: 99})
		case len(fx.Asks) > 0 && !overtaken:
			overtaken = true
			c.Step(Return{Client: 1, LiveBytes: 4 * pageBytes, Stirred: true}) // what it keeps now serves the request
			fx = c.Step(Return{Client: 1, LiveBytes: 4 * pageBytes, Answer: true})
		case fx.Job != nil:
			fx = c.Step(JobDone{Job: fx.Job, Done: len(fx.Job.Ops)})
		default:
			require.FailNow(t, "it is not tried again", "overtaken: %v, %+v", overtaken, fx)
		}
	}
	require.FailNow(t, "no trial ends")
}

// What a request got that was refused in the end lies with its client, which is asked for it.
func TestWhatWasRefusedInTheEndServesOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 64, 8, Settings{Policy: Policy{HandlePages: 1}, LimitBytes: 8 * pageBytes})
	for id := Client(1); id <= 3; id++ {
		w.clients[id] = &holder{}
		w.send(Join{Client: id})
	}
	w.fill(1, 8)
	c := w.core
	have := map[Client][]Run{}
	served := false
	settle := func(m Message) {
		for next := []Message{m}; len(next) > 0; {
			fx := c.Step(next[0])
			next = next[1:]
			for _, g := range fx.Grants {
				have[g.Client] = append(have[g.Client], append(g.More, g.Run)...)
				served = served || g.Token == 99
			}
			for _, o := range fx.Offers {
				next = append(next, Offered{Client: o.Client, Token: o.Token})
			}
			for _, id := range fx.Asks {
				next = append(next, Return{Client: id, Runs: have[id], Sent: uint64(len(have[id])), Answer: true})
				have[id] = nil
			}
			if fx.Job != nil {
				next = append(next, JobDone{Job: fx.Job, Done: len(fx.Job.Ops)})
			}
		}
	}
	settle(Refill{Client: 2, Token: 99, Pages: 3, Bytes: 3 * pageBytes, Patience: Waiting, Place: Place{Account: 2, Age: 1, Align: 1}})
	settle(Return{Client: 1, Runs: []Run{{0, 2}}, Sent: 1, Stirred: true})
	settle(Refill{Client: 3, Token: 98, Pages: 2, More: []uint32{4}, Bytes: 6 * pageBytes})
	require.NotEmpty(t, have[3], "it has got a part")
	require.False(t, served)
	settle(Return{Client: 1, Runs: []Run{{2, 1}}, Sent: 2, Stirred: true})
	require.True(t, served)
}
