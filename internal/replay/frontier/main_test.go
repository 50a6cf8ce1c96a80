package main

import (
	"encoding/xml"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/internal/replay"
	"github.com/go-vram/vram/internal/trace"
)

// A point says what its trace and mode came to, with the least times of all its runs.
func TestAPoint(t *testing.T) {
	p := point{mode: vram.Lean}
	settled := 1.0125
	one := replay.Result{Trace: "gnn_varied", EventCount: 12000, ReservedOverLive: 1.02, SettledOverLive: &settled, MinCapacityOverLive: 1.005}
	one.Rounds = []replay.Round{{NsPerOp: 300, DriverNsPerOp: 500, DriverCalls: 70}, {NsPerOp: 60, DriverCalls: 2}, {NsPerOp: 50}}
	p.note(one, true)
	other := one
	other.Rounds = []replay.Round{{NsPerOp: 200, DriverNsPerOp: 500, DriverCalls: 70}, {NsPerOp: 65, DriverCalls: 2}, {NsPerOp: 70}}
	p.note(other, false)
	p.result = other

	lines := strings.Split(strings.TrimSpace(markdown([]point{p})), "\n")
	require.Len(t, lines, 3)
	assert.Equal(t, "| gnn_varied | lean | 200 + 500 | 400 | 50.0 | 1.020 | 1.012 | 1.005 | 70, 2, 0 |", lines[2])
	assert.Equal(t, strings.Count(lines[0], "|"), strings.Count(lines[2], "|"))
}

// Every embedded trace has a bar to be held against.
func TestEveryTraceHasABar(t *testing.T) {
	for _, name := range trace.Embedded() {
		_, known := torchColdMs(name)
		assert.True(t, known, name)
	}
}

// The plot is well formed, and has a point for each trace and mode inside its frame.
func TestThePlot(t *testing.T) {
	var points []point
	for _, mode := range modes() {
		p, err := play(t.Context(), must(trace.Open("resnet_train"))(t), mode, 1, false)
		require.NoError(t, err)
		points = append(points, p)
		x, y := p.at()
		assert.True(t, x >= left && x <= width && y >= 0 && y <= bottom, "%v at %g, %g", mode, x, y)
	}
	picture := svg(points)
	assert.Equal(t, 2*len(points), strings.Count(picture, "<circle"), "in the legend and in the plot")
	for d := xml.NewDecoder(strings.NewReader(picture)); ; {
		_, err := d.Token()
		if err == io.EOF { //nolint:errorlint // as the decoder says it
			break
		}
		require.NoError(t, err)
	}
}

// must is the value of a call that must succeed.
func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		require.NoError(t, err)
		return v
	}
}
