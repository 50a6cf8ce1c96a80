package acceptance_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
)

// A loop that returns its memory after each step, to a pool that keeps little, makes no driver call
// from the third step on: its memory is mapped when it begins. Between steps the memory goes back.
// Without Predict each step pays.
func TestTheThirdStepMakesNoDriverCall(t *testing.T) {
	freeAll(t, must(t, openHouse(t, vram.Config{}, sim.Config{}).stream(), 1)) // once: allocations of the process, not of the test
	for _, predict := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			h := openHouse(t, vram.Config{PoolCacheBytes: 64 * mib, Predict: predict}, sim.Config{})
			s := h.stream()
			for step := range 6 {
				calls := h.faults.Calls("cuMemCreate")
				var live []vram.Buffer
				for range 50 {
					live = append(live, must(t, s, 16*mib), must(t, s, 3*kib))
				}
				assert.Equal(t, predict && step >= 2, calls == h.faults.Calls("cuMemCreate"), "step %d", step)
				<-time.After(300 * time.Millisecond)
				freeAll(t, live...)
				require.NoError(t, s.Trim(t.Context()))
				<-time.After(time.Second)
				synctest.Wait()
				assert.LessOrEqual(t, h.addsUp().ReservedBytes, 256*mib, "between steps")
				<-time.After(700 * time.Millisecond)
			}
			n := h.Stats()
			assert.Zero(t, n.Mispredicted)
			if predict {
				assert.Equal(t, uint64(4), n.Predicted)
			}
			<-time.After(5 * time.Second) // the loop has ended
			synctest.Wait()
			n = h.addsUp()
			assert.LessOrEqual(t, n.ReservedBytes, 256*mib)
			assert.Equal(t, predict, n.Mispredicted == 1)
			freeAll(t, must(t, s, mib))
			require.NoError(t, h.Reconfigure(vram.Settings{Predict: new(false)}))
		})
	}
}
