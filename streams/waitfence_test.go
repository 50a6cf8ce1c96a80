package streams

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
