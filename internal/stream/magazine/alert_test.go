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
