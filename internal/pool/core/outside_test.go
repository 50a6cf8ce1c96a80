package core

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// charge charges bytes, and returns the error of its end.
func (s *shop) charge(t *testing.T, bytes int64) error {
	t.Helper()
	s.ends = nil
	s.do(Charge(1, bytes, 77))
	require.Len(t, s.ends, 1)
	require.NoError(t, s.core.Check())
	return s.ends[0].Err
}

// Memory of others is charged up to exactly what the limit leaves besides memory in use. Free memory is released for it, no more
// than that, and nothing where no release is enough.
func TestAChargeTakesExactlyWhatTheLimitLeaves(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name         string
		free         uint32 // of the eight pages of client 1
		bytes        int64
		ok           bool
		keptReserved int64
	}{
		{"nothing is free", 0, 1, false, 8},
		{"a byte less than a page", 0, pageBytes - 1, false, 8},
		{"a page", 0, pageBytes, false, 8},
		{"nothing is charged", 0, 0, true, 8},
		{"a byte costs a page", 3, 1, true, 7},
		{"all that is free", 3, 3 * pageBytes, true, 5},
		{"a byte more", 3, 3*pageBytes + 1, false, 5},
		{"the whole limit", 8, 8 * pageBytes, true, 0},
		{"more than the limit", 8, 8*pageBytes + 1, false, 8},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := openShop(t)
			if c.free > 0 {
				s.shelf[1] = []Run{{First: 0, Pages: c.free}}
			}
			err := s.charge(t, c.bytes)
			assert.Equal(t, c.keptReserved*pageBytes, s.core.ReservedBytes())
			if c.ok {
				assert.NoError(t, err)
				return
			}
			var short *ShortError
			require.ErrorAs(t, err, &short)
			assert.Equal(t, c.bytes, short.RequestedBytes)
			assert.Equal(t, (c.bytes+pageBytes-1)/pageBytes*pageBytes, short.MissingBytes)
			assert.Zero(t, short.SharedBytes, "a refused charge counts nothing")
		})
	}
}

// What is charged counts in the limit until it is taken back: the pool then reserves up to the last page that is left, and not
// one more. A lower limit that is set in between counts it, too.
func TestAChargeLowersTheLimit(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.shelf[1] = []Run{{First: 0, Pages: 8}}
	require.NoError(t, s.charge(t, 6*pageBytes))
	take := func(token uint64, pages uint32) {
		s.do(Refill{Client: 3, Token: token, Pages: pages, Bytes: int64(pages) * pageBytes})
		require.NoError(t, s.core.Check())
	}
	take(1, 3)
	assert.Contains(t, s.denied, uint64(1), "two pages are left")
	take(2, 2)
	assert.True(t, s.served[2])
	s.shelf[3] = nil // in use
	require.Error(t, s.charge(t, 1))

	s.do(Uncharge(3 * pageBytes))
	take(3, 4)
	assert.Contains(t, s.denied, uint64(3))
	take(4, 3)
	assert.True(t, s.served[4])
	s.shelf[3] = nil

	settings := s.core.settings
	settings.LimitBytes = 9 * pageBytes // three of them are charged
	s.core.SetSettings(settings)
	take(5, 2)
	assert.Contains(t, s.denied, uint64(5))
	take(6, 1)
	assert.True(t, s.served[6])
	assert.EqualValues(t, 6*pageBytes, s.core.ReservedBytes())
}

// A request that waits gets the memory that an Uncharge leaves.
func TestAnUnchargeServesAWait(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.shelf[1] = []Run{{First: 0, Pages: 4}}
	require.NoError(t, s.charge(t, 4*pageBytes))
	s.do(waitAs(99, 4))
	require.False(t, s.served[99])
	s.do(Uncharge(3 * pageBytes))
	require.False(t, s.served[99], "a page is missing")
	s.do(Uncharge(pageBytes))
	require.True(t, s.served[99])
}
