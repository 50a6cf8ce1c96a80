package magazine

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/sizeclass"
)

// The tests below bring two operations together at one word, thousands of times.

// meetings lets two goroutines, of which the caller is one, do a round's work at the same moment, with
// prepare before and judge after it.
func meetings(rounds int64, prepare func(), work func(worker int), judge func()) {
	var begun, done atomic.Int64
	var all sync.WaitGroup
	defer all.Wait()
	defer begun.Store(-1) // also when judge ended the test
	all.Go(func() {
		for r := range rounds {
			for spins := 0; begun.Load() <= r; spins++ {
				if begun.Load() < 0 {
					return
				}
				if spins > 1000 {
					runtime.Gosched()
				}
			}
			work(0)
			done.Add(1)
		}
	})
	for r := range rounds {
		prepare()
		begun.Add(1)
		for range r % 64 {
			begun.Load() // the other one begins when it hears of it: now sooner, now later
		}
		work(1)
		for spins := 0; done.Load() <= r; spins++ {
			if spins > 1000 {
				runtime.Gosched()
			}
		}
		judge()
	}
}

// meetingCount is how often two operations meet. Not smaller: about one meeting in a hundred is close
// enough. Not larger: each costs a microsecond, and ten under the race detector, which needs fewer.
const meetingCount = 20_000 >> (3 * underRace)

// Of two frees of one handle at once one succeeds and the other is a double free, flagged or not.
func TestRacingFreesHaveOneWinner(t *testing.T) {
	for _, flagged := range []bool{false, true} {
		c, o, m := cacheOf(0)
		var s *Slot
		var word uint64
		var errs [2]error
		frees := uint64(0)
		meetings(meetingCount, func() {
			s, word = c.Take(1)
			if flagged {
				require.NoError(t, s.Announce(word, Announced))
			}
		}, func(i int) {
			errs[i] = s.Free(word)
		}, func() {
			frees++
			if errs[0] != nil {
				errs[0], errs[1] = errs[1], errs[0]
			}
			require.NoError(t, errs[0])
			require.Equal(t, ErrDoubleFree, errs[1])
			require.Equal(t, frees, m.Frees())
			if flagged {
				used := o.Used(false)
				require.Same(t, s, used)
				require.Nil(t, o.Next(s))
				o.Collect(s)
			}
			require.Equal(t, slotBits, m.mask.Load())
		})
	}
}

// Two magazines that are handed over at once both arrive, and two slots do.
func TestHandOversMeet(t *testing.T) {
	o := NewOwner(new(Cache), nil)
	var held [2]*Slot
	for i := range held {
		m := o.Spans.New(last, int32(i), 0)
		for s := m.Take(); s != nil; s = m.Take() {
			held[i] = s
		}
		require.True(t, o.Spans.Park(m))
	}
	meetings(meetingCount, func() {}, func(i int) {
		_ = held[i].Free(held[i].Word())
	}, func() {
		a, b := o.Spans.Ready(last), o.Spans.Ready(last)
		require.NotNil(t, b)
		require.NotSame(t, a, b)
		require.Nil(t, o.Spans.Ready(last))
		for _, m := range []*Span{a, b} {
			require.Same(t, held[m.Block], m.Take())
			require.True(t, o.Spans.Park(m))
		}
	})
	held = [2]*Slot{o.Loose.Take(), o.Loose.Take()}
	for _, free := range []func(s *Slot){
		func(s *Slot) { _ = s.Free(s.Word()) },
		func(s *Slot) {
			var f Frees
			_ = f.Free(s, s.Word())
			_ = f.Flush()
		},
	} {
		meetings(meetingCount/2, func() {}, func(i int) {
			free(held[i])
		}, func() {
			a := o.Freed()
			b := o.Next(a)
			require.NotNil(t, b)
			require.NotSame(t, a, b)
			require.Nil(t, o.Next(b))
		})
	}
}

// The two slots of a parked magazine that are freed at once hand it over once.
func TestFreesIntoAParkedMagazineMeet(t *testing.T) {
	c, o, m := cacheOf(last)
	held := takeAll(m)
	meetings(meetingCount, func() {
		require.True(t, o.Spans.Park(m))
	}, func(i int) {
		_ = held[i].Free(held[i].Word())
	}, func() {
		require.Same(t, m, c.parked.Load().Span())
		require.Nil(t, m.next)
		require.Same(t, m, o.Spans.Ready(last))
		require.Equal(t, held[:2], takeAll(m))
	})
}

// A free and a Park at once: either the magazine is not parked, or it is handed over.
func TestFreeMeetsPark(t *testing.T) {
	_, o, m := cacheOf(last)
	held := takeAll(m)
	isParked := false
	meetings(meetingCount, func() {}, func(i int) {
		if i == 0 {
			_ = held[0].Free(held[0].Word())
		} else {
			isParked = o.Spans.Park(m)
		}
	}, func() {
		ready := o.Spans.Ready(last)
		require.Equal(t, isParked, ready == m)
		require.Equal(t, held[:1], takeAll(m))
	})
}

// A free into a parked magazine while the owner takes of it: the slot is free, or the owner's.
func TestFreeMeetsTakeReady(t *testing.T) {
	_, o, m := cacheOf(last)
	held := takeAll(m)
	var taken uint64
	meetings(meetingCount, func() {
		require.True(t, o.Spans.Park(m))
		_ = held[0].Free(held[0].Word())
	}, func(i int) {
		if i == 0 {
			_ = held[1].Free(held[1].Word())
		} else {
			_, taken = o.Spans.TakeReady(last, 1)
		}
	}, func() {
		require.Same(t, m, o.Spans.Ready(last))
		rest := uint64(0)
		for _, s := range takeAll(m) {
			rest |= 1 << s.index
		}
		require.Equal(t, uint64(1)<<held[0].index|1<<held[1].index, taken|rest)
		require.Zero(t, taken&rest)
	})
}

// A take, or a free, and a CloseIdle at once: either the magazine is closed or the slot is a caller's.
func TestTakesMeetCloseIdle(t *testing.T) {
	_, o, m := cacheOf(last)
	var s *Slot
	isClosed := false
	meetings(meetingCount, func() {}, func(i int) {
		switch {
		case i == 1:
			isClosed = o.Spans.CloseIdle(m)
		case s == nil:
			s = m.Take()
		default:
			_ = s.Free(s.Word())
			s = nil
		}
	}, func() {
		if isClosed {
			require.Nil(t, s)
			o.Spans.Retire(m)
			require.Same(t, m, o.Spans.New(last, 7, 0))
		}
		require.Equal(t, s != nil, m.LiveSlots() == 1)
	})
}

// Goroutines take and free while the owner closes and opens the magazine: no slot is lost or held twice.
func TestPairsMeetClose(t *testing.T) {
	const units = 1000
	c := new(Cache)
	o := NewOwner(c, nil)
	m := o.Exacts.Of(units)
	var claims [SlotCount]atomic.Bool
	var stop atomic.Bool
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			for !stop.Load() {
				s, word := c.Take(units * sizeclass.UnitBytes)
				if s == nil {
					m.contended.Store(0)
					runtime.Gosched()
					continue
				}
				isMine := claims[s.index].CompareAndSwap(false, true)
				claims[s.index].Store(false)
				if !assert.True(t, isMine, "held twice") || !assert.NoError(t, s.Free(word)) {
					return
				}
			}
		})
	}
	for range 5 * meetingCount {
		o.Exacts.Reopen(m)
		o.Exacts.Install(m, 0)
		for range 3 {
			if s := o.Exacts.Assign(m); s != nil {
				_ = s.Free(s.Word())
			}
		}
		if m.FreeSlots() == 0 {
			runtime.Gosched()
		}
		o.Exacts.Close(m, func(*Slot) {})
		for s := o.Freed(); s != nil; {
			next := o.Next(s)
			o.Collect(s)
			s = next
		}
	}
	stop.Store(true)
	all.Wait()
	for s := o.Freed(); s != nil; {
		next := o.Next(s)
		o.Collect(s)
		s = next
	}
	assert.True(t, m.WholeHome(), "%d slots are lost", m.LiveSlots())
}

// Goroutines take and free from one magazine without pause: each slot has one owner.
func TestPairsMeet(t *testing.T) {
	for _, take := range []func(c *Cache) (*Slot, uint64){
		func(c *Cache) (*Slot, uint64) { return c.Take(sizeclass.MaxBytes) },
		func(c *Cache) (*Slot, uint64) {
			s, handle, _, _ := c.Alloc(sizeclass.MaxBytes)
			return s, handle
		},
	} {
		c, _, m := cacheOf(last)
		var claims [SlotCount]atomic.Bool
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for range 10 * meetingCount {
					s, word := take(c)
					if s == nil {
						m.contended.Store(0)
						continue
					}
					isMine := claims[s.index].CompareAndSwap(false, true)
					claims[s.index].Store(false)
					if !assert.True(t, isMine, "held twice") || !assert.NoError(t, s.Free(word)) {
						return
					}
				}
			})
		}
		all.Wait()
		assert.Equal(t, SpanSlots(last), m.mask.Load())
	}
}
