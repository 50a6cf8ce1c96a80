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

// String returns the name.
func (t Type) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return fmt.Sprintf("Type(%d)", uint8(t))
}

// MarshalText implements encoding.TextMarshaler: the text of String.
func (t Type) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler: it reads the text of String. After an error the value is unchanged.
func (t *Type) UnmarshalText(text []byte) error {
	for i, name := range typeNames {
		if string(text) == name {
			*t = Type(i)
			return nil
		}
	}
	return fmt.Errorf("warm: %q is no Type: want %s", text, strings.Join(typeNames[:], ", "))
}

// Bytes returns the size of an element; 0 for an unknown type.
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
	floatBytes = 4 // of tensors that are floats with every Type
	tokenBytes = 8
)

// Transformer is the shape of a decoder: embedding, layers of attention and feed-forward, and logits. A field that may be zero
// defaults to GPT-2's choice.
type Transformer struct {
	Batch    int `json:"batch"`
	Sequence int `json:"sequence"` // tokens of each of the Batch; for inference: prompt and answer
	Hidden   int `json:"hidden"`
	Heads    int `json:"heads"`
	Layers   int `json:"layers"`
	// KeyValueHeads are shared by Heads (grouped-query attention). 0: as many as Heads.
	KeyValueHeads int `json:"key_value_heads"`
	Vocabulary    int `json:"vocabulary"`
	// Positions is the number of learned position embeddings. 0: none.
	Positions int `json:"positions"`
	// FeedForwardFactor is the width of the feed-forward part divided by Hidden. 0: 4.
	FeedForwardFactor float64 `json:"feed_forward_factor"`
	// Gated selects Llama's layers: a gated feed-forward part, separate projections for query, key and value, no biases.
	Gated bool `json:"gated"`
	// Untied gives the logits a separate matrix. Otherwise they use the embedding.
	Untied bool `json:"untied"`
	// Type is the type of activations, and of parameters unless Mixed.
	Type Type `json:"type"`
	// Mixed keeps parameters and residuals as floats, and during a step a copy in Type of each matrix that it multiplies by, as
	// PyTorch's autocast does. For training.
	Mixed bool `json:"mixed"`
	// Dropout saves a mask of one byte per element where GPT-2 has dropout. For training.
	Dropout bool `json:"dropout"`
	// EagerAttention saves Sequence by Sequence scores for each head; flash attention does not.
	EagerAttention bool `json:"eager_attention"`
	// EagerActivation computes the activation function in several kernels that each save their result, as Hugging Face's
	// "gelu_new" does.
	EagerActivation bool `json:"eager_activation"`
	// Accumulate keeps gradients over several steps, so that they are live together with the activations. For training.
	Accumulate bool `json:"accumulate"`
}

// Training returns the buffers that are live at the peak of a step, largest first: parameters, the two moments of Adam and
// activations up to the gradient of the logits, at the end of the forward pass; or, if larger, parameters, moments and
// gradients, at the end of the backward pass. The error is a *vram.ConfigError.
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

// Inference returns the buffers that are live when the whole sequence is in the cache, largest first: parameters, keys, values
// and one layer's workspace for the whole sequence. The error is a *vram.ConfigError.
func (t Transformer) Inference() ([]vram.Demand, error) {
	t.Mixed = false
	return t.sum(t.parameters, t.keysAndValues, t.workspace)
}

// Parameters returns the trained tensors, largest first. The error is a *vram.ConfigError.
func (t Transformer) Parameters() ([]vram.Demand, error) { return t.sum(t.parameters) }

// Optimizer returns the two moments of Adam for each parameter, always floats, largest first. The error is a *vram.ConfigError.
func (t Transformer) Optimizer() ([]vram.Demand, error) { return t.sum(t.moments) }

// Gradients returns one tensor for each parameter, largest first. The error is a *vram.ConfigError.
func (t Transformer) Gradients() ([]vram.Demand, error) { return t.sum(t.gradients) }

// Activations returns the tensors that a training step saves for its backward pass, up to the gradient of the logits, largest
// first. The error is a *vram.ConfigError.
func (t Transformer) Activations() ([]vram.Demand, error) { return t.sum(t.activations) }

// most bounds each number, so that a product of three fits in an int64; add checks longer products.
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
	case !(t.FeedForwardFactor >= 0 && t.FeedForwardFactor <= 64): // NaN, too
		return &vram.ConfigError{Call: "warm.Transformer", Field: "FeedForwardFactor", Value: t.FeedForwardFactor, Want: "0 to 64"}
	case t.Type.Bytes() == 0:
		return &vram.ConfigError{Call: "warm.Transformer", Field: "Type", Value: t.Type, Want: "Float32, Float16 or BFloat16"}
	}
	return nil
}

// sum returns the tensors of all parts.
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

// list counts tensors by their size in bytes.
type list struct {
	counts  map[int64]int
	tooLong bool
}

// add adds count tensors. Their size is the product of the factors: elements, and bytes per element.
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
