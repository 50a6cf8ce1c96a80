package core

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/effect"
	"github.com/go-vram/vram/internal/pool/memory"
)

// A reservation may end while the memory is on its way back to the driver: nothing of it is free any more.
func TestAReservationEndsDuringClose(t *testing.T) {
	t.Parallel()
	c := New(pageBytes, 64, Settings{Policy: Policy{HandlePages: 4, Slack: 4096}, LimitBytes: 64 * pageBytes})
	perform := func(fx *Effects) *Effects {
		require.NotNil(t, fx.Job)
		for i := range fx.Job.Ops {
			if op := &fx.Job.Ops[i]; op.Verb == memory.Create {
				op.Handle = 7
			}
		}
		return c.Step(JobDone{Job: fx.Job, Done: len(fx.Job.Ops)})
	}
	c.Step(Join{Client: 1, Reserves: true})
	fx := perform(c.Step(Refill{Client: 1, Token: 1, Pages: 4, Most: 4, LiveBytes: 4 * pageBytes, Bytes: 4 * pageBytes}))
	require.Len(t, effect.Left(&fx.Grants), 1)
	require.EqualValues(t, 4*pageBytes, c.setAsideBytes())

	job := c.Step(Close{Token: 2}).Job
	require.NotNil(t, job)
	c.Step(Unreserve{Client: 1})
	require.NoError(t, c.Check())
	assert.Zero(t, c.freeBytes())

	fx = c.Step(JobDone{Job: job, Done: len(job.Ops)})
	require.NoError(t, c.Check())
	assert.Equal(t, []End{{Token: 2}}, effect.Left(&fx.Ends))
	assert.Zero(t, c.ReservedBytes())
}
