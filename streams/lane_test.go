package streams

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/stream/core"
	"github.com/go-vram/vram/pool"
)

// lane opens a lane of a stream.
func (r *rig) lane(s *Stream, budgetBytes int64) *Lane {
	r.t.Helper()
	l, err := s.Lane(budgetBytes)
	require.NoError(r.t, err)
	return l
}

// alloc is the buffer of an allocation by a lane that works.
func alloc(t *testing.T, l *Lane, bytes int64) Buffer {
	t.Helper()
	b, err := l.Alloc(bytes)
	require.NoError(t, err)
	require.Equal(t, bytes, b.Bytes())
	require.True(t, b.Live())
	return b
}

// alone runs work while no other goroutine can enter the stream's turn, once the lane needs no turn
// for warm and no reclaim request is open.
func (r *rig) alone(s *Stream, l *Lane, warm, work func()) {
	r.t.Helper()
	var laneTurns atomic.Int64
	leave := r.occupy(s)
	s.turn.state.hook = func(p point) {
		if p == beforeLane {
			laneTurns.Add(1)
		}
	}
	leave()
	for {
		warm()
		before := laneTurns.Load()
		warm()
		leave := r.occupy(s)
		isQuiet := l.lane.Raised() == 0 && laneTurns.Load() == before
		if isQuiet {
			work()
		}
		leave()
		if isQuiet {
			return
		}
	}
}

// sound holds a stream's books against their invariants, in a turn.
func (r *rig) sound(s *Stream) {
	r.t.Helper()
	leave := r.occupy(s)
	defer leave()
	require.NoError(r.t, s.turn.state.core.Check())
}

// A lane serves the sizes that its budget could hold without a turn, and allocates nothing on the
// heap.
func TestLaneServesWithoutATurn(t *testing.T) {
	r := newRig(t, 512*mib)
	s := r.stream(core.Budget{})
	l := r.lane(s, 128*mib)
	for _, bytes := range []int64{1, 512, 4000, 64 * kib, 65 * kib, mib, 100 * mib} {
		pair := func() {
			b, err := l.Alloc(bytes)
			if err != nil || l.Free(b) != nil {
				t.Error("a pair failed")
			}
		}
		r.alone(s, l, func() {
			for range 3 { // the first may go the stream's way, for pages; the second leases
				pair()
			}
		}, func() { // a goroutine that needs a turn waits for ever
			assert.Zero(t, testing.AllocsPerRun(100, pair), "%d bytes", bytes)
		})
	}
	n := r.stats(s)
	assert.Zero(t, n.LiveBytes)
	assert.Equal(t, 1, n.LaneCount)
	assert.Positive(t, n.LaneBytes)
	require.NoError(t, l.Close())
	n = r.stats(s)
	assert.Zero(t, n.LaneCount)
	assert.Zero(t, n.LaneBytes)
	r.sound(s)
}

// Requests are refused as by a stream.
func TestLaneRefuses(t *testing.T) {
	r := newRig(t, 64*mib)
	s := r.stream(core.Budget{})
	_, err := s.Lane(-1)
	var budget *BudgetError
	require.ErrorAs(t, err, &budget)
	assert.EqualValues(t, -1, budget.BudgetBytes)
	assert.Contains(t, err.Error(), "budgetBytes")
	require.ErrorIs(t, err, ErrNegative)

	l := r.lane(s, mib)
	_, err = l.Alloc(-1)
	require.ErrorIs(t, err, ErrNegative)
	_, err = l.Alloc(65 * mib)
	require.ErrorIs(t, err, ErrTooLarge)
	require.ErrorIs(t, l.Free(Buffer{}), ErrBadFree)
	empty := alloc(t, l, 0)
	require.NoError(t, l.Free(empty))
	require.ErrorIs(t, l.Free(empty), ErrDoubleFree)

	for _, bytes := range []int64{512, 512 * kib} {
		for range 2 {
			require.NoError(t, l.Free(alloc(t, l, bytes)))
		}
		b := alloc(t, l, bytes)
		require.NoError(t, l.Free(b))
		require.ErrorIs(t, l.Free(b), ErrDoubleFree)
		require.ErrorIs(t, b.Free(), ErrDoubleFree)
		c := alloc(t, l, bytes)
		require.Equal(t, b.Ptr(), c.Ptr(), "the lane's own memory at once")
		require.ErrorIs(t, l.Free(b), ErrDoubleFree, "its memory is c's now")
		require.NoError(t, c.Free())
		require.ErrorIs(t, l.Free(c), ErrDoubleFree)
		require.ErrorIs(t, l.Free(b), ErrStale)
	}
	require.NoError(t, l.Close())
	require.NoError(t, l.Close(), "again")
	_, err = l.Alloc(512)
	require.ErrorIs(t, err, ErrClosed)
}

// Buffers of others are freed through a lane as without one, and those of the lane by any
// goroutine.
func TestLaneFreesWhatIsNotItsOwn(t *testing.T) {
	r := newRig(t, 64*mib)
	s, other := r.stream(core.Budget{}), r.stream(core.Budget{})
	l, second := r.lane(s, 8*mib), r.lane(s, 8*mib)
	for _, bytes := range []int64{512, mib} {
		for range 3 {
			require.NoError(t, l.Free(alloc(t, l, bytes)))
			require.NoError(t, second.Free(alloc(t, second, bytes)))
		}
		for _, b := range []Buffer{must(t, s, bytes), must(t, other, bytes), alloc(t, second, bytes)} {
			require.NoError(t, l.Free(b))
			require.ErrorIs(t, l.Free(b), ErrDoubleFree)
		}
		require.NoError(t, alloc(t, l, bytes).Free())
	}
	assert.Zero(t, r.stats(s).LiveCount)
	assert.Zero(t, r.stats(other).LiveCount)
	r.sound(s)
}

// Blocks that others free come home to the lane: it serves from them without more of the stream's
// memory.
func TestOthersFreesComeHome(t *testing.T) {
	r := newRig(t, 64*mib)
	s := r.stream(core.Budget{})
	l := r.lane(s, 32*mib)
	for _, bytes := range []int64{4 * kib, mib} {
		var most int64
		for round := range 50 {
			var all []Buffer
			for range 8 {
				all = append(all, alloc(t, l, bytes))
			}
			for _, b := range all {
				require.NoError(t, b.Free())
			}
			if round == 10 {
				most = r.stats(s).LaneBytes
			}
		}
		n := r.stats(s)
		assert.Zero(t, n.LiveBytes)
		assert.Equal(t, most, n.LaneBytes)
	}
	r.tick(s)
	require.NoError(t, l.Free(alloc(t, l, 512)))
	require.NoError(t, l.Close())
	assert.Zero(t, r.stats(s).LaneBytes)
	r.sound(s)
}

// A lane keeps no more than its budget of freed memory, no matter which goroutine frees it; one of
// 0 bytes keeps nothing.
func TestLaneKeepsToItsBudget(t *testing.T) {
	for _, budgetBytes := range []int64{0, 100 * kib, mib, 5 * mib} {
		for _, bytes := range []int64{512, 64 * kib, 300 * kib, 2 * mib} {
			for _, remote := range []bool{false, true} {
				r := newRig(t, 128*mib)
				s := r.stream(core.Budget{})
				l := r.lane(s, budgetBytes)
				for range 3 {
					var all []Buffer
					for range 500 * 512 / max(512, bytes/8) {
						all = append(all, alloc(t, l, bytes))
					}
					for _, b := range all {
						if remote {
							require.NoError(t, b.Free())
						} else {
							require.NoError(t, l.Free(b))
						}
					}
				}
				if remote {
					r.tick(s)
					require.NoError(t, l.Free(alloc(t, l, 512))) // the call in which it sees the request
				}
				n := r.stats(s)
				assert.Zero(t, n.LiveBytes)
				assert.LessOrEqual(t, n.LaneBytes, budgetBytes, "budget %d, %d bytes, remote %t", budgetBytes, bytes, remote)
				r.sound(s)
			}
		}
	}
}

// A budget full of sizes that are not requested any more is emptied.
func TestLaneForgetsWhatIsNotAskedFor(t *testing.T) {
	r := newRig(t, 128*mib)
	s := r.stream(core.Budget{})
	l := r.lane(s, 4*mib)
	for range 2 {
		a, b := alloc(t, l, 2*mib), alloc(t, l, 2*mib)
		require.NoError(t, l.Free(a))
		require.NoError(t, l.Free(b))
	}
	r.alone(s, l, func() {
		for range 100 {
			require.NoError(t, l.Free(alloc(t, l, 512)))
		}
	}, func() {
		require.NoError(t, l.Free(alloc(t, l, 512)), "without a turn")
	})
}

// An out-of-memory error names a lane that keeps much, and the memory is released by the lane's
// next call, of any kind.
func TestLaneIsAskedBack(t *testing.T) {
	for name, call := range map[string]func(l *Lane, b Buffer) error{
		"alloc": func(l *Lane, _ Buffer) error {
			b, err := l.Alloc(512)
			return errors.Join(err, l.Free(b))
		},
		"free":         func(l *Lane, b Buffer) error { return l.Free(b) },
		"close":        func(l *Lane, b Buffer) error { return errors.Join(l.Close(), b.Free()) },
		"refused call": func(l *Lane, b Buffer) error { _, err := l.Alloc(-1); assertNegative(err); return b.Free() },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 64*mib)
			s, other := r.stream(core.Budget{}), r.stream(core.Budget{})
			l := r.lane(s, 64*mib)
			first, small := alloc(t, l, 512), alloc(t, l, 512)
			for range 3 {
				require.NoError(t, l.Free(alloc(t, l, 40*mib)))
			}
			require.NoError(t, first.Free())

			_, err := other.Alloc(40 * mib)
			var shortage *pool.OutOfMemoryError
			require.ErrorAs(t, err, &shortage)
			assert.Equal(t, 1, shortage.Streams[0].LaneCount)
			assert.GreaterOrEqual(t, shortage.Streams[0].LaneBytes, 40*mib)
			assert.Contains(t, err.Error(), "lanes: 1")
			require.NoError(t, call(l, small))
			assert.GreaterOrEqual(t, r.books().FreeBytes, 40*mib-2*mib, "given back without another request")
			must(t, other, 40*mib)
			r.sound(s)
		})
	}
}

func assertNegative(err error) {
	if !errors.Is(err, ErrNegative) {
		panic("an allocation of a negative size was not refused")
	}
}

// Trim asks lanes too.
func TestTrimAsksLanes(t *testing.T) {
	r := newRig(t, 64*mib)
	s := r.stream(core.Budget{})
	l := r.lane(s, 64*mib)
	for range 3 {
		require.NoError(t, l.Free(alloc(t, l, 20*mib)))
	}
	_, err := r.pool.Trim(t.Context(), 0)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, r.stats(s).LaneBytes, 20*mib)
	require.NoError(t, l.Free(alloc(t, l, 512)))
	_, err = r.pool.Trim(t.Context(), 0)
	require.NoError(t, err)
	assert.Less(t, r.books().ReservedBytes, 4*mib)
}
