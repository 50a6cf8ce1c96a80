package streams

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/recoveredtest"
	"github.com/go-vram/vram/pool"
)

// A request that waits for a fence while another goroutine looks at that fence, and is held up in the
// driver, waits for the look, and then for the fence: it is not refused.
func TestAWaitOutlastsALookAtItsFence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, home, other := pair(t, 16*mib)
		b := must(t, home, 12*mib)
		require.NoError(t, b.RecordStream(other))
		r.work(other, time.Second)
		require.NoError(t, b.Free())
		r.tick(home) // takes the fence
		entered, release := r.holdUp("cuEventQuery")
		looked := make(chan struct{})
		go func() {
			r.tick(home)
			close(looked)
		}()
		<-entered
		var next Buffer
		served := make(chan error, 1)
		go func() {
			var err error
			next, err = other.Alloc(12 * mib)
			served <- err
		}()
		synctest.Wait()
		select {
		case err := <-served:
			require.NoError(t, err, "before the look has ended")
			t.Error("it is served before the work has ended")
		default:
		}
		release()
		require.NoError(t, <-served)
		<-looked
		assert.GreaterOrEqual(t, r.gpu.Now(), time.Second)
		require.NoError(t, next.Free())
	})
}

// A wait for a fence whose goroutine the driver ends is a wait that fails: the request is refused, and later ones are served.
func TestAWaitThatTheDriverEnds(t *testing.T) {
	recoveredtest.Expect(t, "driver: the function ended its goroutine")
	r, home, other := pair(t, 16*mib)
	b := must(t, home, 12*mib)
	require.NoError(t, b.RecordStream(other))
	r.work(other, time.Second)
	require.NoError(t, b.Free())
	r.ends("cuEventSynchronize")
	_, err := other.Alloc(12 * mib)
	require.ErrorIs(t, err, pool.ErrOutOfMemory)
	assert.Less(t, r.gpu.Now(), time.Second)
	require.NoError(t, must(t, other, 12*mib).Free())
}

// A search for fences that ends its goroutine, as an observer's function may in the turn of another stream, finds none.
func TestASearchForFencesThatEndsItsGoroutine(t *testing.T) {
	r, home, other := pair(t, 16*mib)
	b := must(t, home, 12*mib)
	require.NoError(t, b.RecordStream(other))
	r.work(other, time.Second)
	require.NoError(t, b.Free())
	home.peer.entry = endingTurn{home.peer.entry}
	_, err := other.Alloc(12 * mib)
	require.ErrorIs(t, err, pool.ErrOutOfMemory)
	home.peer.entry = home.peer.entry.(endingTurn).peerTurn
	require.NoError(t, must(t, other, 12*mib).Free())
}
