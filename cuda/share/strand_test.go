//go:build linux && (amd64 || arm64) && !gpu

package share

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cuda"
)

// strandedPair is two sides with memory in common, of which the second waits for an event of the first that does not come before
// reach is called.
func strandedPair(t *testing.T) (b *side, mine, theirs *Memory, reach func()) {
	t.Helper()
	fakes := [2]*fake{newFake(t), newFake(t)}
	fakes[1].hold(1)
	a, b := newSide(t, fakes[0].driver()), newSide(t, fakes[1].driver())
	mine, theirs = linkSides(t, a, b)
	theirs.link.Load().patience.Store(int64(time.Millisecond))
	require.NoError(t, mine.Publish(a.c))
	require.NoError(t, theirs.Await(t.Context(), b.c))
	b.fill(theirs, 's')
	reach = func() { fakes[1].hold(0) }
	t.Cleanup(reach) // a test that failed ends, too
	return b, mine, theirs, reach
}

// dies ends the connection of a link without a goodbye.
func (m *Memory) dies(t *testing.T) {
	t.Helper()
	require.NoError(t, m.link.Load().conn.Close())
}

// Close gives up on work behind the event of a peer that died, and the memory stays mapped: that work may touch it. Waits for the stream
// end, too. Where the event comes all the same, Close may be called again.
func TestCloseAfterTheDeathOfThePeer(t *testing.T) {
	b, mine, theirs, reach := strandedPair(t)
	unmaps := b.faults.Calls("cuMemUnmap")
	waiting := inBackground(func() error { return b.c.Synchronize(background()) })
	mine.dies(t)
	for range 2 {
		err := theirs.Close()
		var gone *PeerError
		require.ErrorAs(t, err, &gone)
		assert.Equal(t, "close", gone.Op)
		require.ErrorIs(t, err, ErrPeerDied)
		var stranded *vram.StrandedError
		require.ErrorAs(t, err, &stranded)
		assert.Equal(t, b.c.Stream().ID(), stranded.Stream)
	}
	require.ErrorIs(t, <-waiting, vram.ErrStranded)
	require.ErrorIs(t, b.c.Synchronize(background()), vram.ErrStranded)
	require.ErrorIs(t, cuda.CopyOut(b.c, make([]byte, 1), b.x), vram.ErrStranded)
	assert.Equal(t, unmaps, b.faults.Calls("cuMemUnmap"))
	reach()
	require.NoError(t, theirs.Close())
	require.NoError(t, b.c.Synchronize(background()), "it has finished all the same")
}

// A stream that came past the event before the peer died is waited for like others, however long its work takes.
func TestWorkBehindAnEventThatWasReached(t *testing.T) {
	b, mine, theirs, reach := strandedPair(t)
	reach()
	mine.dies(t)
	assert.False(t, theirs.strand())
	assert.False(t, theirs.strand())
	require.NoError(t, b.c.Synchronize(background()))
	b.holds(theirs, 's')
}

// A stream that has not come to the event, behind work of its own, is looked at again.
func TestWorkAheadOfTheEventOfADeadPeer(t *testing.T) {
	b, mine, theirs, reach := strandedPair(t)
	first := theirs.marked[b.c.Stream()].first
	theirs.marked[b.c.Stream()].first = theirs.marked[b.c.Stream()].last // as if it had not come to the first mark
	assert.True(t, theirs.strand())
	assert.True(t, theirs.strand())
	theirs.marked[b.c.Stream()].first = first
	assert.True(t, theirs.strand(), "it is there, and may be through at once")
	assert.False(t, theirs.strand())
	require.ErrorIs(t, b.c.Synchronize(background()), vram.ErrStranded)
	reach()
	require.NoError(t, theirs.Close())
	mine.dies(t)
}
