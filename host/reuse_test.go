package host

import (
	"bytes"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A block that is freed at the moment at which the goroutine that releases memory ends is released without any further call.
func TestABlockFreedWhenTheReleasingEnds(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.cache(4096)
	kept, first, second := alloc(t, p, 4096, 0), alloc(t, p, 4096, 0), alloc(t, p, 4096, 0)
	free(t, kept)
	ends := 0
	p.roundEnds = func() {
		if ends++; ends == 1 {
			free(t, second)
			assert.EqualValues(t, 4096, p.Stats().ReleasingBytes, "this goroutine has seen an empty queue")
		}
	}
	free(t, first)
	for p.Stats().Releases < 2 {
		runtime.Gosched()
	}
	require.NoError(t, p.awaitReleases(t.Context()))
	assert.Equal(t, 2, ends)
	r.end(p)
}

// Zeroed memory has no byte of an earlier block, whichever way that became free.
func TestZeroedMemoryIsNeverAnothersBytes(t *testing.T) {
	t.Parallel()
	const length = 4096
	zeros := make([]byte, length)
	for name, frees := range map[string]func(r *rig, p *Pool, b Block) (after func()){
		"kept": func(_ *rig, _ *Pool, b Block) func() { free(t, b); return func() {} },
		"after a use": func(r *rig, _ *Pool, b Block) func() {
			s := r.stream()
			r.busy(s, time.Second)
			require.NoError(t, b.Use(s))
			free(t, b)
			r.sim.Advance(2 * time.Second)
			return func() {}
		},
		"waiting to be released": func(r *rig, p *Pool, b Block) func() {
			more := []Block{alloc(t, p, length, 0), alloc(t, p, length, 0)}
			g := r.hold("cuMemFreeHost")
			p.bound.keep.Store(0)
			free(t, more[0])
			<-g.entered // the goroutine has the first
			free(t, b)
			return func() {
				close(g.open)
				free(t, more[1])
			}
		},
	} {
		r := newRig(t)
		p := r.cache(1 << 20)
		b := alloc(t, p, length, 0)
		at := address(b)
		copy(b.Bytes(), bytes.Repeat([]byte{0xa5}, length))
		after := frees(r, p, b)
		next, err := p.AllocZeroed(length, 0)
		require.NoError(t, err, name)
		assert.Equal(t, at, address(next), "%s: it is another block", name)
		assert.Equal(t, zeros, next.Bytes(), name)
		after()
		free(t, next)
		r.faults.SetBefore(nil)
		r.end(p)
	}
}
