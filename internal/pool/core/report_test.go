package core

import (
	"testing"

	"github.com/go-vram/vram/internal/effect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An answer may overtake the client's report of the memory that it brings. Until the report arrives no request is refused:
// after it the requests that wait are tried again.
func TestAnAnswerWaitsForTheReportThatItOvertook(t *testing.T) {
	t.Parallel()
	c := New(pageBytes, 8, Settings{Policy: Policy{HandlePages: 1, Slack: 1024}, LimitBytes: 4 * pageBytes})
	c.Step(Join{Client: 1})
	place := Place{Account: 1, Age: 1, Align: 1, Blocked: true}
	fx := c.Step(Refill{Client: 1, Token: 1, Pages: 4, Bytes: 4 * pageBytes, LiveBytes: 4 * pageBytes})
	for fx.Job == nil {
		require.Len(t, effect.Left(&fx.Asks), 1)
		fx = c.Step(Return{Client: 1, LiveBytes: 4 * pageBytes, Answer: true})
	}
	held := fx.Job.Window
	fx = c.Step(JobDone{Job: fx.Job, Done: len(fx.Job.Ops)})
	require.Len(t, effect.Left(&fx.Grants), 1)

	fx = c.Step(Refill{Client: 1, Token: 2, Pages: 4, Bytes: 4 * pageBytes, LiveBytes: 4 * pageBytes, Patience: Waiting, Place: place})
	for c.waiters.gathering == nil || len(effect.Left(&fx.Asks)) == 0 { // freed memory is collected before a deadlock is declared
		require.Empty(t, effect.Left(&fx.Denials))
		switch {
		case len(effect.Left(&fx.Offers)) > 0:
			fx = c.Step(Offered{Client: 1, Token: 2})
		case len(effect.Left(&fx.Asks)) > 0:
			fx = c.Step(Return{Client: 1, LiveBytes: 4 * pageBytes, Answer: true})
		default:
			require.FailNow(t, "nothing is collected", "%+v", fx)
		}
	}
	// All is freed now: the client reports that, and answers, and the answer comes first.
	fx = c.Step(Return{Client: 1, Runs: []Run{held}, Fence: 1, Answer: true, Sent: 2})
	assert.Empty(t, effect.Left(&fx.Denials), "memory is there that was not there when the request was tried")
	fx = c.Step(Return{Client: 1, Stirred: true, Sent: 2})
	for len(effect.Left(&fx.Offers)) > 0 { // it got its pages back
		fx = c.Step(Offered{Client: 1, Token: 2, Taken: true})
	}
	assert.Empty(t, effect.Left(&fx.Denials))
	assert.Zero(t, c.waiters.count(), "it is served")
}
