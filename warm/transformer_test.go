package warm_test

import (
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/internal/trace"
	"github.com/go-vram/vram/warm"
)

// gpt2 is the model of the recording gpt2_train.
func gpt2() warm.Transformer {
	return warm.Transformer{
		Batch: 8, Sequence: 1024, Hidden: 768, Heads: 12, Layers: 12, Vocabulary: 50257, Positions: 1024,
		Type: warm.BFloat16, Mixed: true, Dropout: true, EagerActivation: true,
	}
}

func total(want []vram.Demand) (bytes int64) {
	for _, d := range want {
		bytes += d.Bytes * int64(d.Count)
	}
	return bytes
}

// common returns the bytes of the buffers that two demands share, size by size.
func common(a, b []vram.Demand) (bytes int64) {
	counts := map[int64]int{}
	for _, d := range a {
		counts[d.Bytes] += d.Count
	}
	for _, d := range b {
		bytes += d.Bytes * int64(min(d.Count, counts[d.Bytes]))
	}
	return bytes
}

// The tensors derived from GPT-2's shape equal the ones that PyTorch held in training, by size and count, except 0.5 percent
// for the workspaces of matrix products.
func TestTheShapeOfGPT2IsWhatItsTrainingHeld(t *testing.T) {
	file, err := os.Open("../internal/trace/data/gpt2_train.csv.gz")
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	held, err := warm.FromTrace("gpt2_train", file)
	require.NoError(t, err)
	derived, err := gpt2().Training()
	require.NoError(t, err)
	both := float64(common(held, derived))
	assert.Greater(t, both/float64(total(held)), 0.994, "part of the recorded bytes that was derived")
	assert.Greater(t, both/float64(total(derived)), 0.999, "part of the derived bytes that was recorded")
}

// The recording has every parameter, its gradient and both its moments live at once.
func TestEachParameterOfGPT2OccursFourTimes(t *testing.T) {
	tr, err := trace.Open("gpt2_train")
	require.NoError(t, err)
	most, live := map[int64]int{}, map[int64]int{}
	for _, e := range tr.Events {
		if e.Op == trace.Free {
			live[e.Bytes]--
			continue
		}
		live[e.Bytes]++
		most[e.Bytes] = max(most[e.Bytes], live[e.Bytes])
	}
	shape := gpt2()
	tensors := map[int64]int{}
	for _, part := range []func() ([]vram.Demand, error){shape.Parameters, shape.Gradients, shape.Optimizer} {
		want, err := part()
		require.NoError(t, err)
		for _, d := range want {
			tensors[d.Bytes] += d.Count
		}
	}
	assert.Equal(t, 4*(4+12*12), sum(tensors))
	for bytes, count := range tensors {
		assert.GreaterOrEqual(t, most[bytes], count, "%d bytes", bytes)
	}
}

func sum(counts map[int64]int) (all int) {
	for _, n := range counts {
		all += n
	}
	return all
}

// A Llama with shared keys and untied logits has the parameters of a recording.
func TestTheParametersOfALlama(t *testing.T) {
	got, err := warm.Transformer{
		Batch: 1, Sequence: 1, Hidden: 1024, Heads: 16, KeyValueHeads: 8, Layers: 12, Vocabulary: 32000, FeedForwardFactor: 2.75,
		Gated: true, Untied: true,
	}.Parameters()
	require.NoError(t, err)
	assert.Equal(t, []vram.Demand{
		{Bytes: 131072000, Count: 2},
		{Bytes: 11534336, Count: 36},
		{Bytes: 4194304, Count: 24},
		{Bytes: 2097152, Count: 24},
		{Bytes: 4096, Count: 25},
	}, got)
}

// A batch of 16 sequences of 137 tokens of GPT-2 in half precision needs the tensors of a recording.
func TestInferenceOfGPT2(t *testing.T) {
	shape := gpt2()
	shape.Batch, shape.Sequence, shape.Type = 16, 137, warm.Float16
	got, err := shape.Inference()
	require.NoError(t, err)
	held := []vram.Demand{
		{Bytes: 77194752, Count: 1},
		{Bytes: 13467648, Count: 4},
		{Bytes: 4718592, Count: 24},
		{Bytes: 3538944, Count: 12},
		{Bytes: 3366912, Count: 30},
		{Bytes: 1572864, Count: 1},
		{Bytes: 1179648, Count: 12},
		{Bytes: 17536, Count: 4},
		{Bytes: 6144, Count: 12},
		{Bytes: 4608, Count: 12},
		{Bytes: 1536, Count: 74},
	}
	both := float64(common(held, got))
	assert.Greater(t, both/float64(total(held)), 0.999)
	assert.Greater(t, both/float64(total(got)), 0.98, "the rest are the logits, which come later")
}

// A small shape needs these tensors for inference, and the trained ones among them with one learned position.
func TestInferenceOfASmallShape(t *testing.T) {
	got, err := warm.Transformer{
		Batch: 2, Sequence: 3, Hidden: 4, Heads: 2, Layers: 1, Vocabulary: 5, Positions: 1, Type: warm.Float16,
	}.Inference()
	require.NoError(t, err)
	assert.Equal(t, []vram.Demand{
		{Bytes: 192, Count: 2}, // feed-forward part
		{Bytes: 128, Count: 2}, // its matrices
		{Bytes: 96, Count: 1},  // projections of queries, keys and values
		{Bytes: 48, Count: 9},  // keys and values, token numbers, and six of the attention
		{Bytes: 40, Count: 2},  // embedding, and logits as floats
		{Bytes: 32, Count: 2},  // the output's projection, and a bias
		{Bytes: 24, Count: 1},  // a bias
		{Bytes: 20, Count: 1},  // logits
		{Bytes: 8, Count: 9},   // the position, norms, biases
	}, got)
}

// The feed-forward part has the nearest whole width, and at least one.
func TestTheWidthOfTheFeedForwardPart(t *testing.T) {
	shape := warm.Transformer{Batch: 1, Sequence: 1, Hidden: 10, Heads: 1, Layers: 1, Vocabulary: 1000}
	narrow := 0.001
	for factor, width := range map[float64]int64{0: 40, narrow: 1, 2.54: 25, 2.56: 26, 64: 640} {
		shape.FeedForwardFactor = factor
		parameters := must(t, shape.Parameters)
		shape.FeedForwardFactor = 1
		assert.Equal(t, (width-10)*(2*10+1)*4, parameters-must(t, shape.Parameters), "factor %v", factor)
	}
}

// Each option adds exactly its own tensors.
func TestEachChoiceAddsItsTensors(t *testing.T) {
	plain := warm.Transformer{Batch: 2, Sequence: 64, Hidden: 128, Heads: 4, Layers: 3, Vocabulary: 1000}
	tokens, layers := int64(2*64), int64(3)
	parameters, err := plain.Parameters()
	require.NoError(t, err)
	base := must(t, plain.Activations)
	for name, c := range map[string]struct {
		change func(*warm.Transformer)
		more   int64
	}{
		"dropout":          {func(s *warm.Transformer) { s.Dropout = true }, (1 + 2*layers) * tokens * 128},
		"eager activation": {func(s *warm.Transformer) { s.EagerActivation = true }, 3 * layers * tokens * 4 * 128 * 4},
		"eager attention":  {func(s *warm.Transformer) { s.EagerAttention = true }, layers * (2*4*64*64*4 - 2*4*64*4)},
		"both": {
			func(s *warm.Transformer) { s.EagerAttention, s.Dropout = true, true },
			layers*(2*4*64*64*(4+4+1)-2*4*64*4) + (1+2*layers)*tokens*128,
		},
		"half as wide": {func(s *warm.Transformer) { s.FeedForwardFactor = 2 }, -layers * 2 * tokens * 2 * 128 * 4},
		"shared keys":  {func(s *warm.Transformer) { s.KeyValueHeads = 1 }, -layers * tokens * 2 * 96 * 4},
		"positions":    {func(s *warm.Transformer) { s.Positions = 64 }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			shape := plain
			c.change(&shape)
			assert.Equal(t, c.more, must(t, shape.Activations)-base)
		})
	}
	assert.Equal(t, 2*total(parameters), must(t, plain.Optimizer))
	assert.Equal(t, total(parameters), must(t, plain.Gradients))
	half := plain
	half.Type = warm.Float16
	assert.Equal(t, total(parameters)/2, must(t, half.Gradients))
	assert.Equal(t, 2*total(parameters), must(t, half.Optimizer), "moments stay floats")
	untied := plain
	untied.Untied, untied.Positions = true, 10
	assert.Equal(t, total(parameters)+(1000+10)*128*4, must(t, untied.Parameters))
}

// A gated part keeps its gate and the gated product in addition, and norms without a mean; separate projections keep one tensor
// for each.
func TestAGatedLayerKeepsItsGate(t *testing.T) {
	plain := warm.Transformer{Batch: 2, Sequence: 64, Hidden: 128, Heads: 4, Layers: 3, Vocabulary: 1000}
	tokens, layers := int64(2*64), int64(3)
	gated := plain
	gated.Gated = true
	gates := layers * 2 * tokens * 4 * 128 * 4
	means := (2*layers + 1) * tokens * 4
	projections := layers * tokens * (3*128 + 3*128 - 2*128 - 2*128) * 4
	assert.Equal(t, gates-means-projections, must(t, gated.Activations)-must(t, plain.Activations))
}

// What a choice adds to inference is one layer's: its results are not kept for a backward pass. Keys that are shared are fewer in
// each layer.
func TestChoicesOfInference(t *testing.T) {
	plain := warm.Transformer{Batch: 2, Sequence: 64, Hidden: 128, Heads: 4, Layers: 3, Vocabulary: 1000}
	tokens := int64(2 * 64)
	base := must(t, plain.Inference)
	for name, c := range map[string]struct {
		change func(*warm.Transformer)
		more   int64
	}{
		"eager activation": {func(s *warm.Transformer) { s.EagerActivation = true }, 2 * tokens * 4 * 128 * 4},
		"eager attention":  {func(s *warm.Transformer) { s.EagerAttention = true }, 2 * 2 * 4 * 64 * 64 * 4},
		"dropout":          {func(s *warm.Transformer) { s.Dropout = true }, 0},
		"mixed":            {func(s *warm.Transformer) { s.Mixed = true }, 0},
	} {
		shape := plain
		c.change(&shape)
		assert.Equal(t, c.more, must(t, shape.Inference)-base, name)
	}
	shared := plain
	shared.KeyValueHeads = 1
	lessParameters := must(t, plain.Parameters) - must(t, shared.Parameters)
	assert.Equal(t, 3*2*tokens*96*4, base-must(t, shared.Inference)-lessParameters)
}

func must(t *testing.T, part func() ([]vram.Demand, error)) int64 {
	t.Helper()
	want, err := part()
	require.NoError(t, err)
	return total(want)
}

// The peak of a step is at the end of the forward pass, or with little input at the end of the backward pass. Accumulated
// gradients add to the activations.
func TestTheFullestMomentOfAStep(t *testing.T) {
	shape := gpt2()
	forward := must(t, shape.Training)
	assert.Equal(t, must(t, shape.Parameters)+must(t, shape.Optimizer)+must(t, shape.Activations)+copied(shape), forward)
	shape.Accumulate = true
	assert.Equal(t, forward+must(t, shape.Gradients), must(t, shape.Training))
	small := gpt2()
	small.Batch, small.Sequence = 1, 16
	assert.Equal(t, 4*must(t, small.Parameters), must(t, small.Training))
}

// In mixed precision a step has a copy of each matrix that it multiplies by, and of no other tensor: neither of an embedding that
// has a matrix of its own for the logits, nor of positions and norms. Where activations are floats there are none.
func TestTheCopiesOfMixedPrecision(t *testing.T) {
	const hidden, logits, layers = 128, 1000 * 128, 3
	const attention, feedForward = 4 * hidden * hidden, 2 * hidden * 4 * hidden
	for name, c := range map[string]struct {
		change   func(*warm.Transformer)
		elements int64
	}{
		"plain":           {func(*warm.Transformer) {}, logits + layers*(attention+feedForward)},
		"untied":          {func(s *warm.Transformer) { s.Untied = true }, logits + layers*(attention+feedForward)},
		"positions":       {func(s *warm.Transformer) { s.Positions = 64 }, logits + layers*(attention+feedForward)},
		"half as wide":    {func(s *warm.Transformer) { s.FeedForwardFactor = 2 }, logits + layers*(attention+feedForward/2)},
		"shared keys":     {func(s *warm.Transformer) { s.KeyValueHeads = 1 }, logits + layers*(attention-2*96*hidden+feedForward)},
		"gated":           {func(s *warm.Transformer) { s.Gated = true }, logits + layers*(attention+feedForward*3/2)},
		"gated, untied":   {func(s *warm.Transformer) { s.Gated, s.Untied = true, true }, logits + layers*(attention+feedForward*3/2)},
		"floats":          {func(s *warm.Transformer) { s.Type = warm.Float32 }, 0},
		"floats, untied":  {func(s *warm.Transformer) { s.Type, s.Untied = warm.Float32, true }, 0},
		"not mixed":       {func(s *warm.Transformer) { s.Mixed = false }, 0},
		"dropout, untied": {func(s *warm.Transformer) { s.Dropout, s.Untied = true, true }, logits + layers*(attention+feedForward)},
	} {
		shape := warm.Transformer{
			Batch: 2, Sequence: 64, Hidden: hidden, Heads: 4, Layers: layers, Vocabulary: 1000, Type: warm.BFloat16, Mixed: true, Accumulate: true,
		}
		c.change(&shape)
		others := must(t, shape.Parameters) + must(t, shape.Optimizer) + must(t, shape.Activations) + must(t, shape.Gradients)
		assert.Equal(t, 2*c.elements, must(t, shape.Training)-others, name)
	}
}

// copied returns the bytes of the matrices' copies in half precision.
func copied(shape warm.Transformer) int64 {
	matrices := int64(shape.Vocabulary)*768 + 12*(768*768*4+2*768*3072)
	return 2 * matrices
}

// The error of an invalid shape names the field, its value and the valid values; no shape overflows.
func TestShapesThatCannotBe(t *testing.T) {
	const more, none, most = "1 or more", "0 or more", "at most 1048576"
	for _, c := range []struct {
		field  string
		change func(*warm.Transformer)
		value  any
		want   string
	}{
		{"Batch", func(s *warm.Transformer) { s.Batch = 0 }, 0, more},
		{"Sequence", func(s *warm.Transformer) { s.Sequence = -1 }, -1, more},
		{"Hidden", func(s *warm.Transformer) { s.Hidden = 0 }, 0, more},
		{"Layers", func(s *warm.Transformer) { s.Layers = 1<<20 + 1 }, 1<<20 + 1, most},
		{"Vocabulary", func(s *warm.Transformer) { s.Vocabulary = 0 }, 0, more},
		{"Heads", func(s *warm.Transformer) { s.Heads = 0 }, 0, more},
		{"Heads", func(s *warm.Transformer) { s.Heads = 7 }, 7, "a divisor of Hidden"},
		{"KeyValueHeads", func(s *warm.Transformer) { s.KeyValueHeads = 5 }, 5, "a divisor of Heads"},
		{"KeyValueHeads", func(s *warm.Transformer) { s.KeyValueHeads = 24 }, 24, "a divisor of Heads"},
		{"KeyValueHeads", func(s *warm.Transformer) { s.KeyValueHeads = -1 }, -1, none},
		{"Positions", func(s *warm.Transformer) { s.Positions = -1 }, -1, none},
		{"Positions", func(s *warm.Transformer) { s.Positions = 1<<20 + 1 }, 1<<20 + 1, most},
		{"FeedForwardFactor", func(s *warm.Transformer) { s.FeedForwardFactor = math.NaN() }, nil, "0 to 64"},
		{"FeedForwardFactor", func(s *warm.Transformer) { s.FeedForwardFactor = -0.5 }, -0.5, "0 to 64"},
		{"FeedForwardFactor", func(s *warm.Transformer) { s.FeedForwardFactor = 64.5 }, 64.5, "0 to 64"},
		{"Type", func(s *warm.Transformer) { s.Type = 77 }, warm.Type(77), "Float32, Float16 or BFloat16"},
		{"shape", func(s *warm.Transformer) { s.Batch, s.Sequence, s.Vocabulary = 1<<20, 1<<20, 1<<20 }, nil, "tensors of less than 2^62 bytes"},
	} {
		t.Run(c.field, func(t *testing.T) {
			shape := gpt2()
			c.change(&shape)
			_, err := shape.Training()
			var wrong *vram.ConfigError
			require.ErrorAs(t, err, &wrong)
			assert.Equal(t, c.field, wrong.Field)
			assert.Equal(t, c.want, wrong.Want)
			if c.value != nil {
				assert.Equal(t, c.value, wrong.Value)
			}
		})
	}
}

// The smallest number of each kind is a shape.
func TestTheSmallestShape(t *testing.T) {
	shape := warm.Transformer{Batch: 1, Sequence: 1, Hidden: 1, Heads: 1, Layers: 1, Vocabulary: 1}
	for _, part := range []func() ([]vram.Demand, error){shape.Training, shape.Inference, shape.Parameters, shape.Optimizer} {
		want, err := part()
		require.NoError(t, err)
		assert.NotEmpty(t, want)
	}
}

// A step keeps the numbers of its tokens, of eight bytes each: the embedding needs them for its gradient.
func TestTrainingKeepsTheTokens(t *testing.T) {
	for _, tokens := range []int{1009, 2003, 4001} { // primes: no other tensor has so many bytes
		shape := gpt2()
		shape.Batch, shape.Sequence = 1, tokens
		want, err := shape.Training()
		require.NoError(t, err)
		assert.Contains(t, want, vram.Demand{Bytes: 8 * int64(tokens), Count: 1})
	}
}

// Every shape has an error or a demand that Warm accepts, largest first, each size once.
func TestEveryShapeHasAnAnswer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := func(name string) int { return rapid.IntRange(0, 1<<21).Draw(t, name) }
		flag := func(name string) bool { return rapid.Bool().Draw(t, name) }
		heads := rapid.IntRange(1, 64).Draw(t, "heads")
		shape := warm.Transformer{
			Batch: number("batch"), Sequence: number("sequence"), Heads: heads, Hidden: heads * rapid.IntRange(1, 1024).Draw(t, "width"),
			Layers: number("layers"), Vocabulary: number("vocabulary"), Positions: number("positions"),
			FeedForwardFactor: rapid.Float64Range(0, 70).Draw(t, "factor"), Gated: flag("gated"), Untied: flag("untied"),
			Type: warm.Type(rapid.IntRange(0, 3).Draw(t, "type")), Mixed: flag("mixed"), Dropout: flag("dropout"),
			EagerAttention: flag("attention"), EagerActivation: flag("activation"), Accumulate: flag("accumulate"),
		}
		if parameters, err := shape.Parameters(); err == nil {
			gradients, err := shape.Gradients()
			require.NoError(t, err)
			require.Equal(t, parameters, gradients)
			if moments, err := shape.Optimizer(); err == nil {
				elementBytes := shape.Type.Bytes()
				if shape.Mixed {
					elementBytes = 4
				}
				require.Len(t, moments, len(parameters))
				for i, p := range parameters {
					require.Equal(t, vram.Demand{Bytes: p.Bytes / elementBytes * 4, Count: 2 * p.Count}, moments[i])
				}
			}
		}
		for _, part := range []func() ([]vram.Demand, error){shape.Training, shape.Inference, shape.Parameters, shape.Optimizer} {
			want, err := part()
			if err != nil {
				require.ErrorAs(t, err, new(*vram.ConfigError))
				continue
			}
			require.NotEmpty(t, want)
			for i, d := range want {
				require.Positive(t, d.Bytes)
				require.Positive(t, d.Count)
				require.True(t, i == 0 || d.Bytes < want[i-1].Bytes)
			}
		}
	})
}
