package magazine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/fence/line"
)

// Two streams that begin to use a block at once have a use each, which each ends: the first uses of a slot, uses by a stream that has
// used the block before, and uses that drop one by a stream that has ended.
func TestBeginsMeet(t *testing.T) {
	var ended line.Line
	ended.Init(nil)
	var lines [2]line.Line
	for i := range lines {
		lines[i].Init(nil)
	}
	for name, c := range map[string]struct {
		before *line.Line // has used the block
		by     [2]*line.Line
	}{
		"first":           {nil, [2]*line.Line{&lines[0], &lines[1]}},
		"first of one":    {nil, [2]*line.Line{&lines[0], &lines[0]}},
		"again":           {&lines[0], [2]*line.Line{&lines[0], &lines[0]}},
		"after the ended": {&ended, [2]*line.Line{&lines[0], &lines[1]}},
	} {
		cache, _, _ := cacheOf(0)
		s, handle := cache.Take(512)
		var uses [2]Use
		var errs [2]error
		meetings(meetingCount/8, func() {
			s.note.Store(nil)
			if c.before != nil {
				u, err := s.Begin(handle, c.before)
				require.NoError(t, err)
				require.NoError(t, u.End(1))
			}
			if c.before == &ended {
				ended.Finish()
			}
		}, func(i int) {
			uses[i], errs[i] = s.Begin(handle, c.by[i])
		}, func() {
			require.Equal(t, [2]error{}, errs, name)
			var open []*use
			for u := s.note.Load().uses.Load(); u != nil; u = u.next.Load() {
				if u.state.Load()&endedBit == 0 {
					open = append(open, u)
				}
			}
			require.ElementsMatch(t, []*use{uses[0].use, uses[1].use}, open, name)
			for i := range uses {
				require.NoError(t, uses[i].End(2), name)
			}
		})
	}
}

// Of two moves, or of a move and a free, of one handle at once one succeeds, and the other finds that the handle is over.
func TestMovesMeet(t *testing.T) {
	var to line.Line
	to.Init(nil)
	for name, other := range map[string]func(s *Slot, handle uint64, hand *Hand) (uint64, error){
		"move back": func(s *Slot, handle uint64, _ *Hand) (uint64, error) { return s.Move(handle, nil, 1, nil) },
		"move":      func(s *Slot, handle uint64, hand *Hand) (uint64, error) { return s.Move(handle, &to, 1, hand) },
		"free":      func(s *Slot, handle uint64, _ *Hand) (uint64, error) { return 0, s.Free(handle) },
	} {
		c, o, _ := cacheOf(0)
		hands := [2]*Hand{{To: 2}, {To: 3}}
		var s *Slot
		var handle uint64
		var moved [2]uint64
		var errs [2]error
		meetings(meetingCount/8, func() {
			s, handle = c.Take(512)
		}, func(i int) {
			if i == 0 {
				moved[i], errs[i] = s.Move(handle, &to, 1, hands[0])
			} else {
				moved[i], errs[i] = other(s, handle, hands[1])
			}
		}, func() {
			won := 0
			if errs[0] != nil {
				won = 1
			}
			require.NoError(t, errs[won], name)
			require.Error(t, errs[1-won], name)
			if moved[won] != 0 {
				require.True(t, s.Live(moved[won]), name)
				_, err := s.Move(moved[won], nil, 1, nil)
				require.NoError(t, err, name)
				require.NoError(t, s.Free(s.Word()&^flagMask), name)
			}
			for i := range hands {
				require.Zero(t, hands[i].Bytes(), name)
			}
			eachFreed(o, func(s *Slot) {
				s.TakeUses(func(int) {}, func(*line.Line, uint64, bool) {})
				o.Collect(s)
			})
		})
	}
}

// Goroutines that adopt one handle at once get one history, and it stays, also if another names the block: with that name if it came
// first.
func TestAdoptionsMeet(t *testing.T) {
	for name, other := range map[string]func(s *Slot, handle uint64) *History{
		"adopt": func(s *Slot, handle uint64) *History { return s.Adopt(handle, 512) },
		"name": func(s *Slot, handle uint64) *History {
			s.SetTag(handle, 512, "a name", time.Time{})
			return nil
		},
	} {
		c, _, _ := cacheOf(0)
		var s *Slot
		var handle uint64
		var histories [2]*History
		s, handle = c.Take(512)
		meetings(meetingCount/8, func() {
			s.note.Store(nil)
		}, func(i int) {
			if i == 0 {
				histories[i] = s.Adopt(handle, 512)
			} else {
				histories[i] = other(s, handle)
			}
		}, func() {
			h := histories[0]
			require.NotNil(t, h, name)
			if histories[1] != nil {
				require.Same(t, h, histories[1], name)
			}
			require.Same(t, h, s.recorded().history, name)
			require.Equal(t, h.Tag, s.Facts().Tag, name)
		})
	}
}

// A state of the cache that is set while someone asks for an alert keeps the alert.
func TestAlertsMeetTheState(t *testing.T) {
	c, o, _ := cacheOf(0)
	want := false
	meetings(meetingCount/4, func() {
		c.life.And(^uint32(alert))
		want = !want
	}, func(i int) {
		if i == 0 {
			o.Want(want)
		} else {
			o.Alert()
		}
	}, func() {
		now := alert
		if want {
			now |= wanted
		} else {
			now |= serving
		}
		require.Equal(t, now, life(c.life.Load()))
	})
}

// A share that the owner sets while another one is lowered stays, or is the one that is lowered.
func TestSharesMeet(t *testing.T) {
	const first, second = Share(1 << 10), Share(1 << 20)
	c, o, _ := cacheOf(0)
	meetings(meetingCount/4, func() {
		o.SetShare(first)
	}, func(i int) {
		if i == 0 {
			c.LowerShare(1)
		} else {
			o.SetShare(second)
		}
	}, func() {
		require.Contains(t, []Share{second, second >> 1}, c.Share())
	})
}
