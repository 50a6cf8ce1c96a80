package core

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/pool/memory"
)

// Tests read these figures of a core.

func (c *Core) peakReservedBytes() int64 { return c.memory.Peaks().ReservedBytes }
func (c *Core) lostBytes() int64         { return c.memory.LostBytes() }
func (c *Core) freeBytes() int64         { return c.memory.FreeBytes() }
func (c *Core) pendingBytes() int64      { return c.memory.PendingBytes() }
func (c *Core) lentBytes() int64         { return c.memory.LentBytes() }
func (c *Core) busyBytes() int64         { return c.memory.BusyBytes() }
func (c *Core) freeRuns() int            { return c.memory.FreeRuns() }

// eachFree visits the free runs, in order of address.
func (c *Core) eachFree(visit func(run Run, tag memory.Tag)) {
	for at := uint32(0); at < c.memory.Top(); {
		p := c.memory.Page(at)
		if p.State != memory.Free {
			at++
			continue
		}
		visit(Run{First: at, Pages: p.RunPages}, p.Tag)
		at += p.RunPages
	}
}

// Settings returns the current settings.
func (c *Core) Settings() Settings { return c.settings }

// String returns a line for transcripts.
func (c *Core) String() string {
	m := c.memory
	return fmt.Sprintf("reserved %d free %d lent %d busy %d waiting %d",
		m.ReservedBytes(), m.FreeBytes(), m.LentBytes(), m.BusyBytes(), len(c.queue.refills)+len(c.queue.others))
}

// Pages that are free during a step alone, since its Close takes them, are in no peak of free memory.
func TestPagesThatCloseTakesWereNotFree(t *testing.T) {
	t.Parallel()
	c := New(pageBytes, 64, Settings{Policy: Policy{HandlePages: 4}, LimitBytes: 64 * pageBytes})
	job := c.Step(Warm{Token: 1, Runs: []uint32{4}}).Job
	require.NotNil(t, job)
	require.Nil(t, c.Step(Close{Token: 2}).Job, "the other job is in flight")
	for i := range job.Ops {
		if op := &job.Ops[i]; op.Verb == memory.Create {
			op.Handle = 7
		}
	}
	require.NotNil(t, c.Step(JobDone{Job: job, Done: len(job.Ops)}).Job)
	assert.Equal(t, Peaks{PeakReservedBytes: 4 * pageBytes}, c.Books().Peaks)
}
