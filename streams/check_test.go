package streams

import (
	"errors"
	"fmt"
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

// The first size that cannot be served is named, with its bytes and the limit; sizes that cannot be served together have their sum.
func TestWhichSizesAreRefused(t *testing.T) {
	t.Parallel()
	const limit = 10
	tooLarge := func(bytes, limit int64) error { return fmt.Errorf("%d of %d", bytes, limit) }
	for _, c := range []struct {
		bytes []int64
		at    int // -1: all of them
		text  string
	}{
		{nil, -1, ""},
		{[]int64{0, 10}, -1, ""},
		{[]int64{11}, 0, "11 of 10"},
		{[]int64{1, 12, 13}, 1, "12 of 10"},
		{[]int64{4, 6, 1}, -1, "11 of 10"},
		{[]int64{4, -2, 99}, 1, "-2 bytes"},
		{[]int64{9, 9, -2}, -1, "18 of 10"},
	} {
		err := sumError(c.bytes, limit, tooLarge)
		if c.text == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, c.text)
		var batch *BatchError
		if assert.Equal(t, c.at >= 0, errors.As(err, &batch), "%v", c.bytes) && c.at >= 0 {
			assert.Equal(t, c.at, batch.Index)
			assert.Equal(t, 1, batch.Count)
		}
	}
}
