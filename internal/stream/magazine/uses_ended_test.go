package magazine

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/fence/line"
)

// A live block lists the uses by streams that are open, and by one that has ended since the last was added. An open use stays
// listed, however many streams end.
func TestUsesOfEndedStreamsAreDropped(t *testing.T) {
	t.Parallel()
	c, _, _ := cacheOf(0)
	s, handle := c.Take(512)
	require.NotNil(t, s)
	var lasting line.Line
	lasting.Init(nil)
	kept, err := s.Begin(handle, &lasting)
	require.NoError(t, err)
	for i := range 100 {
		var ended line.Line
		ended.Init(nil)
		if i%2 == 0 {
			require.NoError(t, s.RecordLine(handle, &ended))
		} else {
			_, err := s.Begin(handle, &ended)
			require.NoError(t, err)
		}
		ended.Finish()
		listed := 0
		for u := s.note.Load().uses.Load(); u != nil; u = u.next.Load() {
			listed++
		}
		require.LessOrEqual(t, listed, 2)
	}
	require.NoError(t, kept.Open())
	require.NoError(t, kept.End(7))
	require.NoError(t, s.Free(handle))
	var lines []*line.Line
	s.TakeUses(func(int) {}, func(l *line.Line, fence uint64, open bool) {
		if !l.Finished() {
			lines = append(lines, l)
			assert.EqualValues(t, 7, fence)
			assert.False(t, open)
		}
	})
	assert.Equal(t, []*line.Line{&lasting}, lines)
}

// The next use drops the uses by ended streams wherever they are in the list, and no others.
func TestUsesOfEndedStreamsAreDroppedAnywhere(t *testing.T) {
	t.Parallel()
	const uses = 5
	for ends := range 1 << uses {
		c, _, _ := cacheOf(0)
		s, handle := c.Take(512)
		require.NotNil(t, s)
		var lines [uses + 1]line.Line
		for i := range lines {
			lines[i].Init(nil)
		}
		for i := range uses {
			_, err := s.Begin(handle, &lines[i])
			require.NoError(t, err)
		}
		want := []*line.Line{&lines[uses]}
		for i := range uses {
			if ends>>i&1 != 0 {
				lines[i].Finish()
			} else {
				want = append(want, &lines[i])
			}
		}
		_, err := s.Begin(handle, &lines[uses])
		require.NoError(t, err)
		var listed []*line.Line
		for u := s.note.Load().uses.Load(); u != nil; u = u.next.Load() {
			listed = append(listed, u.line)
		}
		require.ElementsMatch(t, want, listed, "%b", ends)
	}
}
