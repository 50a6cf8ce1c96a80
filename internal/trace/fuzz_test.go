package trace_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/trace"
)

// FuzzRead checks that for any bytes the reader returns a *ParseError or a trace that keeps every
// rule, and such a trace survives being written and read again.
func FuzzRead(f *testing.F) {
	f.Add([]byte(head + "0,a,0,100,0\n5,a,1,50,1\n5,f,0,100,0\n"))
	f.Add([]byte(head + "0,a,0,100,0\n0,f,0,100,0\n0,f,0,100,0\n"))
	f.Add([]byte(head + "0,a,0,9223372036854775807,0\n0,a,1,1,3"))
	f.Add(zip(f, head+"0,a,0,100,0\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := trace.Read("fuzz.csv", bytes.NewReader(data))
		if err != nil {
			var parse *trace.ParseError
			require.True(t, errors.As(err, &parse), "%v", err)
			require.Positive(t, parse.Line)
			return
		}
		requireRules(t, got)
		again, err := trace.Read("fuzz.csv", strings.NewReader(written(got)))
		require.NoError(t, err)
		assert.Equal(t, got, again)
	})
}

// requireRules checks a trace against the package doc, the slow way.
func requireRules(t *testing.T, tr *trace.Trace) {
	t.Helper()
	live := map[uint32]int64{}
	seen := map[uint16]bool{}
	var next uint32
	var liveBytes, peakBytes, micros int64
	for i, e := range tr.Events {
		require.GreaterOrEqual(t, tr.Micros[i], micros)
		micros = tr.Micros[i]
		require.Positive(t, e.Bytes)
		seen[e.Stream] = true
		if e.Op == trace.Alloc {
			require.Equal(t, next, e.ID)
			next++
			live[e.ID] = e.Bytes
			liveBytes += e.Bytes
		} else {
			require.Equal(t, e.Bytes, live[e.ID])
			delete(live, e.ID)
			liveBytes -= e.Bytes
		}
		require.GreaterOrEqual(t, liveBytes, int64(0))
		peakBytes = max(peakBytes, liveBytes)
	}
	require.Equal(t, peakBytes, tr.Info.PeakLiveBytes)
	require.Equal(t, liveBytes, tr.Info.LeftoverBytes)
	require.Len(t, seen, tr.Info.StreamCount)
	require.Len(t, tr.Leftovers(), len(live))
}
