package acceptance_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/pool"
)

// A limit that is higher by the refusal's figure is enough, and a page less is not.
func TestTheLimitThatWouldHelp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
		a, b := h.stream(), h.stream()
		x, y := must(t, a, 40*mib), must(t, a, 12*mib)
		freeAll(t, y)
		_, err := b.Alloc(33 * mib)
		var short *vram.OutOfMemoryError
		require.ErrorAs(t, err, &short)
		var raise int64
		for _, r := range short.Remedies() {
			if r.Kind == pool.RaiseLimit {
				raise = r.Bytes
			}
		}
		assert.Positive(t, raise)
		assert.ErrorContains(t, err, "Request.Wait")
		for _, test := range []struct {
			bytes int64
			works bool
		}{{raise - 2*mib, false}, {raise, true}} {
			limit := 64*mib + test.bytes
			require.NoError(t, h.Reconfigure(vram.Settings{LimitBytes: &limit}))
			z, err := b.Alloc(33 * mib)
			assert.Equal(t, test.works, err == nil, "with %d more: %v", test.bytes, err)
			if err == nil {
				freeAll(t, z)
			}
		}
		freeAll(t, x)
		h.addsUp()
	})
}
