package fence

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
)

// slow is a device whose records return some time after the event is in the stream.
type slow struct {
	cudadrv.Device
	marked func() // is called in that time
}

func (s *slow) EventRecord(e cudadrv.Event, on cudadrv.Stream) error {
	err := s.Device.EventRecord(e, on)
	s.marked()
	return err
}

// Work that is submitted after a fence's mark, and before the call that records it has returned, waits for a later fence.
func TestAFenceDoesNotCoverWorkThatComesDuringItsRecord(t *testing.T) {
	for name, record := range map[string]func(l *Timeline, other cudadrv.Stream) error{
		"Take": func(l *Timeline, _ cudadrv.Stream) error {
			_, err := l.Take(l.Next())
			return err
		},
		"TakeNow": func(l *Timeline, _ cudadrv.Stream) error {
			l.TakeNow()
			return nil
		},
		"Order": func(l *Timeline, other cudadrv.Stream) error {
			_, err := l.Order(other)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			device := &slow{Device: b.Events.device}
			l := NewTimeline(NewEvents(device), b.stream, false, nil)
			other, err := device.StreamCreate()
			require.NoError(t, err)
			var number uint64
			device.marked = func() {
				device.marked = func() {}
				assert.NoError(t, b.sim.Launch(b.stream, time.Second))
				number = l.Next()
			}
			require.NoError(t, record(l, other))
			b.look(l)
			require.NotZero(t, number)
			assert.True(t, l.Owed(number), "the mark is before the work")
			assert.False(t, l.Passed(number), "the work has not begun")
			b.take(l, number)
			assert.False(t, b.look(l))
			b.advance(time.Second)
			assert.True(t, b.look(l))
			assert.True(t, l.Passed(number))
		})
	}
}
