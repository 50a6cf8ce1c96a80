package streams

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	poolcore "github.com/go-vram/vram/internal/pool/core"
	"github.com/go-vram/vram/internal/stream/core"
	"github.com/go-vram/vram/pool"
)

// readClient counts how often the pool reads a stream's usage.
type readClient struct {
	pool.Client
	of    *Stream
	reads int
}

func (c *readClient) Usage() poolcore.Usage {
	c.reads++
	return c.of.client.Usage()
}

// A stream tells the pool of each change of its usage: an allocation that no magazine served, a free that no
// turn has collected, and a turn that collects or returns it. Other turns are not reported.
func TestAStreamTellsOfEachChangeOfItsUsage(t *testing.T) {
	r := newRig(t, 64*mib)
	s := r.stream(core.Budget{})
	c := &readClient{of: s}
	s.peer.reporter = r.pool.NewReporter(99, c)
	reads := func() (n int) {
		r.pool.Tick()
		_, err := r.pool.Queue(t.Context()) // the tick has ended, also where another goroutine had the pool's turn
		require.NoError(t, err)
		n, c.reads = c.reads, 0
		return n
	}
	look := func() {
		for entered := false; !entered; entered = s.wiring.tryTurn(func() {}) { // Look does not wait for another goroutine's turn
			runtime.Gosched()
		}
		s.client.Look()
	}
	look()
	reads()
	require.Zero(t, reads())

	b := must(t, s, 4*mib)
	assert.Equal(t, 1, reads(), "an allocation")
	require.NoError(t, b.Free())
	assert.Equal(t, 1, reads(), "a free")
	look()
	assert.Equal(t, 1, reads(), "it was taken home")
	look()
	assert.Zero(t, reads(), "nothing has changed")
	must(t, s, mib)
	assert.Equal(t, 1, reads(), "an allocation that the stream serves")
	look()
	assert.Equal(t, 1, reads(), "it is published")
	require.NoError(t, s.Trim(t.Context()))
	assert.Equal(t, 1, reads(), "its pages were returned")
}
