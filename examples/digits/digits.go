package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
)

const (
	side    = 28 // pixels of an image in each direction
	pixels  = side * side
	classes = 10
)

// point is a place in the unit square: x to the right, y down.
type point struct{ x, y float64 }

// strokes are the lines of each digit, from point to point.
var strokes = [classes][]point{ //nolint:gochecknoglobals // a constant table
	{{.5, .05}, {.75, .15}, {.82, .5}, {.75, .85}, {.5, .95}, {.25, .85}, {.18, .5}, {.25, .15}, {.5, .05}},
	{{.3, .25}, {.55, .05}, {.55, .95}},
	{{.2, .25}, {.35, .07}, {.65, .07}, {.8, .27}, {.7, .5}, {.2, .95}, {.8, .95}},
	{{.2, .12}, {.5, .05}, {.78, .2}, {.7, .42}, {.45, .48}, {.75, .58}, {.8, .8}, {.5, .95}, {.2, .86}},
	{{.65, .95}, {.65, .05}, {.15, .65}, {.85, .65}},
	{{.78, .05}, {.28, .05}, {.24, .45}, {.6, .4}, {.8, .65}, {.7, .88}, {.45, .95}, {.2, .85}},
	{{.7, .08}, {.4, .2}, {.22, .6}, {.35, .9}, {.62, .93}, {.8, .72}, {.62, .52}, {.3, .6}},
	{{.18, .06}, {.82, .06}, {.42, .95}},
	{{.5, .48}, {.25, .3}, {.35, .08}, {.65, .08}, {.75, .3}, {.5, .48}, {.22, .7}, {.35, .95}, {.65, .95}, {.78, .7}, {.5, .48}},
	{{.75, .4}, {.5, .5}, {.25, .35}, {.35, .1}, {.6, .06}, {.76, .25}, {.75, .4}, {.65, .95}},
}

// draw makes images of digits with random place, size, slant, thickness and noise, and returns them with their digits.
func draw(random *rand.Rand, count int) (images []float32, digits []int64) {
	between := func(low, high float64) float64 { return low + (high-low)*random.Float64() }
	for range count {
		digit := random.IntN(classes)
		height, slant, thick := between(16, 21), between(-0.2, 0.2), between(0.8, 1.6)
		width := height * between(0.65, 0.85)
		left, top := (side-width)/2+between(-2, 2), (side-height)/2+between(-2, 2)
		for i := range pixels {
			// The place of the pixel in the unit square of the digit, in which distances are measured in pixels.
			y := (float64(i/side) - top) / height
			x := (float64(i%side)-left)/width + slant*(y-0.5)
			ink := math.Min(1, math.Max(0, thick+0.5-distance(strokes[digit], point{x, y}, width, height)))
			images = append(images, float32(ink+0.2*random.NormFloat64()))
		}
		digits = append(digits, int64(digit))
	}
	return images, digits
}

// distance returns the distance of a place from the nearest line, in pixels.
func distance(line []point, p point, width, height float64) float64 {
	nearest := math.Inf(1)
	for i := range len(line) - 1 {
		a, b := line[i], line[i+1]
		alongX, alongY := (b.x-a.x)*width, (b.y-a.y)*height
		toX, toY := (p.x-a.x)*width, (p.y-a.y)*height
		part := (toX*alongX + toY*alongY) / (alongX*alongX + alongY*alongY)
		part = math.Min(1, math.Max(0, part))
		nearest = math.Min(nearest, math.Hypot(toX-part*alongX, toY-part*alongY))
	}
	return nearest
}

// confusion counts the readings (second index) of each digit (first index).
type confusion [classes][classes]int

// String names the mistakes.
func (c confusion) String() string {
	var mistakes []string
	for digit, row := range c {
		for read, count := range row {
			if read != digit && count > 0 {
				mistakes = append(mistakes, fmt.Sprintf("%d as %d (%d)", digit, read, count))
			}
		}
	}
	return strings.Join(mistakes, ", ")
}
