package warm

import "math"

// The counts below are those of PyTorch: what autograd keeps of a layer, kernel by kernel. They were read off a recording of
// GPT-2, which a test holds them to.

func (t *Transformer) hidden() int64 { return int64(t.Hidden) }

func (t *Transformer) tokens() int64 { return int64(t.Batch) * int64(t.Sequence) }

// wide is the width of the feed-forward part.
func (t *Transformer) wide() int64 {
	if t.FeedForwardFactor == 0 {
		return 4 * t.hidden()
	}
	return max(1, int64(math.Round(t.FeedForwardFactor*float64(t.Hidden))))
}

// shared is the width of all keys, and of all values, of a token.
func (t *Transformer) shared() int64 {
	if t.KeyValueHeads == 0 {
		return t.hidden()
	}
	return t.hidden() / int64(t.Heads) * int64(t.KeyValueHeads)
}

// parameterBytes is the length of a parameter's element.
func (t *Transformer) parameterBytes() int64 {
	if t.Mixed {
		return floatBytes
	}
	return t.Type.Bytes()
}

func (t *Transformer) parameters(l *list) { t.perParameter(l, 1, t.parameterBytes()) }

func (t *Transformer) gradients(l *list) { t.perParameter(l, 1, t.parameterBytes()) }

func (t *Transformer) moments(l *list) { t.perParameter(l, 2, floatBytes) }

// perParameter adds tensors of the lengths of all parameters.
func (t *Transformer) perParameter(l *list, count int, elementBytes int64) {
	t.matrices(l, count, elementBytes)
	h, layers := t.hidden(), count*t.Layers
	if t.Positions > 0 {
		l.add(count, int64(t.Positions), h, elementBytes)
	}
	if t.Gated {
		l.add(2*layers+count, h, elementBytes) // norms
		return
	}
	l.add(2*(2*layers+count), h, elementBytes) // norms, with a bias each
	l.add(layers, h+2*t.shared(), elementBytes)
	l.add(2*layers, h, elementBytes)
	l.add(layers, t.wide(), elementBytes)
}

// matrices adds the parameters that tokens are multiplied by, and the embedding.
func (t *Transformer) matrices(l *list, count int, elementBytes int64) {
	h, wide, shared, layers := t.hidden(), t.wide(), t.shared(), count*t.Layers
	l.add(count, int64(t.Vocabulary), h, elementBytes)
	if t.Untied {
		l.add(count, int64(t.Vocabulary), h, elementBytes)
	}
	l.add(layers, h, h, elementBytes) // what leaves attention
	if t.Gated {
		l.add(layers, h, h, elementBytes)
		l.add(2*layers, h, shared, elementBytes)
		l.add(3*layers, h, wide, elementBytes)
		return
	}
	l.add(layers, h, h+2*shared, elementBytes)
	l.add(2*layers, h, wide, elementBytes)
}

// copies of the matrices that a step with floats for parameters multiplies by.
func (t *Transformer) copies(l *list) {
	if !t.Mixed || t.Type == Float32 {
		return
	}
	once := *t
	once.Untied = false // only the matrix of the logits is multiplied by, whichever it is
	once.matrices(l, 1, t.Type.Bytes())
}

// activations of all layers, and what stands before and behind them.
func (t *Transformer) activations(l *list) {
	h, tokens, element, between := t.hidden(), t.tokens(), t.Type.Bytes(), t.parameterBytes()
	l.add(1, tokens, tokenBytes)
	l.add(1, tokens, h, between) // into the last norm
	l.add(1, tokens, h, element) // out of it
	l.add(t.norms(), tokens, floatBytes)
	l.add(3, tokens, int64(t.Vocabulary), floatBytes) // logits, their logarithm, its gradient
	if t.Dropout {
		l.add(1+2*t.Layers, tokens, h)
	}
	l.add(2*t.Layers, tokens, h, between) // into attention and feed-forward
	l.add(2*t.Layers, tokens, h, element) // the same behind the norms
	t.attention(l)
	t.feedForward(l)
}

// norms is how many numbers for each token they keep: the deviation and, but for Llama's, the mean.
func (t *Transformer) norms() int {
	if t.Gated {
		return 2*t.Layers + 1
	}
	return 2 * (2*t.Layers + 1)
}

func (t *Transformer) attention(l *list) {
	h, shared, tokens, element := t.hidden(), t.shared(), t.tokens(), t.Type.Bytes()
	if t.Gated {
		l.add(2*t.Layers, tokens, shared, element) // keys, turned by their position, and values
		l.add(2*t.Layers, tokens, h, element)      // queries, turned likewise, and what comes out
	} else {
		l.add(t.Layers, tokens, h+2*shared, element)
		l.add(3*t.Layers, tokens, h, element) // queries and values of their own, and what comes out
	}
	batch, heads, sequence := int64(t.Batch), int64(t.Heads), int64(t.Sequence)
	if !t.EagerAttention {
		l.add(t.Layers, batch, heads, sequence, floatBytes) // the logarithms of the sums
		return
	}
	l.add(t.Layers, batch, heads, sequence, sequence, element)
	if t.Dropout {
		l.add(t.Layers, batch, heads, sequence, sequence, element)
		l.add(t.Layers, batch, heads, sequence, sequence)
	}
}

func (t *Transformer) feedForward(l *list) {
	wide, tokens, element := t.wide(), t.tokens(), t.Type.Bytes()
	l.add(2*t.Layers, tokens, wide, element) // before and behind the activation function
	if t.Gated {
		l.add(2*t.Layers, tokens, wide, element) // what the gate lets through, and the gate
	}
	if t.EagerActivation {
		l.add(3*t.Layers, tokens, wide, t.parameterBytes())
	}
}

func (t *Transformer) keysAndValues(l *list) {
	l.add(2*t.Layers, t.tokens(), t.shared(), t.Type.Bytes())
}

// workspace is what a layer without a backward pass works on, and the logits of the last token.
func (t *Transformer) workspace(l *list) {
	h, wide, tokens, element := t.hidden(), t.wide(), t.tokens(), t.Type.Bytes()
	batch := int64(t.Batch)
	l.add(1, tokens, tokenBytes)
	l.add(6, tokens, h, element) // the way past the layer, and the three parts of attention, what came out, the next
	l.add(2, tokens, wide, element)
	if t.EagerActivation {
		l.add(2, tokens, wide, element)
	}
	if t.EagerAttention {
		l.add(2, batch, int64(t.Heads), int64(t.Sequence), int64(t.Sequence), element)
	}
	l.add(1, batch, int64(t.Vocabulary), element)
	l.add(1, batch, int64(t.Vocabulary), floatBytes)
}
