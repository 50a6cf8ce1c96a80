package model_test

import (
	"math"
	"slices"
	"strconv"

	"github.com/go-vram/vram/examples/gpt/model"
)

// reference computes the model's loss in float64, one position at a time, from the parameters by name.
type reference struct {
	config model.Config
	of     map[string][]float64
}

// loss returns the mean of the losses of a batch of sequences.
func (r reference) loss(tokens, targets []int64, batch int) (loss float64) {
	length := len(tokens) / batch
	for b := range batch {
		logits := r.logits(tokens[b*length:][:length])
		for i := range length {
			loss -= math.Log(softmax(logits[i*r.config.Vocabulary:][:r.config.Vocabulary])[targets[b*length+i]])
		}
	}
	return loss / float64(len(tokens))
}

// logits returns the logits of each position of a sequence.
func (r reference) logits(tokens []int64) (logits []float64) {
	x := make([][]float64, len(tokens))
	for i := range x {
		x[i] = add(r.row("wte.weight", int(tokens[i])), r.row("wpe.weight", i))
	}
	for l := range r.config.Layers {
		x = r.block(x, "h."+strconv.Itoa(l)+".")
	}
	for i := range x {
		normed := r.norm(x[i], "ln_f")
		for t := range r.config.Vocabulary {
			logits = append(logits, dot(normed, r.row("wte.weight", t)))
		}
	}
	return logits
}

func (r reference) block(x [][]float64, name string) [][]float64 {
	width, heads := r.config.Width, r.config.Heads
	size := width / heads
	qkv, out := make([][]float64, len(x)), make([][]float64, len(x))
	for i := range x {
		qkv[i] = r.linear(r.norm(x[i], name+"ln_1"), name+"attn.c_attn")
	}
	for i := range x {
		attended := make([]float64, width)
		for h := range heads {
			q := qkv[i][h*size:][:size]
			scores := make([]float64, i+1)
			for j := range scores {
				scores[j] = dot(q, qkv[j][width+h*size:][:size]) / math.Sqrt(float64(size))
			}
			for j, w := range softmax(scores) {
				for d := range size {
					attended[h*size+d] += w * qkv[j][2*width+h*size+d]
				}
			}
		}
		middle := add(x[i], r.linear(attended, name+"attn.c_proj"))
		expanded := r.linear(r.norm(middle, name+"ln_2"), name+"mlp.c_fc")
		for d, v := range expanded {
			expanded[d] = v / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(v+0.044715*v*v*v)))
		}
		out[i] = add(middle, r.linear(expanded, name+"mlp.c_proj"))
	}
	return out
}

func (r reference) row(name string, i int) []float64 {
	return r.of[name][i*r.config.Width:][:r.config.Width]
}

func (r reference) norm(x []float64, name string) []float64 {
	var mean, variance float64
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		variance += (v - mean) * (v - mean) / float64(len(x))
	}
	y := make([]float64, len(x))
	root, weight, bias := math.Sqrt(variance+1e-5), r.of[name+".weight"], r.of[name+".bias"]
	for i, v := range x {
		y[i] = (v-mean)/root*weight[i] + bias[i]
	}
	return y
}

func (r reference) linear(x []float64, name string) []float64 {
	y, weight := slices.Clone(r.of[name+".bias"]), r.of[name+".weight"]
	for i, v := range x {
		for o, w := range weight[i*len(y):][:len(y)] {
			y[o] += v * w
		}
	}
	return y
}

func add(x, y []float64) []float64 {
	z := make([]float64, len(x))
	for i := range x {
		z[i] = x[i] + y[i]
	}
	return z
}

func dot(x, y []float64) (sum float64) {
	for i := range x {
		sum += x[i] * y[i]
	}
	return sum
}

func softmax(x []float64) []float64 {
	most, sum := math.Inf(-1), 0.0
	for _, v := range x {
		most = max(most, v)
	}
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = math.Exp(v - most)
		sum += y[i]
	}
	for i := range y {
		y[i] /= sum
	}
	return y
}
