package streams

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/recoveredtest"
	"github.com/go-vram/vram/internal/stream/core"
	"github.com/go-vram/vram/pool"
)

// Where no fence can be recorded the stream's work is waited for, and the pages are free at once.
func TestAFenceThatFailsIsReplacedByWaiting(t *testing.T) {
	r := newRig(t, 16*mib)
	s, other := r.stream(core.Budget{}), r.stream(core.Budget{})
	require.NoError(t, must(t, s, 16*mib).Free())
	require.NoError(t, r.gpu.Launch(s.Handle(), time.Second))
	r.fail("cuEventRecord")
	_, err := r.pool.Trim(context.Background(), 16*mib-1)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, r.gpu.Now(), time.Second)
	require.NoError(t, must(t, other, 14*mib).Free())
}

// Where neither works no other stream gets the pages before the work has finished; they stay with
// the stream, serve it, and are returned once the driver works again.
func TestPagesWithoutAFenceStayWithTheirStream(t *testing.T) {
	plant := map[string]func(r *rig){
		"errors": func(r *rig) { r.fail("cuEventRecord", "cuEventCreate", "cuStreamSynchronize") },
		"panics": func(r *rig) {
			r.faults.SetBefore(func(function string) {
				if function == "cuEventRecord" || function == "cuStreamSynchronize" {
					panic(recoveredtest.Planted("planted"))
				}
			})
		},
	}
	for name, fail := range plant {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 16*mib)
			s, other := r.stream(core.Budget{}), r.stream(core.Budget{})
			first := must(t, s, 16*mib)
			require.NoError(t, r.gpu.Launch(s.Handle(), time.Second)) // works on first
			require.NoError(t, first.Free())
			fail(r)

			_, err := r.pool.Trim(context.Background(), 0)
			require.NoError(t, err)
			_, err = other.Alloc(mib)
			require.ErrorIs(t, err, pool.ErrOutOfMemory, "the work on it has not finished")
			assert.Less(t, r.gpu.Now(), time.Second)
			assert.Equal(t, 16*mib, r.stats(s).HeldBytes)
			assert.Zero(t, s.cuda.calls.Load())
			r.balanced(s, other)
			again := must(t, s, 16*mib)
			assert.Equal(t, first.Ptr(), again.Ptr(), "the stream itself needs no fence")
			require.NoError(t, again.Free())

			r.faults.Clear()
			r.faults.SetBefore(nil)
			freed, err := r.pool.Trim(context.Background(), 14*mib)
			require.NoError(t, err)
			if freed == 0 { // the fence has been recorded, but not passed
				r.gpu.Advance(time.Second)
			}
			require.NoError(t, must(t, other, 2*mib).Free())
			assert.GreaterOrEqual(t, r.gpu.Now(), time.Second)
			r.balanced(s, other)
		})
	}
}

// A budget that cannot be kept because no fence can be recorded is kept at the next turn after: the
// stream does not try again and again by itself.
func TestABudgetWithoutFencesIsKeptLater(t *testing.T) {
	r := newRig(t, 64*mib)
	s := r.stream(core.Budget{CacheBytes: 4 * mib})
	b := must(t, s, 16*mib)
	r.fail("cuEventRecord", "cuStreamSynchronize")
	require.NoError(t, b.Free())
	r.tick(s)
	assert.Equal(t, 16*mib, r.stats(s).CachedBytes)
	r.balanced(s)
	answered := make(chan error, 1)
	go func() {
		_, err := r.pool.Trim(context.Background(), 0)
		answered <- err
	}()
	r.until(func() bool { return len(answered) == 1 }) // the pool waits for no Return that does not come
	require.NoError(t, <-answered)
	r.faults.Clear()
	r.tick(s)
	assert.LessOrEqual(t, r.stats(s).CachedBytes, 4*mib)
	r.balanced(s)
}

// A stream that is closed while it had to keep pages returns them with the rest.
func TestKeptPagesGoWithTheClose(t *testing.T) {
	r := newRig(t, 64*mib)
	s := r.stream(core.Budget{CacheBytes: 4 * mib})
	b := must(t, s, 16*mib)
	r.fail("cuEventRecord", "cuStreamSynchronize")
	require.NoError(t, b.Free())
	r.tick(s)
	r.faults.Clear()
	require.NoError(t, s.Close())
	<-s.ref.Done()
	r.until(func() bool { return r.books().LentBytes == 0 })
}
