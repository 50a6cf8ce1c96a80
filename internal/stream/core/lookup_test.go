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

// interrupted is a core with a live buffer that is freed when a turn collects the frees before it.
func interrupted(t *testing.T, bytes int64) (c *Core, sought *magazine.Slot) {
	t.Helper()
	const pageBytes = int64(64 * kib)
	var cache magazine.Cache
	during := func() {}
	cache.SetReach(func(string) { during() })
	c = New(Config{Base: worldBase, PageBytes: pageBytes}, &cache, &world{})
	c.Grant(Run{First: 0, Pages: 16})
	sought, _ = c.Alloc(bytes, 0)
	other, _ := c.Alloc(pageBytes+1, 0)
	word := other.Word()
	require.NoError(t, other.Record(word, 1))
	require.NoError(t, other.Record(word, 2))
	require.NoError(t, other.Free(word)) // the turn that takes its uses meets the place
	old := sought.Word()
	during = func() {
		during = func() {}
		require.NoError(t, sought.Free(old))
	}
	return c, sought
}

// A free during a Lookup, or during a list of handles, leads to no handle of the slot's next buffer, which may lie elsewhere.
func TestNoHandleOfALaterBufferIsFound(t *testing.T) {
	t.Parallel()
	for _, bytes := range []int64{256 * kib, kib} { // a block of its own, and a slot of a span
		c, sought := interrupted(t, bytes)
		at, old := sought.Address(), sought.Word()
		_, _, _, found := c.Lookup(at)
		require.True(t, sought.FreedSince(old))
		assert.False(t, found, "%d bytes", bytes)
		_, _, _, found = c.Lookup(at)
		assert.False(t, found)
		require.NoError(t, c.Check())

		c, sought = interrupted(t, bytes)
		old = sought.Word()
		c.LiveHandles(func(int64, *magazine.Slot, uint64) { assert.Fail(t, "nothing is live", "%d bytes", bytes) })
		require.True(t, sought.FreedSince(old))
		c.LiveHandles(func(int64, *magazine.Slot, uint64) { assert.Fail(t, "nothing is live") })
		require.NoError(t, c.Check())
	}
}
