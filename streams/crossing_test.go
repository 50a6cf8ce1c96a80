package streams

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/stream/core"
)

// crosses submits a work of a stream on a buffer, which takes some time on the device.
func (r *rig) crosses(s *Stream, b Buffer, write bool, takes time.Duration) {
	c := Submitter{s}.Crossing()
	defer c.Leave()
	assert.NoError(r.t, c.Touch(b, write, 0))
	_, err := c.Begin()
	assert.NoError(r.t, err)
	assert.NoError(r.t, r.gpu.Launch(s.Handle(), takes))
	c.After()
}

// A work that has not seen that its buffer is shared is waited for, also by a stream that has waited for other work of its stream
// between the first use of the buffer by another one and the submission.
func TestAnEarlierWaitDoesNotCoverAWorkInSubmission(t *testing.T) {
	t.Parallel()
	r, home, other := pair(t, 64*mib)
	third := r.stream(core.Budget{})
	shared, own := must(t, home, mib), must(t, home, mib)
	r.crosses(other, shared, false, 0)
	owner := Submitter{home}
	require.NoError(t, owner.EnterQuick())
	plain, err := owner.Check(own, true)
	require.NoError(t, err)
	require.True(t, plain)
	over := make(chan struct{})
	go func() {
		defer close(over)
		r.crosses(third, own, false, 0)
	}()
	for own.slot.Attached(own.word) == nil {
		runtime.Gosched()
	}
	r.crosses(home, shared, true, 0)
	r.crosses(other, shared, false, 0) // waits for home
	const takes = time.Second
	require.NoError(t, r.gpu.Launch(home.Handle(), takes)) // the work
	owner.LeaveQuick()
	<-over
	before := r.gpu.Now()
	r.crosses(other, own, false, 0)
	require.NoError(t, other.cuda.synchronize())
	assert.GreaterOrEqual(t, r.gpu.Now()-before, takes)
	require.NoError(t, shared.Free())
	require.NoError(t, own.Free())
}

// A work is in order with another stream's first use of its buffer that comes between the two looks at it.
func TestAFirstUseBetweenTouchAndBegin(t *testing.T) {
	t.Parallel()
	r, home, other := pair(t, 64*mib)
	own := must(t, home, mib)
	const takes = time.Second
	before := r.gpu.Now()
	c := Submitter{home}.Crossing()
	require.NoError(t, c.Touch(own, true, 0))
	r.crosses(other, own, false, takes)
	_, err := c.Begin()
	require.NoError(t, err)
	require.NoError(t, r.gpu.Launch(home.Handle(), 0))
	c.After()
	c.Leave()
	require.NoError(t, home.cuda.synchronize())
	assert.GreaterOrEqual(t, r.gpu.Now()-before, takes)
	assert.False(t, home.cuda.announcement.busy())
	require.NoError(t, own.Free())
}
