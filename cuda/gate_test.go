package cuda

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A change waits until all calls have left, also if a call of an earlier change left after that had seen none inside.
func TestAChangeWaitsInSpiteOfAnOldToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gate
		g.init()
		g.left <- struct{}{}
		require.NoError(t, g.enter())
		alone := false
		g.mu.Lock()
		go func() {
			g.change()
			alone = true
		}()
		synctest.Wait()
		assert.False(t, alone)
		g.leave()
		synctest.Wait()
		assert.True(t, alone)
		g.changed()
		g.mu.Unlock()
	})
}
