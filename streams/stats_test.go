package streams

import (
	"context"
	"errors"
	"testing"

	"github.com/go-vram/vram/internal/stream/core"
	"github.com/stretchr/testify/require"

	"github.com/stretchr/testify/assert"
)

func TestFragmentation(t *testing.T) {
	t.Parallel()
	assert.Zero(t, Stats{}.Fragmentation(), "nothing is cached")
	assert.Zero(t, Stats{CachedBytes: 4096, LargestFreeBytes: 4096}.Fragmentation(), "one range")
	assert.InDelta(t, 1, Stats{CachedBytes: 1}.Fragmentation(), 1e-9, "from the first byte on")
	assert.Zero(t, Stats{CachedBytes: -1}.Fragmentation(), "of a difference")
	assert.InDelta(t, 0.75, Stats{CachedBytes: 4096, LargestFreeBytes: 1024}.Fragmentation(), 1e-9)
	assert.InDelta(t, 1, Stats{CachedBytes: 4096}.Fragmentation(), 1e-9, "all in magazines")
}

// DriverMisses counts the requests for which the driver mapped pages, a batch once, however they are answered; none that the pool or
// the stream served with memory that was mapped before.
func TestDriverMissesAreRequestsThatTheDriverMappedPagesFor(t *testing.T) {
	t.Parallel()
	for name, request := range map[string]func(s *Stream) error{
		"Alloc": func(s *Stream) error { b, err := s.Alloc(6 * mib); return errors.Join(err, b.Free()) },
		"zeroed": func(s *Stream) error {
			b, err := s.AllocFor(context.Background(), Request{Bytes: 6 * mib, Zero: true})
			return errors.Join(err, b.Free())
		},
		"aligned": func(s *Stream) error {
			b, err := s.AllocFor(context.Background(), Request{Bytes: 6 * mib, Align: 4 * mib})
			return errors.Join(err, b.Free())
		},
		"batch": func(s *Stream) error {
			b, err := s.AllocBatchFor(context.Background(), BatchRequest{Bytes: []int64{6 * mib, 4 * kib, 4 * mib}})
			return errors.Join(err, b.Free())
		},
	} {
		r := newRig(t, 64*mib)
		s := r.stream(core.Budget{})
		require.NoError(t, request(s), name)
		n := r.stats(s)
		assert.EqualValues(t, 1, n.DriverMisses, name)
		assert.Positive(t, n.PoolHits, name)
		require.NoError(t, request(s), name)
		assert.Equal(t, n.PoolHits, r.stats(s).PoolHits, "%s: by the stream", name)
		require.NoError(t, s.Trim(t.Context()))
		require.NoError(t, request(s), name)
		assert.Greater(t, r.stats(s).PoolHits, n.PoolHits, "%s: by the pool", name)
		assert.EqualValues(t, 1, r.stats(s).DriverMisses, name)
	}
}
