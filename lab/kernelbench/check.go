package kernelbench

import (
	"fmt"
	"math"

	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/half"
)

// maxChecked is how many elements of a result are compared: they are spread over it.
const maxChecked = 499

// compare compares elements of a tensor with the host's: want returns the number and the base of its relative error.
func compare(t *tensor.Tensor, tolerance float64, want func(i int) (want, scale float64)) error {
	switch t.Type() { //nolint:exhaustive // the types of results
	case tensor.Int64:
		return compareAs(t, func(v int64) float64 { return float64(v) }, tolerance, want)
	case tensor.BFloat16:
		return compareAs(t, func(v half.BFloat16) float64 { return float64(v.Float32()) }, tolerance, want)
	}
	return compareAs(t, func(v float32) float64 { return float64(v) }, tolerance, want)
}

func compareAs[T tensor.Element](t *tensor.Tensor, number func(T) float64, tolerance float64, want func(i int) (want, scale float64)) error {
	got, err := tensor.Read[T](t)
	if err != nil {
		return err
	}
	for i := 0; i < len(got); i += 1 + len(got)/maxChecked {
		wanted, scale := want(i)
		if !(math.Abs(number(got[i])-wanted) <= tolerance*scale) { // NaN is wrong, too
			return fmt.Errorf("element %d is %v, and should be %v", i, number(got[i]), wanted)
		}
	}
	return nil
}

// sum adds each step-th number, and their magnitudes.
func sum(values []float32, step int) (total, magnitude float64) {
	for i := 0; i < len(values); i += step {
		total += float64(values[i])
		magnitude += math.Abs(float64(values[i]))
	}
	return total, magnitude
}

func gelu(xs []float32) func(i int) (want, scale float64) {
	return func(i int) (want, scale float64) {
		x := float64(xs[i])
		return x * 0.5 * (1 + math.Erf(x/math.Sqrt2)), math.Abs(x)
	}
}

// softmax keeps the last row's sum: elements are compared in order.
func softmax(xs []float32, cols int) func(i int) (want, scale float64) {
	row, total := -1, 0.0
	return func(i int) (want, scale float64) {
		if i/cols != row {
			row, total = i/cols, 0
			for _, x := range xs[row*cols : (row+1)*cols] {
				total += math.Exp(float64(x))
			}
		}
		want = math.Exp(float64(xs[i])) / total
		return want, want
	}
}

// moments are mean and variance of a row.
func moments(values []float32) (mean, squares float64) {
	total, _ := sum(values, 1)
	mean = total / float64(len(values))
	for _, x := range values {
		squares += (float64(x) - mean) * (float64(x) - mean)
	}
	return mean, squares / float64(len(values))
}

func variance(xs []float32, cols int) func(i int) (want, scale float64) {
	return func(i int) (want, scale float64) {
		_, v := moments(xs[i*cols : (i+1)*cols])
		return v, v
	}
}

func layerNorm(xs, weights, biases []float32) func(i int) (want, scale float64) {
	cols := len(weights)
	return func(i int) (want, scale float64) {
		row, col := i/cols, i%cols
		mean, v := moments(xs[row*cols : (row+1)*cols])
		want = (float64(xs[i])-mean)/math.Sqrt(v+epsilon)*float64(weights[col]) + float64(biases[col])
		return want, 1 + math.Abs(want)
	}
}

func argMax(xs []float32, cols int) func(i int) (want, scale float64) {
	return func(i int) (want, scale float64) {
		best, row := 0, xs[i*cols:(i+1)*cols]
		for j, x := range row {
			if x > row[best] {
				best = j
			}
		}
		return float64(best), 0
	}
}

// dot is an element of a product, and the product of the norms of its row and its column.
func dot(xs, ys []float32, cols, length int) func(i int) (want, scale float64) {
	return func(i int) (want, scale float64) {
		var x2, y2 float64
		for k := range length {
			x, y := float64(xs[i/cols*length+k]), float64(ys[k*cols+i%cols])
			want += x * y
			x2, y2 = x2+x*x, y2+y*y
		}
		return want, math.Sqrt(x2 * y2)
	}
}
