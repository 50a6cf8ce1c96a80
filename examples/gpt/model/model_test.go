package model_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/half"
	"github.com/go-vram/vram/compute/tensor/safetensors"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/examples/gpt/model"
	"github.com/go-vram/vram/host"
	"github.com/go-vram/vram/internal/recoveredtest"
	"github.com/go-vram/vram/vramtest"
)

func TestMain(m *testing.M) { recoveredtest.Main(m) }

// small is the least model that has all parts twice.
var small = model.Config{Layers: 2, Width: 8, Heads: 2, Context: 5, Vocabulary: 11, Type: tensor.Float32}

// opened returns a model on a device that computes, checks every access and finds leaks.
func opened(t *testing.T, config model.Config, seed uint64) *model.Model {
	t.Helper()
	m, _ := openedWithMemory(t, config, seed)
	return m
}

// openedWithMemory also returns page-locked memory of the device.
func openedWithMemory(t *testing.T, config model.Config, seed uint64) (*model.Model, host.Allocator) {
	t.Helper()
	dev := vramtest.Open(t, vramtest.Kernels())
	memory, err := host.NewPageLocked(dev.GPU(), host.PoolConfig{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, memory.Close(context.WithoutCancel(t.Context()))) })
	c, err := cuda.NewContext(dev.Stream())
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Close()) })
	o, err := ops.New(c)
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, c.Synchronize(context.WithoutCancel(t.Context())))
		assert.NoError(t, o.Close())
	})
	m, err := model.New(c, o, config, seed)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, m.Close()) })
	return m, memory
}

func trainer(t *testing.T, m *model.Model, training model.Training) *model.Trainer {
	t.Helper()
	x, err := model.NewTrainer(m, training)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, x.Close()) })
	return x
}

// batch returns random tokens and targets.
func batch(random *rand.Rand, n, vocabulary int) (tokens, targets []int64) {
	for range n {
		tokens, targets = append(tokens, random.Int64N(int64(vocabulary))), append(targets, random.Int64N(int64(vocabulary)))
	}
	return tokens, targets
}

func read(t *testing.T, x *tensor.Tensor) (values []float64) {
	t.Helper()
	singles, err := tensor.Read[float32](x)
	require.NoError(t, err)
	for _, v := range singles {
		values = append(values, float64(v))
	}
	return values
}

// The gradient of each parameter is the slope of the loss, which the reference computes in float64.
func TestGradients(t *testing.T) {
	m := opened(t, small, 1)
	random := rand.New(rand.NewPCG(2, 0))
	r := reference{config: small, of: map[string][]float64{}}
	for _, p := range m.Parameters() { // numbers at which no gradient is small
		values := make([]float32, p.Param.Len())
		for i := range values {
			values[i] = float32(random.NormFloat64() / 2)
		}
		require.NoError(t, tensor.Write(p.Param, values))
		r.of[p.Name] = read(t, p.Param)
	}
	tokens, targets := batch(random, 2*4, small.Vocabulary)
	x := trainer(t, m, model.Training{Batch: 2, Length: 4}) // fewer positions than the context has
	require.NoError(t, x.Step(tokens, targets))             // at a rate of 0
	loss, err := x.Loss()
	require.NoError(t, err)
	assert.InDelta(t, r.loss(tokens, targets, 2), loss, 1e-5)

	const d = 1e-5
	for _, p := range m.Parameters() {
		gradients, values := read(t, p.Grad), r.of[p.Name]
		for i := range values {
			if i%3 != 0 && len(values) > 40 { // a third of the large ones
				continue
			}
			value := values[i]
			values[i] = value + d
			above := r.loss(tokens, targets, 2)
			values[i] = value - d
			below := r.loss(tokens, targets, 2)
			values[i] = value
			require.InDelta(t, (above-below)/(2*d), gradients[i], 2e-5, "%s, element %d", p.Name, i)
		}
	}
}

// losses trains for some steps, and returns the losses.
func losses(t *testing.T, x *model.Trainer, random *rand.Rand, steps int) (all []float32) {
	t.Helper()
	for range steps {
		tokens, targets := batch(random, 2*3, small.Vocabulary)
		require.NoError(t, x.Step(tokens, targets))
		loss, err := x.Loss()
		require.NoError(t, err)
		all = append(all, loss)
	}
	return all
}

var training = model.Training{
	Batch: 2, Length: 3, Clip: 0.5, Decay: 0.1, Schedule: model.Schedule{Rate: 1e-2, Warmup: 2, Steps: 6},
}

// A step is the same, bit for bit, where it is a launch of a graph, where batches come from page-locked memory, and where the
// training was interrupted, saved and resumed by another process.
func TestRepeats(t *testing.T) {
	whole := opened(t, small, 1)
	want := losses(t, trainer(t, whole, training), rand.New(rand.NewPCG(3, 0)), 5)

	first, memory := openedWithMemory(t, small, 1)
	graphs := training
	graphs.Graph, graphs.Memory = true, memory
	x := trainer(t, first, graphs)
	random := rand.New(rand.NewPCG(3, 0))
	got := losses(t, x, random, 3)
	path := filepath.Join(t.TempDir(), "checkpoint")
	require.NoError(t, x.Save(path))

	f, err := safetensors.OpenFile(path)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	config, err := model.ConfigOf(f)
	require.NoError(t, err)
	assert.Equal(t, small, config)
	second := opened(t, config, 99)
	graphs.Memory = nil
	x = trainer(t, second, graphs)
	require.NoError(t, x.Resume(f))
	assert.Equal(t, 3, x.Steps())
	got = append(got, losses(t, x, random, 2)...)
	assert.Equal(t, want, got)
	for i, p := range whole.Parameters() {
		assert.Equal(t, read(t, p.Param), read(t, second.Parameters()[i].Param), p.Name)
	}

	// Another model does not take it, and keeps its parameters.
	wide := small
	wide.Width = 16
	other := opened(t, wide, 1)
	before := read(t, other.Parameters()[0].Param)
	var refused *model.CheckpointError
	require.ErrorAs(t, other.Load(f), &refused)
	assert.Equal(t, before, read(t, other.Parameters()[0].Param))
}

// stored returns what a checkpoint of a model's training has, for a test to change.
func stored(t *testing.T, m *model.Model, step string) (texts map[string]string, all []safetensors.Source) {
	t.Helper()
	for _, p := range m.Parameters() {
		for prefix, x := range map[string]*tensor.Tensor{"": p.Param, "adamw.first.": p.First, "adamw.second.": p.Second} {
			var b []byte
			for range x.Len() {
				b = binary.LittleEndian.AppendUint32(b, math.Float32bits(7))
			}
			var shape []int64
			for _, n := range x.Shape() {
				shape = append(shape, int64(n))
			}
			all = append(all, safetensors.Source{Name: prefix + p.Name, Type: safetensors.Float32, Shape: shape, Data: bytes.NewReader(b)})
		}
	}
	return map[string]string{"step": step}, all
}

// A checkpoint with one mistake is refused, and changes neither parameters and moments nor the number of steps.
func TestCheckpointsThatAreRefused(t *testing.T) {
	m := opened(t, small, 1)
	x := trainer(t, m, training)
	losses(t, x, rand.New(rand.NewPCG(3, 0)), 2)
	state := func() (all [][]float64) {
		for _, p := range m.Parameters() {
			all = append(all, read(t, p.Param), read(t, p.First), read(t, p.Second))
		}
		return all
	}
	before := state()
	for name, c := range map[string]struct {
		step   string
		change func(all []safetensors.Source) []safetensors.Source
	}{
		"no moment": {"5", func(all []safetensors.Source) []safetensors.Source { return all[1:] }},
		"another shape": {"5", func(all []safetensors.Source) []safetensors.Source {
			all[0].Shape = append(all[0].Shape, 1)
			return all
		}},
		"integers":       {"5", func(all []safetensors.Source) []safetensors.Source { all[2].Type = safetensors.Int32; return all }},
		"negative steps": {"-1", func(all []safetensors.Source) []safetensors.Source { return all }},
		"no steps":       {"", func(all []safetensors.Source) []safetensors.Source { return all }},
	} {
		texts, all := stored(t, m, c.step)
		path := filepath.Join(t.TempDir(), "checkpoint")
		require.NoError(t, safetensors.WriteFile(path, texts, c.change(all)), name)
		f, err := safetensors.OpenFile(path)
		require.NoError(t, err)
		var refused *model.CheckpointError
		require.ErrorAs(t, x.Resume(f), &refused, name)
		require.NoError(t, f.Close())
		assert.Equal(t, before, state(), name)
		assert.Equal(t, 2, x.Steps(), name)
	}
	for _, text := range []string{"", "no JSON", `{}`, `{"layers":2,"width":8,"heads":3,"context":5,"vocabulary":11}`, `{"layers":2,"width":8,"heads":2,"context":-5,"vocabulary":11}`} {
		path := filepath.Join(t.TempDir(), "checkpoint")
		require.NoError(t, safetensors.WriteFile(path, map[string]string{"config": text}, nil))
		f, err := safetensors.OpenFile(path)
		require.NoError(t, err)
		_, err = model.ConfigOf(f)
		require.Error(t, err, text)
		require.NoError(t, f.Close())
	}
	texts, all := stored(t, m, "5")
	path := filepath.Join(t.TempDir(), "checkpoint")
	require.NoError(t, safetensors.WriteFile(path, texts, all))
	f, err := safetensors.OpenFile(path)
	require.NoError(t, err)
	require.NoError(t, x.Resume(f))
	require.NoError(t, f.Close())
	assert.Equal(t, 5, x.Steps())
	for _, values := range state() {
		assert.NotContains(t, values, 0.0)
		assert.InDelta(t, 7, values[0], 0)
	}
}

// A model that computes with 16 bits has the logits of the one whose checkpoint it loads, or resumes, and the same moments.
func TestCheckpointsOfHalves(t *testing.T) {
	config := small
	config.Type = tensor.BFloat16
	m := opened(t, config, 1)
	x := trainer(t, m, training)
	losses(t, x, rand.New(rand.NewPCG(3, 0)), 2)
	path := filepath.Join(t.TempDir(), "checkpoint")
	require.NoError(t, x.Save(path))
	tokens, _ := batch(rand.New(rand.NewPCG(4, 0)), 3, config.Vocabulary)
	want, err := m.Logits(tokens, 1)
	require.NoError(t, err)
	f, err := safetensors.OpenFile(path)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	for _, resumes := range []bool{false, true} {
		other := opened(t, config, 99)
		if resumes {
			require.NoError(t, trainer(t, other, training).Resume(f))
			for i, p := range m.Parameters() {
				assert.Equal(t, read(t, p.First), read(t, other.Parameters()[i].First), p.Name)
				assert.Equal(t, read(t, p.Second), read(t, other.Parameters()[i].Second), p.Name)
			}
		} else {
			require.NoError(t, other.Load(f))
		}
		got, err := other.Logits(tokens, 1)
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
}

// A published file has names with a prefix, numbers of 16 bits, and tensors that are no parameters.
func TestPublished(t *testing.T) {
	m := opened(t, small, 1)
	random := rand.New(rand.NewPCG(9, 0))
	want := map[string][]float64{}
	var all []safetensors.Source
	for i, p := range m.Parameters() {
		var b []byte
		of := []safetensors.Type{safetensors.Float32, safetensors.Float16, safetensors.BFloat16}[i%3]
		for range p.Param.Len() {
			v := half.NewBFloat16(float32(random.IntN(200)-100) / 64).Float32() // exact in all types
			want[p.Name] = append(want[p.Name], float64(v))
			switch of {
			case safetensors.Float32:
				b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
			case safetensors.Float16:
				b = binary.LittleEndian.AppendUint16(b, uint16(half.NewFloat16(v)))
			default:
				b = binary.LittleEndian.AppendUint16(b, uint16(half.NewBFloat16(v)))
			}
		}
		var shape []int64
		for _, n := range p.Param.Shape() {
			shape = append(shape, int64(n))
		}
		all = append(all, safetensors.Source{Name: "transformer." + p.Name, Type: of, Shape: shape, Data: bytes.NewReader(b)})
	}
	for _, name := range []string{"transformer.h.0.attn.bias", "transformer.h.0.attn.masked_bias", "lm_head.weight"} {
		all = append(all, safetensors.Source{Name: name, Type: safetensors.Bool, Shape: []int64{1}, Data: bytes.NewReader([]byte{1})})
	}
	path := filepath.Join(t.TempDir(), "published")
	require.NoError(t, safetensors.WriteFile(path, nil, all))
	f, err := safetensors.OpenFile(path)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	require.NoError(t, m.Load(f))
	for _, p := range m.Parameters() {
		assert.Equal(t, want[p.Name], read(t, p.Param), p.Name)
	}
	tokens, _ := batch(random, 2*3, small.Vocabulary)
	logits, err := m.Logits(tokens, 2)
	require.NoError(t, err)
	r := reference{config: small, of: want}
	for i := range 2 {
		assert.InDeltaSlice(t, r.logits(tokens[3*i:3*i+3]), logits[3*i*small.Vocabulary:][:3*small.Vocabulary], 1e-3)
	}
	// A checkpoint of a training has more than a published file.
	var refused *model.CheckpointError
	require.ErrorAs(t, trainer(t, m, training).Resume(f), &refused)
}

// The model learns to continue a text, with values of 16 bits; the gradients of float32 have a test of their own.
func TestTraining(t *testing.T) {
	config, steps := small, 16
	config.Type = tensor.BFloat16
	if testing.Short() { // a wider layer learns it in fewer steps
		config.Layers, config.Width, steps = 1, 16, 11
	}
	m := opened(t, config, 1)
	x := trainer(t, m, model.Training{Batch: 2, Length: 5, Clip: 1, Schedule: model.Schedule{Rate: 8e-2, Warmup: 1, Steps: steps}, Graph: true})
	tokens, targets := []int64{1, 2, 3, 4, 5, 2, 3, 4, 5, 1}, []int64{2, 3, 4, 5, 1, 3, 4, 5, 1, 2}
	var first, last float32
	for i := range steps {
		require.NoError(t, x.Step(tokens, targets))
		loss, err := x.Loss()
		require.NoError(t, err)
		if last = loss; i == 0 {
			first = loss
		}
	}
	assert.InDelta(t, 2.4, first, 0.1, "ln 11: it knows nothing")
	assert.Less(t, last, first/3)
	norm, err := x.Norm()
	require.NoError(t, err)
	assert.Positive(t, norm)
	text, err := m.Sample([]int64{1}, 6, model.Sampling{})
	require.NoError(t, err)
	assert.Equal(t, []int64{1, 2, 3, 4, 5, 1, 2}, text, "past the end of the context")
}

// The step has gradients whose norm is at most the bound: the first moments are a tenth of them.
func TestClipping(t *testing.T) {
	m := opened(t, small, 1)
	const bound = 0.125
	x := trainer(t, m, model.Training{Batch: 2, Length: 3, Clip: bound})
	tokens, targets := batch(rand.New(rand.NewPCG(4, 0)), 6, small.Vocabulary)
	require.NoError(t, x.Step(tokens, targets))
	norm, err := x.Norm()
	require.NoError(t, err)
	var gradients, moments float64
	for _, p := range m.Parameters() {
		for i, v := range read(t, p.First) {
			moments += v * v
			g := read(t, p.Grad)[i]
			gradients += g * g
		}
	}
	assert.Greater(t, norm, float32(bound))
	assert.InDelta(t, math.Sqrt(gradients), norm, 1e-5)
	assert.InDelta(t, bound/10, math.Sqrt(moments), 1e-5)
}

// The first step has the rate of the first step, and lets the parameters that are multiplied with decay, and no others. A step whose
// gradients have a NaN changes nothing.
func TestTheFirstStep(t *testing.T) {
	m := opened(t, small, 1)
	const decay = 0.5
	schedule := model.Schedule{Rate: 0.25, Warmup: 4, Steps: 12}
	x := trainer(t, m, model.Training{Batch: 2, Length: 3, Clip: 1e9, Decay: decay, Schedule: schedule})
	state := func() (all [][]float64) {
		for _, p := range m.Parameters() {
			all = append(all, read(t, p.Param), read(t, p.First), read(t, p.Second))
		}
		return all
	}
	before := state()
	tokens, targets := batch(rand.New(rand.NewPCG(4, 0)), 6, small.Vocabulary)
	require.NoError(t, x.Step(tokens, targets))
	rate := schedule.At(1)
	for i, p := range m.Parameters() {
		now, gradient := read(t, p.Param), read(t, p.Grad)
		for j, was := range before[3*i] {
			want := was - rate*gradient[j]/(math.Abs(gradient[j])+model.Epsilon)
			if p.Param.Rank() > 1 {
				want -= rate * decay * was
			}
			if math.Abs(gradient[j]) > 1e-5 || gradient[j] == 0 { // else epsilon is not small
				require.InDelta(t, want, now[j], 1e-4, "%s, element %d", p.Name, j)
			}
		}
	}
	for _, p := range m.Parameters() {
		if p.Name == "ln_f.bias" {
			require.NoError(t, tensor.Write(p.Param, append(make([]float32, small.Width-1), float32(math.NaN()))))
		}
	}
	before = state()
	require.NoError(t, x.Step(tokens, targets))
	for i, values := range state() {
		for j, v := range values {
			require.True(t, v == before[i][j] || math.IsNaN(v) && math.IsNaN(before[i][j]), "%d: %v, not %v", i, v, before[i][j])
		}
	}
}

// The gradients of the parts of a batch add up to the gradients of the whole.
func TestParts(t *testing.T) {
	tokens, targets := batch(rand.New(rand.NewPCG(6, 0)), 3*2*3, small.Vocabulary)
	gradients := func(training model.Training) (all [][]float64, loss float32) {
		m := opened(t, small, 1)
		x := trainer(t, m, training)
		require.NoError(t, x.Step(tokens, targets))
		loss, err := x.Loss()
		require.NoError(t, err)
		for _, p := range m.Parameters() {
			all = append(all, read(t, p.Grad))
		}
		return all, loss
	}
	want, loss := gradients(model.Training{Batch: 6, Length: 3})
	got, inParts := gradients(model.Training{Batch: 2, Parts: 3, Length: 3})
	assert.InDelta(t, loss, inParts, 1e-6)
	for i := range want {
		assert.InDeltaSlice(t, want[i], got[i], 1e-7, "parameter %d", i)
	}
}

// With values of 16 bits, and attention by its kernel, losses and gradients are near the ones of the same weights in float32.
func TestHalves(t *testing.T) {
	config := model.Config{Layers: 1, Width: 64, Heads: 1, Context: 7, Vocabulary: 65, Type: tensor.BFloat16}
	tokens, targets := batch(rand.New(rand.NewPCG(7, 0)), 2*5, config.Vocabulary)
	var losses []float32
	var gradients [2][][]float64
	for i, of := range []tensor.Type{tensor.BFloat16, tensor.Float32} {
		config.Type = of
		m := opened(t, config, 1)
		random := rand.New(rand.NewPCG(8, 0))
		for _, p := range m.Parameters() {
			values := make([]float32, p.Param.Len())
			for i := range values {
				values[i] = half.NewBFloat16(float32(random.NormFloat64() / 4)).Float32()
			}
			require.NoError(t, tensor.Write(p.Param, values))
			if p.Copy != nil {
				require.NoError(t, m.Ops().CopyInto(m.Context(), p.Copy, p.Param))
			}
		}
		x := trainer(t, m, model.Training{Batch: 2, Length: 5})
		require.NoError(t, x.Step(tokens, targets))
		loss, err := x.Loss()
		require.NoError(t, err)
		losses = append(losses, loss)
		for _, p := range m.Parameters() {
			gradients[i] = append(gradients[i], read(t, p.Grad))
		}
	}
	assert.InDelta(t, losses[1], losses[0], 0.03*float64(losses[1]))
	for i, want := range gradients[1] {
		var far, all float64
		for j, v := range want {
			far += (gradients[0][i][j] - v) * (gradients[0][i][j] - v)
			all += v * v
		}
		assert.Less(t, math.Sqrt(far/all), 0.05, "parameter %d", i)
	}
}

// A draw takes the tokens of the greatest logits, by their probabilities.
func TestDraws(t *testing.T) {
	m := opened(t, model.Config{Layers: 1, Width: 2, Heads: 1, Context: 1, Vocabulary: 4, Type: tensor.Float32}, 1)
	for _, p := range m.Parameters() { // the last norm is its bias
		if p.Name == "ln_f.weight" {
			require.NoError(t, tensor.Write(p.Param, []float32{0, 0}))
		}
		if p.Name == "ln_f.bias" {
			require.NoError(t, tensor.Write(p.Param, []float32{1, 0}))
		}
		if p.Name == "wte.weight" { // the logits are 0, 2, 3, 2
			require.NoError(t, tensor.Write(p.Param, []float32{0, 0, 2, 0, 3, 0, 2, 0}))
		}
	}
	counts := [4]float64{}
	s := model.Sampling{Temperature: 0.5, Top: 2, Random: rand.New(rand.NewPCG(5, 0))}
	text, err := m.Sample([]int64{0}, 60, s)
	require.NoError(t, err)
	for _, token := range text[1:] {
		counts[token]++
	}
	assert.Zero(t, counts[0])
	assert.Zero(t, counts[3], "of two equal ones the first")
	assert.InDelta(t, 60/(1+math.Exp(-2)), counts[2], 8, "e^(3/0.5) to e^(2/0.5)")
	s.Temperature = 0
	text, err = m.Sample([]int64{0, 1}, 2, s)
	require.NoError(t, err)
	assert.Equal(t, []int64{0, 1, 2, 2}, text)
}

func TestMistakes(t *testing.T) {
	m := opened(t, small, 1)
	var config *model.ConfigError
	for _, c := range []model.Config{
		{},
		{Layers: 1, Width: 8, Heads: 3, Context: 4, Vocabulary: 4, Type: tensor.Float32},
		{Layers: 1, Width: 8, Heads: 2, Context: 4, Vocabulary: 4, Type: tensor.Int32},
		{Layers: 1, Width: 8, Heads: 2, Context: 4, Vocabulary: 1 << 21, Type: tensor.Float32},
		{Layers: -1, Width: 8, Heads: 2, Context: 4, Vocabulary: 4, Type: tensor.Float32},
	} {
		_, err := model.New(m.Context(), m.Ops(), c, 1)
		require.ErrorAs(t, err, &config, "%v", c)
	}
	for _, x := range []model.Training{{}, {Batch: 1, Length: 6}, {Batch: 1}, {Batch: 1 << 40, Length: 1}, {Batch: 1, Length: 1, Parts: 1 << 21}, {Batch: 1 << 11, Length: 1, Parts: 1 << 11}} {
		_, err := model.NewTrainer(m, x)
		require.ErrorAs(t, err, &config, "%v", x)
	}
	x := trainer(t, m, training)
	require.ErrorAs(t, x.Step(make([]int64, 5), make([]int64, 6)), &config)
	require.ErrorAs(t, x.Step(make([]int64, 6), make([]int64, 7)), &config)
	_, err := m.Sample(nil, 1, model.Sampling{})
	require.ErrorAs(t, err, &config)
	assert.Zero(t, x.Steps())
}

func TestSchedule(t *testing.T) {
	s := model.Schedule{Rate: 2, Warmup: 4, Steps: 12}
	for step, want := range map[int]float64{1: 0.5, 2: 1, 4: 2, 8: 1.1, 12: 0.2, 100: 0.2} {
		assert.InDelta(t, want, s.At(step), 1e-9, step)
	}
}
