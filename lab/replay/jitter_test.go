package replay

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/trace"
)

func TestParseShare(t *testing.T) {
	for text, want := range map[string]float64{"0": 0, "2%": 0.02, "0.5": 0.5, "100%": 1, "1": 1} {
		got, err := ParseShare(text)
		require.NoError(t, err, text)
		assert.InDelta(t, want, got, 1e-12, text)
	}
	for _, text := range []string{"", "%", "-1%", "101%", "1.5", "NaN", "two"} {
		_, err := ParseShare(text)
		require.ErrorContains(t, err, `"`+text+`"`)
	}
}

// A jittered trace keeps all rules of a trace, differs from round to round, and by about the share that was asked for.
func TestJitteredTracesAreTraces(t *testing.T) {
	tr, err := trace.Open("pipeline_1f1b")
	require.NoError(t, err)
	first := jittered(tr, 0.3, 0)
	assert.Equal(t, first, jittered(tr, 0.3, 0), "the same seed")
	for round := range 2 {
		got := jittered(tr, 0.3, round)
		var text bytes.Buffer
		text.WriteString("t_us,op,id,size,stream\n")
		for i, e := range got.Events {
			fmt.Fprintf(&text, "%d,%v,%d,%d,%d\n", got.Micros[i], e.Op, e.ID, e.Bytes, e.Stream)
		}
		again, err := trace.Read("jittered.csv", &text)
		require.NoError(t, err)
		assert.Equal(t, got.Info, again.Info)
		left := tr.Info.AllocCount - got.Info.AllocCount
		assert.InDelta(t, 0.1, float64(left)/float64(tr.Info.AllocCount), 0.01, "a third of the changes leaves out")
		if round > 0 {
			assert.NotEqual(t, first.Events, got.Events)
		}
	}
	assert.Equal(t, tr.Events, jittered(tr, 0, 0).Events)
}
