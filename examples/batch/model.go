package main

import (
	"cmp"
	"slices"
)

// model is the shape of a GPT-2, and the tokens of a step.
type model struct{ layers, hidden, vocabulary, tokens int }

func gpt2() model { return model{layers: 12, hidden: 768, vocabulary: 50257, tokens: 1024} }

// elementBytes is the size of an element of a parameter, a gradient, a moment or an activation.
const elementBytes = 4

// tensor is a parameter.
type tensor struct {
	bytes           int64
	activationBytes int64 // saved by its layer for its gradient; 0: nothing of its own
	place           int   // in the order of the layers
}

// parameters returns the model's tensors, largest first: a batch places buffers of equal size side by side, and an optimizer
// may update parameters in any order.
func (m model) parameters() []tensor {
	var all []tensor
	hidden, tokens := int64(m.hidden), int64(m.tokens)
	add := func(elements, activation int64) {
		all = append(all, tensor{elements * elementBytes, activation * elementBytes, len(all)})
	}
	add(int64(m.vocabulary)*hidden, tokens*hidden)
	add(tokens*hidden, 0)
	norm := func() { add(hidden, tokens*hidden); add(hidden, 0) }
	matrix := func(from, to int64) { add(from*to, tokens*to); add(to, 0) }
	for range m.layers {
		norm()
		matrix(hidden, 3*hidden) // query, key and value
		matrix(hidden, hidden)
		norm()
		matrix(hidden, 4*hidden)
		matrix(4*hidden, hidden)
	}
	norm()
	slices.SortStableFunc(all, func(a, b tensor) int { return cmp.Compare(b.bytes, a.bytes) })
	return all
}

// placed returns the indices of tensors in the order of the layers.
func placed(all []tensor) []int {
	order := make([]int, len(all))
	for i, p := range all {
		order[p.place] = i
	}
	return order
}
