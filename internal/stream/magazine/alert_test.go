package magazine

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// alerts counts the calls of a Waker.
type alerts struct {
	wakes
	freed int
}

func (a *alerts) Freed() { a.freed++ }

// A call of Freed may ask for the next one.
func TestAnAlertInsideAnAlertStays(t *testing.T) {
	t.Parallel()
	c, o, _ := cacheOf(0)
	heard := 0
	c.waker = &asking{heard: func() { heard++; o.Alert() }}
	o.Alert()
	for i := range 3 {
		s, word := c.Take(512)
		require.NoError(t, s.Announce(word, Detached))
		require.NoError(t, s.Free(word))
		assert.Equal(t, i+1, heard)
	}
}

// asking has a function called for each kind of call of a Waker.
type asking struct {
	wakes
	heard, piled func()
}

func (a *asking) Freed() { a.heard() }
func (a *asking) Piled() { a.piled() }

// A pile of announced blocks is reported in each state of the cache, and the free that makes it has its own result.
func TestAPileIsReportedInEachState(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		become func(o *Owner)
		err    error
		wakes  int
	}{
		"serving":  {func(*Owner) {}, nil, 0},
		"wanted":   {func(o *Owner) { o.Want(true) }, nil, 1},
		"draining": {(*Owner).Drain, nil, 1},
		"ended":    {(*Owner).End, ErrClosed, 0},
	} {
		cache, o, _ := cacheOf(0)
		var calls, woken int
		cache.waker = &asking{wakes: func() { woken++ }, piled: func() { calls++ }}
		s, word := cache.Take(512)
		require.NoError(t, s.Record(word, 0))
		cache.used.Store(uint64(PileSlots-1) << countShift)
		c.become(o)
		require.ErrorIs(t, s.Free(word), c.err, name)
		assert.Equal(t, 1, calls, name)
		assert.Equal(t, c.wakes, woken, name)
	}
}

// The first block freed through the list after an Alert is reported, also if the cache's state changes.
func TestAnAlertIsToldOnce(t *testing.T) {
	t.Parallel()
	c, o, _ := cacheOf(0)
	woken := 0
	heard := &alerts{wakes: func() { woken++ }}
	c.waker = heard
	free := func() {
		s, word := c.Take(512)
		require.NotNil(t, s)
		require.NoError(t, s.Announce(word, Detached))
		require.NoError(t, s.Free(word))
	}
	free()
	assert.Zero(t, heard.freed, "nobody has asked")
	assert.True(t, o.Alert())
	free()
	free()
	assert.Equal(t, 1, heard.freed)
	for o.Freed() != nil {
		continue
	}
	assert.False(t, o.Alert())
	o.Want(true)
	free()
	assert.Equal(t, 2, heard.freed)
	assert.Equal(t, 1, woken, "the alert outlasts the change, and hides no wake")
	o.Alert()
	o.Want(false)
	o.Drain()
	free()
	assert.Equal(t, 3, heard.freed)
	o.Alert()
	o.End()
	require.ErrorIs(t, c.wake(), ErrClosed)
}
