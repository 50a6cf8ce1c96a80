package cuda_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
)

// The caller's own work waits for the work of the buffer's stream, and the free of the buffer waits for it: the checker of the
// device would report both.
func TestWorkOfTheCallersOwn(t *testing.T) {
	r, c := newRig(t)
	other := r.context()
	x := r.alloc(other, mib)
	require.NoError(t, other.Fill8(cuda.Whole(x), 7))
	fill := func(device cudadrv.Device, on cudadrv.Stream) error { return device.MemsetD8Async(x.Ptr(), 9, mib, on) }
	require.NoError(t, c.Submit(fill, cuda.Whole(x)))
	got := make([]byte, 2)
	require.NoError(t, other.CopyOutAt(got, x, mib-2))
	assert.Equal(t, []byte{9, 9}, got)
	r.free(x)

	calls := 0
	count := func(cudadrv.Device, cudadrv.Stream) error { calls++; return cudadrv.Unknown }
	require.ErrorIs(t, c.Submit(count, cuda.Whole(x)), cuda.ErrNotLive)
	require.ErrorIs(t, (*cuda.Context)(nil).Submit(count), cuda.ErrNotOpen)
	g, err := c.Capture(func() error {
		assert.ErrorIs(t, c.Submit(count), cuda.ErrCapturing)
		return nil
	})
	require.NoError(t, err)
	require.NoError(t, g.Close())
	assert.Zero(t, calls)
	require.ErrorIs(t, c.Submit(count), cudadrv.Unknown)
}

// Work of a library is checked, ordered and announced like a launch: the checker of the device records its accesses.
func TestWorkOfALibrary(t *testing.T) {
	r, c := newRig(t)
	other := r.context()
	x, y := r.alloc(other, mib), r.alloc(c, mib)
	calls := 0
	work := func(_ cudadrv.Device, on cudadrv.Stream) error {
		assert.Equal(t, c.Stream().Handle(), on)
		calls++
		return nil
	}
	require.NoError(t, other.Fill8(cuda.Whole(x), 7))
	require.NoError(t, c.LaunchWith("library", work, cuda.In(x), cuda.Out(y).Of(0, 4096), cuda.Value(int32(1))))
	require.NoError(t, other.Fill8(cuda.Whole(x), 8)) // after the library's work
	require.NoError(t, c.Fill8(cuda.Whole(y), 8))
	assert.Equal(t, 1, calls)

	profile, err := c.StartProfile()
	require.NoError(t, err)
	require.NoError(t, c.LaunchWith("library", work, cuda.InOut(y)))
	all, err := profile.Stop()
	require.NoError(t, err)
	require.Len(t, all, 1)
	assert.Equal(t, "library", all[0].Kernel)

	var refused *cuda.ArgumentError
	require.ErrorAs(t, c.LaunchWith("library", work, cuda.In(y), cuda.In(x).Of(mib, 1)), &refused)
	assert.Equal(t, "library", refused.Kernel)
	assert.Equal(t, 1, refused.Index)
	r.free(x)
	require.ErrorIs(t, c.LaunchWith("library", work, cuda.Out(x)), cuda.ErrNotLive)
	require.ErrorIs(t, (*cuda.Context)(nil).LaunchWith("library", work), cuda.ErrNotOpen)
	assert.Equal(t, 2, calls)
	failing := func(cudadrv.Device, cudadrv.Stream) error { return cudadrv.Unknown }
	require.ErrorIs(t, c.LaunchWith("library", failing, cuda.In(y)), cudadrv.Unknown)

	// A device without a context has none for a library either.
	require.ErrorIs(t, c.WithContext(func() error { calls++; return nil }), cudadrv.NotSupported)
	require.ErrorIs(t, (*cuda.Context)(nil).WithContext(nil), cuda.ErrNotOpen)
	assert.Equal(t, 2, calls)
	r.free(y)
}

// Work of a library is refused for the argument of a nil mark: its buffer would be neither ordered nor kept.
func TestALibraryRefusesArgumentsOfNilMarks(t *testing.T) {
	r, c := newRig(t)
	x := r.alloc(c, mib)
	work := func(cudadrv.Device, cudadrv.Stream) error { t.Error("the work is submitted"); return nil }
	for name, arg := range map[string]cuda.Arg{
		"none": {}, "OrNull": cuda.OrNull(x, nil), "Mark": cuda.Mark(x, nil), "MarkOrNull": cuda.MarkOrNull(x, nil),
		"Mark of other memory": cuda.Mark(otherMemory{}, cuda.In),
	} {
		err := c.LaunchWith("library", work, cuda.InOut(x), arg)
		require.ErrorIs(t, err, cuda.ErrArgumentSize, name)
		require.EqualError(t, err, "cuda: argument 1 of kernel library: no argument of 0 bytes for a parameter", name)
	}
	r.free(x)
}

// A graph keeps the memory that a library's work in it touches.
func TestWorkOfALibraryInAGraph(t *testing.T) {
	r, c := newRig(t)
	x := r.alloc(c, mib)
	submitted := 0
	g, err := c.Capture(func() error {
		return c.LaunchWith("library", func(cudadrv.Device, cudadrv.Stream) error { submitted++; return nil }, cuda.Out(x))
	})
	require.NoError(t, err)
	assert.Equal(t, 1, submitted)
	at := x.Ptr()
	r.free(x)
	r.sync(c)
	y := r.alloc(c, mib)
	assert.NotEqual(t, at, y.Ptr())
	require.NoError(t, g.Close())
	r.free(y)
}
