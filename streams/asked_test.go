package streams

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	poolcore "github.com/go-vram/vram/pool/core"
	"github.com/go-vram/vram/streams/core"
)

// An ask that overtakes a grant is answered once the grant has arrived, with what it brought: the pool would
// refuse others for memory that is on its way to a stream which does not need it.
func TestAskWaitsForRunsThatAreUnderWay(t *testing.T) {
	r := newRig(t, 64*mib)
	s := r.stream(core.Budget{})
	b, err := s.Alloc(8 * mib)
	require.NoError(t, err)
	require.NoError(t, b.Free())

	// The runs are taken out of the stream again, as if the pool's grants were still under way.
	require.True(t, s.ref.TryEnter())
	sent := s.received
	var runs []poolcore.Run
	for _, run := range s.core.Surrender(^uint32(0)) {
		runs = append(runs, poolcore.Run(run))
	}
	s.received -= uint64(len(runs))
	s.ref.Perform(s.ref.Leave())
	require.NotEmpty(t, runs)

	s.Asked(sent)
	assert.Zero(t, r.books().FreeBytes, "nothing is answered yet")
	s.Granted(0, runs)
	assert.Equal(t, 8*mib, r.books().FreeBytes, "all of it came back")
	assert.Zero(t, r.stats(s).HeldBytes)
}

// An ask that overtook nothing is answered at once.
func TestAskIsAnsweredAtOnce(t *testing.T) {
	r := newRig(t, 64*mib)
	s := r.stream(core.Budget{})
	b, err := s.Alloc(8 * mib)
	require.NoError(t, err)
	require.NoError(t, b.Free())
	s.Asked(1)
	assert.Equal(t, 8*mib, r.books().FreeBytes)
}
