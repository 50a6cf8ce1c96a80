package warm

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/go-vram/vram"
)

// Type is the type of a tensor's elements.
type Type uint8

// The types.
const (
	Float32 Type = iota
	Float16
	BFloat16
)

var typeNames = [...]string{"float32", "float16", "bfloat16"} //nolint:gochecknoglobals // constant table, by number

// String is the name.
func (t Type) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return fmt.Sprintf("Type(%d)", uint8(t))
}

// MarshalText implements encoding.TextMarshaler: the text of String.
func (t Type) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler: it reads the text of String. With an error the value stays.
func (t *Type) UnmarshalText(text []byte) error {
	for i, name := range typeNames {
		if string(text) == name {
			*t = Type(i)
			return nil
		}
	}
	return fmt.Errorf("warm: %q is no Type: want %s", text, strings.Join(typeNames[:], ", "))
}

// Bytes is the length of an element; 0 for a type that is none of the above.
func (t Type) Bytes() int64 {
	switch t {
	case Float32:
		return floatBytes
	case Float16, BFloat16:
		return floatBytes / 2
	}
	return 0
}

const (
	floatBytes = 4 // of what is kept as a float whatever the Type is
	tokenBytes = 8
)

// Transformer is the shape of a decoder: embedding, layers of attention and feed-forward, and logits. The zero value of
// a field that may be zero is GPT-2's way.
type Transformer struct {
	Batch    int `json:"batch"`
	Sequence int `json:"sequence"` // tokens of each of the Batch; for inference prompt and answer
	Hidden   int `json:"hidden"`
	Heads    int `json:"heads"`
	Layers   int `json:"layers"`
	// KeyValueHeads are shared by Heads. 0: each has its own.
	KeyValueHeads int `json:"key_value_heads"`
	Vocabulary    int `json:"vocabulary"`
	// Positions are learned, so many of them. 0: none.
	Positions int `json:"positions"`
	// FeedForwardFactor is the width of the feed-forward part over Hidden. 0: 4.
	FeedForwardFactor float64 `json:"feed_forward_factor"`
	// Gated is Llama's way: a gate in the feed-forward part, projections of their own for query, key and value, no
	// biases.
	Gated bool `json:"gated"`
	// Untied has a matrix of its own for the logits, and does not take the embedding.
	Untied bool `json:"untied"`
	// Type is that of activations, and of parameters unless Mixed.
	Type Type `json:"type"`
	// Mixed keeps parameters and what is between layers as floats, and a copy of each matrix in Type while a step
	// needs it, as PyTorch's autocast does. For training.
	Mixed bool `json:"mixed"`
	// Dropout keeps a mask of a byte an element where GPT-2 has one. For training.
	Dropout bool `json:"dropout"`
	// EagerAttention keeps a matrix of Sequence by Sequence scores for each head; flash attention does not.
	EagerAttention bool `json:"eager_attention"`
	// EagerActivation computes the activation function in single steps that each keep what they made, as the
	// "gelu_new" of Hugging Face does.
	EagerActivation bool `json:"eager_activation"`
	// Accumulate keeps gradients over several steps, so that they live beside the activations. For training.
	Accumulate bool `json:"accumulate"`
}

// Training is what lives together when most bytes live in a step: parameters, the two moments of Adam and activations up
// to the gradient of the logits, as they are at the end of the forward pass, or, where that is more, parameters, moments and
// gradients, as at the end of the backward pass. Longest first. The error is a *vram.ConfigError.
func (t Transformer) Training() ([]vram.Demand, error) {
	forward, err := t.sum(t.parameters, t.moments, t.copies, t.activations)
	if err != nil {
		return nil, err
	}
	if t.Accumulate {
		return t.sum(t.parameters, t.moments, t.copies, t.activations, t.gradients)
	}
	backward, err := t.sum(t.parameters, t.moments, t.gradients)
	if err != nil {
		return nil, err
	}
	if bytesOf(backward) > bytesOf(forward) {
		return backward, nil
	}
	return forward, nil
}

// Inference is what lives together once the whole sequence is in the cache: parameters, keys and values, and what a layer works
// on if the sequence comes at once. Longest first. The error is a *vram.ConfigError.
func (t Transformer) Inference() ([]vram.Demand, error) {
	t.Mixed = false
	return t.sum(t.parameters, t.keysAndValues, t.workspace)
}

// Parameters are the trained tensors. Longest first. The error is a *vram.ConfigError.
func (t Transformer) Parameters() ([]vram.Demand, error) { return t.sum(t.parameters) }

// Optimizer is the two moments of Adam for each parameter, floats in any case. Longest first. The error is a
// *vram.ConfigError.
func (t Transformer) Optimizer() ([]vram.Demand, error) { return t.sum(t.moments) }

// Gradients are one for each parameter. Longest first. The error is a *vram.ConfigError.
func (t Transformer) Gradients() ([]vram.Demand, error) { return t.sum(t.gradients) }

// Activations are what a training step keeps for its backward pass, up to the gradient of the logits. Longest
// first. The error is a *vram.ConfigError.
func (t Transformer) Activations() ([]vram.Demand, error) { return t.sum(t.activations) }

// most of each number: products of three are numbers still, and longer ones are watched.
const most = 1 << 20

func (t *Transformer) check() error {
	for _, f := range []struct {
		name       string
		value, min int
	}{
		{"Batch", t.Batch, 1},
		{"Sequence", t.Sequence, 1},
		{"Hidden", t.Hidden, 1},
		{"Heads", t.Heads, 1},
		{"Layers", t.Layers, 1},
		{"Vocabulary", t.Vocabulary, 1},
		{"KeyValueHeads", t.KeyValueHeads, 0},
		{"Positions", t.Positions, 0},
	} {
		switch {
		case f.value < f.min && f.min == 0:
			return &vram.ConfigError{Call: "warm.Transformer", Field: f.name, Value: f.value, Want: "0 or more"}
		case f.value < f.min:
			return &vram.ConfigError{Call: "warm.Transformer", Field: f.name, Value: f.value, Want: "1 or more"}
		case f.value > most:
			return &vram.ConfigError{Call: "warm.Transformer", Field: f.name, Value: f.value, Want: "at most 1048576"}
		}
	}
	switch {
	case t.Hidden%t.Heads != 0:
		return &vram.ConfigError{Call: "warm.Transformer", Field: "Heads", Value: t.Heads, Want: "a divisor of Hidden"}
	case t.KeyValueHeads > 0 && t.Heads%t.KeyValueHeads != 0:
		return &vram.ConfigError{Call: "warm.Transformer", Field: "KeyValueHeads", Value: t.KeyValueHeads, Want: "a divisor of Heads"}
	case !(t.FeedForwardFactor >= 0 && t.FeedForwardFactor <= 64): // what is no number, too
		return &vram.ConfigError{Call: "warm.Transformer", Field: "FeedForwardFactor", Value: t.FeedForwardFactor, Want: "0 to 64"}
	case t.Type.Bytes() == 0:
		return &vram.ConfigError{Call: "warm.Transformer", Field: "Type", Value: t.Type, Want: "Float32, Float16 or BFloat16"}
	}
	return nil
}

// sum adds up parts of the shape.
func (t *Transformer) sum(parts ...func(*list)) ([]vram.Demand, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	l := &list{counts: map[int64]int{}}
	for _, part := range parts {
		part(l)
	}
	if l.tooLong {
		return nil, &vram.ConfigError{Call: "warm.Transformer", Field: "shape", Value: *t, Want: "tensors of less than 2^62 bytes"}
	}
	want := make([]vram.Demand, 0, len(l.counts))
	for bytes, count := range l.counts {
		want = append(want, vram.Demand{Bytes: bytes, Count: count})
	}
	slices.SortFunc(want, func(a, b vram.Demand) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return want, nil
}

// list is tensors by their length.
type list struct {
	counts  map[int64]int
	tooLong bool
}

// add adds so many tensors of a length: the product of its factors, elements and bytes of each.
func (l *list) add(count int, factors ...int64) {
	bytes := int64(1)
	for _, f := range factors {
		if bytes > math.MaxInt64/2/f {
			l.tooLong = true
			return
		}
		bytes *= f
	}
	if count > 0 {
		l.counts[bytes] += count
	}
}

func bytesOf(want []vram.Demand) float64 {
	sum := 0.0
	for _, d := range want {
		sum += float64(d.Bytes) * float64(d.Count)
	}
	return sum
}
