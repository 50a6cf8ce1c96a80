package trace_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-vram/vram/internal/trace"
)

func TestWriteRoundTripEmbedded(t *testing.T) {
	for _, name := range trace.Embedded() {
		want, err := trace.Open(name)
		require.NoError(t, err)
		var text bytes.Buffer
		require.NoError(t, want.Write(&text))
		for _, form := range [][]byte{text.Bytes(), zip(t, text.String())} {
			got, err := trace.Read(name, bytes.NewReader(form))
			require.NoError(t, err)
			assert.True(t, assert.ObjectsAreEqual(want, got), "%s came back changed", name)
		}
	}
}

func TestWriteRoundTripAny(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawTrace(t)
		var text bytes.Buffer
		require.NoError(t, want.Write(&text))
		got, err := trace.Read("any.csv.gz", &text)
		require.NoError(t, err)
		assert.Equal(t, want, got)
	})
}

// drawTrace makes any trace that keeps the rules, with its sums counted the slow way.
func drawTrace(t *rapid.T) *trace.Trace {
	streams := rapid.IntRange(1, 4).Draw(t, "streams")
	tr := &trace.Trace{Name: "any"}
	live := map[uint32]int64{}
	var micros, liveBytes int64
	count := rapid.IntRange(streams, 60).Draw(t, "events")
	for i := range count {
		micros += rapid.Int64Range(0, 1<<40).Draw(t, "step")
		e := trace.Event{Stream: uint16(i % streams)}
		var ids []uint32
		for id := range uint32(tr.Info.AllocCount) {
			if _, ok := live[id]; ok {
				ids = append(ids, id)
			}
		}
		if len(ids) > 0 && rapid.Bool().Draw(t, "free") {
			e.Op, e.ID = trace.Free, rapid.SampledFrom(ids).Draw(t, "id")
			e.Bytes = live[e.ID]
			delete(live, e.ID)
			liveBytes -= e.Bytes
			tr.Info.FreeCount++
		} else {
			e.Op, e.ID = trace.Alloc, uint32(tr.Info.AllocCount)
			e.Bytes = rapid.Int64Range(1, 1<<50).Draw(t, "bytes")
			live[e.ID] = e.Bytes
			liveBytes += e.Bytes
			tr.Info.AllocCount++
		}
		tr.Info.PeakLiveBytes = max(tr.Info.PeakLiveBytes, liveBytes)
		tr.Events = append(tr.Events, e)
		tr.Micros = append(tr.Micros, micros)
	}
	tr.Info.EventCount, tr.Info.StreamCount, tr.Info.LeftoverBytes = count, streams, liveBytes
	return tr
}

func TestWriteReportsTheWriter(t *testing.T) {
	tr, err := trace.Open("gpt2_train")
	require.NoError(t, err)
	full := errors.New("disk full")
	for room := range 3 {
		err := tr.Write(&narrow{room: room, err: full})
		require.ErrorIs(t, err, full)
	}
}

// narrow takes a number of writes and then refuses.
type narrow struct {
	room int
	err  error
}

func (n *narrow) Write(p []byte) (int, error) {
	if n.room == 0 {
		return 0, n.err
	}
	n.room--
	return len(p), nil
}
