package streams

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/stream/core"
	"github.com/go-vram/vram/pool"
)

// adopt opens a stream over a handle of the test's.
func (r *rig) adopt() *Stream {
	r.t.Helper()
	h, err := r.gpu.StreamCreate()
	require.NoError(r.t, err)
	s, _, err := Open(Config{
		ID: uint32(len(r.streams) + 1), Pool: r.pool, Device: r.device, Fences: r.fences, Handle: h, Adopted: true, //nolint:gosec // a count
		Limit: &r.limit,
	})
	require.NoError(r.t, err)
	r.streams = append(r.streams, s)
	return s
}

// An adopted CUDA stream may be destroyed by a program that has not closed the stream: turns in the
// background make no call on it. Memory that stays for that reason is reported.
func TestTheBackgroundMakesNoCallOnAnAdoptedHandle(t *testing.T) {
	r := newRig(t, 32*mib)
	s, other := r.adopt(), r.stream(core.Budget{})
	require.NoError(t, must(t, s, 24*mib).Free())
	require.NoError(t, must(t, other, 2*mib).Free())
	require.NoError(t, other.Trim(context.Background()))
	records := r.faults.Calls("cuEventRecord")
	for range 40 {
		r.tick(s)
		r.pool.Tick()
	}
	_, err := r.pool.Trim(context.Background(), 0)
	require.NoError(t, err)
	_, err = other.Alloc(30 * mib)
	var shortage *pool.OutOfMemoryError
	require.ErrorAs(t, err, &shortage)
	require.NoError(t, control(s).Reconfigure(context.Background(), core.Settings{Budget: core.Budget{CacheBytes: mib}}))
	assert.Equal(t, records, r.faults.Calls("cuEventRecord"))
	assert.Zero(t, r.faults.Calls("cuStreamSynchronize"))
	assert.Equal(t, 24*mib, shortage.Streams[0].UncoveredBytes)
	assert.ErrorContains(t, err, "stream 1 holds 24 MiB, 0 B live (24 MiB stay until its callers' next request or Trim)")

	require.NoError(t, s.Trim(context.Background()))
	assert.Equal(t, records+1, r.faults.Calls("cuEventRecord"))
	require.NoError(t, must(t, other, 30*mib).Free())
}

// A caller's turn records a fence now and then, and turns in the background return the pages that
// it covers: blocks freed after it stay.
func TestCallersLeaveFencesForTheBackground(t *testing.T) {
	r := newRig(t, 64*mib)
	s := r.adopt()
	first, second := must(t, s, 24*mib), must(t, s, 8*mib)
	require.NoError(t, first.Free())
	r.tick(s) // wants a fence
	before := r.faults.Calls("cuEventRecord")
	require.NoError(t, r.gpu.Launch(s.Handle(), time.Second))
	for i := range 100 { // a turn each; the first leaves it
		require.NoError(t, must(t, s, (64+int64(i))*kib+1).Free())
	}
	assert.Equal(t, before+1, r.faults.Calls("cuEventRecord"), "no more than one a tick")
	require.NoError(t, second.Free())

	for range 30 { // idle, and decayed
		r.tick(s)
	}
	assert.Equal(t, before+1, r.faults.Calls("cuEventRecord"))
	n := r.stats(s)
	assert.Less(t, n.HeldBytes, 16*mib, "most of the first has gone")
	assert.GreaterOrEqual(t, n.HeldBytes, 8*mib, "the second has not")
	books := r.books()
	assert.Positive(t, books.PendingBytes, "nobody else has it before the fence has passed")
	r.gpu.Advance(time.Second)
	r.pool.Tick()
	r.until(func() bool { return r.books().PendingBytes == 0 })
	r.balanced(s)
}

// Pages that an adopted stream has returned do not go back to it before its callers ask: it could not return them once more.
func TestWhatAnAdoptedStreamReturnedStaysInThePool(t *testing.T) {
	r := newRig(t, 32*mib)
	s, other := r.adopt(), r.stream(core.Budget{})
	require.NoError(t, must(t, s, 24*mib).Free())
	r.tick(s)                                    // wants a fence
	require.NoError(t, must(t, s, 3*mib).Free()) // the callers' turn records it
	_, err := r.pool.Trim(context.Background(), r.books().ReservedBytes-2*mib)
	require.NoError(t, err)
	assert.Less(t, r.stats(s).HeldBytes, 8*mib)
	require.NoError(t, must(t, other, 20*mib).Free())
}

// A fence that cannot be recorded covers nothing, and another is left later. One that nothing was
// returned with is given up by the next, or with the stream.
func TestAFenceThatIsNotLeft(t *testing.T) {
	r := newRig(t, 64*mib)
	s := r.adopt()
	turn := func() { require.NoError(t, must(t, s, 3*mib).Free()) }
	turn()
	r.tick(s)
	r.fail("cuEventRecord")
	turn()
	r.faults.Clear()
	r.tick(s)
	_, err := r.pool.Trim(context.Background(), 0)
	require.NoError(t, err)
	assert.Equal(t, 4*mib, r.stats(s).HeldBytes)
	for range 3 {
		turn()
		r.tick(s)
	}
	assert.Zero(t, s.cuda.calls.Load())
	require.NoError(t, s.Close())
	<-s.ref.Done()
	require.NoError(t, r.fences.Close())
	assert.Equal(t, r.faults.Calls("cuEventCreate"), r.faults.Calls("cuEventDestroy"), "no event is kept")
	require.NoError(t, r.gpu.StreamDestroy(s.Handle()))
}

// While a request of a callers' waits for the pool the record is made for that caller.
func TestACallersRequestRecordsOnAnAdoptedHandle(t *testing.T) {
	r := newRig(t, 16*mib)
	s := r.adopt()
	crumbs := []Buffer{must(t, s, 6*mib), must(t, s, 4*mib), must(t, s, 6*mib)}
	require.NoError(t, crumbs[0].Free())
	require.NoError(t, crumbs[2].Free())
	require.NoError(t, r.gpu.Launch(s.Handle(), time.Second)) // an idle stream answers without a fence
	require.NoError(t, must(t, s, 12*mib).Free(), "of what is apart")
	assert.Positive(t, r.faults.Calls("cuEventRecord"))
	require.NoError(t, crumbs[1].Free())
}

// A program that destroys its stream without closing it loses the cached memory, and nothing else
// happens.
func TestAForgottenHandle(t *testing.T) {
	r := newRig(t, 64*mib)
	s, other := r.adopt(), r.stream(core.Budget{})
	require.NoError(t, must(t, s, 24*mib).Free())
	require.NoError(t, r.gpu.StreamDestroy(s.Handle()))
	for range 30 {
		r.tick(s)
	}
	require.NoError(t, must(t, other, 32*mib).Free())
	require.ErrorIs(t, s.Close(), cudadrv.InvalidHandle)
	_, err := s.Alloc(1)
	require.ErrorIs(t, err, ErrClosed)
}

// A Trim returns the free memory, and is refused once the stream is closed.
func TestReturn(t *testing.T) {
	r := newRig(t, 64*mib)
	s, other := r.stream(core.Budget{}), r.stream(core.Budget{}) // not to get all back that is free
	require.NoError(t, must(t, s, 8*mib).Free())
	require.NoError(t, s.Trim(context.Background()))
	assert.Zero(t, r.stats(s).HeldBytes)
	require.NoError(t, s.Close())
	require.ErrorIs(t, s.Trim(context.Background()), ErrClosed)
	require.NoError(t, other.Close())
}
