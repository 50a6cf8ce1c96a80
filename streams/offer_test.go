package streams

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/pool/admission"
	poolcore "github.com/go-vram/vram/internal/pool/core"
	"github.com/go-vram/vram/internal/stream/core"
)

// waitsInPool is a request of the stream's that waits in the pool alone: the stream has withdrawn
// it, and the goroutine that performs the effects of that turn is held up.
func (r *rig) waitsInPool(s *Stream, pages uint32) {
	bytes := int64(pages) * 2 * mib
	r.pool.Refill(s.client, poolcore.Refill{
		Client: s.id, Token: 1 << 40, Pages: pages, Bytes: bytes, RequestedBytes: bytes, BlockBytes: bytes,
		LiveBytes: s.turn.state.core.LiveBytes(), Patience: poolcore.Waiting, Place: poolcore.Place{Account: admission.Account(s.id), Age: 1},
	})
}

// The pool offers memory to a request that the stream has given up. The stream withdraws that once
// more, so that the pool does not try it again.
func TestAnOfferToARequestThatIsGivenUpWithdrawsIt(t *testing.T) {
	r := newRig(t, 8*mib)
	s := r.stream(core.Budget{})
	b := must(t, s, 6*mib)
	r.waitsInPool(s, 4)
	r.until(func() bool { return r.books().Waits.Waiting == 0 }) // the offer, and the withdrawal, may come in turns of other goroutines
	require.NoError(t, b.Free())
}

// A closed stream returns at once the memory that the pool offers it for a withdrawn request. That
// return is no reason to try the request again: pool and stream would do so without end, one inside
// the other.
func TestAClosedStreamIsOfferedMemoryOnce(t *testing.T) {
	r := newRig(t, 8*mib)
	s := r.stream(core.Budget{})
	kept, freed := must(t, s, 2*mib), must(t, s, 4*mib)
	entered, release := r.holdUp("cuStreamSynchronize")
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	<-entered
	r.waitsInPool(s, 4)
	require.NoError(t, freed.Free()) // returned with the end of the synchronisation, before the pool hears that the stream has left
	release()
	require.NoError(t, <-closed)
	r.until(func() bool { return r.books().Waits.Waiting == 0 })
	assert.EqualValues(t, 2*mib, r.books().LentBytes)
	require.NoError(t, kept.Free())
}
