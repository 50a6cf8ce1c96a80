package streams

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/stream/core"
)

// Every address of a live buffer leads to it, none of free, cached, pending or foreign memory to
// any.
func TestLookup(t *testing.T) {
	t.Parallel()
	r, home, other := pair(t, 256*mib)
	_, found := home.Lookup(0x1234)
	assert.False(t, found)
	var live []Buffer
	for range 40 { // from before the directory was made and from after
		for _, bytes := range []int64{1, 700, 5000, 60 * kib, 100 * kib, 3 * mib, 9 * mib / 2} {
			live = append(live, must(t, home, bytes))
		}
		if len(live) > 30 {
			for i := range 6 {
				gone := live[i*3]
				live[i*3] = live[len(live)-1]
				live = live[:len(live)-1]
				if i%2 == 0 {
					require.NoError(t, gone.RecordStream(other))
				}
				require.NoError(t, gone.Free())
				_, found := home.Lookup(gone.Ptr())
				assert.False(t, found)
			}
		}
		for _, b := range live {
			for _, inside := range []int64{0, b.Bytes() / 2, b.Bytes() - 1} {
				got, found := home.Lookup(b.Ptr() + cudadrv.Ptr(inside))
				require.True(t, found, "%d of %d", inside, b.Bytes())
				assert.Equal(t, b.slot, got.slot)
				assert.Equal(t, b.word, got.word)
				assert.GreaterOrEqual(t, got.Bytes(), b.Bytes())
			}
		}
		_, found := other.Lookup(live[0].Ptr())
		assert.False(t, found)
	}
	require.NoError(t, control(home).Check(t.Context()))
	leave := r.occupy(home)
	answered := make(chan Buffer)
	go func() {
		b, _ := home.Lookup(live[0].Ptr())
		answered <- b
	}()
	leave()
	assert.Equal(t, live[0].slot, (<-answered).slot)
	for _, b := range live {
		require.NoError(t, b.Free())
	}
	for _, b := range live {
		_, found := home.Lookup(b.Ptr())
		assert.False(t, found)
	}
	require.NoError(t, home.Close())
	_, found = home.Lookup(live[0].Ptr())
	assert.False(t, found)
}

// A buffer is not found while it is pending, and after Transfer under its new generation.
func TestLookupOfSharedBuffers(t *testing.T) {
	t.Parallel()
	r, home, other := pair(t, 64*mib)
	for _, bytes := range []int64{4 * kib, mib} {
		b := must(t, home, bytes)
		moved, err := b.Transfer(other)
		require.NoError(t, err)
		got, found := home.Lookup(b.Ptr() + 100)
		require.True(t, found)
		assert.Equal(t, moved, got)
		require.NoError(t, got.RecordStream(r.stream(core.Budget{})))
		r.work(other, time.Second)
		require.NoError(t, got.Free())
		_, found = home.Lookup(b.Ptr())
		assert.False(t, found, "it is pending")
	}
}
