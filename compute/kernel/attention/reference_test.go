package attention_test

import "math"

// result is attention in float64, of one row.
type result struct {
	o             []float64
	lse           float64
	probabilities []float64 // by key; 0 for keys that the row does not see
}

// attend computes a row from the definition.
func attend(q []float64, keys, values [][]float64, seen int64, scale float64, dim int64) result {
	x := result{o: make([]float64, dim), lse: math.Inf(-1), probabilities: make([]float64, len(keys))}
	greatest := math.Inf(-1)
	for j := range seen {
		s := scale * dot(q, keys[j])
		x.probabilities[j] = s
		if s > greatest || math.IsNaN(s) {
			greatest = s
		}
	}
	if math.IsInf(greatest, -1) {
		clear(x.probabilities)
		return x
	}
	sum := 0.0
	for j := range seen {
		x.probabilities[j] = math.Exp(x.probabilities[j] - greatest)
		sum += x.probabilities[j]
	}
	x.lse = greatest + math.Log(sum)
	for j := range seen {
		x.probabilities[j] /= sum
		for i, v := range values[j] {
			x.o[i] += x.probabilities[j] * v
		}
	}
	return x
}

func dot(x, y []float64) (sum float64) {
	for i := range x {
		sum += x[i] * y[i]
	}
	return sum
}

// gradients adds the gradients of a row to dk and dv, and returns the gradient of the query.
func (x result) gradients(q, grad []float64, keys, values, dk, dv [][]float64, scale float64) []float64 {
	dq := make([]float64, len(q))
	delta := dot(x.o, grad)
	for j, p := range x.probabilities {
		if p == 0 {
			continue
		}
		ds := p * (dot(grad, values[j]) - delta) * scale
		for i := range q {
			dq[i] += ds * keys[j][i]
			dk[j][i] += ds * q[i]
			dv[j][i] += p * grad[i]
		}
	}
	return dq
}
