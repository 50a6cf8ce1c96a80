package sizeclass

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestClassesRiseAndWasteLittle(t *testing.T) {
	for c := 1; c < Count; c++ {
		assert.Greater(t, BlockUnits(c), BlockUnits(c-1), "class %d", c)
	}
	assert.EqualValues(t, 1, BlockUnits(0))
	assert.EqualValues(t, MaxUnits, BlockUnits(Count-1))
	for u := uint64(1); u <= MaxUnits; u++ {
		block := uint64(BlockUnits(Of(u)))
		assert.GreaterOrEqual(t, block, u)
		assert.LessOrEqual(t, (block-u)*8, max(u, block), "%d units waste more than an eighth", u)
		if c := Of(u); c > 0 {
			assert.Less(t, uint64(BlockUnits(c-1)), u, "%d units fit a smaller class", u)
		}
	}
}

func TestUnits(t *testing.T) {
	for bytes, want := range map[int64]uint64{0: 1, 1: 1, 512: 1, 513: 2, MaxBytes: MaxUnits, MaxBytes + 1: MaxUnits + 1, 1 << 40: 1 << 31} {
		assert.Equal(t, want, Units(bytes), "%d bytes", bytes)
	}
}

func TestSpansHoldWholeBlocks(t *testing.T) {
	for c := range Count {
		n := SpanBlocks(c)
		assert.GreaterOrEqual(t, n, uint32(4), "class %d", c)
		assert.LessOrEqual(t, n, uint32(62), "class %d", c)
		assert.LessOrEqual(t, n*BlockUnits(c), SpanUnits(c), "class %d", c)
		if n > 4 {
			assert.LessOrEqual(t, SpanUnits(c), uint32(64<<10>>UnitShift), "class %d: more than four blocks fit 64 KiB", c)
		}
	}
}
