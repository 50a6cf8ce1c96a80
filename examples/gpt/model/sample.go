package model

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/go-vram/vram/compute/tensor"
)

// Sampling says how the next token is drawn.
type Sampling struct {
	Temperature float64 // logits are divided by it: less is more certain. 0: always the most probable token
	Top         int     // only so many of the most probable tokens are drawn; 0: all
	Random      *rand.Rand
}

// Sample appends n tokens to a text of at least one, each drawn after the positions before it, as many as the context
// has. It waits for the device.
func (m *Model) Sample(text []int64, n int, s Sampling) ([]int64, error) {
	if len(text) == 0 {
		return nil, &ConfigError{"a sample begins with at least one token"}
	}
	text = slices.Clone(text)
	for range n {
		seen := text[max(0, len(text)-m.config.Context):]
		var logits []float32
		err := tensor.Scoped(m.scope, func(scope *tensor.Scope) error {
			tokens, err := tensor.From(scope, seen, 1, len(seen))
			if err != nil {
				return err
			}
			p := &pass{Ops: m.ops, scope: scope}
			logits, err = m.last(p, tokens)
			return err
		})
		if err != nil {
			return nil, err
		}
		text = append(text, s.draw(logits))
	}
	return text, nil
}

// last returns the logits of the last position.
func (m *Model) last(p *pass, tokens *tensor.Tensor) ([]float32, error) {
	normed := m.forward(p, tokens).normed
	if p.err != nil {
		return nil, p.err
	}
	return p.read(m.vocabulary(p, m.head(p, p.got(normed.Narrow(0, normed.Dim(0)-1, 1)))))
}

// read waits for the device, and returns the elements of a tensor of any type as float32.
func (p *pass) read(x *tensor.Tensor) ([]float32, error) {
	if p.err == nil && x.Type() != tensor.Float32 {
		x = p.got(p.Cast(p.scope, x, tensor.Float32))
	}
	if p.err != nil {
		return nil, p.err
	}
	return tensor.Read[float32](x)
}

// draw draws a token by its logits.
func (s Sampling) draw(logits []float32) int64 {
	order := make([]int, len(logits))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case logits[a] > logits[b]:
			return -1
		case logits[a] < logits[b]:
			return 1
		}
		return 0
	})
	if s.Temperature == 0 {
		return int64(order[0])
	}
	if s.Top > 0 {
		order = order[:min(s.Top, len(order))]
	}
	sum, weights := 0.0, make([]float64, len(order))
	for i, token := range order {
		weights[i] = math.Exp(float64(logits[token]-logits[order[0]]) / s.Temperature)
		sum += weights[i]
	}
	at := s.Random.Float64() * sum
	for i, w := range weights {
		if at -= w; at < 0 {
			return int64(order[i])
		}
	}
	return int64(order[len(order)-1])
}
