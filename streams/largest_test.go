package streams

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/stream/core"
	"github.com/go-vram/vram/pool"
)

// A refusal whose error is to name the largest buffers waits for the turns of other streams, and the
// goroutine that performs its stream's effects does not: else two streams that refuse at once would wait for
// each other.
func TestARefusalWaitsOffItsStream(t *testing.T) {
	r := newRig(t, 64*mib)
	s, other := r.stream(core.Budget{}), r.stream(core.Budget{})
	large := must(t, s, 32*mib)
	leave := r.occupy(other)

	refused := s.request(Request{Bytes: kib})
	refused.promise.On(s.host)
	short := &pool.OutOfMemoryError{RequestedBytes: kib}
	e := &effects{stream: &s.wiring}
	e.consults.Push(consulting{largest: &short.Largest, refused: &refused.claim, failed: short})
	performed := make(chan bool, 1)
	go func() { performed <- e.finish() }()
	select {
	case more := <-performed:
		assert.True(t, more)
	case <-time.After(time.Minute):
		assert.Fail(t, "the effect waits for the turn of another stream")
	}
	assert.True(t, refused.promise.Pending())

	leave()
	_, err := refused.promise.Await(t.Context())
	require.ErrorIs(t, err, pool.ErrOutOfMemory)
	require.Len(t, short.Largest, 1)
	assert.Equal(t, large.Ptr(), short.Largest[0].Ptr)
	require.NoError(t, large.Free())
	r.balanced(s, other)
}
