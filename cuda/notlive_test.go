package cuda_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/vramtest"
)

// A call on a buffer that is not live is refused with its name and the buffer's size.
func TestABufferThatIsNotLiveIsNamed(t *testing.T) {
	dev := vramtest.Open(t, vramtest.Kernels())
	c, err := cuda.NewContext(dev.Stream())
	require.NoError(t, err)
	other := dev.Stream()
	freed, err := c.Alloc(4096)
	require.NoError(t, err)
	x, err := c.Alloc(4096)
	require.NoError(t, err)
	use, err := freed.Use(other)
	require.NoError(t, err)
	require.NoError(t, freed.Free())
	small := make([]byte, 4096)
	for call, f := range map[string]func(b cuda.Buffer) error{
		"Context.Copy":    func(b cuda.Buffer) error { return c.Copy(cuda.Part(x, 0, b.Bytes()), cuda.Whole(b)) },
		"Context.CopyIn":  func(b cuda.Buffer) error { return cuda.CopyIn(c, b, small[:b.Bytes()]) },
		"Context.CopyOut": func(b cuda.Buffer) error { return cuda.CopyOut(c, small[:b.Bytes()], b) },
		"Context.Fill8":   func(b cuda.Buffer) error { return c.Fill8(cuda.Whole(b), 1) },
		"Context.Fill16":  func(b cuda.Buffer) error { return c.Fill16(cuda.Whole(b), 1) },
		"Context.Fill32":  func(b cuda.Buffer) error { return c.Fill32(cuda.Whole(b), 1) },
		"Context.Submit": func(b cuda.Buffer) error {
			return c.Submit(func(cudadrv.Device, cudadrv.Stream) error { return nil }, cuda.Whole(b))
		},
		"Buffer.Use":          func(b cuda.Buffer) error { _, err := b.Use(other); return err },
		"Buffer.Transfer":     func(b cuda.Buffer) error { _, err := b.Transfer(other); return err },
		"Buffer.RecordStream": func(b cuda.Buffer) error { return b.RecordStream(other) },
	} {
		for want, b := range map[string]cuda.Buffer{
			"a buffer of 4 KiB, which was freed at cuda_test.TestABufferThatIsNotLiveIsNamed (FILE); allocated at cuda_test.TestABufferThatIsNotLiveIsNamed (FILE)": freed,
			"a buffer that nobody has allocated": {},
		} {
			err := f(b)
			require.ErrorIs(t, err, vram.ErrNotLive, call)
			var refused *vram.NotLiveError
			require.ErrorAs(t, err, &refused, call)
			assert.Equal(t, call, refused.Call)
			assert.Equal(t, "vram: the buffer is not live: "+call+" of "+want, lines.ReplaceAllString(err.Error(), "FILE"))
		}
	}
	require.EqualError(t, use.Done(), "vram: the buffer is not live: Use.Done of a buffer that was freed or handed over")
	require.NoError(t, x.Free())
	require.NoError(t, c.Close())
}
