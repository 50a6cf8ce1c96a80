//go:build linux && (amd64 || arm64)

package bytecheck

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
)

// holes fills a limit with buffers, frees every other one, and asks for buffers of twice the length, which no hole can
// hold: handles of the holes are mapped elsewhere. The bytes of the buffers between them stay, and the new ones' are
// right as well.
func holes(t *testing.T, driver cudadrv.Driver, of scale) {
	t.Helper()
	const pieceBytes = 16 * mib // four handles at a limit: two of them are whole in any place
	limitBytes := max(of.load.LiveBytes, 8*pieceBytes)
	h := openHouse(t, driver, vram.Config{Footprint: vram.Lean, LimitBytes: limitBytes})
	stream, err := h.NewStream()
	require.NoError(t, err)
	w := newWorker(&ground{house: h, load: of.load}, 0, []*vram.Stream{stream})
	require.NoError(t, w.begin())
	take := func(bytes int64) (err error) {
		b, err := stream.Alloc(bytes)
		if err != nil {
			return err
		}
		return w.keep(b, stream, "Alloc")
	}
	for range 2 * limitBytes / pieceBytes { // memory runs out before
		if err = take(pieceBytes); err != nil {
			break
		}
	}
	require.ErrorIs(t, err, vram.ErrOutOfMemory)
	var kept []*item
	for i, it := range w.items {
		if i%2 == 0 {
			kept = append(kept, it)
			continue
		}
		require.NoError(t, w.free(it))
	}
	w.items = kept
	unmapped, created := h.Calls("cuMemUnmap"), h.Calls("cuMemCreate")
	require.NoError(t, take(2*pieceBytes))
	assert.Greater(t, h.Calls("cuMemUnmap"), unmapped, "nothing was mapped elsewhere")
	assert.Equal(t, created, h.Calls("cuMemCreate"), "handles were made, not moved")
	for _, it := range w.items {
		require.NoError(t, w.readings.read(it))
	}
	require.NoError(t, w.end())
	require.NoError(t, stream.Close())
}
