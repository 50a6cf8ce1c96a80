package magazine

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A use is noted before it is announced: if the flag is in a slot's word, the use is in its note.
func TestAUseIsNotedBeforeItIsAnnounced(t *testing.T) {
	t.Parallel()
	const number = userCount // too high for the word
	rounds := 2000
	if testing.Short() {
		rounds = 100
	}
	for range rounds {
		_, _, m := cacheOf(0)
		var handles []uint64
		for i := range m.slots {
			handles = append(handles, m.slots[i].word.Load())
		}
		var at, late atomic.Int64
		var watcher sync.WaitGroup
		watcher.Go(func() {
			for i := range handles {
				s := &m.slots[i]
				at.Store(int64(i + 1))
				for spins := 1; ; spins++ {
					announced := s.word.Load()&uint64(Announced) != 0
					n := s.note.Load()
					if announced && (n == nil || n.bits.Load()&(1<<number) == 0) {
						late.Add(1)
					}
					if announced {
						break
					}
					if spins%256 == 0 {
						runtime.Gosched()
					}
				}
			}
		})
		for i := range handles {
			for at.Load() <= int64(i) {
				runtime.Gosched()
			}
			require.NoError(t, m.slots[i].Record(handles[i], number))
		}
		watcher.Wait()
		if !assert.Zero(t, late.Load(), "announced, and not noted") {
			return
		}
	}
}
