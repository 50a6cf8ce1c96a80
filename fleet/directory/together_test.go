//go:build linux

package directory

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/fleet/ledger"
)

// Each goroutine finds what it has committed in a ledger that others write at the same time; the last snapshot is one that was read, and
// nothing is left once all leases have ended.
func TestTransactionsAmongGoroutines(t *testing.T) {
	const goroutineCount, rounds = 4, 8
	l := open(t, t.TempDir())
	var all sync.WaitGroup
	for number := range goroutineCount {
		all.Go(func() {
			key := fmt.Sprint("k", number)
			for round := range rounds {
				e := newLease(t, l)
				at, err := l.Commit(t.Context(), put(key, fmt.Sprint(round), e.ID()))
				assert.NoError(t, err)
				s, err := l.Read(t.Context(), key)
				assert.NoError(t, err)
				assert.GreaterOrEqual(t, s.Revision, at)
				if assert.Len(t, s.Pairs, 1) {
					assert.Equal(t, fmt.Sprint(round), string(s.Pairs[0].Value))
				}
				last, quiet := l.known()
				assert.Positive(t, last.Revision)
				assert.False(t, quiet)
				assert.NoError(t, e.Close())
			}
		})
	}
	all.Wait()
	s, err := l.Read(t.Context())
	require.NoError(t, err)
	assert.Empty(t, s.Pairs)
	last, _ := l.known()
	assert.Equal(t, s.Revision, last.Revision)
	assert.Empty(t, l.leases)
	_, err = l.Commit(t.Context(), put("k", "", 1<<40))
	require.ErrorIs(t, err, ledger.ErrLeaseEnded)
}
