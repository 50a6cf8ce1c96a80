package core

import (
	"testing"

	"github.com/go-vram/vram/internal/effect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A patient request passes one that waits with no more memory in all than that one wants, and is then sent to wait, without a
// search. One that does not wait is in no order.
func TestPatientRequestsPassAsMuchAsOthersWaitFor(t *testing.T) {
	t.Parallel()
	for patience, passes := range map[Patience]int{Patient: 4, Impatient: 10} {
		s := openShop(t)
		s.do(waitAs(99, 8))
		s.do(Return{Client: 1, Runs: []Run{{First: 0, Pages: 2}}, Sent: 1, Stirred: true})
		served, sent := 0, uint64(0)
		for token := range uint64(10) {
			s.do(Refill{
				Client: 3, Token: token + 1, Pages: 2, Bytes: 2 * pageBytes, LiveBytes: 2 * pageBytes, Patience: patience,
				Place: Place{Account: 3, Age: 200 + token, Align: 1},
			})
			if !s.served[token+1] {
				continue
			}
			served++
			sent++
			s.do(Return{Client: 3, Runs: s.shelf[3], Sent: sent, Stirred: true})
			s.shelf[3] = nil
			require.NoError(t, s.core.Check())
		}
		assert.Equal(t, passes, served, "patience %d", patience)
		assert.Equal(t, 1, s.core.waiters.count())
	}
}

// A reservation's live bytes fall by what is drawn from it, to none.
func TestAReservationIsLiveAsFarAsItWasNotDrawn(t *testing.T) {
	t.Parallel()
	w := settled(t, 1)
	c := w.core
	c.Step(Join{Client: 2, Reserves: true})
	fx := c.Step(Refill{Client: 2, Token: 500, Pages: 4, Bytes: 4 * pageBytes, LiveBytes: 4 * pageBytes})
	for fx.Job == nil && len(effect.Left(&fx.Asks)) > 0 {
		fx = c.Step(Return{Client: effect.Left(&fx.Asks)[0].Client, Answer: true})
	}
	require.NotNil(t, fx.Job)
	c.Step(JobDone{Job: fx.Job, Done: len(fx.Job.Ops)})
	for drawn := range int64(4) {
		require.Equal(t, (4-drawn)*pageBytes, c.clients.all[2].liveBytes)
		fx = c.Step(Refill{Client: 1, Token: 600 + uint64(drawn), Pages: 1, Bytes: pageBytes, LiveBytes: (drawn + 1) * pageBytes, From: 2})
		require.Len(t, effect.Left(&fx.Grants), 1)
		require.NoError(t, c.Check())
	}
	assert.Zero(t, c.clients.all[2].liveBytes)
	assert.Empty(t, c.clients.all[2].reserved)
}

// A patient request that would wait in the queue is denied at once, and comes back to wait among those that wait.
func TestAPatientRequestDoesNotQueue(t *testing.T) {
	t.Parallel()
	w := settled(t, 2)
	w.fill(1, 8)
	w.want(2, 60)
	require.NotEmpty(t, w.refills, "it waits for answers")
	fx := w.core.Step(Refill{Client: 1, Token: 1000, Pages: 3, Bytes: 3 * pageBytes, LiveBytes: 11 * pageBytes, Patience: Patient})
	require.Len(t, effect.Left(&fx.Denials), 1)
	assert.EqualValues(t, 1000, effect.Left(&fx.Denials)[0].Token)
	assert.True(t, effect.Left(&fx.Denials)[0].Quiet)
	assert.Len(t, w.core.queue.refills, 1)
}
