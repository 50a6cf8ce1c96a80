package streams

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/stream/core"
)

// A reclaim request that overtakes a grant is answered once the grant has arrived, and includes it:
// the pool would refuse others for memory in transit to a stream that does not need it.
func TestAskWaitsForRunsThatAreUnderWay(t *testing.T) {
	r := newRig(t, 64*mib)
	s := r.stream(core.Budget{})
	b, err := s.Alloc(8 * mib)
	require.NoError(t, err)
	require.NoError(t, b.Free())

	runs, sent := underWay(t, r, s)
	s.client.Asked(sent, 0)
	assert.Zero(t, r.books().FreeBytes, "nothing is answered yet")
	s.client.Granted(0, runs, false)
	r.until(func() bool { return r.books().FreeBytes == 8*mib }) // all of it came back
	assert.Zero(t, r.stats(s).HeldBytes)
}

// An ask that overtook nothing is answered at once.
func TestAskIsAnsweredAtOnce(t *testing.T) {
	r := newRig(t, 64*mib)
	s := r.stream(core.Budget{})
	b, err := s.Alloc(8 * mib)
	require.NoError(t, err)
	require.NoError(t, b.Free())
	s.client.Asked(1, 0)
	r.until(func() bool { return r.books().FreeBytes == 8*mib }) // by the goroutine in the turn
}
