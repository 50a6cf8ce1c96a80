//go:build !race

package streams

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// An announced pair allocates nothing on Go's heap and makes few driver calls.
func TestAnnouncedPairsAreCheap(t *testing.T) {
	r, home, other := pair(t, 256*mib)
	for _, bytes := range []int64{4 * kib, mib} {
		cycle := func() {
			b, err := home.Alloc(bytes)
			if err != nil || b.RecordStream(other) != nil || b.Free() != nil {
				t.Error("an announced pair failed", err)
			}
		}
		for range 2000 {
			cycle()
		}
		records := r.faults.Calls("cuEventRecord")
		assert.Zero(t, testing.AllocsPerRun(2000, cycle))
		assert.LessOrEqual(t, r.faults.Calls("cuEventRecord")-records, uint64(2001/4))
	}
}
