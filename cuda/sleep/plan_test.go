package sleep

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/streams"
)

// A plan has each byte once, in order, in chunks that are full but for the last one, and adjacent bytes of a chunk in one piece.
func TestPlans(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		chunkBytes := rapid.Int64Range(1, 20).Draw(t, "chunk")
		var all []streams.Memory
		var want []cudadrv.Ptr // the address of each byte
		at := cudadrv.Ptr(100)
		for range rapid.IntRange(0, 6).Draw(t, "ranges") {
			at += cudadrv.Ptr(rapid.IntRange(0, 2).Draw(t, "gap"))
			m := streams.Memory{Ptr: at, Bytes: rapid.Int64Range(1, 30).Draw(t, "bytes")}
			all = append(all, m)
			for range m.Bytes {
				want = append(want, at)
				at++
			}
		}
		chunks := plan(all, chunkBytes)
		var got []cudadrv.Ptr
		for i, c := range chunks {
			if i+1 < len(chunks) {
				require.Equal(t, chunkBytes, c.bytes)
			}
			require.LessOrEqual(t, c.bytes, chunkBytes)
			require.Zero(t, blocks(chunks[i:i+1]))
			end, offset := cudadrv.Ptr(0), int64(0)
			for _, p := range c.pieces {
				require.Positive(t, p.bytes)
				require.NotEqual(t, end, p.at, "it is one piece with the one before")
				require.Equal(t, offset, p.offset)
				for range p.bytes {
					got = append(got, p.at+cudadrv.Ptr(offset-p.offset)) //nolint:gosec // small numbers
					offset++
				}
				end = p.at + cudadrv.Ptr(p.bytes) //nolint:gosec // small numbers
			}
			require.Equal(t, c.bytes, offset)
		}
		require.Equal(t, want, got)
	})
}
