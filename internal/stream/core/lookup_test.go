package core

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/stream/magazine"
)

// With plain segments a returned page may get another address, and its former address may be in another
// stream's segment: no address leads to a block that is elsewhere.
func TestLookupForgetsPagesThatAreReturned(t *testing.T) {
	t.Parallel()
	const (
		pageBytes = int64(64 * kib)
		former    = cudadrv.Ptr(0x7f0000010000)
		later     = cudadrv.Ptr(0x7e0000030000)
	)
	places := make([]cudadrv.Ptr, 8)
	segment := func(at cudadrv.Ptr) Run {
		for i := range 4 {
			places[1+i] = at + cudadrv.Ptr(i)*cudadrv.Ptr(pageBytes)
		}
		return Run{First: 1, Pages: 4}
	}
	for _, bytes := range []int64{4 * pageBytes, kib} { // a block of its own, and a slot of a span
		var cache magazine.Cache
		c := New(Config{PageBytes: pageBytes, Places: places}, &cache, &world{})
		_, _, _, found := c.Lookup(former) // from now on there is a directory
		require.False(t, found)
		c.Grant(segment(former))
		s, _ := c.Alloc(bytes, 0)
		got, _, _, found := c.Lookup(s.Address() + 1)
		require.True(t, found)
		require.Equal(t, s, got)
		require.NoError(t, s.Free(s.Word()))
		require.Equal(t, []Run{{First: 1, Pages: 4}}, c.Release(8, false))
		require.NoError(t, c.Check())

		c.Grant(segment(later))
		require.NoError(t, c.Check())
		s, _ = c.Alloc(bytes, 0)
		_, _, _, found = c.Lookup(former + s.Address() - later)
		assert.False(t, found, "that is another stream's by now")
		got, _, _, found = c.Lookup(s.Address() + cudadrv.Ptr(bytes) - 1)
		assert.True(t, found)
		assert.Equal(t, s, got)
		require.NoError(t, c.Check())
	}
}
