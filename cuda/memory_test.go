package cuda_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
)

// otherMemory has the methods of cuda.Memory.
type otherMemory struct{}

func (otherMemory) Ptr() cudadrv.Ptr { return 4096 }
func (otherMemory) Live() bool       { return true }

// Mark is the argument that its mark makes of a buffer, or of a part of one; other memory is refused.
func TestMark(t *testing.T) {
	r, c := newRig(t)
	kernel := kernelsOf(t, c, `.visible .entry k(.param .u64 .ptr to) { ret; }`)("k")
	b := r.alloc(c, 4096)
	launch := func(a cuda.Arg) error { return c.Launch(kernel, cuda.Cover(1), a) }
	for name, mark := range map[string]func(cuda.Buffer) cuda.Arg{"In": cuda.In, "Out": cuda.Out, "InOut": cuda.InOut} {
		part := cuda.Part(b, 1024, 512)
		assert.Equal(t, mark(b), cuda.Mark(b, mark), name)
		assert.Equal(t, mark(b).Of(1024, 512), cuda.Mark(part, mark), name)
		assert.Equal(t, mark(b), cuda.MarkOrNull(b, mark), name)
		assert.Equal(t, mark(b).Of(1024, 512), cuda.MarkOrNull(part, mark), name)
		assert.Equal(t, part.Ptr(), b.Ptr()+1024)
		assert.True(t, part.Live())
		require.NoError(t, launch(cuda.Mark(part, mark)))
		for what, null := range map[string]cuda.Memory{"nil": nil, "no buffer": cuda.Buffer{}, "no range": cuda.Range{}} {
			assert.Equal(t, cuda.Null(), cuda.MarkOrNull(null, mark), what)
			require.NoError(t, launch(cuda.MarkOrNull(null, mark)))
			require.ErrorIs(t, launch(cuda.Mark(null, mark)), cuda.ErrNotLive, what)
		}
		require.ErrorIs(t, launch(cuda.MarkOrNull(cuda.Part(cuda.Buffer{}, 0, 4), mark)), cuda.ErrNotLive, "a part of no buffer is no nil pointer")
		var outside *cuda.RangeError
		require.ErrorAs(t, launch(cuda.Mark(cuda.Part(b, 4095, 2), mark)), &outside)
		for _, other := range []cuda.Memory{otherMemory{}, &otherMemory{}} {
			require.ErrorIs(t, launch(cuda.Mark(other, mark)), cuda.ErrArgumentSize)
			require.ErrorIs(t, launch(cuda.MarkOrNull(other, mark)), cuda.ErrArgumentSize)
		}
	}
	require.ErrorIs(t, launch(cuda.Mark(b, nil)), cuda.ErrArgumentSize)
	part := cuda.Whole(b)
	r.free(b)
	assert.False(t, part.Live())
	require.ErrorIs(t, launch(cuda.MarkOrNull(b, cuda.In)), cuda.ErrNotLive, "a buffer that was freed is no nil pointer")
}
