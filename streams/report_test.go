package streams

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/effect"
	"github.com/go-vram/vram/internal/stream/core"
)

// A report of freed memory, and an answer after it, are sent by different goroutines: the
// answer counts the report, so that the pool waits for both before it refuses a request.
func TestAnAnswerCountsTheReportBeforeIt(t *testing.T) {
	r := newRig(t, 8*mib)
	s := r.stream(core.Budget{})
	b := must(t, s, 8*mib)
	leave := r.occupy(s)
	s.turn.state.wanted = true
	s.turn.state.core.SetWanted(true)
	require.NoError(t, b.Free())
	s.turn.state.core.DrainAll()
	s.turn.lent.reportCame()
	s.turn.lent.answerReclaim(0)
	sent := slices.Clone(effect.Left(&s.turn.state.effects().returns))
	leave()
	require.Len(t, sent, 2)
	assert.True(t, sent[0].Stirred)
	assert.EqualValues(t, 1, sent[0].Sent)
	assert.True(t, sent[1].Answer)
	assert.Len(t, sent[1].Runs, 1)
	assert.EqualValues(t, 2, sent[1].Sent)
	r.until(func() bool { return r.books().FreeBytes == 8*mib })
}
