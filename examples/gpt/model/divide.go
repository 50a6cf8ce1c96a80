package model

import "math"

// Costs of a position in a stage, in multiplications and additions of a forward; a backward takes the same twice. A block has 12 products of
// width by width. Its other parts, attention, norms and residuals, move memory and take on an H100 as long as products of this many elements
// by width and position: of the smallest GPT-2, with 1,024 positions, a block takes 0.95 ms of a step and the head 3.4 ms.
const (
	productsOfBlock = 12
	restOfBlock     = 5
)

// cost returns the cost of a position in a number of blocks, and in the head.
func (c Config) cost(length, blocks int, head bool) float64 {
	width := float64(c.Width)
	sum := float64(blocks) * width * (productsOfBlock*width + restOfBlock*float64(length))
	if head {
		sum += width * float64(c.padded())
	}
	return sum
}

// blocksOf returns the blocks of a stage, at least one: the sum of the squares of the stages' costs is the least, as no stage waits for others
// if all cost the same.
func (c Config) blocksOf(length, number, of int) (first, end int) {
	// starts[s][n] is where stage s begins if the stages up to it have the first n blocks, and least[n] the sum of their squares.
	starts, least := make([][]int, of), make([]float64, c.Layers+1)
	for n := range least {
		least[n] = math.Inf(1)
	}
	least[0] = 0
	for s := range of {
		starts[s] = make([]int, c.Layers+1)
		for n := c.Layers; n >= 0; n-- {
			sum := math.Inf(1)
			for start := range n {
				cost := c.cost(length, n-start, s == of-1)
				if total := least[start] + cost*cost; total < sum {
					sum, starts[s][n] = total, start
				}
			}
			least[n] = sum
		}
	}
	first, end = c.Layers, c.Layers
	for s := of - 1; s >= number; s-- {
		first, end = starts[s][first], first
	}
	return first, end
}
