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
