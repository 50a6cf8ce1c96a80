package cuda_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cuda"
)

// A graph copies memory of Go's heap at each launch, with the bytes that it has then.
func TestAGraphCopiesPageableMemory(t *testing.T) {
	r, c := newRig(t)
	x := r.alloc(c, 4096)
	in, out := make([]byte, 4096), make([]byte, 4096)
	g := r.graph(c, func() {
		require.NoError(t, c.CopyInAsync(cuda.Whole(x), in))
		require.NoError(t, c.CopyOutAsync(out, cuda.Whole(x)))
	})
	for i := range 3 {
		for j := range in {
			in[j] = byte(i + j)
		}
		require.NoError(t, g.Launch(c))
		r.sync(c)
		assert.Equal(t, in, out)
	}
	require.NoError(t, g.Close())
	r.free(x)
}
