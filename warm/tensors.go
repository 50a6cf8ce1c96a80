package warm

import "math"

// The counts below follow PyTorch: the tensors that autograd saves for each kernel of a layer. They come from a recording of
// GPT-2, and a test compares them with it.

func (t *Transformer) hidden() int64 { return int64(t.Hidden) }

func (t *Transformer) tokens() int64 { return int64(t.Batch) * int64(t.Sequence) }

// wide returns the width of the feed-forward part.
func (t *Transformer) wide() int64 {
	if t.FeedForwardFactor == 0 {
		return 4 * t.hidden()
	}
	return max(1, int64(math.Round(t.FeedForwardFactor*float64(t.Hidden))))
}

// shared returns the width of all keys, and of all values, of a token.
func (t *Transformer) shared() int64 {
	if t.KeyValueHeads == 0 {
		return t.hidden()
	}
	return t.hidden() / int64(t.Heads) * int64(t.KeyValueHeads)
}

// parameterBytes returns the size of a parameter's element.
func (t *Transformer) parameterBytes() int64 {
	if t.Mixed {
		return floatBytes
	}
	return t.Type.Bytes()
}

func (t *Transformer) parameters(l *list) { t.perParameter(l, 1, t.parameterBytes()) }

func (t *Transformer) gradients(l *list) { t.perParameter(l, 1, t.parameterBytes()) }

func (t *Transformer) moments(l *list) { t.perParameter(l, 2, floatBytes) }

// perParameter adds count tensors of each parameter's shape.
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

// matrices adds the weight matrices and the embedding.
func (t *Transformer) matrices(l *list, count int, elementBytes int64) {
	h, wide, shared, layers := t.hidden(), t.wide(), t.shared(), count*t.Layers
	l.add(count, int64(t.Vocabulary), h, elementBytes)
	if t.Untied {
		l.add(count, int64(t.Vocabulary), h, elementBytes)
	}
	l.add(layers, h, h, elementBytes) // attention's output projection
	if t.Gated {
		l.add(layers, h, h, elementBytes)
		l.add(2*layers, h, shared, elementBytes)
		l.add(3*layers, h, wide, elementBytes)
		return
	}
	l.add(layers, h, h+2*shared, elementBytes)
	l.add(2*layers, h, wide, elementBytes)
}

// copies adds the matrices in Type that a step with float parameters multiplies by.
func (t *Transformer) copies(l *list) {
	if !t.Mixed || t.Type == Float32 {
		return
	}
	once := *t
	once.Untied = false // one matrix computes the logits, tied or not
	once.matrices(l, 1, t.Type.Bytes())
}

// activations adds the tensors saved in all layers, by the embedding, the last norm and the loss.
func (t *Transformer) activations(l *list) {
	h, tokens, element, between := t.hidden(), t.tokens(), t.Type.Bytes(), t.parameterBytes()
	l.add(1, tokens, tokenBytes)
	l.add(1, tokens, h, between) // input of the last norm
	l.add(1, tokens, h, element) // its output
	l.add(t.norms(), tokens, floatBytes)
	l.add(3, tokens, int64(t.Vocabulary), floatBytes) // logits, log-softmax, its gradient
	if t.Dropout {
		l.add(1+2*t.Layers, tokens, h)
	}
	l.add(2*t.Layers, tokens, h, between) // inputs of the norms before attention and feed-forward
	l.add(2*t.Layers, tokens, h, element) // outputs of these norms
	t.attention(l)
	t.feedForward(l)
}

// norms returns the numbers saved for each token by all norms: the deviation and, except in Llama, the mean.
func (t *Transformer) norms() int {
	if t.Gated {
		return 2*t.Layers + 1
	}
	return 2 * (2*t.Layers + 1)
}

func (t *Transformer) attention(l *list) {
	h, shared, tokens, element := t.hidden(), t.shared(), t.tokens(), t.Type.Bytes()
	if t.Gated {
		l.add(2*t.Layers, tokens, shared, element) // rotated keys, and values
		l.add(2*t.Layers, tokens, h, element)      // rotated queries, and the output
	} else {
		l.add(t.Layers, tokens, h+2*shared, element)
		l.add(3*t.Layers, tokens, h, element) // separate queries and values, and the output
	}
	batch, heads, sequence := int64(t.Batch), int64(t.Heads), int64(t.Sequence)
	if !t.EagerAttention {
		l.add(t.Layers, batch, heads, sequence, floatBytes) // log-sum-exp
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
	l.add(2*t.Layers, tokens, wide, element) // input and output of the activation function
	if t.Gated {
		l.add(2*t.Layers, tokens, wide, element) // the gated product, and the gate
	}
	if t.EagerActivation {
		l.add(3*t.Layers, tokens, wide, t.parameterBytes())
	}
}

func (t *Transformer) keysAndValues(l *list) {
	l.add(2*t.Layers, t.tokens(), t.shared(), t.Type.Bytes())
}

// workspace adds the tensors of one layer without a backward pass, and the logits of the last token.
func (t *Transformer) workspace(l *list) {
	h, wide, tokens, element := t.hidden(), t.wide(), t.tokens(), t.Type.Bytes()
	batch := int64(t.Batch)
	l.add(1, tokens, tokenBytes)
	l.add(6, tokens, h, element) // residual, query, key, value, attention's output, the next residual
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
