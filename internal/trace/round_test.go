package trace_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-vram/vram/internal/trace"
)

func TestRoundTripEmbedded(t *testing.T) {
	for _, name := range trace.Embedded() {
		want, err := trace.Open(name)
		require.NoError(t, err)
		text := written(want)
		for _, form := range [][]byte{[]byte(text), zip(t, text)} {
			got, err := trace.Read(name, bytes.NewReader(form))
			require.NoError(t, err)
			assert.True(t, assert.ObjectsAreEqual(want, got), "%s came back changed", name)
		}
	}
}

func TestRoundTripAny(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawTrace(t)
		got, err := trace.Read("any.csv.gz", strings.NewReader(written(want)))
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
		if i > 0 {
			micros += rapid.Int64Range(0, 1<<40).Draw(t, "step")
		}
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

// written is a trace as plain text in the format of the package doc.
func written(tr *trace.Trace) string {
	var text strings.Builder
	text.WriteString(head)
	for i, e := range tr.Events {
		fmt.Fprintf(&text, "%d,%v,%d,%d,%d\n", tr.Micros[i], e.Op, e.ID, e.Bytes, e.Stream)
	}
	return text.String()
}
