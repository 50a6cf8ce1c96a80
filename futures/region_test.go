package futures

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"

	"github.com/go-vram/vram/internal/region"
)

// A wait that parks is one region of a trace, which ends with the wait, with an answer and without one. An answer that is there
// is no wait.
func TestAWaitIsARegion(t *testing.T) {
	var begun []string
	ended := 0
	region.Set(func(name string) func() {
		begun = append(begun, name)
		return func() { ended++ }
	})
	defer region.Set(nil)
	synctest.Test(t, func(t *testing.T) {
		p := NewPromise[int](nil)
		go func() {
			synctest.Wait() // until it has parked
			assert.Equal(t, []string{region.Wait}, begun)
			assert.Zero(t, ended)
			p.Complete(1, nil)
		}()
		v, err := p.Future().Await(t.Context())
		assert.NoError(t, err)
		assert.Equal(t, 1, v)
		assert.Len(t, begun, 1)
		assert.Equal(t, 1, ended)
		_, _ = p.Future().Await(t.Context())
		assert.Len(t, begun, 1, "nothing to wait for")
	})
}
