package model_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/examples/gpt/model"
)

// The stages have all blocks in order, each at least one, and no division into as many stages has a lower sum of squares.
func TestBlocksOfStages(t *testing.T) {
	for _, c := range []model.Config{model.Tiny, model.Char, model.GPT2, deep, {Layers: 7, Width: 16, Heads: 1, Context: 8, Vocabulary: 2000}} {
		for of := 1; of <= min(c.Layers, 6); of++ {
			blocks, next := make([]int, of), 0
			for number := range blocks {
				first, end := c.BlocksOf(c.Context, number, of)
				require.Equal(t, next, first, "%v: stage %d of %d", c, number, of)
				require.Greater(t, end, first, "%v: stage %d of %d", c, number, of)
				blocks[number], next = end-first, end
			}
			require.Equal(t, c.Layers, next)
			got := squares(c, blocks)
			divisions(c.Layers, of, func(other []int) {
				require.LessOrEqual(t, got, squares(c, other)*(1+1e-12), "%v: %v, and not %v", c, blocks, other)
			})
		}
	}
}

// The head of the smallest GPT-2 costs as much as three or four blocks.
func TestBlocksOfGPT2(t *testing.T) {
	for of, want := range map[int]string{1: "[12]", 2: "[8 4]", 3: "[5 5 2]"} {
		var blocks []int
		for number := range of {
			first, end := model.GPT2.BlocksOf(1024, number, of)
			blocks = append(blocks, end-first)
		}
		assert.Equal(t, want, fmt.Sprint(blocks))
	}
}

// squares returns the sum of the squares of stages' costs.
func squares(c model.Config, blocks []int) (sum float64) {
	for i, n := range blocks {
		cost := c.Cost(c.Context, n, i == len(blocks)-1)
		sum += cost * cost
	}
	return sum
}

// divisions calls f with each division of blocks into a number of parts.
func divisions(blocks, parts int, f func([]int)) {
	var divide func(all []int, left int)
	divide = func(all []int, left int) {
		if len(all) == parts-1 {
			f(append(all, left))
			return
		}
		for n := 1; n <= left-(parts-1-len(all)); n++ {
			divide(append(all, n), left-n)
		}
	}
	divide(nil, blocks)
}
