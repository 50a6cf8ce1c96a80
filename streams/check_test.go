package streams

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/stream/core"
)

// Check returns the defect of the books, and not only whether they could be read.
func TestCheckReturnsItsFinding(t *testing.T) {
	t.Parallel()
	r := newRig(t, 64*mib)
	s := r.stream(core.Budget{})
	b := must(t, s, 3*mib)
	require.NoError(t, control(s).Check(t.Context()))
	require.NoError(t, s.inTurn(t.Context(), func() { b.slot.Units++ }))
	assert.ErrorContains(t, control(s).Check(t.Context()), "its slot says")
	require.NoError(t, s.inTurn(t.Context(), func() { b.slot.Units-- }))
	require.NoError(t, control(s).Check(t.Context()))
}
