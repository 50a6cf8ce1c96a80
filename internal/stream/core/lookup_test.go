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

// A free during a Lookup leads to no handle of the slot's next buffer, which may lie elsewhere.
func TestLookupDuringAFree(t *testing.T) {
	t.Parallel()
	const pageBytes = int64(64 * kib)
	for _, bytes := range []int64{4 * pageBytes, kib} { // a block of its own, and a slot of a span
		var cache magazine.Cache
		during := func() {}
		cache.SetReach(func(string) { during() })
		c := New(Config{Base: worldBase, PageBytes: pageBytes}, &cache, &world{})
		c.Grant(Run{First: 0, Pages: 16})
		sought, _ := c.Alloc(bytes, 0)
		other, _ := c.Alloc(pageBytes+1, 0)
		at, old := sought.Address(), sought.Word()
		require.NoError(t, other.Record(other.Word(), 1))
		require.NoError(t, other.Record(other.Word(), 2))
		require.NoError(t, other.Free(other.Word())) // the next turn takes its uses

		freed := false
		during = func() {
			if !freed {
				freed = true
				require.NoError(t, sought.Free(old))
			}
		}
		s, word, _, found := c.Lookup(at)
		require.True(t, freed)
		assert.False(t, found && s.FreedSince(old) && s.Live(word), "%d bytes: the handle of no buffer is found", bytes)
		_, _, _, found = c.Lookup(at)
		assert.False(t, found)
		require.NoError(t, c.Check())
	}
}
