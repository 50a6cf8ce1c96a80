//go:build gpu && linux && (amd64 || arm64)

package host

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/dynamic"
)

// hardware is device 0 of this machine.
func hardware(tb testing.TB) (cudadrv.Device, cudadrv.HostMemory) {
	tb.Helper()
	d, err := dynamic.New(dynamic.Config{}).Open(0)
	require.NoError(tb, err)
	tb.Cleanup(func() { assert.NoError(tb, d.Close()) })
	memory, ok := d.(cudadrv.HostMemory)
	require.True(tb, ok)
	return d, memory
}

// On a GPU, blocks that are freed while copies from them are still queued, and that are requested and written again at once,
// give every copy the bytes of its own round.
func TestHardwareReuseWaitsForTheCopy(t *testing.T) {
	d, memory := hardware(t)
	p := must[*Pool](t)(NewPageLocked(d, PoolConfig{}))
	s, err := d.StreamCreate()
	require.NoError(t, err)
	const rounds, length, workBytes = 64, 1 << 20, 1 << 30
	there, err := d.MemAlloc(rounds * length)
	require.NoError(t, err)
	work, err := d.MemAlloc(workBytes)
	require.NoError(t, err)
	for i := range rounds {
		require.NoError(t, d.MemsetD8Async(work, byte(i), workBytes, s))
		b := alloc(t, p, length, 0)
		copy(b.Bytes(), bytes.Repeat([]byte{byte(i + 1)}, length))
		require.NoError(t, b.Use(s))
		require.NoError(t, memory.MemcpyHtoDAsync(there+cudadrv.Ptr(i*length), b.Bytes(), s))
		free(t, b)
	}
	s1 := p.Stats()
	t.Logf("%d misses of %d requests, %d KiB pending", s1.Misses, s1.Allocs, s1.PendingBytes>>10)
	back := make([]byte, length)
	for i := range rounds {
		require.NoError(t, memory.MemcpyDtoHAsync(back, there+cudadrv.Ptr(i*length), s))
		require.NoError(t, d.StreamSynchronize(s))
		require.Equal(t, length, bytes.Count(back, []byte{byte(i + 1)}), "round %d", i)
	}
	again := alloc(t, p, length, 0)
	assert.Equal(t, s1.Misses, p.Stats().Misses, "all copies have passed")
	free(t, again)
	require.NoError(t, p.Close(t.Context()))
	require.NoError(t, d.MemFree(there))
	require.NoError(t, d.MemFree(work))
	require.NoError(t, d.StreamDestroy(s))
}

// BenchmarkHardwarePair is an Alloc and a Free of page-locked memory: of the cache, with an announced
// use, and of the driver.
func BenchmarkHardwarePair(b *testing.B) {
	d, _ := hardware(b)
	cache := must[*Pool](b)(NewPageLocked(d, PoolConfig{}))
	source := must[*PageLockedMemory](b)(PageLockedSource(d))
	s, err := d.StreamCreate()
	require.NoError(b, err)
	for name, a := range map[string]Allocator{"cache": cache, "driver": source} {
		b.Run("impl="+name+"/bytes=1048576", func(b *testing.B) {
			free(b, alloc(b, a, 1<<20, 0)) // the first is the driver's
			for b.Loop() {
				block, err := a.Alloc(1<<20, 0)
				if err == nil {
					err = block.Free()
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("impl=cache/used/bytes=1048576", func(b *testing.B) {
		for b.Loop() {
			block, err := cache.Alloc(1<<20, 0)
			if err == nil {
				err = errors.Join(block.Use(s), block.Free())
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	})
	require.NoError(b, cache.Close(b.Context()))
	require.NoError(b, d.StreamDestroy(s))
}
