package plot

import (
	"math"
	"strconv"

	"github.com/go-vram/vram/internal/units"
)

// leastTicks is how many ticks an axis has at least above 0, where its values leave room.
const leastTicks = 4

// decimalTicks returns 0 and multiples of 1, 2 or 5 times a power of ten, up to the value and no fewer than leastTicks where
// there are as many whole numbers.
func decimalTicks(most float64) []float64 {
	step := math.Pow(10, math.Floor(math.Log10(most)))
	for _, factor := range []float64{1, 0.5, 0.2, 0.1} {
		if most/(step*factor) >= leastTicks || step*factor <= 1 {
			return upTo(most, max(step*factor, 1))
		}
	}
	return upTo(most, step)
}

// binaryTicks returns 0 and multiples of a power of two, up to the value.
func binaryTicks(most float64) []float64 {
	step := math.Pow(2, math.Floor(math.Log2(most/leastTicks)))
	return upTo(most, max(step, 1))
}

func upTo(most, step float64) []float64 {
	ticks := []float64{0}
	for tick := step; tick <= most*(1+1e-9); tick += step {
		ticks = append(ticks, tick)
	}
	return ticks
}

func bytesLabel(v float64) string { return units.Bytes(int64(v)) }

// countLabel returns a whole number with k or M for thousands and millions.
func countLabel(v float64) string {
	switch {
	case v >= 1e6:
		return strconv.FormatFloat(v/1e6, 'f', -1, 64) + " M"
	case v >= 1e4:
		return strconv.FormatFloat(v/1e3, 'f', -1, 64) + " k"
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}
