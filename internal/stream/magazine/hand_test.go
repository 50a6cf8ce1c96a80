package magazine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/fence/line"
	"github.com/go-vram/vram/internal/sizeclass"
)

// Blocks that are moved to one stream at the same time, and back, are in its sum as long as they belong to it, each once.
func TestMovesOfSeveralBlocksMeet(t *testing.T) {
	var to line.Line
	to.Init(nil)
	c, o, _ := cacheOf(0)
	var slots [2]*Slot
	var handles [2]uint64
	for i := range slots {
		slots[i], handles[i] = c.Take(512)
	}
	hand := &Hand{To: 2}
	back := false
	meetings(meetingCount/16, func() {}, func(i int) {
		var err error
		if back {
			handles[i], err = slots[i].Move(handles[i], nil, 1, nil)
		} else {
			handles[i], err = slots[i].Move(handles[i], &to, 1, hand)
		}
		if err != nil {
			panic(err)
		}
	}, func() {
		want := int64(2 << sizeclass.UnitShift)
		if back {
			want = 0
		}
		require.Equal(t, want, hand.Bytes())
		if back = !back; !back {
			for i, s := range slots { // a handle moves a bounded number of times
				require.NoError(t, s.Free(handles[i]))
			}
			eachFreed(o, func(s *Slot) {
				s.TakeUses(func(int) {}, func(*line.Line, uint64, bool) {})
				o.Collect(s)
			})
			for i := range slots {
				slots[i], handles[i] = c.Take(512)
				require.NotNil(t, slots[i])
			}
		}
	})
}
